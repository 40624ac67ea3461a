//! Matrix products.
//!
//! `gemm-shape`, `gemm-scope`, `gemm-types`, `gemm-region` (a fragment takes part whole),
//! `gemm-sparse` (the metadata of a sparse left factor), `gemm-scales` (scales of the factors),
//! `gemm-k-pack`, `gemm-clear`, `gemm-plan`, `gemm-barrier`

use crate::buffer::{Region, Scope};
use crate::dtype::{Class, DType, Scalar};
use crate::tile_op::{GemmKind, GemmOp, Scales, Sparse, Sparsity};
use crate::verify::Verifier;

impl<'a> Verifier<'a> {
    pub(super) fn gemm(&mut self, gemm: &'a GemmOp) {
        if self.expr(&gemm.clear) && gemm.clear.dtype() != DType::BOOL {
            let message = format!("`clear` is {}, not bool", gemm.clear.dtype());
            self.error("gemm-clear", gemm.clear.span(), message);
        }
        if let Some((barrier, index)) = &gemm.barrier {
            self.barrier_operand(*barrier, index);
            if gemm.kind != GemmKind::Tcgen05 {
                self.fail(
                    "gemm-barrier",
                    "only a tcgen05 product arrives on a barrier",
                );
            }
        }
        if let Some(plan) = &gemm.plan {
            let threads = self.func.kernels.iter().map(|k| k.num_threads()).max();
            let warps = plan.warps[0].saturating_mul(plan.warps[1]);
            if warps == 0 || warps > threads.unwrap_or(0) {
                self.fail(
                    "gemm-plan",
                    format!("{warps} warps have the parts of a product"),
                );
            }
            if plan.inst.scaled && gemm.scales.is_none() {
                self.fail("gemm-plan", "an instruction with scales for none");
            }
        }
        if !matches!(gemm.k_pack, 1 | 2) {
            self.fail(
                "gemm-k-pack",
                format!("a packing of {}, not 1 or 2", gemm.k_pack),
            );
        }
        let sound =
            self.region(&gemm.a, false) & self.region(&gemm.b, false) & self.region(&gemm.c, false);
        let told = (gemm.sparse.as_ref()).is_none_or(|sparse| self.region(&sparse.e, false));
        let scaled = (gemm.scales.as_ref())
            .is_none_or(|scales| self.region(&scales.a, false) & self.region(&scales.b, false));
        if !sound || !told || !scaled {
            return;
        }
        let inputs = [Scope::Shared, Scope::Fragment, Scope::Tmem];
        let outputs = [Scope::Fragment, Scope::Shared, Scope::Tmem];
        let placed = self.in_scope(&gemm.a, &inputs, "gemm-scope", "the left factor")
            & self.in_scope(&gemm.b, &inputs[..2], "gemm-scope", "the right factor")
            & self.in_scope(&gemm.c, &outputs, "gemm-scope", "the accumulator")
            & (gemm.sparse.as_ref()).is_none_or(|sparse| {
                self.in_scope(&sparse.e, &inputs[..2], "gemm-scope", "the metadata")
            })
            & (gemm.scales.as_ref()).is_none_or(|scales| {
                self.in_scope(&scales.a, &inputs[..2], "gemm-scope", "the left scales")
                    & self.in_scope(&scales.b, &inputs[..2], "gemm-scope", "the right scales")
            });
        if !placed {
            return;
        }
        let metadata = gemm.sparse.iter().map(|sparse| &sparse.e);
        let scales = gemm.scales.iter().flat_map(|scales| [&scales.a, &scales.b]);
        let factors = [&gemm.a, &gemm.b, &gemm.c].into_iter();
        for region in factors.chain(metadata).chain(scales) {
            if self.data(region).scope == Scope::Fragment && !self.is_whole(region) {
                let name = self.buffer_name(region.buffer);
                self.fail(
                    "gemm-region",
                    format!("only a part of fragment `{name}` takes part"),
                );
            }
        }
        self.gemm_types(gemm);
        self.gemm_shape(gemm);
    }

    fn gemm_shape(&mut self, gemm: &'a GemmOp) {
        let mut matrix = |region: &'a Region, transposed: bool| -> Option<(i128, i128)> {
            let (leading, last) = region.dims.split_at(region.dims.len().saturating_sub(2));
            let plain = leading.iter().all(|d| d.extent.is_int(1));
            let sizes = match last {
                [r, c] if plain => r.extent.as_int().zip(c.extent.as_int()),
                _ => None,
            };
            if sizes.is_none() {
                let name = self.buffer_name(region.buffer);
                let error = self.fail(
                    "gemm-shape",
                    format!("`{name}` is no matrix of constant size"),
                );
                error
                    .help
                    .push("two dimensions, and extents of one before them".to_string());
            }
            sizes.map(|(r, c)| if transposed { (c, r) } else { (r, c) })
        };
        let stored = matrix(&gemm.a, gemm.trans_a);
        let kept = stored.map(|(m, k)| (m, if gemm.sparse.is_some() { 2 * k } else { k }));
        let told = match &gemm.sparse {
            Some(sparse) => matrix(&sparse.e, sparse.trans_e),
            None => None,
        };
        let scales = match &gemm.scales {
            Some(scales) => matrix(&scales.a, false).zip(matrix(&scales.b, false)),
            None => None,
        };
        let a = kept;
        let b = matrix(&gemm.b, gemm.trans_b);
        let c = matrix(&gemm.c, false);
        let (Some((am, ak)), Some((bk, bn)), Some((cm, cn))) = (a, b, c) else {
            return;
        };
        if am != cm || bn != cn || ak != bk {
            let message = format!("a product of {am}x{ak} and {bk}x{bn} is not {cm}x{cn}");
            self.fail("gemm-shape", message);
        }
        let planned = gemm.plan.map(|plan| plan.inst.is_sparse());
        if planned.is_some_and(|sparse| sparse != gemm.sparse.is_some()) {
            let message = "sparse instructions are for sparse products, and no others";
            self.fail("gemm-sparse", message);
        }
        if let (Some(sparse), Some((rows, integers))) = (&gemm.sparse, told) {
            self.metadata(gemm, sparse, [am, ak], [rows, integers]);
        }
        if let (Some(scales), Some((a, b))) = (&gemm.scales, scales) {
            self.scales(gemm, scales, [am, bn, ak], [a, b]);
        }
    }

    /// The scales of a product of these sizes.
    fn scales(
        &mut self,
        gemm: &GemmOp,
        scales: &Scales,
        [m, n, k]: [i128; 3],
        sizes: [(i128, i128); 2],
    ) {
        let types = [&scales.a, &scales.b].map(|region| self.dtype_of(region));
        let needed = [m, n].into_iter().zip(scales.every);
        let needed = needed.map(|(rows, every)| (rows, Scales::count(k, every)));
        let unlike = needed.zip(sizes).find(|(needed, size)| needed != size);
        let plain = gemm.plan.is_some_and(|plan| !plan.inst.scaled);
        let message = if gemm.kind != GemmKind::Auto || plain {
            "a product with scales by an instruction without".to_string()
        } else if gemm.sparse.is_some() {
            "a sparse product with scales".to_string()
        } else if scales.every.contains(&0) {
            "a scale for no element".to_string()
        } else if let Some(t) = types
            .iter()
            .find(|t| t.lanes != 1 || !Scales::may_be(t.scalar))
        {
            format!("scales of {t}")
        } else if let Some(((rows, runs), (r, c))) = unlike {
            format!("scales of {r}x{c} where {rows}x{runs} are needed")
        } else {
            return;
        };
        self.fail("gemm-scales", message);
    }

    /// The metadata of a left factor of this size.
    fn metadata(&mut self, gemm: &GemmOp, sparse: &Sparse, [m, k]: [i128; 2], e: [i128; 2]) {
        let (a, integer) = (self.dtype_of(&gemm.a), self.dtype_of(&sparse.e));
        let speaks_of = Sparsity::of(a.scalar).and_then(|s| s.per_integer(integer.scalar));
        let message = match speaks_of {
            _ if gemm.kind != GemmKind::Auto => {
                "a sparse product has no instruction of that kind".to_string()
            }
            None => format!("metadata of {integer} for a left factor of {a}"),
            Some(n) if e[0] != m || e[1] * i128::from(n) != k => {
                format!("metadata of {}x{} for a left factor of {m}x{k}", e[0], e[1])
            }
            Some(_) => return,
        };
        self.fail("gemm-sparse", message);
    }

    fn gemm_types(&mut self, gemm: &'a GemmOp) {
        let (a, b, c) = (
            self.dtype_of(&gemm.a),
            self.dtype_of(&gemm.b),
            self.dtype_of(&gemm.c),
        );
        let small = |t: DType| matches!(t.scalar.class(), Class::F8 | Class::F6 | Class::F4);
        let mixed = gemm.kind == GemmKind::Tcgen05 && small(a) && small(b);
        let scaled = gemm.scales.is_some() && Scales::of(a.scalar) && Scales::of(b.scalar);
        if gemm.scales.is_some() && !scaled {
            self.fail(
                "gemm-types",
                format!("a product of {a} and {b} with scales"),
            );
            return;
        }
        if a != b && !mixed && !scaled {
            let error = self.fail("gemm-types", format!("the factors are {a} and {b}"));
            error
                .help
                .push("cast one of them on its way in".to_string());
            return;
        }
        let accumulators: &[Scalar] = match a.scalar {
            Scalar::F16 => &[Scalar::F32, Scalar::F16],
            Scalar::BF16 | Scalar::TF32 | Scalar::F32 => &[Scalar::F32],
            Scalar::F64 => &[Scalar::F64],
            Scalar::I8 | Scalar::U8 | Scalar::I4 | Scalar::U4 => &[Scalar::I32],
            Scalar::F8E4M3FN
            | Scalar::F8E4M3FNUZ
            | Scalar::F8E5M2
            | Scalar::F8E5M2FNUZ
            | Scalar::F6E2M3
            | Scalar::F6E3M2
            | Scalar::F4E2M1 => match scaled {
                true => &[Scalar::F32],
                false => &[Scalar::F32, Scalar::F16],
            },
            Scalar::Bool
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64
            | Scalar::F8E8M0
            | Scalar::Handle => &[],
        };
        let scalars = a.lanes == 1 && b.lanes == 1 && c.lanes == 1;
        if !scalars || !accumulators.contains(&c.scalar) {
            let names: Vec<&str> = accumulators.iter().map(|s| s.name()).collect();
            let error = self.fail("gemm-types", format!("products of {a} summed in {c}"));
            error.help.push(match names.is_empty() {
                true => format!("there is no matrix product of {a}"),
                false => format!("the accumulator is {}", names.join(" or ")),
            });
        }
    }
}
