//! Bulk copies by descriptors that the program makes: `T.create_tma_descriptor`, `T.tma_load`,
//! `T.tma_store`.
//!
//! A descriptor says again what the tensor's parameter says. It is held against that, and what is left
//! is the box that a copy moves: the compiler makes the descriptors of what it emits itself, with the
//! swizzle of the tile as it lies.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::{
    Buffer, CopyHints, CopyKind, CopyOp, EvictionPolicy, Expr, ExprKind, Region, RegionDim, Scope,
    Span, TileOp, TmaBox,
};

use super::args::Arg;
use super::barrier::barrier_element;
use super::extents::{check_inside, extents_equal, show_extents};
use super::{CallArgs, LangFn, Ty, func, req, rest};
use crate::record::Recorder;
use crate::value::{Object, Value};
use crate::{Error, Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "create_tma_descriptor",
        &[
            req("dtype", Ty::Int),
            req("rank", Ty::Int),
            req("address", Ty::Any),
            rest("args", Ty::Any),
        ],
        create,
    ),
    func(
        "tma_load",
        &[
            req("descriptor", Ty::Any),
            req("mbarrier", Ty::Any),
            req("dst", Ty::Any),
            rest("args", Ty::Any),
        ],
        load,
    ),
    func(
        "tma_store",
        &[
            req("descriptor", Ty::Any),
            req("src", Ty::Any),
            rest("args", Ty::Any),
        ],
        store,
    ),
];

/// Bits of an element, by the number that a descriptor gives its type. Source: CUDA driver API,
/// `CUtensorMapDataType`.
const BITS: [u32; 13] = [8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32];
/// Indices of a box along a dimension, at most. Source: the same, `cuTensorMapEncodeTiled`.
const LONGEST: i128 = 256;
/// Bytes that a box's rows are a multiple of. Source: the same.
const ROW_BYTES: i128 = 16;
/// Values of `interleave`, `swizzle`, `l2Promotion` and `oobFill` after the dimensions.
const MODES: [(&str, i128); 4] = [
    ("the interleaving", 0),
    ("the swizzle", 3),
    ("the promotion to L2", 3),
    ("the fill outside of the tensor", 0),
];
const MAKE: &str = "write `T.create_tma_descriptor(type, rank, A.data, extents, strides in bytes, box, \
                    element strides, 0, swizzle, promotion, 0)`, innermost dimension first, or use \
                    `T.tma_copy`, which needs none";

#[derive(Debug)]
struct Descriptor {
    tensor: Buffer,
    /// Outermost first.
    extents: Vec<i128>,
}

impl Object for Descriptor {
    fn type_name(&self) -> &'static str {
        "a descriptor of a tensor"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn wrong(rec: &Recorder, span: Span, message: impl Into<String>, help: &str) -> Error {
    rec.error(codes::TMA_DESCRIPTOR, span, message)
        .help(help)
        .into()
}

fn create(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let rank = args.int_or(rec, "rank", 0)?;
    let most = TmaBox::MAX_RANK;
    let Some(rank) = usize::try_from(rank)
        .ok()
        .filter(|r| (1..=most).contains(r))
    else {
        let message = format!("a descriptor has one to {most} dimensions, this one {rank}");
        return Err(wrong(rec, args.span_of("rank"), message, MAKE));
    };
    let wanted = 4 * rank + MODES.len();
    let given = args.rest().len();
    if given != wanted {
        let message = format!(
            "a descriptor of {rank} dimensions has {wanted} numbers after the address, this one {given}"
        );
        return Err(wrong(rec, args.span(), message, MAKE));
    }
    let span = args.span_of("address");
    let address = args.required("address").clone();
    let (tensor, start) = place(rec, &address, span)?;
    let data = rec.buffer(tensor);
    if data.scope != Scope::Global || start.iter().any(|at| rec.const_int(at) != Some(0)) {
        let message = "a descriptor is of a whole tensor, from its first element on";
        return Err(wrong(rec, span, message, "give the tensor: `A.data`"));
    }
    let bits = data.dtype.bits();
    let code = args.int_or(rec, "dtype", 0)?;
    let said = usize::try_from(code).ok().and_then(|at| BITS.get(at));
    if said.copied() != Some(bits) {
        let is = match said {
            Some(said) => format!("elements of {said} bits"),
            None => "no type that there is".to_string(),
        };
        let message = format!(
            "{} has elements of {}, {bits} bits; type {code} is {is}",
            rec.buffer_name(tensor),
            rec.buffer(tensor).dtype
        );
        return Err(wrong(rec, args.span_of("dtype"), message, MAKE));
    }
    let mut lists = args.rest().chunks(rank);
    let mut next = || lists.next().unwrap_or_default();
    let (extents, strides, boxes, steps) = (next(), next(), next(), next());
    check_tensor(rec, tensor, extents, strides)?;
    let extents = box_extents(rec, boxes, bits)?;
    for step in steps {
        if rec.to_int(&step.value.clone(), step.span, "an element stride")? != 1 {
            let message = "a bulk copy takes every element; this descriptor leaves some out";
            return Err(wrong(rec, step.span, message, "give element strides of 1"));
        }
    }
    for (mode, (what, most)) in args.rest()[4 * rank..].iter().zip(MODES) {
        let value = rec.to_int(&mode.value.clone(), mode.span, what)?;
        if !(0..=most).contains(&value) {
            let message = match most {
                0 => format!("{what} of a descriptor is 0 here, not {value}"),
                _ => format!("{what} of a descriptor is 0 to {most}, not {value}"),
            };
            return Err(wrong(rec, mode.span, message, MAKE));
        }
    }
    Ok(Value::Object(Rc::new(Descriptor { tensor, extents })))
}

/// Whether extents and strides are those of the tensor; innermost first.
fn check_tensor(rec: &Recorder, tensor: Buffer, extents: &[Arg], strides: &[Arg]) -> Result<()> {
    const HELP: &str = "declare the tensor with the dimensions of the descriptor";
    let data = rec.buffer(tensor);
    let name = rec.buffer_name(tensor);
    let shape: Vec<Expr> = data.shape.iter().rev().cloned().collect();
    let said: Vec<Expr> = extents
        .iter()
        .map(|e| rec.to_expr(&e.value, e.span))
        .collect::<Result<_>>()?;
    let same = shape.len() == said.len()
        && shape
            .iter()
            .zip(&said)
            .all(|(a, b)| extents_equal(rec, a, &b.clone().cast_to(a.dtype())));
    if !same {
        let message = format!(
            "the descriptor has the extents {}, {name} has {}, innermost first",
            show_extents(rec, said.iter()),
            show_extents(rec, shape.iter())
        );
        let span = extents.first().map_or(Span::NONE, |e| e.span);
        return Err(wrong(rec, span, message, HELP));
    }
    // The first of them says nothing: elements of a row follow each other.
    let mut bytes = Expr::int((data.dtype.bits() / 8).into(), tilewright_ir::DType::I64);
    for (stride, extent) in strides.iter().skip(1).zip(&shape) {
        bytes = bytes * extent.clone().cast_to(tilewright_ir::DType::I64);
        let said = rec.to_expr(&stride.value, stride.span)?;
        if !extents_equal(rec, &bytes, &said.cast_to(tilewright_ir::DType::I64)) {
            let message = format!("this is not the stride of {name} in bytes");
            return Err(wrong(rec, stride.span, message, HELP));
        }
    }
    Ok(())
}

/// Extents of the box, outermost first.
fn box_extents(rec: &Recorder, boxes: &[Arg], bits: u32) -> Result<Vec<i128>> {
    let mut extents = Vec::with_capacity(boxes.len());
    for (dim, extent) in boxes.iter().enumerate() {
        let value = rec.to_int(&extent.value, extent.span, "an extent of a box")?;
        if !(1..=LONGEST).contains(&value) {
            let message =
                format!("a box has 1 to {LONGEST} indices along a dimension, not {value}");
            return Err(wrong(
                rec,
                extent.span,
                message,
                "copy the tile by several boxes",
            ));
        }
        if dim == 0 && value * i128::from(bits) % (8 * ROW_BYTES) != 0 {
            let message = format!(
                "rows of a box are a multiple of {ROW_BYTES} bytes; {value} elements are not"
            );
            return Err(wrong(rec, extent.span, message, "give it longer rows"));
        }
        extents.push(value);
    }
    extents.reverse();
    Ok(extents)
}

fn load(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let value = args.required("mbarrier").clone();
    let barrier = barrier_element(rec, &value, args.span_of("mbarrier"))?;
    let (tensor, tile, hints) = sides(rec, args, "dst", &["an eviction policy"])?;
    emit(rec, tensor, tile, Some(barrier), hints)
}

fn store(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (tensor, tile, hints) = sides(rec, args, "src", &["a reduction", "an eviction policy"])?;
    emit(rec, tile, tensor, None, hints)
}

fn emit(
    rec: &mut Recorder,
    src: Region,
    dst: Region,
    barrier: Option<(Buffer, Expr)>,
    hints: CopyHints,
) -> Result<Value> {
    let kind = CopyKind::Tma {
        barrier,
        multicast: None,
        alone: true,
    };
    rec.emit_tile(TileOp::Copy(CopyOp {
        src,
        dst,
        kind,
        hints,
    }))?;
    Ok(Value::None)
}

/// The box of the tensor and the tile in shared memory; after the coordinates may come so many numbers.
fn sides(
    rec: &Recorder,
    args: &CallArgs,
    name: &str,
    more: &[&str],
) -> Result<(Region, Region, CopyHints)> {
    let what = args.name();
    let span = args.span_of("descriptor");
    let descriptor = match args.required("descriptor") {
        Value::Object(object) => object.as_any().downcast_ref::<Descriptor>(),
        _ => None,
    };
    let Some(Descriptor { tensor, extents }) = descriptor else {
        let message = format!("{what} needs a descriptor of a tensor");
        return Err(wrong(rec, span, message, MAKE));
    };
    let rank = extents.len();
    let given = args.rest().len();
    if given < rank || given > rank + more.len() {
        let message = format!(
            "{what} by a descriptor of {rank} dimensions has as many coordinates, this one {given}"
        );
        let help = "give the first element of the box, innermost dimension first";
        return Err(wrong(rec, args.span(), message, help));
    }
    let mut hints = CopyHints::default();
    for (number, what) in args.rest()[rank..].iter().zip(more) {
        let value = rec.to_int(&number.value, number.span, what)?;
        hints.eviction = match (*what, value) {
            ("an eviction policy", 1) => Some(EvictionPolicy::First),
            ("an eviction policy", 2) => Some(EvictionPolicy::Last),
            (_, 0) => None,
            _ => {
                let message = format!("{value} is not {what} that there is here");
                return Err(wrong(rec, number.span, message, "leave it out, or give 0"));
            }
        };
    }
    let mut dims = Vec::with_capacity(rank);
    let coordinates = &args.rest()[..rank];
    for (at, extent) in coordinates.iter().rev().zip(extents) {
        let start = rec.to_expr(&at.value, at.span)?;
        super::check_index(rec, &start, at.span, "a coordinate")?;
        let extent = Expr::int(*extent, start.dtype());
        dims.push(RegionDim { start, extent });
    }
    let tensor = Region {
        buffer: *tensor,
        dims,
    };
    let span = args.span_of(name);
    let (buffer, at) = place(rec, args.required(name), span)?;
    let data = rec.buffer(buffer);
    if data.scope != Scope::Shared {
        let message = format!(
            "{what} works on shared memory; {} is {}",
            rec.buffer_name(buffer),
            data.scope.name()
        );
        return Err(wrong(
            rec,
            span,
            message,
            "use a buffer of `T.alloc_shared`",
        ));
    }
    if data.dtype.bits() != rec.buffer(tensor.buffer).dtype.bits() {
        let message = format!(
            "{what} moves bytes and cannot convert {} to {}",
            rec.buffer(tensor.buffer).dtype,
            data.dtype
        );
        return Err(wrong(
            rec,
            span,
            message,
            "use equal dtypes, or `T.copy`, which converts",
        ));
    }
    // The tile's last dimensions are those of the box that have more than one index.
    let many: Vec<i128> = extents.iter().copied().filter(|e| *e != 1).collect();
    let Some(before) = at.len().checked_sub(many.len()) else {
        let message = format!(
            "the box has {} dimensions of more than one index, {} has {}",
            many.len(),
            rec.buffer_name(buffer),
            at.len()
        );
        let help =
            "give the tile a dimension for each, `T.alloc_shared((stages, rows, columns), …)`";
        return Err(wrong(rec, span, message, help));
    };
    let ones = std::iter::repeat_n(1, before);
    let tile = at
        .into_iter()
        .zip(ones.chain(many))
        .map(|(start, extent)| {
            let extent = Expr::int(extent, start.dtype());
            RegionDim { start, extent }
        })
        .collect();
    let tile = Region { buffer, dims: tile };
    let said = coordinates.iter().map(|at| at.span).reduce(Span::to);
    check_inside(rec, &tensor, said.unwrap_or(args.span()), false)?;
    check_inside(rec, &tile, span, true)?;
    Ok((tensor, tile, hints))
}

/// What a pointer points to: a buffer, an element, or an address of one.
fn place(rec: &Recorder, value: &Value, span: Span) -> Result<(Buffer, Vec<Expr>)> {
    let first = |buffer: Buffer| {
        let shape = &rec.buffer(buffer).shape;
        (
            buffer,
            shape.iter().map(|e| Expr::zero(e.dtype())).collect(),
        )
    };
    match value {
        Value::Buffer(buffer) => return Ok(first(*buffer)),
        Value::Element(e) => return Ok((e.buffer, e.indices.to_vec())),
        Value::Region(r) => {
            let starts = r.region.dims.iter().map(|d| d.start.clone());
            return Ok((r.region.buffer, starts.collect()));
        }
        Value::Expr(e) => {
            if let ExprKind::AddressOf { buffer, indices } = e.kind() {
                return Ok((*buffer, indices.to_vec()));
            }
        }
        _ => {}
    }
    let message = format!("an address is meant, this is {}", rec.what_is(value));
    let help = "write `T.access_ptr(S[i, 0, 0], \"w\")` or `A.data` where it is used";
    Err(wrong(rec, span, message, help))
}
