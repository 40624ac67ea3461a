"""A tool with subcommands: check, bench and source of a kernel, run in turn."""

import argparse
import sys

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def stencil(N, block=32):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=block) as b:
            for i in T.Parallel(block):
                at = b * block + i
                if at > 0 and at < N - 1:
                    B[at] = (A[at - 1] + A[at] + A[at + 1]) / 3.0
                elif at < N:
                    B[at] = A[at]

    return kernel


def reference(a):
    out = a * 1
    out[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
    return out


def check(args):
    stencil(args.n).get_profiler().assert_allclose(reference, rtol=1e-5, atol=1e-6)
    return "all close"


def bench(args):
    return f"{stencil(args.n).get_profiler().do_bench(rep=args.rep) > 0}"


def source(args):
    return f"{len(stencil(args.n, args.block).get_kernel_source()) > 100}"


def parse(argv):
    parser = argparse.ArgumentParser(prog="stencil")
    parser.add_argument("-n", type=int, default=100)
    commands = parser.add_subparsers(required=True)
    commands.add_parser("check").set_defaults(run=check)
    timed = commands.add_parser("bench")
    timed.add_argument("--rep", type=float, default=1)
    timed.set_defaults(run=bench)
    printed = commands.add_parser("source")
    printed.add_argument("--block", type=int, choices=(32, 64), default=64)
    printed.set_defaults(run=source)
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    return args.run(args)


if __name__ == "__main__":
    lines = [sys.argv[1:]] if len(sys.argv) > 1 else [["bench"], ["source"], ["-n", "70", "check"]]
    for line in lines:
        print(main(line))
