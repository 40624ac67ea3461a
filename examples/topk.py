"""The k largest entries of each row and where they are, as a mixture-of-experts gate needs them.

    logits is (M, N); values (M, topk) holds the largest entries of each row in falling order,
    indices (M, topk) their columns. Among equal entries the lowest column comes first.

Each round takes the row maximum, finds the lowest column that holds it and strikes that entry out.

    tilewright run examples/topk.py
    tilewright run examples/topk.py --set M=50 --set N=77 --set topk=5
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1])
def topk_select(M=256, N=128, topk=6, block_M=32, threads=128, dtype="float32"):
    assert topk <= N, f"cannot take the {topk} largest of {N} entries"

    @T.prim_func
    def kernel(
        logits: T.Tensor((M, N), dtype),
        values: T.Tensor((M, topk), dtype),
        indices: T.Tensor((M, topk), "int32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            candidate = T.alloc_fragment((block_M, N), "int32")
            best = T.alloc_fragment((block_M,), dtype)
            column = T.alloc_fragment((block_M,), "int32")

            T.copy(logits[bx * block_M, 0], x)
            for k in T.serial(topk):
                T.reduce_max(x, best, dim=1)
                for i, j in T.Parallel(block_M, N):
                    candidate[i, j] = T.if_then_else(x[i, j] == best[i], j, N)
                T.reduce_min(candidate, column, dim=1)
                for i, j in T.Parallel(block_M, N):
                    x[i, j] = T.if_then_else(j == column[i], -T.infinity(dtype), x[i, j])
                for i in T.Parallel(block_M):
                    values[bx * block_M + i, k] = best[i]
                    indices[bx * block_M + i, k] = column[i]

    return kernel


def main():
    import torch

    logits = torch.randn(4096, 128, device="cuda")
    values, indices = topk_select(4096, 128)(logits)
    expected = torch.topk(logits, 6, dim=1)
    torch.testing.assert_close(values, expected.values)
    torch.testing.assert_close(indices.long(), expected.indices)


if __name__ == "__main__":
    main()
