//! `T.PersistentTileScheduler`: tiles that blocks which stay take one after another.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::{BinOp, Buffer, BufferOrigin, DType, Scope, Span};

use super::{CallArgs, LangFn, Ty, func, opt, req};
use crate::record::Recorder;
use crate::value::{Element, Object, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[func(
    "PersistentTileScheduler",
    &[
        req("prefix", Ty::Str),
        req("num_m_tiles", Ty::Scalar),
        req("num_n_tiles", Ty::Scalar),
        opt("num_workers", Ty::Scalar),
        opt("swizzle_size", Ty::Int),
        opt("column_major", Ty::Bool),
        opt("cluster_size", Ty::Int),
        opt("stateful", Ty::Bool),
    ],
    scheduler,
)];

/// What a scheduler is of; the state is the block's variables.
#[derive(Debug)]
struct Tiles {
    /// Tiles along the axis that is swept whole, and along the one that is cut into panels.
    swept: Value,
    panelled: Value,
    total: Value,
    workers: Value,
    panel: i128,
    column_major: bool,
    state: Option<State>,
}

#[derive(Debug)]
struct State {
    m: Buffer,
    n: Buffer,
    linear: Buffer,
    iteration: Buffer,
}

#[derive(Debug)]
struct Scheduler(Rc<Tiles>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Init,
    Next,
    Valid,
    Coord,
}

#[derive(Debug)]
struct Bound {
    tiles: Rc<Tiles>,
    step: Step,
}

fn scheduler(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span();
    rec.kernel("`T.PersistentTileScheduler`")?;
    let panel = super::positive(rec, args, "swizzle_size")?.unwrap_or(1);
    let cluster = super::positive(rec, args, "cluster_size")?.unwrap_or(1);
    let column_major = args.bool_or(rec, "column_major", true)?;
    let (m, n) = (
        args.required("num_m_tiles").clone(),
        args.required("num_n_tiles").clone(),
    );
    let cluster = Value::Int(cluster.into());
    let less_one = rec.binary(BinOp::Sub, &cluster, &Value::Int(1), span)?;
    let m = rec.binary(BinOp::Add, &m, &less_one, span)?;
    let m = rec.binary(BinOp::FloorDiv, &m, &cluster, span)?;
    let workers = match args.value("num_workers").cloned() {
        Some(workers) => workers,
        None => {
            let count = rec.num_sms(span)?;
            rec.binary(BinOp::FloorDiv, &count, &cluster, span)?
        }
    };
    let state = match args.bool_or(rec, "stateful", true)? {
        false => None,
        true => {
            let prefix = args.str("prefix").unwrap_or("tile").to_string();
            let mut var = |name: &str| {
                let name = format!("{prefix}_{name}");
                let scope = Scope::Var;
                let data =
                    rec.buffer_data(&name, scope, DType::I32, vec![], BufferOrigin::Alloc, span);
                rec.alloc(data)
            };
            Some(State {
                m: var("m_idx")?,
                n: var("n_idx")?,
                linear: var("linear_idx")?,
                iteration: var("current_iter")?,
            })
        }
    };
    let total = rec.binary(BinOp::Mul, &m, &n, span)?;
    let (swept, panelled) = match column_major {
        true => (m, n),
        false => (n, m),
    };
    Ok(Value::Object(Rc::new(Scheduler(Rc::new(Tiles {
        swept,
        panelled,
        total,
        workers,
        panel: panel.into(),
        column_major,
        state,
    })))))
}

impl Object for Scheduler {
    fn type_name(&self) -> &'static str {
        "a tile scheduler"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attr(&self, rec: &mut Recorder, name: &str, span: Span) -> Option<Result<Value>> {
        let step = match name {
            "init" => Step::Init,
            "next_tile" => Step::Next,
            "valid" => Step::Valid,
            "coord" => Step::Coord,
            "num_workers" => return Some(Ok(self.0.workers.clone())),
            "m_idx" | "n_idx" | "linear_idx" | "current_iter" => {
                let Some(state) = &self.0.state else {
                    return Some(Err(stateless(rec, span)));
                };
                let buffer = match name {
                    "m_idx" => state.m,
                    "n_idx" => state.n,
                    "linear_idx" => state.linear,
                    _ => state.iteration,
                };
                return Some(Ok(Value::Buffer(buffer)));
            }
            _ => return None,
        };
        let tiles = self.0.clone();
        Some(Ok(Value::Object(Rc::new(Bound { tiles, step }))))
    }
}

impl Object for Bound {
    fn type_name(&self) -> &'static str {
        "a function"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn call(&self, rec: &mut Recorder, args: &[Value], span: Span) -> Option<Result<Value>> {
        let wanted = usize::from(matches!(self.step, Step::Init | Step::Coord));
        if args.len() != wanted {
            let message = format!("{wanted} arguments are meant, {} are given", args.len());
            return Some(Err(rec.error(codes::WRONG_ARITY, span, message).into()));
        }
        Some(self.run(rec, args, span))
    }
}

impl Bound {
    fn run(&self, rec: &mut Recorder, args: &[Value], span: Span) -> Result<Value> {
        if self.step == Step::Coord {
            let (m, n) = self.tiles.coord(rec, &args[0], span)?;
            return Ok(Value::tuple(vec![m, n]));
        }
        let Some(state) = &self.tiles.state else {
            return Err(stateless(rec, span));
        };
        let linear = value(state.linear, span);
        match self.step {
            Step::Valid => return rec.binary(BinOp::Lt, &linear, &self.tiles.total, span),
            Step::Init => {
                store(rec, state.iteration, &Value::Int(0), span)?;
                store(rec, state.linear, &args[0], span)?;
            }
            Step::Next | Step::Coord => {
                let iteration = value(state.iteration, span);
                let next = rec.binary(BinOp::Add, &iteration, &Value::Int(1), span)?;
                store(rec, state.iteration, &next, span)?;
                let next = rec.binary(BinOp::Add, &linear, &self.tiles.workers, span)?;
                store(rec, state.linear, &next, span)?;
            }
        }
        let (m, n) = self.tiles.coord(rec, &linear, span)?;
        store(rec, state.m, &m, span)?;
        store(rec, state.n, &n, span)?;
        Ok(Value::None)
    }
}

impl Tiles {
    /// Row and column of a tile: the swept axis whole for each panel of the other one, of which
    /// the last may be narrower.
    fn coord(&self, rec: &mut Recorder, tile: &Value, span: Span) -> Result<(Value, Value)> {
        let mut op = |op, a: &Value, b: &Value| rec.binary(op, a, b, span);
        let panel = Value::Int(self.panel);
        let whole = op(BinOp::Mul, &self.swept, &panel)?;
        let group = op(BinOp::FloorDiv, tile, &whole)?;
        let base = op(BinOp::Mul, &group, &panel)?;
        let left = op(BinOp::Sub, &self.panelled, &base)?;
        let width = op(BinOp::Min, &panel, &left)?;
        let width = op(BinOp::Max, &width, &Value::Int(1))?;
        let inside = op(BinOp::FloorMod, tile, &whole)?;
        let fast = op(BinOp::FloorDiv, &inside, &width)?;
        let slow = op(BinOp::FloorMod, &inside, &width)?;
        let slow = op(BinOp::Add, &base, &slow)?;
        Ok(match self.column_major {
            true => (fast, slow),
            false => (slow, fast),
        })
    }
}

fn value(buffer: Buffer, span: Span) -> Value {
    Value::Element(Rc::new(Element {
        buffer,
        indices: Vec::new(),
        span,
    }))
}

fn store(rec: &mut Recorder, buffer: Buffer, value: &Value, span: Span) -> Result<()> {
    let element = Element {
        buffer,
        indices: Vec::new(),
        span,
    };
    rec.store(&element, value, span)
}

fn stateless(rec: &Recorder, span: Span) -> crate::Error {
    rec.error(
        codes::WRONG_VALUE,
        span,
        "a scheduler made with `stateful=False` has only `coord`",
    )
    .help("leave `stateful` out, or compute the tile's number and ask `coord(number)`")
    .into()
}
