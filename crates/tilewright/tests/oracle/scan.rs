//! Chunked scans: linear attention and the chunk scan of Mamba-2.

use super::{Approx, Case, EXP, F16, F32, Fill, Output, Sum};

/// Sizes of linear attention; tensors are `(batch, seq, heads, dim)`.
#[derive(Debug, Clone, Copy)]
struct Linear {
    batch: usize,
    seq: usize,
    heads: usize,
    dim_k: usize,
    dim_v: usize,
    chunk: usize,
}

impl Linear {
    fn row<'a>(&self, data: &'a [f64], dim: usize, b: usize, t: usize, h: usize) -> &'a [f64] {
        let start = ((b * self.seq + t) * self.heads + h) * dim;
        &data[start..start + dim]
    }

    /// `O[t] = scale * sum over s <= t of (Q[t] . K[s]) V[s]`, summed directly. A kernel rounds the products of its own
    /// chunk to f16, and the state that stands for earlier chunks too: those terms are
    /// `q[d] * (sum over s of K[s, d] V[s])`, so there the rounding acts on the inner sum.
    fn outputs(&self, q: &[f64], k: &[f64], v: &[f64]) -> Vec<Approx> {
        let scale = Approx::relative(1.0 / (self.dim_k as f64).sqrt(), F32);
        let mut out = Vec::new();
        for b in 0..self.batch {
            for t in 0..self.seq {
                for h in 0..self.heads {
                    let query = self.row(q, self.dim_k, b, t, h);
                    let start = t / self.chunk * self.chunk;
                    for e in 0..self.dim_v {
                        let value = |s: usize| self.row(v, self.dim_v, b, s, h)[e];
                        let mut sum = Sum::default();
                        for s in start..=t {
                            let key = self.row(k, self.dim_k, b, s, h);
                            let product: Sum = query.iter().zip(key).map(|(q, k)| q * k).collect();
                            sum.add_approx(
                                product.in_f32().rounded(F16).times(Approx::exact(value(s))),
                            );
                        }
                        for (d, &q) in query.iter().enumerate() {
                            let state: Sum = (0..start)
                                .map(|s| self.row(k, self.dim_k, b, s, h)[d] * value(s))
                                .collect();
                            sum.add_approx(state.in_f32().rounded(F16).times(Approx::exact(q)));
                        }
                        out.push(sum.in_f32().times(scale).rounded(F32));
                    }
                }
            }
        }
        out
    }

    /// `state = sum over s of K[s]^T V[s]`, as `(batch, heads, dim_k, dim_v)`.
    fn state(&self, k: &[f64], v: &[f64]) -> Vec<Approx> {
        let mut out = Vec::new();
        for b in 0..self.batch {
            for h in 0..self.heads {
                for d in 0..self.dim_k {
                    for e in 0..self.dim_v {
                        let term = |s| {
                            self.row(k, self.dim_k, b, s, h)[d]
                                * self.row(v, self.dim_v, b, s, h)[e]
                        };
                        out.push((0..self.seq).map(term).collect::<Sum>().in_f32());
                    }
                }
            }
        }
        out
    }
}

/// Sizes of a Mamba-2 chunk scan.
#[derive(Debug, Clone, Copy)]
struct Mamba {
    batch: usize,
    seq: usize,
    chunk: usize,
    groups: usize,
    heads: usize,
    head_dim: usize,
    d_state: usize,
}

struct MambaInputs<'a> {
    cb: &'a [f64],
    x: &'a [f64],
    dt: &'a [f64],
    da: &'a [f64],
    c: &'a [f64],
    states: &'a [f64],
    d: &'a [f64],
}

impl Mamba {
    fn chunks(&self) -> usize {
        self.seq.div_ceil(self.chunk)
    }

    /// The three terms of the docstring. A kernel stores the decayed, dt-weighted products of the
    /// chunk as an f16 tile; everything else is f32.
    fn outputs(&self, t: &MambaInputs<'_>) -> Vec<Approx> {
        let Mamba {
            seq,
            chunk,
            groups,
            heads,
            head_dim,
            d_state,
            ..
        } = *self;
        let chunks = self.chunks();
        let mut out = Vec::new();
        for b in 0..self.batch {
            for time in 0..seq {
                let (c, l) = (time / chunk, time % chunk);
                for h in 0..heads {
                    let g = h / (heads / groups);
                    let decay = ((b * heads + h) * chunks + c) * chunk;
                    for p in 0..head_dim {
                        let x = |time: usize| t.x[((b * seq + time) * heads + h) * head_dim + p];
                        let state = |n: usize| {
                            t.states[(((b * chunks + c) * heads + h) * head_dim + p) * d_state + n]
                        };
                        let seen = |n: usize| {
                            t.c[((b * seq + time) * groups + g) * d_state + n] * state(n)
                        };
                        let past = (0..d_state).map(seen).collect::<Sum>().in_f32();
                        let past = past
                            .times(Approx::relative(t.da[decay + l].exp(), EXP))
                            .rounded(F32);

                        let mut sum = Sum::default();
                        sum.add_approx(past);
                        for s in 0..=l {
                            let product =
                                t.cb[(((b * chunks + c) * groups + g) * chunk + l) * chunk + s];
                            let fade = (t.da[decay + l] - t.da[decay + s]).exp();
                            let weight =
                                Approx::relative(product * fade * t.dt[decay + s], EXP + 3.0 * F32);
                            sum.add_approx(
                                weight.rounded(F16).times(Approx::exact(x(c * chunk + s))),
                            );
                        }
                        sum.add_approx(Approx::relative(t.d[h] * x(time), F32));
                        out.push(sum.in_f32());
                    }
                }
            }
        }
        out
    }
}

pub fn cases() -> Vec<Case> {
    let linear_even = Linear {
        batch: 1,
        seq: 96,
        heads: 2,
        dim_k: 32,
        dim_v: 32,
        chunk: 32,
    };
    let linear_odd = Linear {
        batch: 2,
        seq: 75,
        heads: 1,
        dim_k: 24,
        dim_v: 40,
        chunk: 32,
    };
    let even = Mamba {
        batch: 1,
        seq: 128,
        chunk: 64,
        groups: 1,
        heads: 2,
        head_dim: 32,
        d_state: 32,
    };
    let odd = Mamba {
        batch: 2,
        seq: 100,
        chunk: 40,
        groups: 2,
        heads: 4,
        head_dim: 20,
        d_state: 24,
    };
    // One row past a tile, everywhere.
    let linear_past = Linear {
        batch: 1,
        seq: 33,
        heads: 3,
        dim_k: 16,
        dim_v: 33,
        chunk: 32,
    };
    // Rows that no instruction divides, in a fragment that outlives the loop.
    let linear_documented = Linear {
        batch: 1,
        seq: 150,
        heads: 2,
        dim_k: 40,
        dim_v: 72,
        chunk: 64,
    };
    // Nor the depth of a product whose operand is a fragment.
    let linear_ragged = Linear {
        batch: 1,
        seq: 90,
        heads: 1,
        dim_k: 24,
        dim_v: 40,
        chunk: 40,
    };
    let past = Mamba {
        batch: 1,
        seq: 65,
        chunk: 64,
        groups: 1,
        heads: 1,
        head_dim: 33,
        d_state: 17,
    };
    let linear_sizes = [
        linear_even,
        linear_odd,
        linear_past,
        linear_documented,
        linear_ragged,
    ];
    let mut cases: Vec<Case> = linear_sizes.map(linear).into();
    cases.extend([even, odd, past].map(mamba));
    cases
}

fn linear(sizes: Linear) -> Case {
    let Linear {
        batch,
        seq,
        heads,
        dim_k,
        dim_v,
        chunk,
    } = sizes;
    Case::new("linear_attention.py", "linear_attention")
        .sizes([
            ("batch", batch),
            ("seq_len", seq),
            ("heads", heads),
            ("dim_k", dim_k),
            ("dim_v", dim_v),
        ])
        .sizes([("chunk", chunk), ("block_V", 32)])
        .input("Q", [batch, seq, heads, dim_k], Fill::Uniform(-1.0, 1.0))
        .input("K", [batch, seq, heads, dim_k], Fill::Uniform(-1.0, 1.0))
        .input("V", [batch, seq, heads, dim_v], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let (q, k, v) = (t.get("Q"), t.get("K"), t.get("V"));
            vec![
                Output::new("O", sizes.outputs(q, k, v), F16),
                Output::new("state", sizes.state(k, v), F32),
            ]
        })
}

fn mamba(sizes: Mamba) -> Case {
    let Mamba {
        batch,
        seq,
        chunk,
        groups,
        heads,
        head_dim,
        d_state,
    } = sizes;
    let chunks = sizes.chunks();
    // dA_sum falls from 0 through each chunk, as the running sum of dt * A with A < 0 does.
    let falling = (0..batch * heads * chunks * chunk)
        .map(|i| -0.03 * ((i % chunk) as f64 + 0.5))
        .collect();
    Case::new("mamba_chunk_scan.py", "chunk_scan")
        .sizes([
            ("batch", batch),
            ("seq_len", seq),
            ("chunk", chunk),
            ("groups", groups),
            ("heads", heads),
        ])
        .sizes([
            ("head_dim", head_dim),
            ("d_state", d_state),
            ("block_M", 32),
            ("block_N", 32),
        ])
        .sizes([("block_K", 32), ("block_S", 16)])
        .input(
            "cb",
            [batch, chunks, groups, chunk, chunk],
            Fill::Uniform(-1.0, 1.0),
        )
        .input("x", [batch, seq, heads, head_dim], Fill::Uniform(-1.0, 1.0))
        .input(
            "dt",
            [batch, heads, chunks, chunk],
            Fill::Uniform(0.01, 0.1),
        )
        .input(
            "dA_sum",
            [batch, heads, chunks, chunk],
            Fill::Given(falling),
        )
        .input("C", [batch, seq, groups, d_state], Fill::Uniform(-1.0, 1.0))
        .input(
            "states",
            [batch, chunks, heads, head_dim, d_state],
            Fill::Uniform(-1.0, 1.0),
        )
        .input("D", [heads], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let inputs = MambaInputs {
                cb: t.get("cb"),
                x: t.get("x"),
                dt: t.get("dt"),
                da: t.get("dA_sum"),
                c: t.get("C"),
                states: t.get("states"),
                d: t.get("D"),
            };
            vec![Output::new("out", sizes.outputs(&inputs), F16)]
        })
}
