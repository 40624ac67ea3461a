//! `run` with tensors from files, compared with files, written to files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tilewright::ir::{DType, Scalar};
use tilewright::npy::{self, Array};
use tilewright::sim::HostTensor;

const KERNEL: &str = r#"
import tilelang.language as T

def scaled_add(N=100, block=32, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    C[bx * block + i] = A[bx * block + i] * 2 + B[bx * block + i]
    return main
"#;

const IN_PLACE: &str = r#"
import tilelang.language as T

@T.prim_func
def in_place(A: T.Tensor((T.dynamic("n"),), "float32")):
    with T.Kernel(T.ceildiv(A.shape[0], 32), threads=32) as bx:
        for i in T.Parallel(32):
            if bx * 32 + i < A.shape[0]:
                A[bx * 32 + i] = A[bx * 32 + i] + 1
"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("k.py"), KERNEL).expect("a file");
        fs::write(folder.path().join("in_place.py"), IN_PLACE).expect("a file");
        Place(folder)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, dtype: DType, values: &[f64]) {
        let tensor = HostTensor::from_f64(dtype, &[values.len()], values).expect("small");
        fs::write(self.path(name), npy::write(&tensor)).expect("a file");
    }

    fn values(&self, name: &str, dtype: DType) -> Vec<f64> {
        let bytes = fs::read(self.path(name)).expect("a file");
        let array = Array::parse(&bytes).expect("an array");
        array.tensor(dtype).expect("its type").to_f64()
    }

    fn call(&self, line: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env("TILEWRIGHT_CACHE_DIR", "")
            .output()
            .expect("it starts")
    }

    fn good(&self, line: &str) -> String {
        let done = self.call(line);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{line}: {said}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// The object of a command that fails, and what it says on stderr.
    fn bad(&self, line: &str) -> (Value, String) {
        let done = self.call(&format!("{line} --json"));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{line}: {said}");
        let object = serde_json::from_slice(&done.stdout).expect("one object");
        (object, said)
    }
}

fn whole(n: usize, f: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..n).map(f).collect()
}

#[test]
fn a_kernel_on_given_tensors() {
    let place = Place::new();
    let (a, b) = (whole(100, |i| i as f64), whole(100, |i| 0.5 * i as f64));
    let c = whole(100, |i| 2.5 * i as f64);
    place.put("a.npy", DType::F32, &a);
    place.put("b.npy", DType::F32, &b);
    // What is expected may be of another type.
    place.put("c.npy", DType::F64, &c);
    for on in ["reference", "sim"] {
        let line =
            format!("run k.py --on {on} --in A=a.npy --in B=b.npy --expect C=c.npy --out {on}");
        let said = place.good(&line);
        assert!(
            said.contains("C agrees with c.npy in 100 elements"),
            "{said}"
        );
        assert!(said.contains("  out   C float32[100]"), "{said}");
        assert_eq!(place.values(&format!("{on}/C.npy"), DType::F32), c);
        assert!(
            !place.path(on).join("A.npy").exists(),
            "inputs are not written"
        );
    }
}

#[test]
fn archives_and_types_that_numpy_lacks() {
    let place = Place::new();
    for dtype in ["bfloat16", "float8_e4m3fn", "float16", "int8"] {
        let scalar = Scalar::ALL
            .into_iter()
            .find(|s| s.name() == dtype)
            .expect("a type");
        let out = format!("{dtype}.npz");
        place.good(&format!(
            "run k.py --set dtype={dtype} --seed 3 --out {out}"
        ));
        let bytes = fs::read(place.path(&out)).expect("an archive");
        let arrays = npy::read_archive(&bytes).expect("an archive");
        let [(name, array)] = &arrays[..] else {
            panic!("{} arrays", arrays.len());
        };
        assert_eq!(name, "C");
        let stored = npy::stored_as(scalar);
        assert_eq!(array.dtype(), Some(DType::scalar(stored)), "{dtype}");
        // What was written is what is expected, on the next run.
        let again = format!("run k.py --set dtype={dtype} --seed 3 --expect {out} --atol 0");
        place.good(&again);
        let (object, _) = place.bad(&again.replace("--seed 3", "--seed 4"));
        assert_eq!(object["errors"][0]["code"], "not-as-expected", "{dtype}");
        assert!(object["expected"][0]["elements_wrong"].as_u64() > Some(10));
    }
}

#[test]
fn sizes_come_from_files() {
    let place = Place::new();
    place.put("a.npy", DType::F32, &whole(77, |i| i as f64));
    let said = place.good("run in_place.py --in A=a.npy --out out");
    assert!(said.contains("  inout A float32[77]"), "{said}");
    let left = place.values("out/A.npy", DType::F32);
    assert_eq!(left, whole(77, |i| i as f64 + 1.0));
}

#[test]
fn one_wrong_element_is_found() {
    let place = Place::new();
    let c = "--expect C=c.npy --in A=a.npy --in B=b.npy";
    place.put("a.npy", DType::F32, &[1.0; 100]);
    place.put("b.npy", DType::F32, &[3.0; 100]);
    let mut expected = [5.0; 100];
    expected[41] = 5.01;
    place.put("c.npy", DType::F32, &expected);
    let (object, said) = place.bad(&format!("run k.py {c}"));
    assert_eq!(object["expected"][0]["elements_wrong"], 1);
    assert!(said.contains("`C`[41] is 5, not 5.01"), "{said}");
    place.good(&format!("run k.py {c} --atol 0.02"));
    place.good(&format!("run k.py {c} --rtol 0.01"));
    place.bad(&format!("run k.py {c} --rtol 0.0001"));
}

#[test]
fn files_that_do_not_fit() {
    let place = Place::new();
    place.put("a.npy", DType::F32, &[1.0; 99]);
    place.put("d.npy", DType::F64, &[1.0; 100]);
    fs::write(place.path("no.npy"), "text").expect("a file");
    for (options, why) in [
        ("--in A=a.npy", "its shape is [99], and [100] is wanted"),
        ("--in A=d.npy", "it has float64, and float32 is wanted"),
        ("--in X=a.npy", "`scaled_add` has no tensor `X`"),
        ("--in a.npy", "does not say which tensor it is for"),
        ("--in A=none.npy", "cannot read none.npy"),
        ("--in A=no.npy", "no `.npy` file"),
        ("--expect C=a.npy", "its shape is [99]"),
        ("--out k.py", "cannot write k.py"),
    ] {
        let (object, said) = place.bad(&format!("run k.py {options}"));
        assert_eq!(object["ok"], false);
        assert!(said.contains(why), "{options}: {said}");
    }
    assert!(Path::new(&place.path("k.py")).is_file());
}
