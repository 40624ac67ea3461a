//! From text to tile IR: every kernel of the examples that needs no settings.

use criterion::{Criterion, criterion_group, criterion_main};
use tilewright_ir::SourceMap;

fn stage_examples(c: &mut Criterion) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the examples")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    paths.sort();
    let mut group = c.benchmark_group("stage");
    for path in paths {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let text = std::fs::read_to_string(&path).expect("an example");
        let mut sources = SourceMap::new();
        let file = sources.add(name.clone(), text);
        group.bench_function(&name, |b| {
            b.iter(|| tilewright_frontend::stage(&sources, file, None, &[]).expect("it stages"));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = stage_examples
}
criterion_main!(benches);
