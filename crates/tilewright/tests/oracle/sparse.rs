//! Products with a sparse left factor, by every type, every width of metadata and every transpose.
//! Inputs are whole numbers whose sums every type of the sum has: results are exact.

use super::{Case, Fill, Output, ceil_div};

/// One product.
#[derive(Clone, Copy)]
struct Sparse {
    size: (usize, usize, usize),
    /// The elements, their sum and the metadata.
    types: [&'static str; 3],
    /// Whether A, B and E lie transposed.
    turned: [bool; 3],
    block_k: usize,
}

const HALVES: Sparse = Sparse {
    size: (64, 64, 128),
    types: ["float16", "float32", "int16"],
    turned: [false; 3],
    block_k: 64,
};

const BYTES: Sparse = Sparse {
    types: ["int8", "int32", "int32"],
    ..HALVES
};

const WORDS: Sparse = Sparse {
    types: ["float32", "float32", "int16"],
    block_k: 32,
    ..HALVES
};

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // What divides tiles, and what does not: along K half a tile is left.
    let ragged = (70, 45, 96);
    for turned in 0..8 {
        let turned = [turned & 1 != 0, turned & 2 != 0, turned & 4 != 0];
        let size = if turned[1] { ragged } else { HALVES.size };
        cases.push(case(Sparse {
            turned,
            size,
            ..HALVES
        }));
        let other = if turned[0] == turned[2] { BYTES } else { WORDS };
        cases.push(case(Sparse {
            turned,
            size,
            ..other
        }));
    }
    for types in [
        ["float16", "float32", "int8"],
        ["float16", "float32", "uint32"],
        ["float16", "float16", "uint16"],
        ["bfloat16", "float32", "int32"],
        ["uint8", "int32", "uint8"],
        ["int8", "int32", "int16"],
        ["float32", "float32", "uint8"],
        ["float32", "float32", "int32"],
    ] {
        cases.push(case(Sparse {
            types,
            size: ragged,
            turned: [true, false, true],
            block_k: if types[0] == "float32" { 32 } else { 64 },
        }));
    }
    // Tiles of K that instructions do not divide get their zeros, and so does fp8 on some targets.
    cases.push(case(Sparse {
        size: (40, 33, 96),
        block_k: 48,
        ..HALVES
    }));
    cases.push(case(Sparse {
        types: ["float8_e4m3fn", "float32", "uint16"],
        ..HALVES
    }));
    cases
}

pub fn long_case() -> Case {
    case(Sparse {
        size: (32, 30, 320),
        types: ["float16", "float32", "int32"],
        ..HALVES
    })
}

fn case(s: Sparse) -> Case {
    let (m, n, k) = s.size;
    let [dtype, accum_dtype, meta_dtype] = s.types;
    let [trans_a, trans_b, trans_e] = s.turned;
    // One of two is stored where four bits tell of two elements.
    let pairs = dtype == "float32";
    let (kept, group) = if pairs { (1, 2) } else { (2, 4) };
    let bits = meta_dtype.trim_start_matches(|c: char| !c.is_ascii_digit());
    let bits: usize = bits.parse().expect("the bits of an integer");
    let groups = bits / 4;
    let integers = ceil_div(k, groups * group);
    let a_shape = if trans_a { [k / 2, m] } else { [m, k / 2] };
    let b_shape = if trans_b { [n, k] } else { [k, n] };
    let e_shape = if trans_e {
        [integers, m]
    } else {
        [m, integers]
    };
    let integer = move |row: usize, at: usize| {
        let value = (0..groups).fold(0u64, |value, g| {
            value | (told(pairs, row, at * groups + g) as u64) << (4 * g)
        });
        match meta_dtype.starts_with('u') {
            true => value as f64,
            false => ((value << (64 - bits)) as i64 >> (64 - bits)) as f64,
        }
    };
    let e = (0..m * integers).map(|i| match trans_e {
        true => integer(i % m, i / m),
        false => integer(i / integers, i % integers),
    });
    let low = if dtype == "uint8" { 0 } else { -2 };
    Case::new("gemm_sp.py", "matmul_sp")
        .sizes([("block_M", 32), ("block_N", 32), ("block_K", s.block_k)])
        .sizes([("num_stages", 2), ("M", m), ("N", n), ("K", k)])
        .set("dtype", dtype)
        .set("accum_dtype", accum_dtype)
        .set("meta_dtype", meta_dtype)
        .flag("trans_A", trans_a)
        .flag("trans_B", trans_b)
        .flag("trans_E", trans_e)
        .input("A", a_shape, Fill::Integers(low, 2))
        .input("E", e_shape, Fill::Given(e.collect()))
        .input("B", b_shape, Fill::Integers(low, 2))
        .check(move |t| {
            let (a, b) = (t.get("A"), t.get("B"));
            let mut sums = vec![0.0; m * n];
            for row in 0..m {
                for stored in 0..k / 2 {
                    let at = told(pairs, row, stored / kept);
                    let place = match pairs {
                        true => usize::from(at == 14),
                        false => at >> (2 * (stored % kept)) & 3,
                    };
                    let x = stored / kept * group + place;
                    let left = match trans_a {
                        true => a[stored * m + row],
                        false => a[row * (k / 2) + stored],
                    };
                    for column in 0..n {
                        let right = match trans_b {
                            true => b[column * k + x],
                            false => b[x * n + column],
                        };
                        sums[row * n + column] += left * right;
                    }
                }
            }
            vec![Output::exact("C", sums)]
        })
}

/// The metadata of a group: each that is valid.
fn told(pairs: bool, row: usize, group: usize) -> usize {
    const PLACES: [usize; 6] = [4, 8, 12, 9, 13, 14];
    let at = row * 5 + group * 7 + row / 8 + group / 4;
    match pairs {
        true => [4, 14][at % 3 % 2],
        false => PLACES[at % 6],
    }
}
