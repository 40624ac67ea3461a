//! Matrix products: `T.gemm`, its split-phase forms, `T.gemm_sp` and `T.gemm_blockscaled`.

mod operands;
mod policy;
mod scaled;
mod sparse;

use tilewright_ir::{Expr, GemmKind, GemmOp, Scope, TileOp};

use self::operands::{Matrix, Operands, check_dtypes, check_shapes};
use self::policy::policy;
use self::scaled::gemm_blockscaled;
use self::sparse::gemm_sp;
use super::barrier::barrier_element;
use super::{CallArgs, LangFn, ParamSpec, Ty, func, kw, opt, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub use self::policy::GemmWarpPolicy;

pub(super) static FNS: &[LangFn] = &[
    func(
        "gemm",
        &[
            A,
            B,
            C,
            TRANS_A,
            TRANS_B,
            POLICY,
            CLEAR,
            opt("k_pack", Ty::Int),
            opt("mbar", Ty::Any),
            opt("annotations", Ty::Any),
        ],
        |rec, args| gemm(rec, args, "T.gemm", GemmKind::Auto),
    ),
    func(
        "gemm_sp",
        &[
            req("A_sparse", Ty::Tile),
            req("E", Ty::Tile),
            B,
            C,
            TRANS_A,
            opt("transpose_E", Ty::Bool),
            TRANS_B,
            POLICY,
            CLEAR,
            opt("k_pack", Ty::Int),
            opt("wg_wait", Ty::Int),
            opt("annotations", Ty::Any),
        ],
        gemm_sp,
    ),
    func(
        "gemm_blockscaled",
        &[
            A,
            B,
            C,
            req("SFA", Ty::Tile),
            req("SFB", Ty::Tile),
            TRANS_A,
            TRANS_B,
            POLICY,
            CLEAR,
            kw("sf_a_granularity_k", Ty::Int),
            kw("sf_b_granularity_k", Ty::Int),
        ],
        gemm_blockscaled,
    ),
    func(
        "wgmma_gemm",
        &[
            A,
            B,
            C,
            TRANS_A,
            TRANS_B,
            POLICY,
            CLEAR,
            opt("annotations", Ty::Any),
        ],
        |rec, args| gemm(rec, args, "T.wgmma_gemm", GemmKind::Wgmma),
    ),
    func(
        "tcgen05_gemm",
        &[
            A,
            B,
            C,
            TRANS_A,
            TRANS_B,
            POLICY,
            CLEAR,
            kw("mbar", Ty::Any),
            kw("use_2cta", Ty::Bool),
            kw("annotations", Ty::Any),
        ],
        |rec, args| gemm(rec, args, "T.tcgen05_gemm", GemmKind::Tcgen05),
    ),
];

const A: ParamSpec = req("A", Ty::Tile);
const B: ParamSpec = req("B", Ty::Tile);
const C: ParamSpec = req("C", Ty::Tile);
const TRANS_A: ParamSpec = opt("transpose_A", Ty::Bool);
const TRANS_B: ParamSpec = opt("transpose_B", Ty::Bool);
const POLICY: ParamSpec = opt("policy", Ty::Any);
const CLEAR: ParamSpec = opt("clear_accum", Ty::Scalar);

fn gemm(rec: &mut Recorder, args: &CallArgs, what: &str, kind: GemmKind) -> Result<Value> {
    let operands = Operands::read(rec, args, (what, kind), "A")?;
    check_shapes(rec, args, what, &operands)?;
    check_dtypes(rec, args, (what, kind), &operands)?;
    let c = &operands.c;
    let (barrier, k_pack) = match kind {
        GemmKind::Auto => (barrier(rec, args, what, c)?, k_pack(rec, args)?),
        GemmKind::Wgmma => (None, 1),
        GemmKind::Tcgen05 => {
            if args.bool_or(rec, "use_2cta", false)? {
                return Err(super::not_supported(
                    rec,
                    args.span_of("use_2cta"),
                    "a product over two blocks (`use_2cta`)",
                    "leave `use_2cta` out",
                ));
            }
            (barrier(rec, args, what, c)?, 1)
        }
    };
    emit(rec, args, operands, |op| GemmOp {
        k_pack,
        kind,
        barrier,
        ..op
    })
}

/// Emits a product of these matrices, with what is special about it.
fn emit(
    rec: &mut Recorder,
    args: &CallArgs,
    operands: Operands,
    special: impl FnOnce(GemmOp) -> GemmOp,
) -> Result<Value> {
    let plain = GemmOp {
        policy: policy(rec, args)?,
        clear: clear_accum(rec, args)?,
        a: operands.a.region,
        b: operands.b.region,
        c: operands.c.region,
        trans_a: operands.trans_a,
        trans_b: operands.trans_b,
        sparse: None,
        scales: None,
        k_pack: 1,
        kind: GemmKind::Auto,
        barrier: None,
        plan: None,
    };
    rec.emit_tile(TileOp::Gemm(special(plain)))?;
    Ok(Value::None)
}

fn barrier(
    rec: &mut Recorder,
    args: &CallArgs,
    what: &str,
    c: &Matrix,
) -> Result<Option<(tilewright_ir::Buffer, Expr)>> {
    let Some(value) = args.value("mbar").cloned() else {
        return Ok(None);
    };
    if c.scope != Scope::Tmem {
        return Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("mbar"),
                format!("{what}: `mbar` is for accumulators in tensor memory"),
            )
            .help("leave `mbar` out; the product is complete before the next statement")
            .into());
    }
    barrier_element(rec, &value, args.span_of("mbar")).map(Some)
}

fn k_pack(rec: &mut Recorder, args: &CallArgs) -> Result<u8> {
    match args.int_or(rec, "k_pack", 1)? {
        1 => Ok(1),
        2 => Ok(2),
        other => Err(rec
            .error(
                codes::K_PACK,
                args.span_of("k_pack"),
                format!("`k_pack` must be 1 or 2, this is {other}"),
            )
            .help("it is a hint for matrix cores that read two fragments at a time; leave it out")
            .into()),
    }
}

fn clear_accum(rec: &Recorder, args: &CallArgs) -> Result<Expr> {
    match args.value("clear_accum") {
        None => Ok(Expr::bool(false)),
        Some(value) => rec.condition(value, args.span_of("clear_accum")),
    }
}
