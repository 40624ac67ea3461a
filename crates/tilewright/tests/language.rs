//! What kernels of `language/` compute, by mathematics of its own.

use std::fs;
use std::path::Path;

use tilewright::codegen;
use tilewright::frontend;
use tilewright::ir::{SourceMap, Target};
use tilewright::passes::driver::{self, Options};
use tilewright::sim::{self, Fill, InputSpec, Number, RunOptions};

/// The elements of a tensor after the kernel of a file ran on tensors that count from zero. Its
/// sizes and scalars are 3.
fn result(file: &str, tensor: &str) -> Vec<f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language");
    let text = fs::read_to_string(path.join(file)).expect("the kernel");
    let mut sources = SourceMap::new();
    let id = sources.add(file, text);
    let func = frontend::stage(&sources, id, None, &[])
        .expect("it stages")
        .func;
    let mut spec = InputSpec::default();
    for (buffer, _) in func.tensors() {
        let name = func.buffers[buffer].name.clone();
        spec.fills.insert(name, Fill::Iota(0));
    }
    for name in ["m", "k"] {
        spec.values.insert(name.to_string(), Number::Int(3));
    }
    let mut tensors = sim::make_inputs(&func, &spec).expect("tensors");
    sim::run(&func, &mut tensors, &RunOptions::default()).expect("it runs");
    tensors.tensor(tensor).expect("the tensor").to_f64()
}

/// One block of Philox 4x32 with ten rounds.
fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _ in 0..10 {
        let first = u64::from(c[0]) * 0xD251_1F53;
        let second = u64::from(c[2]) * 0xCD9E_8D57;
        c = [
            (second >> 32) as u32 ^ c[1] ^ k[0],
            second as u32,
            (first >> 32) as u32 ^ c[3] ^ k[1],
            first as u32,
        ];
        k = [
            k[0].wrapping_add(0x9E37_79B9),
            k[1].wrapping_add(0xBB67_AE85),
        ];
    }
    c
}

#[test]
fn random_numbers_are_those_of_the_generator() {
    // The published answer for zeros.
    assert_eq!(
        philox([0; 4], [0; 2]),
        [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
    );
    let (bits, floats) = (
        result("random_numbers.py", "O"),
        result("random_numbers.py", "P"),
    );
    for block in 0..2usize {
        for thread in 0..32usize {
            let sequence = (block * 32 + thread) as u32;
            let stream: Vec<u32> = (0..3)
                .flat_map(|n| philox([n, 0, sequence, 0], [42, 0]))
                .skip(block)
                .collect();
            let at = block * 32 + thread;
            let expected: Vec<f64> = stream[..6].iter().map(|v| f64::from(*v)).collect();
            assert_eq!(bits[at * 6..at * 6 + 6], expected);
            let unit = 1.0 / 4_294_967_296.0f32;
            let float = (stream[6] as f32).mul_add(unit, unit / 2.0);
            assert!((floats[at] - f64::from(float)).abs() <= f64::from(f32::EPSILON));
        }
    }
}

#[test]
fn a_scheduler_deals_out_every_tile_in_its_order() {
    let (panels, rows) = (
        result("tiles_of_a_scheduler.py", "O"),
        result("tiles_of_a_scheduler.py", "P"),
    );
    // Five rows by three columns: down the rows for columns 0 and 1, then for column 2.
    let mut order = Vec::new();
    for m in 0..5 {
        order.extend([(m, 0), (m, 1)]);
    }
    order.extend((0..5).map(|m| (m, 2)));
    for (number, (m, n)) in order.into_iter().enumerate() {
        assert_eq!(panels[m * 16 * 48 + n * 16], number as f64, "{m} {n}");
        assert_eq!(panels[(m * 16 + 15) * 48 + n * 16 + 15], number as f64);
    }
    for m in 0..5 {
        for n in 0..3 {
            assert_eq!(rows[m * 16 * 48 + n * 16], (m * 3 + n) as f64, "{m} {n}");
        }
    }
}

#[test]
fn small_powers_of_two_are_zero() {
    let expected: Vec<f64> = (0..64)
        .map(|i| if i <= 26 { 2f64.powi(-i) } else { 0.0 })
        .collect();
    for tensor in ["O", "P"] {
        assert_eq!(result("small_powers.py", tensor), expected);
    }
}

#[test]
fn arms_of_warp_groups() {
    let expected: Vec<f64> = (0..512)
        .map(|i| f64::from(i) * if i % 256 < 128 { 1.0 } else { 2.0 })
        .collect();
    assert_eq!(result("groups_by_thread.py", "O"), expected);
    let expected: Vec<f64> = (0..384)
        .map(|i| if i < 256 { f64::from(i) } else { 7.0 })
        .collect();
    assert_eq!(result("groups_by_chain.py", "O"), expected);
}

#[test]
fn vectors() {
    let made = result("vectors_made.py", "P");
    for thread in 0..64usize {
        let first = (thread * 4) as f64;
        let expected = [
            2.0 * first,
            2.0 * first + thread as f64,
            6.0,
            2.0 * (first + 3.0),
        ];
        assert_eq!(made[thread * 4..thread * 4 + 4], expected);
    }
    let copied = result("vectors_copied.py", "O");
    for (at, value) in copied.iter().enumerate() {
        let (row, column) = (at / 128, at % 128);
        let source = row * 128 + (120 - column / 8 * 8) + column % 8;
        assert_eq!(*value, (source + 1) as f64);
    }
    let wide = result("wide_accesses.py", "O");
    assert_eq!(wide[0..4], [252.0, 253.0, 254.0, 255.0]);
    // Threads whose predicate does not hold store nothing, or zero.
    assert_eq!(wide[256..260], [256.0, 257.0, 258.0, 259.0]);
    assert_eq!(wide[384 + 31..384 + 33], [415.0, 0.0]);
    let old = result("old_values_of_vectors.py", "O");
    // The second addition finds what the first one made.
    assert_eq!(old[4..8], [14.0, 5.0, 6.0, 7.0]);
}

#[test]
fn sizes_and_scalars_of_a_body_that_states_them() {
    let sums = result("tensors_stated_inside.py", "O");
    let expected: Vec<f64> = (0..48).map(|i| f64::from(i) * 4.0).collect();
    assert_eq!(sums, expected);
}

#[test]
fn a_table_of_addresses_compiles() {
    let text = r#"
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((2,), T.ptr), n: T.ptr, O: T.Tensor((2, 64), "float32")):
    with T.Kernel(2, threads=64) as bx:
        x = T.make_tensor(A[bx], (64,), "float32")
        y = T.Tensor((64,), "float32", n)
        for i in T.Parallel(64):
            O[bx, i] = x[i] + y[i]
"#;
    let mut sources = SourceMap::new();
    let file = sources.add("table.py", text);
    let func = frontend::stage(&sources, file, None, &[])
        .expect("it stages")
        .func;
    for target in Target::ALL {
        let mut lowered = func.clone();
        driver::run(&mut lowered, target, &Options::default()).expect("it lowers");
        let options = codegen::Options {
            sources: Some(&sources),
            line_directives: false,
        };
        let source = codegen::generate(&lowered, target, options).expect("it is generated");
        assert!(source.text.contains("A[bx]"), "{}", source.text);
    }
}

#[test]
fn rounding_by_random_bits() {
    const SCALES: [f32; 4] = [0.37, 1e-5, 3e-8, 1.7];
    // Bits behind the point, the least exponent of normal values, and the largest value.
    for (tensor, fraction, least, largest) in [
        ("O", 10, -14, 65504.0),
        ("P", 7, -126, f64::MAX),
        ("Q", 3, -6, 448.0),
        ("R", 2, -14, 57344.0),
    ] {
        let found = result("rounded_by_chance.py", tensor);
        let (mut up, mut down) = (0, 0);
        for (at, found) in found.into_iter().enumerate() {
            let (block, i) = (at / 1024, at % 1024);
            let x = f64::from((i as f32 - 500.0) * SCALES[block]);
            let random = ((i * 4 + block) as u32).wrapping_mul(2_654_435_761);
            let exponent = match x == 0.0 {
                true => least,
                false => (x.abs().log2().floor() as i32).max(least),
            };
            let unit = 2f64.powi(exponent - fraction);
            let below = (x.abs() / unit).floor();
            let rest = ((x.abs() / unit - below) * 16_777_216.0).floor();
            let above = rest + f64::from(random >> 8) >= 16_777_216.0;
            let size = (below + f64::from(u8::from(above))) * unit;
            let expected = size.min(largest).copysign(x);
            assert_eq!(found, expected, "{tensor}: {x:e} with {random:x}");
            match above {
                true => up += 1,
                false => down += 1,
            }
        }
        assert!(up > 500 && down > 500, "{tensor}: {up} up, {down} down");
    }
}

/// The sum of products with a left factor of which `kept` of `group` neighbours are stored, each by
/// its place: element, row and column to value.
fn sparse_sum(
    [m, n, k]: [usize; 3],
    [kept, group]: [usize; 2],
    place: impl Fn(usize, usize) -> usize,
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let mut sums = Vec::new();
    for row in 0..m {
        let mut left = vec![0.0; k];
        for stored in 0..k / group * kept {
            left[stored / kept * group + place(row, stored)] = a(row, stored);
        }
        for column in 0..n {
            sums.push((0..k).map(|k| left[k] * b(k, column)).sum());
        }
    }
    sums
}

#[test]
fn products_of_sparse_factors() {
    // float16 has the whole numbers up to 2048 and every second one to 4096.
    let half = |v: usize| {
        (if v <= 2048 {
            v
        } else {
            v / 4 * 4 + [0, 0, 2, 4][v % 4]
        }) as f64
    };
    let expected = sparse_sum(
        [64, 32, 128],
        [2, 4],
        |row, stored| {
            let told = row * 8 + stored / 8;
            let second = [told % 3, told / 3 % 3][stored / 2 % 2];
            [0, 1 + second][stored % 2]
        },
        |row, stored| half(row * 64 + stored),
        |k, column| half(column * 128 + k),
    );
    let found = result("sparse_product.py", "C");
    for (found, expected) in found.iter().zip(&expected) {
        // Each addition may round.
        let bound = expected.abs() * 128.0 * f64::from(f32::EPSILON);
        assert!((found - expected).abs() <= bound, "{found} {expected}");
    }

    let byte = |v: usize| f64::from(v as u8 as i8);
    let bits = |at: usize| {
        let hashed = (at as u32).wrapping_mul(2_654_435_761);
        (hashed & 0x5555_5555 | 0x8888_8888) as usize
    };
    let expected = sparse_sum(
        [32, 32, 64],
        [2, 4],
        |row, stored| bits(stored / 16 * 32 + row) >> (stored % 16 * 2) & 3,
        |row, stored| byte(stored * 32 + row),
        |k, column| byte(k * 32 + column),
    );
    assert_eq!(result("sparse_product_turned.py", "C"), expected);

    // 0x4E is the second of a pair and then the first, 0xE4 the other way round.
    let expected = sparse_sum(
        [32, 32, 32],
        [1, 2],
        |row, stored| usize::from(((row * 8 + stored / 2) % 256 % 3 == 0) != (stored % 2 == 1)),
        |row, stored| (row * 16 + stored) as f64,
        |k, column| (k * 32 + column) as f64,
    );
    assert_eq!(result("sparse_product_of_halves.py", "C"), expected);
}

#[test]
fn elements_of_four_bits_are_stored_one_by_one() {
    let file = "four_bits_stored.py";
    let wrapped = |v: i32| f64::from((v << 28) >> 28);
    let expected: Vec<f64> = (0..512).map(|v| wrapped(v - 5)).collect();
    assert_eq!(result(file, "O"), expected);
    // The largest float4 is 6.
    let expected = (0..45).map(|at| f64::from((at / 3 * 32 + at % 3).min(6)));
    assert_eq!(result(file, "P"), expected.collect::<Vec<f64>>());
    let expected = (0..512).map(|at| f64::from((at / 32 * 32 + 31 - at % 32) & 15));
    assert_eq!(result(file, "Q"), expected.collect::<Vec<f64>>());
}

#[test]
fn elements_of_six_bits_are_stored_one_by_one() {
    let file = "six_bits_stored.py";
    let expected = (0..512).map(|at| f64::from(at % 9 - 4));
    assert_eq!(result(file, "O"), expected.collect::<Vec<f64>>());
    // The largest number with three bits of mantissa is 7.5.
    let expected = (0..45).map(|at| f64::from(at / 3 * 32 + at % 3).min(7.5));
    assert_eq!(result(file, "P"), expected.collect::<Vec<f64>>());
    let stored = |row: i32, column: i32| f64::from((row * 32 + 31 - column) % 17 - 8);
    let expected: Vec<f64> = (0..512).map(|at| stored(at / 32, at % 32)).collect();
    assert_eq!(result(file, "Q"), expected);
    let expected = (0..63).map(|at| stored(at / 9, at % 9));
    assert_eq!(result(file, "R"), expected.collect::<Vec<f64>>());
}
