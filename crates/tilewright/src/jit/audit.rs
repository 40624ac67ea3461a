//! The compiled code of AMD kernels against the device IR it comes from.
//!
//! [`Expected`] says what a kernel's hot loop must hold: its waits and barriers as the IR has them,
//! its matrix instructions; `plan` says it of the whole kernel, on every way. [`audit`] compares a
//! kernel's assembly with both, and [`refuse`] makes errors of what may compute something else.
//! Where the IR leaves loads to the compiler (loads without a counter, elements that are packed), and
//! where the compiler keeps values of its own in private memory (it spilled), it waits for these
//! itself, and such waits are let pass between the schedule's. Where the order of the schedule's own
//! waits depends on a branch, or the compiled code has no loop that is one turn of the IR's, the loop is
//! compared as a part of the whole alone. Each time the reason is said.

mod plan;
mod walk;

use std::collections::BTreeMap;

use tilewright_codegen::numbered;
use tilewright_gfx9::asm;
use tilewright_gfx9::audit::{self as gfx9, Expectation, Finding, Kind, Report};
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::{
    Code, DeviceOp, Diagnostic, Diagnostics, FenceKind, Func, Kernel, Machine, MemoryOrder, Scope,
    Severity, Span, Stmt, StmtKind, Target, ThreadOp,
};
use tilewright_schedule::register_waits::is_drained;

/// A kernel's audit.
#[derive(Clone, Debug)]
pub struct KernelAudit {
    pub name: String,
    /// The kernel in the user's file.
    pub span: Span,
    pub report: Report,
    /// Why the waits of the loop were not compared; none where they were.
    pub uncompared: Option<String>,
    /// Why the compiler may have waits of its own between the schedule's.
    pub own_waits: Option<String>,
}

impl KernelAudit {
    pub fn passed(&self) -> bool {
        self.report.passed()
    }

    /// What was found, located at the kernel, with the line of its assembly; instructions that break the
    /// same rule are one diagnostic. What only costs time is a warning, unless it is one of `strict`.
    pub fn diagnostics(&self, strict: &[Kind]) -> impl Iterator<Item = Diagnostic> {
        self.report.alike().into_iter().map(|alike| {
            let (finding, more) = (alike[0], &alike[1..]);
            let message = format!("compiled `{}`: {finding}", self.name);
            let code = Code("compiled-code");
            let cost = finding.kind.is_cost() && !strict.contains(&finding.kind);
            let diag = match cost {
                true => Diagnostic::warning(code, self.span, message),
                false => Diagnostic::error(code, self.span, message),
            };
            let diag = match more {
                [] => diag,
                more => diag.note(also(more)),
            };
            if cost {
                return diag;
            }
            diag.note("the code that clang made is not what the kernel was lowered to")
                .help("`compile --emit asm -o FILE` leaves the code there to look at; another tile or schedule may avoid it")
        })
    }
}

/// Most lines that are listed of instructions that break one rule.
const LISTED: usize = 8;

/// The other instructions that break the rule of the first.
fn also(more: &[&Finding]) -> String {
    let lines: Vec<String> = more.iter().map(|f| f.line.to_string()).collect();
    let listed = lines[..lines.len().min(LISTED)].join(", ");
    match lines.len() {
        1 => format!("so does line {listed}"),
        n if n <= LISTED => format!("so do {n} more lines: {listed}"),
        n => format!("so do {n} more lines: {listed} …"),
    }
}

/// Audits a compiled program, and refuses it where its result may be wrong. What only costs time is
/// let pass.
pub fn refuse(
    func: &Func,
    target: Target,
    names: &[String],
    assembly: &str,
) -> Result<Vec<KernelAudit>, Diagnostics> {
    let audits = audit(func, target, names, assembly, Budget::default());
    let mut errors = Diagnostics::new();
    let audits = audits.unwrap_or_else(|message| {
        errors.push(Diagnostic::error(Code("audit"), func.span, message));
        Vec::new()
    });
    let found = audits.iter().flat_map(|a| a.diagnostics(&[]));
    errors.extend(found.filter(|d| d.severity == Severity::Error));
    match errors.is_empty() {
        true => Ok(audits),
        false => Err(errors),
    }
}

/// What a hot loop may spend on addresses. The default is what loops need that read an operand
/// across its rows, and whose index lanes compare with, so that it is read back for copies; what
/// a kernel needs beyond it is said where it is audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Vector instructions that compute lanes' addresses.
    pub address_arithmetic: u32,
    /// `v_readfirstlane` and `v_readlane`.
    pub lane_reads: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            address_arithmetic: 64,
            lane_reads: 1,
        }
    }
}

/// Audits every kernel of a device-level function in the assembly it was compiled to. `names`
/// are the kernels' names in it.
pub fn audit(
    func: &Func,
    target: Target,
    names: &[String],
    assembly: &str,
    budget: Budget,
) -> Result<Vec<KernelAudit>, String> {
    let program = asm::parse(assembly).map_err(|e| e.to_string())?;
    audit_program(func, target, names, &program, budget)
}

/// Audits code that has been read.
pub fn audit_program(
    func: &Func,
    target: Target,
    names: &[String],
    program: &asm::Program,
    budget: Budget,
) -> Result<Vec<KernelAudit>, String> {
    let mut list = Vec::new();
    for (kernel, name) in func.kernels.iter().zip(names) {
        let compiled = program
            .function(name)
            .ok_or_else(|| format!("the assembly has no kernel `{name}`"))?;
        let mut expected = Expected::of(func, kernel, target.machine());
        if let Some(reason) = reshaped(compiled, &expected) {
            expected.uncompared.get_or_insert(reason.to_string());
        }
        if spills(compiled) {
            expected.compiled.own_waits.vmcnt = true;
            expected.own_waits.get_or_insert(SPILLS.to_string());
        }
        let (plan, unplanned) = match plan::plan(func, kernel, target.machine()) {
            Ok(plan) => (Some(plan), None),
            Err(reason) => (None, Some(reason)),
        };
        let loop_and_kernel = Expectation {
            drained: true,
            plan,
            reshaped: expected.uncompared.is_some(),
            address_arithmetic: budget.address_arithmetic,
            lane_reads: budget.lane_reads,
            ..expected.compiled
        };
        let arch = program.arch.as_deref().unwrap_or(target.name());
        let mut report = gfx9::audit(compiled, arch, &loop_and_kernel);
        // Some schedules leave LDS accesses under way at barriers. That takes longer to find out than
        // to look at the code.
        if report.has(Kind::Undrained) && !is_drained(func, kernel) {
            report.findings.retain(|f| f.kind != Kind::Undrained);
        }
        report.unplanned = report.unplanned.and(unplanned.or(report.unplanned));
        list.push(KernelAudit {
            name: name.clone(),
            span: kernel.span,
            report,
            uncompared: expected.uncompared,
            own_waits: expected.own_waits,
        });
    }
    Ok(list)
}

/// Whether the compiler keeps values of the hot loop in private memory, and waits for them there.
fn spills(compiled: &asm::Function) -> bool {
    let hot = compiled.hot_loop();
    hot.is_some_and(|hot| hot.body(compiled).iter().any(|i| i.is_scratch()))
}

const SPILLS: &str = "the compiler keeps values of the loop in private memory";

/// Why the hot loop of the IR is none of the compiled code's. Then nothing there stands for one
/// turn of it, and what is said of the loop's waits and matrix instructions cannot be asked of the code.
fn reshaped(compiled: &asm::Function, expected: &Expected) -> Option<&'static str> {
    let wanted = &expected.compiled;
    let Some(hot) = compiled.hot_loop() else {
        let asked = !wanted.steps.is_empty() || !wanted.mfma.is_empty();
        return asked.then_some(UNROLLED);
    };
    let body = hot.body(compiled);
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    for instruction in body.iter().filter(|i| i.is_mfma()) {
        *found.entry(instruction.op.name()).or_default() += 1;
    }
    match (wanted.mfma.is_empty(), found.is_empty()) {
        (false, true) => Some(UNROLLED),
        (false, false) => {
            // Where products may be left out, more than one turn's may be several turns' rest.
            let more = |(name, count): (&&str, &u32)| wanted.mfma.get(*name) < Some(count);
            let several = turns(&wanted.mfma, &found).is_some()
                || (wanted.unread_products && found.iter().any(more));
            several.then_some("the compiler runs several turns of the loop in one")
        }
        // Without matrix instructions nothing tells one loop from another.
        (true, _) => (compiled.loops().len() != expected.loops)
            .then_some("the compiler made other loops of the kernel's"),
    }
}

const UNROLLED: &str = "the compiler found that the loop runs a known number of times";

/// How many turns a loop's matrix instructions stand for, where it is more than one.
fn turns(wanted: &BTreeMap<String, u32>, found: &BTreeMap<&str, u32>) -> Option<u32> {
    let (name, count) = wanted.first_key_value()?;
    let turns = found.get(name.as_str())? / (*count).max(1);
    let all = wanted.len() == found.len()
        && wanted
            .iter()
            .all(|(name, n)| found.get(name.as_str()) == Some(&(n * turns)));
    (turns > 1 && all).then_some(turns)
}

/// What a kernel's compiled code must hold.
#[derive(Debug)]
pub struct Expected {
    pub compiled: Expectation,
    /// Why the loop cannot be compared.
    pub uncompared: Option<String>,
    /// Why the compiler has waits of its own.
    pub own_waits: Option<String>,
    /// The kernel's loops that are loops in the compiled code too.
    pub loops: usize,
}

impl Expected {
    pub fn of(func: &Func, kernel: &Kernel, machine: &Machine) -> Expected {
        let threads: u32 = kernel.threads.iter().product();
        let blocks = kernel.attrs.min_blocks_per_sm.unwrap_or(1);
        let (mut fences, mut guarded) = (false, false);
        walk_stmts(&kernel.body, &mut |s| {
            fences |= has_fence(s);
            guarded |= stores_under_condition(func, s);
        });
        let mut expected = Expected {
            compiled: Expectation {
                vgprs: Some(gfx9::vgprs_at(machine.waves_on_simd(threads, blocks))),
                no_fences: !fences,
                unread_products: guarded,
                numbered: numbered_registers(func, kernel, machine),
                ..Expectation::default()
            },
            uncompared: None,
            own_waits: None,
            loops: 0,
        };
        expected.loops = walk::loops(&kernel.body);
        match walk::hot_loop(&kernel.body) {
            Ok(hot) => walk::describe(func, hot, leaves_barriers(threads, machine), &mut expected),
            Err(reason) => expected.uncompared = Some(reason.to_string()),
        }
        expected
    }
}

/// Whether the compiler leaves barriers in the code: a block of one wave needs none.
fn leaves_barriers(threads: u32, machine: &Machine) -> bool {
    threads > machine.warp_size
}

/// Whether a statement writes a tensor for some of its points only.
fn stores_under_condition(func: &Func, stmt: &Stmt) -> bool {
    let global = |buffer| func.buffers[buffer].scope == Scope::Global;
    match &stmt.kind {
        StmtKind::If { .. } => {
            let mut stores = false;
            for block in child_blocks(stmt) {
                walk_stmts(block, &mut |s| match &s.kind {
                    StmtKind::Store { buffer, .. } => stores |= global(*buffer),
                    StmtKind::Micro(op) => stores |= global(op.dest.region.buffer),
                    _ => {}
                });
            }
            stores
        }
        StmtKind::Micro(op) => op.pred.is_some() && global(op.dest.region.buffer),
        _ => false,
    }
}

/// Whether a statement makes the compiler look after caches.
fn has_fence(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Device(DeviceOp::Fence(kind)) => *kind == FenceKind::Device,
        StmtKind::Thread(op) => match op {
            ThreadOp::AtomicRmw { order, .. }
            | ThreadOp::AtomicLoad { order, .. }
            | ThreadOp::AtomicStore { order, .. } => *order != MemoryOrder::Relaxed,
            ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::ClusterWait
            | ThreadOp::Extern { .. } => true,
            _ => false,
        },
        _ => false,
    }
}

/// The accumulation registers that the source names.
fn numbered_registers(func: &Func, kernel: &Kernel, machine: &Machine) -> u16 {
    let sums = numbered(func, kernel, machine);
    let end = sums.iter().map(|sum| sum.first + sum.count).max();
    end.map_or(0, |end| u16::try_from(end).unwrap_or(u16::MAX))
}
