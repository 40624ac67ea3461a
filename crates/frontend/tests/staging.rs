//! Staging end to end: source text in, tile IR out.

use tilewright_frontend::{SettingValue, Staged, stage};
use tilewright_ir::{Diagnostic, SourceMap, StmtKind};

fn run(text: &str, set: &[(&str, &str)]) -> Result<Staged, Vec<Diagnostic>> {
    let mut sources = SourceMap::new();
    let file = sources.add("k.py", text);
    let set: Vec<(String, SettingValue)> = set
        .iter()
        .map(|(n, v)| (n.to_string(), SettingValue::parse(v).expect("a literal")))
        .collect();
    stage(&sources, file, None, &set)
}

#[test]
fn a_gemm_skeleton_stages() {
    let text = r#"
import tilelang
import tilelang.language as T
import torch

@tilelang.jit(out_idx=[-1])
def add(M, N, block_M=64, block_N=64, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel((N + block_N - 1) // block_N, (M + block_M - 1) // block_M, threads=128) as (bx, by):
            S = T.alloc_shared((block_M, block_N), dtype)
            T.copy(A[by * block_M, bx * block_N], S)
            for i, j in T.Parallel(block_M, block_N):
                S[i, j] = S[i, j] * 2
            T.copy(S, B[by * block_M : (by + 1) * block_M, bx * block_N : (bx + 1) * block_N])
    return main

if __name__ == "__main__":
    torch.randn(3)
"#;
    let staged = run(text, &[("M", "256"), ("N", "128")]).unwrap();
    let kernel = &staged.func.kernels[0];
    assert_eq!(kernel.grid.len(), 2);
    assert_eq!(kernel.body.len(), 4);
    assert!(matches!(kernel.body[0].kind, StmtKind::Alloc(_)));
    println!("{:#?}", kernel.body);
}
