//! Thread operations: atomics, what lanes do together, barriers.

use tilewright_ir::{
    ArriveAt, AtomicOp, Buffer, Combiner, Expr, MemoryOrder, ReduceKind, Scalar, ShuffleKind, Span,
    ThreadOp, Var,
};

use crate::ctype::ctype;
use crate::device::Piece;
use crate::expr::Code;
use crate::kernel::Emitter;
use crate::place::Kind;
use crate::{Emit, unsupported};

impl Emitter<'_> {
    pub(crate) fn thread_op(&mut self, op: &ThreadOp, span: Span) -> Emit<()> {
        match op {
            ThreadOp::AtomicRmw {
                op,
                buffer,
                indices,
                value,
                order,
                result,
            } => {
                let place = self.place(*buffer, indices, None, 0, span)?;
                let value = self.converted(value, place.scalar)?;
                if place.is_register() || place.kind == Kind::Variable {
                    return unsupported(span, "an atomic operation on registers");
                }
                self.need_atomic(place.scalar, span)?;
                let (element, name) = (ctype(place.scalar), rmw(*op));
                let call = format!(
                    "tw::atomic<tw::{name}, {element}>({}, {value})",
                    place.address()
                );
                self.ordered(*order, |e| {
                    e.result(*result, &call);
                    Ok(())
                })
            }
            ThreadOp::AtomicVecAdd {
                dst,
                dst_indices,
                src,
                src_indices,
                lanes,
            } => {
                let to = self.place(*dst, dst_indices, None, 0, span)?;
                let from = self.place(*src, src_indices, None, 0, span)?;
                let values = (0..u32::from(*lanes)).map(|lane| {
                    let value = from.plus(lane).read();
                    self.convert(value, from.scalar, to.scalar).text
                });
                let values: Vec<String> = values.collect();
                let scope = self.func.buffers[*dst].scope;
                if u32::from(*lanes) > self.machine.atomic_add_lanes(scope, to.scalar) {
                    return unsupported(span, format!("{lanes} additions at once"));
                }
                self.need_type(to.scalar);
                self.needs.piece(match to.scalar {
                    Scalar::F16 => Piece::AddF16,
                    Scalar::BF16 => Piece::AddBf16,
                    _ => Piece::AddF32,
                });
                let values = values.join(", ");
                self.out
                    .line(format!("tw::atomic_add({}, {values});", to.address()));
                Ok(())
            }
            ThreadOp::AtomicLoad {
                buffer,
                indices,
                order,
                result,
            } => {
                let place = self.place(*buffer, indices, None, 0, span)?;
                self.need_atomic(place.scalar, span)?;
                let call = format!("tw::atomic_load({})", place.address());
                self.ordered(*order, |e| {
                    e.result(Some(*result), &call);
                    Ok(())
                })
            }
            ThreadOp::AtomicStore {
                buffer,
                indices,
                value,
                order,
            } => {
                let place = self.place(*buffer, indices, None, 0, span)?;
                self.need_atomic(place.scalar, span)?;
                let value = self.converted(value, place.scalar)?;
                let element = ctype(place.scalar);
                let call = format!("tw::atomic_store<{element}>({}, {value});", place.address());
                self.ordered(*order, |e| {
                    e.out.line(call);
                    Ok(())
                })
            }
            ThreadOp::Shuffle {
                kind,
                value,
                lane,
                width,
                result,
            } => self.shuffle(*kind, value, lane, *width, *result, span),
            ThreadOp::Vote {
                kind,
                value,
                result,
            } => {
                let value = self.converted(value, Scalar::Bool)?;
                self.vote(*kind, &value, *result, span)
            }
            ThreadOp::WarpReduce {
                kind,
                value,
                result,
            } => self.warp_reduce(*kind, value, *result),
            ThreadOp::AllReduce {
                combiner,
                value,
                cond,
                dst,
                dst_indices,
                axes,
            } => self.all_reduce(combiner, value, cond, (*dst, dst_indices), axes, span),
            ThreadOp::SyncThreads { named: None } => {
                self.settle();
                self.out.line("__syncthreads();");
                Ok(())
            }
            ThreadOp::SyncThreads {
                named: Some((id, count)),
            } => self.named_barrier(*id, *count),
            ThreadOp::SyncWarp => {
                let line = self.sync_warp();
                self.out.line(line);
                Ok(())
            }
            ThreadOp::SyncGrid => {
                self.needs.piece(Piece::Grid);
                self.out.line("tw::sync_grid();");
                Ok(())
            }
            ThreadOp::SyncCluster => {
                self.needs_clusters(span)?;
                self.out.line("tw::sync_cluster();");
                Ok(())
            }
            ThreadOp::ClusterArrive => {
                self.needs_clusters(span)?;
                self.settle();
                self.out.line("tw::cluster_arrive();");
                Ok(())
            }
            ThreadOp::ClusterWait => {
                self.needs_clusters(span)?;
                self.out.line("tw::cluster_wait();");
                Ok(())
            }
            ThreadOp::BarrierArrive {
                barrier,
                index,
                warp,
                at,
            } => {
                let bar = self.barrier(*barrier, index, span)?;
                let lanes = self.lane_argument();
                if at.reaches_others() {
                    self.needs_clusters(span)?;
                }
                let blocks = self.cluster;
                let line = match (at, warp) {
                    (ArriveAt::Own, true) => format!("tw::mbarrier_arrive_warp({lanes}{bar});"),
                    (ArriveAt::Own, false) => format!("tw::mbarrier_arrive({bar});"),
                    (ArriveAt::All, true) => {
                        format!("tw::mbarrier_arrive_cluster_warp({lanes}{blocks}, {bar});")
                    }
                    (ArriveAt::All, false) => {
                        format!("tw::mbarrier_arrive_cluster({blocks}, {bar});")
                    }
                    (ArriveAt::Block(rank), false) => {
                        let rank = self.scalar(rank)?;
                        format!("tw::mbarrier_arrive_at({rank}, {bar});")
                    }
                    (ArriveAt::Block(_), true) => {
                        let message = "one arrival of a warp at one other block";
                        return unsupported(span, message.to_string());
                    }
                };
                self.settle();
                self.out.line(line);
                Ok(())
            }
            ThreadOp::BarrierWait {
                barrier,
                index,
                parity,
            } => {
                let bar = self.barrier(*barrier, index, span)?;
                let parity = self.scalar(parity)?;
                self.out
                    .line(format!("tw::mbarrier_wait({bar}, {parity});"));
                Ok(())
            }
            ThreadOp::BarrierExpect {
                barrier,
                index,
                bytes,
                arrive,
            } => {
                if !self.machine.barrier.expects_bytes {
                    return unsupported(span, format!("{} has no bulk copies", self.target));
                }
                let bar = self.barrier(*barrier, index, span)?;
                let bytes = self.scalar(bytes)?;
                let name = if *arrive { "arrive_expect" } else { "expect" };
                self.out
                    .line(format!("tw::mbarrier_{name}({bar}, {bytes});"));
                Ok(())
            }
            ThreadOp::Dp4a {
                a,
                a_indices,
                b,
                b_indices,
                c,
                c_indices,
            } => {
                let a = self.place(*a, a_indices, None, 0, span)?;
                let b = self.place(*b, b_indices, None, 0, span)?;
                let c = self.place(*c, c_indices, None, 0, span)?;
                let word = |p: &crate::place::Place| match p.is_register() {
                    true => format!("(int)*{}", p.words()),
                    false => format!("*(const int*)({})", p.address()),
                };
                let value = self.dot4(&word(&a), &word(&b), &c.read().text);
                let line = c.write(&value, &mut self.needs);
                self.out.line(line);
                Ok(())
            }
            ThreadOp::Extern {
                name, args, result, ..
            } => {
                let mut list = Vec::new();
                for arg in args {
                    list.push(self.scalar(arg)?);
                }
                let call = format!("{name}({})", list.join(", "));
                self.result(*result, &call);
                Ok(())
            }
            ThreadOp::Print { message, args } => self.print(message, args, span),
            ThreadOp::SetMaxRegs { count, increase } => {
                // Where registers do not move between warp groups it is a hint.
                if self.machine.registers.moves.is_some() {
                    let way = if *increase { "inc" } else { "dec" };
                    self.out.line(format!(
                        "asm volatile(\"setmaxnreg.{way}.sync.aligned.u32 {count};\");"
                    ));
                }
                Ok(())
            }
        }
    }

    pub(crate) fn converted(&mut self, value: &Expr, to: Scalar) -> Emit<String> {
        let value = self.settled(value);
        let code = self.expr(&value, 0)?;
        Ok(self.convert(code, value.dtype().scalar, to).text)
    }

    fn need_atomic(&mut self, scalar: Scalar, span: Span) -> Emit<()> {
        if scalar.bits() < 8 {
            return unsupported(span, format!("an atomic operation on {scalar}"));
        }
        self.need_type(scalar);
        self.needs.piece(match scalar {
            Scalar::F16 => Piece::AtomicF16,
            Scalar::BF16 => Piece::AtomicBf16,
            _ => Piece::Atomic,
        });
        Ok(())
    }

    /// Binds the value of a call to a variable, or drops it.
    pub(crate) fn result(&mut self, result: Option<Var>, call: &str) {
        match result.filter(|v| self.uses.vars.contains(v)) {
            Some(var) => {
                let dtype = self.func.vars[var].dtype;
                self.need_type(dtype.scalar);
                self.data_vars.insert(var);
                let name = self.declare(var);
                self.out
                    .line(format!("const {} {name} = {call};", ctype(dtype.scalar)));
            }
            None => self.out.line(format!("{call};")),
        }
    }

    /// An access with the fences that its order asks for.
    fn ordered(
        &mut self,
        order: MemoryOrder,
        access: impl FnOnce(&mut Self) -> Emit<()>,
    ) -> Emit<()> {
        use MemoryOrder::{AcqRel, Acquire, Consume, SeqCst};
        if order.releases() {
            self.out.line("__threadfence();");
        }
        access(self)?;
        if matches!(order, Acquire | Consume | AcqRel | SeqCst) {
            self.out.line("__threadfence();");
        }
        Ok(())
    }

    fn shuffle(
        &mut self,
        kind: ShuffleKind,
        value: &Expr,
        lane: &Expr,
        width: u32,
        result: Var,
        span: Span,
    ) -> Emit<()> {
        let lanes = self.machine.warp_size;
        if width == 0 || width > lanes || !width.is_power_of_two() {
            return unsupported(
                span,
                format!("the width of a shuffle is a power of two up to {lanes}"),
            );
        }
        self.needs.piece(Piece::Warp);
        let stays = kind != ShuffleKind::Xor
            || lane
                .as_int()
                .is_some_and(|l| (0..i128::from(width)).contains(&l));
        if !stays {
            return unsupported(span, "a shuffle across segments of the warp");
        }
        let scalar = value.dtype().scalar;
        let (value, lane) = (self.scalar(value)?, self.scalar(lane)?);
        let name = match kind {
            ShuffleKind::Index => "index",
            ShuffleKind::Up => "up",
            ShuffleKind::Down => "down",
            ShuffleKind::Xor => "xor",
        };
        let mask = self.lane_argument();
        let call = format!(
            "tw::shuffle_{name}<{}>({mask}{value}, {lane}, {width})",
            ctype(scalar)
        );
        self.result(Some(result), &call);
        Ok(())
    }

    fn warp_reduce(&mut self, kind: ReduceKind, value: &Expr, result: Var) -> Emit<()> {
        self.needs.piece(Piece::Warp);
        let scalar = value.dtype().scalar;
        let value = self.scalar(value)?;
        let (value, fold) = self.fold(kind, scalar, &value);
        let element = ctype(scalar);
        let mask = self.lane_argument();
        let call = format!(
            "tw::warp_fold<{element}>({mask}{value}, []({element} x, {element} y) {{ return {fold}; }})"
        );
        self.result(Some(result), &call);
        Ok(())
    }

    /// What a reduction folds, and how it folds `x` and `y`.
    fn fold(&mut self, kind: ReduceKind, scalar: Scalar, value: &str) -> (String, String) {
        let absolute = matches!(kind, ReduceKind::AbsSum | ReduceKind::AbsMax);
        let float = scalar.is_float();
        self.needs
            .piece(if float { Piece::Math } else { Piece::Integer });
        let element = ctype(scalar);
        let value = match (absolute, float) {
            (false, _) => value.to_string(),
            (true, true) => {
                let code = self.as_float(Code::primary(value.to_string()), scalar);
                let code = Code::primary(format!("tw::fabs({})", code.text));
                self.rounded(code, scalar).text
            }
            (true, false) if scalar.is_signed_int() => format!("({element})tw::abs<int>({value})"),
            (true, false) => value.to_string(),
        };
        let (x, y) = ("x", "y");
        let wrap = |text: String| format!("({element})({text})");
        let minmax = |e: &mut Self, name: &str| match float {
            true => {
                let a = e.as_float(Code::primary(x.to_string()), scalar).text;
                let b = e.as_float(Code::primary(y.to_string()), scalar).text;
                let code = Code::primary(format!("tw::f{name}({a}, {b})"));
                e.rounded(code, scalar).text
            }
            false => format!("tw::{name}<{element}>(x, y)"),
        };
        let fold = match kind {
            ReduceKind::Sum | ReduceKind::AbsSum => match (float, scalar) {
                (true, _) => {
                    self.rounded(Code::primary("x + y".to_string()), scalar)
                        .text
                }
                (false, Scalar::I32 | Scalar::I64) => "tw::wrap_add(x, y)".to_string(),
                (false, _) => wrap("x + y".to_string()),
            },
            ReduceKind::Max | ReduceKind::AbsMax => minmax(self, "max"),
            ReduceKind::Min => minmax(self, "min"),
            ReduceKind::BitAnd => wrap("x & y".to_string()),
            ReduceKind::BitOr => wrap("x | y".to_string()),
            ReduceKind::BitXor => wrap("x ^ y".to_string()),
        };
        (value, fold)
    }

    /// Threads that differ only in some axes fold their values: each puts its own in shared
    /// memory, then folds its group's.
    fn all_reduce(
        &mut self,
        combiner: &Combiner,
        value: &Expr,
        cond: &Expr,
        (dst, dst_indices): (Buffer, &[Expr]),
        axes: &[u8],
        span: Span,
    ) -> Emit<()> {
        let place = self.place(dst, dst_indices, None, 0, span)?;
        let scalar = place.scalar;
        let value = self.converted(value, scalar)?;
        let cond = self.converted(cond, Scalar::Bool)?;
        let identity = self.converted(&combiner.identity, scalar)?;
        let threads: u32 = self.threads.iter().product();
        let bytes = threads * scalar.bits().div_ceil(8);
        let offset = self.scratch(bytes);
        let element = ctype(scalar);
        let thread = self.linear_thread();
        self.out.line("{");
        self.out.indent();
        self.names.open();
        let line = self.names.take("line");
        let total = self.names.take("total");
        self.out.line(format!(
            "{element}* {line} = ({element}*)(shared_memory + {offset});"
        ));
        self.settle();
        self.out.line("__syncthreads();");
        self.out
            .line(format!("{line}[{thread}] = {cond} ? {value} : {identity};"));
        self.out.line("__syncthreads();");
        self.out.line(format!("{element} {total} = {identity};"));
        let strides = [1, self.threads[0], self.threads[0] * self.threads[1]];
        let names = ["threadIdx.x", "threadIdx.y", "threadIdx.z"];
        let mut index = Vec::new();
        let mut loops = 0;
        for axis in 0..3 {
            if axes.contains(&(axis as u8)) && self.threads[axis] > 1 {
                let at = self.names.take("at");
                self.out.line(format!(
                    "for (int {at} = 0; {at} < {}; ++{at}) {{",
                    self.threads[axis]
                ));
                self.out.indent();
                loops += 1;
                index.push(format!("{at} * {}", strides[axis]));
            } else {
                index.push(format!("{} * {}", names[axis], strides[axis]));
            }
        }
        let lhs = self.declare(combiner.lhs);
        let rhs = self.declare(combiner.rhs);
        self.out.line(format!("const {element} {lhs} = {total};"));
        self.out.line(format!(
            "const {element} {rhs} = {line}[{}];",
            index.join(" + ")
        ));
        let folded = self.converted(&combiner.body, scalar)?;
        self.out.line(format!("{total} = {folded};"));
        for _ in 0..loops {
            self.out.dedent();
            self.out.line("}");
        }
        let store = place.write(&total, &mut self.needs);
        self.out.line(store);
        self.names.close();
        self.out.dedent();
        self.out.line("}");
        Ok(())
    }

    pub(crate) fn barrier(&mut self, barrier: Buffer, index: &Expr, span: Span) -> Emit<String> {
        self.needs.piece(Piece::Barriers);
        let index = self.settled(index);
        Ok(self
            .place(barrier, std::slice::from_ref(&index), None, 0, span)?
            .address())
    }

    pub(crate) fn barrier_init(
        &mut self,
        barrier: Buffer,
        index: &Expr,
        count: u32,
        span: Span,
    ) -> Emit<()> {
        let bar = self.barrier(barrier, index, span)?;
        let thread = self.linear_thread();
        self.out.line(format!(
            "if ({thread} == 0) tw::mbarrier_init({bar}, {count});"
        ));
        Ok(())
    }

    pub(crate) fn named_barrier(&mut self, id: u32, count: u32) -> Emit<()> {
        self.needs.piece(Piece::Barriers);
        let barrier = match self.machine.barrier.named {
            true => format!("{id}, {count}"),
            false => self.plan.named_name(id),
        };
        self.settle();
        self.out.line(format!("tw::sync_named({barrier});"));
        Ok(())
    }
}

fn rmw(op: AtomicOp) -> &'static str {
    match op {
        AtomicOp::Add => "ADD",
        AtomicOp::Max => "MAX",
        AtomicOp::Min => "MIN",
        AtomicOp::Or => "OR",
        AtomicOp::And => "AND",
        AtomicOp::Xor => "XOR",
        AtomicOp::Exchange => "EXCHANGE",
    }
}
