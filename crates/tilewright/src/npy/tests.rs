//! Files as NumPy writes them, and files read again.

use tilewright_ir::small_float::{self, Number};
use tilewright_ir::{DType, Scalar};
use tilewright_sim::HostTensor;

use super::{Array, read_archive, stored_as, write, write_archive};

/// A file with this header and data.
fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(dict.len() as u16).to_le_bytes());
    out.extend_from_slice(dict.as_bytes());
    out.extend_from_slice(data);
    out
}

fn read(bytes: &[u8], scalar: Scalar) -> Result<Vec<f64>, String> {
    let array = Array::parse(bytes).map_err(|e| e.to_string())?;
    let tensor = array.tensor(DType::scalar(scalar));
    tensor.map(|t| t.to_f64()).map_err(|e| e.to_string())
}

/// Every value of every type of at most 16 bits, and some of the wider ones, comes back as it was.
#[test]
fn what_is_written_is_read() {
    for scalar in Scalar::ALL {
        if scalar == Scalar::Handle {
            continue;
        }
        let bits: Vec<u64> = match scalar.bits() {
            n @ 0..=16 if scalar != Scalar::Bool => (0..1 << n).collect(),
            _ if scalar == Scalar::Bool => vec![0, 1],
            n => {
                let pattern = (0..1000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                pattern.map(|b| b >> (64 - n)).collect()
            }
        };
        let mut tensor = HostTensor::zeros(DType::scalar(scalar), &[bits.len()]).expect("small");
        for (i, b) in bits.iter().enumerate() {
            tensor.set(i, small_float::from_bits(scalar, *b));
        }
        let array = Array::parse(&write(&tensor)).expect("a file");
        assert_eq!(array.shape(), [bits.len()], "{scalar}");
        assert_eq!(array.dtype(), Some(DType::scalar(stored_as(scalar))));
        let back = array.tensor(DType::scalar(scalar)).expect("the same type");
        for i in 0..bits.len() {
            let (a, b) = (tensor.get(i), back.get(i));
            let nan = |n: Option<Number>| matches!(n, Some(Number::Float(v)) if v.is_nan());
            assert!(
                a == b || (nan(a) && nan(b)),
                "{scalar}: {a:?} came back as {b:?}"
            );
        }
    }
}

#[test]
fn orders_of_bytes_and_indices() {
    let data = [0u8, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
    let big = file(">i4", "False", "(2, 2)", &data);
    assert_eq!(read(&big, Scalar::I32), Ok(vec![1.0, 2.0, 3.0, 4.0]));
    let columns = file(">i4", "True", "(2, 2)", &data);
    assert_eq!(read(&columns, Scalar::I32), Ok(vec![1.0, 3.0, 2.0, 4.0]));
    let none = file("<f8", "False", "()", &2.5f64.to_le_bytes());
    assert_eq!(read(&none, Scalar::F64), Ok(vec![2.5]));
    let bools = file("|b1", "False", "(3,)", &[0, 1, 255]);
    assert_eq!(read(&bools, Scalar::Bool), Ok(vec![0.0, 1.0, 1.0]));
}

/// Types that NumPy lacks: rounded from float32, or their bits.
#[test]
fn types_of_our_own() {
    let floats: Vec<u8> = [1.0f32, 1.001, -3.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let floats = file("<f4", "False", "(3,)", &floats);
    assert_eq!(read(&floats, Scalar::BF16), Ok(vec![1.0, 1.0, -3.0]));
    assert_eq!(read(&floats, Scalar::F8E4M3FN), Ok(vec![1.0, 1.0, -3.0]));
    for descr in ["<V2", "|V2", "<u2"] {
        let bits = file(descr, "False", "(2,)", &[0x80, 0x3f, 0x00, 0xc0]);
        assert_eq!(read(&bits, Scalar::BF16), Ok(vec![1.0, -2.0]), "{descr}");
    }
    for descr in ["|V1", "|u1"] {
        let bits = file(descr, "False", "(1,)", &[0x38]);
        assert_eq!(read(&bits, Scalar::F8E4M3FN), Ok(vec![1.0]), "{descr}");
    }
    let ints = file("|i1", "False", "(2,)", &[7, 0xf8]);
    assert_eq!(read(&ints, Scalar::I4), Ok(vec![7.0, -8.0]));
    let large = file("|i1", "False", "(1,)", &[8]);
    assert!(read(&large, Scalar::I4).is_err(), "8 is no int4");
}

#[test]
fn what_is_refused() {
    let good = file("<f4", "False", "(2,)", &[0; 8]);
    for cut in 0..good.len() {
        assert!(Array::parse(&good[..cut]).is_err(), "cut to {cut} bytes");
    }
    for (bytes, wanted, why) in [
        (b"hello".to_vec(), Scalar::F32, "no `.npy` file"),
        (
            good.clone(),
            Scalar::F64,
            "it has float32, and float64 is wanted",
        ),
        (
            file("<f8", "False", "(1,)", &[0; 8]),
            Scalar::BF16,
            "as float32 or as its bits",
        ),
        (
            file("<f4", "False", "(3,)", &[0; 8]),
            Scalar::F32,
            "8 bytes follow",
        ),
        (
            file("<c8", "False", "(1,)", &[0; 8]),
            Scalar::F32,
            "`<c8` are not known",
        ),
        (
            file("<f4", "False", "(x,)", &[0; 8]),
            Scalar::F32,
            "no `shape`",
        ),
        (
            file("<f4", "False", "(99999999999, 99999999999)", &[0; 8]),
            Scalar::F32,
            "8 bytes follow",
        ),
    ] {
        let said = read(&bytes, wanted).expect_err(why);
        assert!(said.contains(why), "`{said}` does not say `{why}`");
    }
}

/// An archive that Python's `zipfile` packed: `A` of int32, `B` of float16.
const PACKED: &str = "504b03041400000008004083715d50b44d84550000009800000005000000412e6e70799bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a2aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e06206004622620660662162066056200504b03041400000008004083715db3c1820c480000008400000005000000422e6e70799bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a4aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a14002e063b860300504b010214031400000008004083715d50b44d845500000098000000050000000000000000000000800100000000412e6e7079504b010214031400000008004083715db3c1820c4800000084000000050000000000000000000000800178000000422e6e7079504b0506000000000200020066000000e30000000000";

#[test]
fn archives() {
    let digit = |i: usize| u8::from_str_radix(&PACKED[i..i + 2], 16).expect("digits");
    let bytes: Vec<u8> = (0..PACKED.len()).step_by(2).map(digit).collect();
    let arrays = read_archive(&bytes).expect("an archive");
    let names: Vec<&str> = arrays.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["A", "B"]);
    let a = arrays[0].1.tensor(DType::I32).expect("int32");
    assert_eq!(
        (a.shape(), a.to_f64()),
        (&[2, 3][..], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    );
    let b = arrays[1].1.tensor(DType::F16).expect("float16");
    assert_eq!(b.to_f64(), [1.5, -2.0]);

    let files = vec![("A".to_string(), write(&a)), ("B".to_string(), write(&b))];
    let ours = write_archive(&files).expect("small");
    assert_eq!(read_archive(&ours).expect("our archive"), arrays);
    for cut in 0..bytes.len() {
        assert!(read_archive(&bytes[..cut]).is_err(), "cut to {cut} bytes");
    }
    // A byte of the data that is another is found.
    for at in [60, 80, 200] {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        assert!(read_archive(&bad).is_err(), "byte {at} changed");
    }
}
