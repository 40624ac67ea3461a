//! Attention: forward, grouped queries, decoding, backward.

use super::{Approx, BF16, Case, EXP, F16, F32, Fill, Inputs, Output, Sum};

/// One query against the keys it sees. The softmax is exact mathematics; a kernel holds the
/// unnormalised probabilities in a 16-bit tile (`storage`) and its scores and sums in f32.
pub struct Attended {
    pub output: Vec<Approx>,
    /// The log of the sum of exp(scale * score).
    pub lse: Approx,
}

/// `keys` and `values` are the visible rows, each `dim` long.
pub fn attend(
    query: &[f64],
    keys: &[&[f64]],
    values: &[&[f64]],
    scale: f64,
    storage: f64,
) -> Attended {
    let score = |key: &&[f64]| {
        query
            .iter()
            .zip(key.iter())
            .map(|(q, k)| q * k)
            .collect::<Sum>()
            .in_f32()
    };
    let scores: Vec<Approx> = keys.iter().map(score).collect();
    let largest = scores
        .iter()
        .map(|s| s.value)
        .fold(f64::NEG_INFINITY, f64::max);
    // An error of a score becomes a relative error of its exponential; rescaling by tiles adds one
    // exponential a tile, of which there are fewer than sixteen in the cases here.
    let weight = |s: &Approx| {
        Approx::relative(
            ((s.value - largest) * scale).exp(),
            2.0 * s.slack * scale + 17.0 * EXP,
        )
    };
    let weights: Vec<Approx> = scores.iter().map(weight).collect();
    let total = weights.iter().copied().collect::<Sum>().in_f32();
    let total_error = total.slack / total.value;
    let output = (0..values[0].len())
        .map(|d| {
            let terms = weights.iter().zip(values);
            let sum: Sum = terms
                .map(|(w, v)| w.rounded(storage).times(Approx::exact(v[d])))
                .collect();
            let sum = sum.in_f32();
            let value = sum.value / total.value;
            Approx {
                value,
                slack: sum.slack / total.value + value.abs() * (total_error + 2.0 * F32),
            }
        })
        .collect();
    let value = largest * scale + total.value.ln();
    let slack = total_error
        + scores.iter().map(|s| s.slack).fold(0.0, f64::max) * scale
        + 8.0 * F32 * (1.0 + value.abs());
    Attended {
        output,
        lse: Approx { value, slack },
    }
}

/// Where row `(batch, position, head)` of a tensor starts.
#[derive(Debug, Clone, Copy)]
pub enum Layout {
    /// `(batch, heads, seq, dim)`
    HeadsFirst,
    /// `(batch, seq, heads, dim)`
    SeqFirst,
}

#[derive(Debug, Clone, Copy)]
struct Rows<'a> {
    data: &'a [f64],
    layout: Layout,
    heads: usize,
    seq: usize,
    dim: usize,
}

impl<'a> Rows<'a> {
    fn row(&self, batch: usize, head: usize, position: usize) -> &'a [f64] {
        let index = match self.layout {
            Layout::HeadsFirst => (batch * self.heads + head) * self.seq + position,
            Layout::SeqFirst => (batch * self.seq + position) * self.heads + head,
        };
        &self.data[index * self.dim..(index + 1) * self.dim]
    }
}

/// The sizes of a multi-head problem. Queries are the last `seq_q` of `seq_kv` positions.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    pub batch: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub seq_q: usize,
    pub seq_kv: usize,
    pub dim: usize,
    pub causal: bool,
    pub layout: Layout,
}

impl Problem {
    fn scale(&self) -> f64 {
        1.0 / (self.dim as f64).sqrt()
    }

    fn queries<'a>(&self, data: &'a [f64]) -> Rows<'a> {
        Rows {
            data,
            layout: self.layout,
            heads: self.heads,
            seq: self.seq_q,
            dim: self.dim,
        }
    }

    fn keys<'a>(&self, data: &'a [f64]) -> Rows<'a> {
        Rows {
            data,
            layout: self.layout,
            heads: self.kv_heads,
            seq: self.seq_kv,
            dim: self.dim,
        }
    }

    /// How many keys, from the first on, a query sees.
    fn visible(&self, query: usize) -> usize {
        if self.causal {
            query + 1 + self.seq_kv - self.seq_q
        } else {
            self.seq_kv
        }
    }

    fn attend(
        &self,
        t: &Inputs,
        batch: usize,
        head: usize,
        query: usize,
        storage: f64,
    ) -> Attended {
        let (k, v) = (self.keys(t.get("K")), self.keys(t.get("V")));
        let kv_head = head / (self.heads / self.kv_heads);
        let rows = |r: Rows<'_>| -> Vec<Vec<f64>> {
            (0..self.visible(query))
                .map(|s| r.row(batch, kv_head, s).to_vec())
                .collect()
        };
        let (keys, values) = (rows(k), rows(v));
        let keys: Vec<&[f64]> = keys.iter().map(Vec::as_slice).collect();
        let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        attend(
            self.queries(t.get("Q")).row(batch, head, query),
            &keys,
            &values,
            self.scale(),
            storage,
        )
    }

    /// The output in the layout of the queries.
    fn forward(&self, t: &Inputs, storage: f64) -> Vec<Approx> {
        let mut out = Vec::new();
        for b in 0..self.batch {
            match self.layout {
                Layout::HeadsFirst => {
                    for h in 0..self.heads {
                        for q in 0..self.seq_q {
                            out.extend(self.attend(t, b, h, q, storage).output);
                        }
                    }
                }
                Layout::SeqFirst => {
                    for q in 0..self.seq_q {
                        for h in 0..self.heads {
                            out.extend(self.attend(t, b, h, q, storage).output);
                        }
                    }
                }
            }
        }
        out
    }

    /// `(batch, heads, seq_q)` in either layout.
    fn lse(&self, t: &Inputs, storage: f64) -> Vec<Approx> {
        let mut out = Vec::new();
        for b in 0..self.batch {
            for h in 0..self.heads {
                out.extend((0..self.seq_q).map(|q| self.attend(t, b, h, q, storage).lse));
            }
        }
        out
    }
}

/// Gradients of one head, from `P = exp(scale * Q K^T - lse)`, `delta = rowsum(O * dO)` and
/// `dS = P * (dO V^T - delta)`. Kernels store `P` and `scale * dS` as f16 tiles before the products.
struct Gradients {
    dq: Vec<Approx>,
    dk: Vec<Approx>,
    dv: Vec<Approx>,
}

struct Head<'a> {
    q: &'a [f64],
    k: &'a [f64],
    v: &'a [f64],
    o: &'a [f64],
    d_o: &'a [f64],
    lse: &'a [f64],
}

fn backward(head: &Head<'_>, seq: usize, dim: usize, causal: bool) -> Gradients {
    let scale = 1.0 / (dim as f64).sqrt();
    let dot = |a: &[f64], i: usize, b: &[f64], j: usize| {
        let (a, b) = (&a[i * dim..(i + 1) * dim], &b[j * dim..(j + 1) * dim]);
        a.iter()
            .zip(b)
            .map(|(x, y)| x * y)
            .collect::<Sum>()
            .in_f32()
    };
    let mut p = vec![Approx::default(); seq * seq];
    let mut ds = vec![Approx::default(); seq * seq];
    for i in 0..seq {
        let delta = dot(head.o, i, head.d_o, i);
        for j in 0..if causal { i + 1 } else { seq } {
            let score = dot(head.q, i, head.k, j);
            let weight = (score.value * scale - head.lse[i]).exp();
            let weight = Approx::relative(weight, 2.0 * score.slack * scale + EXP);
            let dp = dot(head.d_o, i, head.v, j);
            let centred = Approx {
                value: dp.value - delta.value,
                slack: dp.slack + delta.slack,
            }
            .rounded(F32);
            p[i * seq + j] = weight.rounded(F16);
            ds[i * seq + j] = weight
                .times(centred)
                .times(Approx::relative(scale, 3.0 * F32))
                .rounded(F16);
        }
    }
    // The result row r, column d of a sum over the other index of weights times rows of x.
    let combine = |weight: &dyn Fn(usize, usize) -> Approx, x: &[f64]| -> Vec<Approx> {
        let mut out = Vec::with_capacity(seq * dim);
        for r in 0..seq {
            for d in 0..dim {
                let terms = (0..seq).map(|s| weight(r, s).times(Approx::exact(x[s * dim + d])));
                out.push(terms.collect::<Sum>().in_f32());
            }
        }
        out
    };
    Gradients {
        dq: combine(&|i, j| ds[i * seq + j], head.k),
        dk: combine(&|j, i| ds[i * seq + j], head.q),
        dv: combine(&|j, i| p[i * seq + j], head.d_o),
    }
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for causal in [false, true] {
        cases.extend([
            mha(1, 2, 128, 32, causal),
            mha(2, 1, 75, 40, causal),
            mha(1, 3, 33, 16, causal),
        ]);
        cases.extend([
            gqa(4, 2, 64, 64, 32, causal),
            gqa(6, 3, 70, 100, 24, causal),
            gqa(3, 1, 17, 33, 16, causal),
        ]);
        for (heads, seq, dim) in [(2, 64, 32), (1, 50, 24), (3, 33, 16)] {
            cases.push(fwd_lse(heads, seq, dim, causal));
            cases.push(bwd(heads, seq, dim, causal));
        }
    }
    // Whole splits, ragged ones, and more splits than there are tiles of keys.
    cases.extend([
        decode(16, 2, 256, 4),
        decode(12, 4, 100, 3),
        decode(20, 1, 70, 5),
    ]);
    cases
}

pub fn long_cases() -> Vec<Case> {
    vec![
        mha(1, 1, 160, 16, false),
        gqa(2, 2, 32, 160, 16, false),
        bwd(1, 160, 16, false),
        decode(4, 1, 320, 2),
    ]
}

fn mha(batch: usize, heads: usize, seq: usize, dim: usize, causal: bool) -> Case {
    let problem = Problem {
        batch,
        heads,
        kv_heads: heads,
        seq_q: seq,
        seq_kv: seq,
        dim,
        causal,
        layout: Layout::HeadsFirst,
    };
    let shape = [batch, heads, seq, dim];
    Case::new("attention_fwd.py", "flash_attention")
        .sizes([
            ("batch", batch),
            ("heads", heads),
            ("seq_len", seq),
            ("dim", dim),
        ])
        .sizes([("block_M", 32), ("block_N", 32)])
        .flag("is_causal", causal)
        .input("Q", shape, Fill::Uniform(-2.0, 2.0))
        .input("K", shape, Fill::Uniform(-2.0, 2.0))
        .input("V", shape, Fill::Uniform(-1.0, 1.0))
        .check(move |t| vec![Output::new("O", problem.forward(t, F16), F16)])
}

fn gqa(heads: usize, groups: usize, seq_q: usize, seq_kv: usize, dim: usize, causal: bool) -> Case {
    let kv_heads = heads / groups;
    let problem = Problem {
        batch: 1,
        heads,
        kv_heads,
        seq_q,
        seq_kv,
        dim,
        causal,
        layout: Layout::SeqFirst,
    };
    Case::new("attention_gqa.py", "gqa_attention")
        .sizes([
            ("batch", 1),
            ("heads", heads),
            ("groups", groups),
            ("seq_q", seq_q),
            ("seq_kv", seq_kv),
        ])
        .sizes([("dim", dim), ("block_M", 32), ("block_N", 32)])
        .flag("is_causal", causal)
        .input("Q", [1, seq_q, heads, dim], Fill::Uniform(-2.0, 2.0))
        .input("K", [1, seq_kv, kv_heads, dim], Fill::Uniform(-2.0, 2.0))
        .input("V", [1, seq_kv, kv_heads, dim], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            vec![
                Output::new("O", problem.forward(t, BF16), BF16),
                Output::new("lse", problem.lse(t, BF16), F32),
            ]
        })
}

fn decode(heads: usize, kv_heads: usize, seq_kv: usize, splits: usize) -> Case {
    let (batch, dim) = (2, 32);
    let problem = Problem {
        batch,
        heads,
        kv_heads,
        seq_q: 1,
        seq_kv,
        dim,
        causal: false,
        layout: Layout::SeqFirst,
    };
    Case::new("attention_decode.py", "attention_decode")
        .sizes([
            ("batch", batch),
            ("heads", heads),
            ("kv_heads", kv_heads),
            ("seq_kv", seq_kv),
            ("dim", dim),
        ])
        .sizes([("num_split", splits), ("block_N", 32)])
        .input("Q", [batch, heads, dim], Fill::Uniform(-2.0, 2.0))
        .input(
            "K",
            [batch, seq_kv, kv_heads, dim],
            Fill::Uniform(-2.0, 2.0),
        )
        .input(
            "V",
            [batch, seq_kv, kv_heads, dim],
            Fill::Uniform(-1.0, 1.0),
        )
        .check(move |t| vec![Output::new("O", problem.forward(t, F16), F16)])
}

fn fwd_lse(heads: usize, seq: usize, dim: usize, causal: bool) -> Case {
    let problem = Problem {
        batch: 1,
        heads,
        kv_heads: heads,
        seq_q: seq,
        seq_kv: seq,
        dim,
        causal,
        layout: Layout::HeadsFirst,
    };
    let shape = [1, heads, seq, dim];
    Case::new("attention_bwd.py", "attention_fwd_lse")
        .sizes([
            ("batch", 1),
            ("heads", heads),
            ("seq_len", seq),
            ("dim", dim),
            ("block_M", 32),
            ("block_N", 32),
        ])
        .flag("is_causal", causal)
        .input("Q", shape, Fill::Uniform(-2.0, 2.0))
        .input("K", shape, Fill::Uniform(-2.0, 2.0))
        .input("V", shape, Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            vec![
                Output::new("O", problem.forward(t, F16), F16),
                Output::new("lse", problem.lse(t, F16), F32),
            ]
        })
}

/// O and lse are inputs like any other: the formulas hold for whatever they are. lse is near the log
/// of the number of keys, so that P is about the size of a probability.
fn bwd(heads: usize, seq: usize, dim: usize, causal: bool) -> Case {
    let shape = [1, heads, seq, dim];
    Case::new("attention_bwd.py", "attention_bwd")
        .sizes([
            ("batch", 1),
            ("heads", heads),
            ("seq_len", seq),
            ("dim", dim),
            ("block_M", 32),
            ("block_N", 32),
        ])
        .flag("is_causal", causal)
        .input("Q", shape, Fill::Uniform(-1.0, 1.0))
        .input("K", shape, Fill::Uniform(-1.0, 1.0))
        .input("V", shape, Fill::Uniform(-1.0, 1.0))
        .input("O", shape, Fill::Uniform(-0.5, 0.5))
        .input("dO", shape, Fill::Uniform(-1.0, 1.0))
        .input("lse", [1, heads, seq], Fill::Uniform(3.5, 4.5))
        .check(move |t| {
            let (mut dq, mut dk, mut dv) = (Vec::new(), Vec::new(), Vec::new());
            for h in 0..heads {
                let slice = |name: &str| &t.get(name)[h * seq * dim..(h + 1) * seq * dim];
                let head = Head {
                    q: slice("Q"),
                    k: slice("K"),
                    v: slice("V"),
                    o: slice("O"),
                    d_o: slice("dO"),
                    lse: &t.get("lse")[h * seq..(h + 1) * seq],
                };
                let gradients = backward(&head, seq, dim, causal);
                dq.extend(gradients.dq);
                dk.extend(gradients.dk);
                dv.extend(gradients.dv);
            }
            vec![
                Output::new("dQ", dq, F32),
                Output::new("dK", dk, F16),
                Output::new("dV", dv, F16),
            ]
        })
}
