//! The tests of the command line and of the compiler as a whole, in one binary: it is linked once,
//! and a long test of one file runs beside those of another. `cargo test --test suite FILE::`
//! runs the tests of one file.
//!
//! Files that make their tests from data, and those with snapshots, are binaries of their own.

#![expect(
    clippy::duplicate_mod,
    reason = "files that share helpers stay files that could be run alone"
)]

#[path = "banks.rs"]
mod banks;
#[path = "bench.rs"]
mod bench;
#[path = "block_pingpong.rs"]
mod block_pingpong;
#[path = "by_hand.rs"]
mod by_hand;
#[path = "cache_key.rs"]
mod cache_key;
#[path = "cycles.rs"]
mod cycles;
#[path = "docs.rs"]
mod docs;
#[path = "findings.rs"]
mod findings;
#[path = "hip_run.rs"]
mod hip_run;
#[path = "hopper_faults.rs"]
mod hopper_faults;
#[path = "installed.rs"]
mod installed;
#[path = "isa.rs"]
mod isa;
#[path = "json.rs"]
mod json;
#[path = "lane_maps.rs"]
mod lane_maps;
#[path = "language.rs"]
mod language;
#[path = "layouts.rs"]
mod layouts;
#[path = "lowered.rs"]
mod lowered;
#[path = "odd_shapes.rs"]
mod odd_shapes;
#[path = "order_pictures.rs"]
mod order_pictures;
#[path = "order_ranks.rs"]
mod order_ranks;
#[path = "order_texts.rs"]
mod order_texts;
#[path = "orders.rs"]
mod orders;
#[path = "product_cycles.rs"]
mod product_cycles;
#[path = "promises.rs"]
mod promises;
#[path = "random_orders.rs"]
mod random_orders;
#[path = "random_waits.rs"]
mod random_waits;
#[path = "reductions.rs"]
mod reductions;
#[path = "refused.rs"]
mod refused;
#[path = "room.rs"]
mod room;
#[path = "scaled_products.rs"]
mod scaled_products;
#[path = "schedules.rs"]
mod schedules;
#[path = "settings.rs"]
mod settings;
#[path = "shown.rs"]
mod shown;
#[path = "small_floats.rs"]
mod small_floats;
#[path = "sparse_products.rs"]
mod sparse_products;
#[path = "stored.rs"]
mod stored;
#[path = "tensors.rs"]
mod tensors;
#[path = "timeline.rs"]
mod timeline;
#[path = "tune.rs"]
mod tune;

/// A file that is named nowhere would never be run.
#[test]
fn every_file_is_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let named = [include_str!("suite.rs"), include_str!("../Cargo.toml")].concat();
    for entry in std::fs::read_dir(folder).expect("the tests") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "rs") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let (module, binary) = (format!("\nmod {name};"), format!("\nname = \"{name}\""));
            assert!(
                named.contains(&module) || named.contains(&binary),
                "{name}.rs is no module of suite.rs and no test of Cargo.toml"
            );
        }
    }
}
