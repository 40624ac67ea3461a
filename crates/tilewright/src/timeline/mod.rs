//! A pipelined loop as it runs: what each stream of warps issues in its first iterations and behind
//! the loop, in program order, with what is in flight until a wait is for it. Read from device IR,
//! whose `iteration` marks say what belongs to which iteration.

mod svg;

use std::collections::BTreeMap;

use tilewright_ir::{
    BinOp, Buffer, Counter, Counting, DeviceOp, Expr, ExprKind, Func, Inst, Kernel, MicroKind,
    MicroOp, MmaFamily, Stmt, StmtKind, Target, ThreadOp, Var, visit,
};

pub use svg::to_svg;

/// Turns of a loop that are played; then it is cut short.
const TURNS: i128 = 4;
/// Steps that stand for the turns that are left out.
const GAP: usize = 3;

/// The pipelined loops of a kernel.
#[derive(Clone, Debug)]
pub struct Timeline {
    pub title: String,
    pub streams: Vec<Stream>,
}

/// What warps that run the same statements do.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Empty where all warps of the block go together.
    pub name: String,
    pub lanes: Vec<Lane>,
    pub events: Vec<Event>,
    /// Where each section of the program begins: before the loop, its turns, behind it.
    pub sections: Vec<(usize, String)>,
    pub steps: usize,
}

/// A row of the picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    pub kind: Kind,
    pub name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Kind {
    Copy,
    Read,
    Product,
    Store,
    Signal,
    Wait,
    Barrier,
}

/// Something that is issued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    pub lane: usize,
    pub step: usize,
    /// The iteration that it belongs to.
    pub iteration: Option<i128>,
    /// In flight up to this step; `None` where it is complete at once.
    pub until: Option<usize>,
    /// What stands in it where no iteration does.
    pub label: String,
}

/// The pipelined loops of a lowered function, a picture for each kernel that has one.
pub fn timelines(func: &Func, target: Target) -> Vec<Timeline> {
    let kernels = func.kernels.iter().enumerate();
    let drawn = kernels.filter_map(|(number, kernel)| {
        let streams = streams(func, kernel);
        let title = match func.kernels.len() {
            1 => format!("{} on {target}", func.name),
            _ => format!("{}, kernel {number}, on {target}", func.name),
        };
        (!streams.is_empty()).then_some(Timeline { title, streams })
    });
    drawn.collect()
}

fn streams(func: &Func, kernel: &Kernel) -> Vec<Stream> {
    let mut regions: Vec<(String, &[Stmt])> = Vec::new();
    visit::walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::WarpGroup { groups, body } = &stmt.kind
            && is_pipelined(body)
        {
            let names: Vec<String> = groups.iter().map(u32::to_string).collect();
            let s = if names.len() == 1 { "" } else { "s" };
            regions.push((format!("warp group{s} {}", names.join(", ")), body));
        }
    });
    if regions.is_empty() {
        regions.push((String::new(), &kernel.body));
    }
    let played = regions.into_iter().map(|(name, body)| {
        let mut player = Player {
            func,
            env: BTreeMap::new(),
            iteration: None,
            stream: Stream {
                name,
                ..Stream::default()
            },
            flights: BTreeMap::new(),
        };
        player.block(body);
        player.finish()
    });
    played.filter(|s| !s.events.is_empty()).collect()
}

/// Whether iterations of a pipelined loop are marked in there.
fn is_pipelined(body: &[Stmt]) -> bool {
    let mut found = false;
    visit::walk_stmts(body, &mut |stmt| {
        found |= matches!(stmt.kind, StmtKind::Device(DeviceOp::Iteration(Some(_))));
    });
    found
}

/// Plays the statements of a stream.
struct Player<'f> {
    func: &'f Func,
    env: BTreeMap<Var, i128>,
    iteration: Option<i128>,
    stream: Stream,
    flights: BTreeMap<&'static str, Flights>,
}

/// What a counter has in flight.
#[derive(Default)]
struct Flights {
    /// Events of the group that is not closed yet.
    open: Vec<usize>,
    /// Groups, or single operations with their instructions, oldest first.
    closed: Vec<(Vec<usize>, u32)>,
}

impl Player<'_> {
    /// A mark holds up to the end of its block.
    fn block(&mut self, body: &[Stmt]) {
        let outer = self.iteration;
        for stmt in body {
            self.stmt(stmt);
        }
        self.iteration = outer;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::For(l) if is_pipelined(&l.body) => self.turns(l),
            // What is written out anyway is one thing here.
            StmtKind::For(l) => self.block(&l.body),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => match self.value(cond) {
                Some(0) => self.block(otherwise),
                // What only some threads do is done.
                Some(_) | None => self.block(then),
            },
            StmtKind::WarpGroup { body, .. } => self.block(body),
            StmtKind::Let { var, value } => {
                if let Some(value) = self.value(value) {
                    self.env.insert(*var, value);
                }
            }
            StmtKind::Micro(op) => self.micro(op),
            StmtKind::Device(op) => self.device(op),
            StmtKind::Thread(ThreadOp::BarrierWait { barrier, index, .. }) => {
                let name = format!("wait {}", self.name(*barrier));
                let label = self.value(index).map_or(String::new(), |n| n.to_string());
                self.add(Kind::Wait, name, label);
            }
            StmtKind::Thread(ThreadOp::BarrierArrive { barrier, index, .. }) => {
                let name = format!("arrive {}", self.name(*barrier));
                let label = self.value(index).map_or(String::new(), |n| n.to_string());
                self.add(Kind::Signal, name, label);
            }
            _ => {}
        }
    }

    /// The first turns of a pipelined loop; the rest is left out.
    fn turns(&mut self, l: &tilewright_ir::Loop) {
        let Some(axis) = l.axes.first() else { return };
        let name = self.func.vars[axis.var].name.clone();
        let (start, step) = (self.value(&axis.start).unwrap_or(0), self.value(&axis.step));
        let (step, stop) = (step.unwrap_or(1).max(1), self.value(&axis.stop));
        let mut at = start;
        for _ in 0..TURNS {
            if stop.is_some_and(|stop| at >= stop) {
                break;
            }
            self.env.insert(axis.var, at);
            self.section(format!("{name} = {at}"));
            self.block(&l.body);
            at += step;
        }
        self.env.remove(&axis.var);
        if stop.is_none_or(|stop| at < stop) {
            let left = stop.map(|stop| (stop - at + step - 1) / step);
            self.section(left.map_or("…".to_string(), |n| format!("… {n} more")));
            self.stream.steps += GAP;
            // What is in flight there is another iteration's behind it.
            self.land_all();
        }
        self.iteration = None;
        self.section("behind the loop".to_string());
    }

    fn section(&mut self, name: String) {
        let here = self.stream.steps;
        if self.stream.sections.is_empty() && here > 0 {
            self.stream
                .sections
                .push((0, "before the loop".to_string()));
        }
        // A section without a step is none.
        self.stream.sections.retain(|(at, _)| *at != here);
        self.stream.sections.push((here, name));
    }

    fn micro(&mut self, op: &MicroOp) {
        let name = |b: Buffer| self.name(b);
        let source = op.sources.first().map(|a| name(a.region.buffer));
        let dest = name(op.dest.region.buffer);
        let (kind, lane) = match op.kind {
            MicroKind::G2s | MicroKind::TmaLoad => (Kind::Copy, format!("copy {dest}")),
            MicroKind::G2r => (Kind::Copy, format!("load {}", source.unwrap_or_default())),
            MicroKind::S2r => (Kind::Read, format!("read {}", source.unwrap_or_default())),
            MicroKind::Mma => (Kind::Product, format!("product {dest}")),
            MicroKind::R2s | MicroKind::R2g | MicroKind::TmaStore => {
                (Kind::Store, format!("store {dest}"))
            }
        };
        let event = self.add(kind, lane, String::new());
        // Products of warp groups are counted by the groups that are closed behind them.
        let counter = match (op.counter, op.kind) {
            (None, MicroKind::Mma) if is_group_product(op) => Some(Counter::Wgmma),
            (counter, _) => counter,
        };
        let Some(counter) = counter else { return };
        let flights = self.flights.entry(counter.name()).or_default();
        match counter.counting() {
            Counting::Instructions { .. } => flights.closed.push((vec![event], op.count())),
            Counting::Groups => flights.open.push(event),
            Counting::Phases => {}
        }
    }

    fn device(&mut self, op: &DeviceOp) {
        match op {
            DeviceOp::Iteration(Some(e)) => self.iteration = self.value(e),
            DeviceOp::Iteration(None) => self.iteration = None,
            DeviceOp::Commit(counter) => {
                let flights = self.flights.entry(counter.name()).or_default();
                let group = std::mem::take(&mut flights.open);
                flights.closed.push((group, 1));
            }
            DeviceOp::Wait { counter, at_most } => self.wait(counter.name(), *at_most),
            DeviceOp::WaitRead { at_most } => self.wait(Counter::TmaStore.name(), *at_most),
            DeviceOp::Barrier(_) => {
                self.add(Kind::Barrier, "barrier".to_string(), String::new());
            }
            _ => {}
        }
    }

    fn wait(&mut self, counter: &'static str, at_most: u32) {
        self.add(Kind::Wait, format!("wait {counter}"), at_most.to_string());
        let step = self.stream.steps - 1;
        let Some(flights) = self.flights.get_mut(counter) else {
            return;
        };
        let count = |list: &[(Vec<usize>, u32)]| list.iter().map(|(_, n)| n).sum::<u32>();
        while !flights.closed.is_empty() && count(&flights.closed) > at_most {
            // Part of an operation's instructions may be left: then it is not complete.
            if count(&flights.closed[1..]) < at_most {
                break;
            }
            let (landed, _) = flights.closed.remove(0);
            for event in landed {
                self.stream.events[event].until = Some(step);
            }
        }
    }

    /// Adds an event at the next step, and says which it is.
    fn add(&mut self, kind: Kind, name: String, label: String) -> usize {
        let lane = Lane { kind, name };
        let known = self.stream.lanes.iter().position(|l| *l == lane);
        let lane = known.unwrap_or_else(|| {
            self.stream.lanes.push(lane);
            self.stream.lanes.len() - 1
        });
        self.stream.events.push(Event {
            lane,
            step: self.stream.steps,
            iteration: self.iteration.filter(|_| kind < Kind::Signal),
            until: None,
            label,
        });
        self.stream.steps += 1;
        self.stream.events.len() - 1
    }

    /// Everything in flight is so up to here.
    fn land_all(&mut self) {
        let here = self.stream.steps;
        for flights in self.flights.values_mut() {
            let closed = flights.closed.drain(..).flat_map(|(group, _)| group);
            for event in closed.chain(flights.open.drain(..)) {
                self.stream.events[event].until = Some(here);
            }
        }
    }

    /// The lanes in the order of their kinds.
    fn finish(mut self) -> Stream {
        let first_mark = self.stream.sections.first().map_or(0, |s| s.0);
        if self.stream.sections.is_empty() || first_mark > 0 {
            return Stream::default();
        }
        let mut order: Vec<usize> = (0..self.stream.lanes.len()).collect();
        order.sort_by_key(|&lane| self.stream.lanes[lane].kind);
        let mut new = vec![0; order.len()];
        for (place, lane) in order.iter().enumerate() {
            new[*lane] = place;
        }
        for event in &mut self.stream.events {
            event.lane = new[event.lane];
        }
        self.stream.lanes = order
            .iter()
            .map(|&l| self.stream.lanes[l].clone())
            .collect();
        self.stream
    }

    fn name(&self, buffer: Buffer) -> String {
        self.func.buffers[buffer].name.clone()
    }

    fn value(&self, e: &Expr) -> Option<i128> {
        value(e, &self.env)
    }
}

/// Whether the program goes on while the product is done.
fn is_group_product(op: &MicroOp) -> bool {
    matches!(op.inst, Inst::Mma(inst) if inst.family == MmaFamily::Wgmma)
}

/// The value of an integer expression where its variables are known.
fn value(e: &Expr, env: &BTreeMap<Var, i128>) -> Option<i128> {
    if let Some(v) = e.as_int() {
        return Some(v);
    }
    match e.kind() {
        ExprKind::Var(var) => env.get(var).copied(),
        ExprKind::Cast(inner) => value(inner, env),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (value(a, env)?, value(b, env)?);
            Some(match op {
                BinOp::Add => a.checked_add(b)?,
                BinOp::Sub => a.checked_sub(b)?,
                BinOp::Mul => a.checked_mul(b)?,
                BinOp::FloorDiv if b > 0 => a.div_euclid(b),
                BinOp::FloorMod if b > 0 => a.rem_euclid(b),
                BinOp::Min => a.min(b),
                BinOp::Max => a.max(b),
                BinOp::Lt => (a < b).into(),
                BinOp::Le => (a <= b).into(),
                BinOp::Gt => (a > b).into(),
                BinOp::Ge => (a >= b).into(),
                BinOp::Eq => (a == b).into(),
                BinOp::Ne => (a != b).into(),
                BinOp::LogicalAnd => (a != 0 && b != 0).into(),
                BinOp::LogicalOr => (a != 0 || b != 0).into(),
                _ => return None,
            })
        }
        _ => None,
    }
}
