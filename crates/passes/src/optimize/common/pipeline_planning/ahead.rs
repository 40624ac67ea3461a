//! Which statements can run ahead: copies from global to shared memory, and all they need.

use rustc_hash::FxHashSet;
use tilewright_ir::{Buffer, Expr, Func, Scope, Span, Stmt, StmtKind};

use super::super::effects::{Effects, is_anywhere};
use super::private::{First, any_stmt, first_use};

/// One listed statement of the body.
pub(super) struct Item<'a> {
    pub stmt: &'a Stmt,
    /// With those of the names it uses.
    pub effects: Effects,
}

/// Why a buffer's copies stay where they are.
pub(super) struct Refusal {
    pub buffer: Buffer,
    pub at: Span,
    pub why: String,
    /// The program is wrong however it is scheduled.
    pub wrong: bool,
}

/// What can run ahead.
#[derive(Default)]
pub(super) struct Ahead {
    /// By item.
    pub early: Vec<bool>,
    /// The buffers that the early statements fill for the others.
    pub versioned: Vec<Buffer>,
    pub refused: Vec<Refusal>,
}

/// What surrounds the loop.
pub(super) struct Around<'a> {
    /// Whether anything after the loop reads what the loop left in a buffer.
    pub read_after: &'a dyn Fn(Buffer) -> bool,
    /// Whether anything outside of the loop writes to the buffer.
    pub written_outside: &'a dyn Fn(Buffer) -> bool,
    /// Buffers that may overlap each other.
    pub may_alias: &'a [Buffer],
}

/// Finds the copies that can run ahead.
pub(super) fn find(func: &Func, body: &[Stmt], items: &[Item<'_>], around: &Around<'_>) -> Ahead {
    let all = Effects::of_block(func, body);
    let mut ahead = Ahead {
        early: vec![false; items.len()],
        ..Ahead::default()
    };
    let mut shared: Vec<Buffer> = all.writes.iter().copied().collect();
    shared.retain(|b| func.buffers[*b].scope == Scope::Shared);
    shared.sort_unstable();
    for buffer in shared {
        let writers: Vec<usize> = of_items(items, |e| e.writes.contains(&buffer));
        let copies = writers.iter().any(|&w| {
            let mut reads = items[w].effects.reads.iter();
            reads.any(|b| func.buffers[*b].scope == Scope::Global)
        });
        let read = of_items(items, |e| e.reads.contains(&buffer));
        if !copies || read.iter().all(|r| writers.contains(r)) {
            continue;
        }
        let question = Question {
            func,
            body,
            items,
            around,
            all: &all,
            buffer,
        };
        match question.early(&writers) {
            Ok(early) => {
                for item in early {
                    ahead.early[item] = true;
                }
                ahead.versioned.push(buffer);
            }
            Err(refusal) => ahead.refused.push(refusal),
        }
    }
    ahead
}

/// Whether every iteration has the buffer for itself.
pub(super) fn is_private(
    func: &Func,
    body: &[Stmt],
    written: &FxHashSet<Buffer>,
    buffer: Buffer,
    around: &Around<'_>,
) -> bool {
    let stable = |e: &Expr| is_stable(func, e, written);
    !matches!(first_use(func, buffer, body, &stable), First::Reads { .. })
        && !(around.read_after)(buffer)
}

/// Whether the loop leaves the value as it is.
fn is_stable(func: &Func, e: &Expr, written: &FxHashSet<Buffer>) -> bool {
    let reads = Effects::of_expr(func, e).reads;
    !reads.iter().any(|b| written.contains(b))
}

fn of_items(items: &[Item<'_>], test: impl Fn(&Effects) -> bool) -> Vec<usize> {
    (0..items.len())
        .filter(|&i| test(&items[i].effects))
        .collect()
}

struct Question<'a> {
    func: &'a Func,
    body: &'a [Stmt],
    items: &'a [Item<'a>],
    around: &'a Around<'a>,
    /// The whole body.
    all: &'a Effects,
    buffer: Buffer,
}

impl Question<'_> {
    /// The statements that must run ahead so that the buffer is filled ahead.
    fn early(&self, writers: &[usize]) -> Result<Vec<usize>, Refusal> {
        let name = self.name(self.buffer);
        if let Some(&w) = writers
            .iter()
            .find(|&&w| self.items[w].effects.reads.contains(&self.buffer))
        {
            let why = format!("`{name}` is read and written by one statement");
            return Err(self.refuse(w, why));
        }
        let stable = |e: &Expr| is_stable(self.func, e, &self.all.writes);
        if let First::Reads { at, after_a_write } =
            first_use(self.func, self.buffer, self.body, &stable)
        {
            let wrong = !after_a_write && !(self.around.written_outside)(self.buffer);
            let why = if after_a_write {
                format!("`{name}` is read where not all of it is known to be written")
            } else {
                format!("`{name}` is read before the iteration writes it")
            };
            return Err(Refusal {
                buffer: self.buffer,
                at,
                why,
                wrong,
            });
        }
        if (self.around.read_after)(self.buffer) {
            let why = format!("`{name}` is read after the loop");
            return Err(self.refuse(writers[0], why));
        }
        let mut early: Vec<usize> = Vec::new();
        let mut pending = writers.to_vec();
        while let Some(item) = pending.pop() {
            if early.contains(&item) {
                continue;
            }
            early.push(item);
            self.may_run_early(item)?;
            let effects = &self.items[item].effects;
            for &b in effects.reads.iter().chain(&effects.writes) {
                let own = b == self.buffer || self.func.buffers[b].scope == Scope::Global;
                if own || !self.all.writes.contains(&b) {
                    continue;
                }
                // Whatever else touches it has to come along.
                pending.extend(of_items(self.items, |e| e.touches(b)));
            }
        }
        early.sort_unstable();
        Ok(early)
    }

    fn may_run_early(&self, item: usize) -> Result<(), Refusal> {
        let effects = &self.items[item].effects;
        let name = self.name(self.buffer);
        if effects.reads.contains(&self.buffer) {
            let why = format!("what is copied to `{name}` depends on a use of `{name}`");
            return Err(self.refuse(item, why));
        }
        let mut reads: Vec<Buffer> = effects.reads.iter().copied().collect();
        reads.sort_unstable();
        for b in reads {
            if self.func.buffers[b].scope != Scope::Global {
                continue;
            }
            let mut writes = self.all.writes.iter();
            if let Some(written) = writes.find(|w| self.may_overlap(**w, b)) {
                let [of, as_] = [b, *written].map(|b| self.name(b));
                let why = match *written == b {
                    true => format!("`{of}`, which is copied to `{name}`, is written in the loop"),
                    false => format!(
                        "`{of}`, which is copied to `{name}`, may be written in the loop as `{as_}`"
                    ),
                };
                return Err(self.refuse(item, why));
            }
            if self.all.opaque {
                let why = format!("foreign code in the loop may change `{}`", self.name(b));
                return Err(self.refuse(item, why));
            }
        }
        let global = effects
            .writes
            .iter()
            .any(|b| self.func.buffers[*b].scope == Scope::Global);
        let acts = any_stmt(std::slice::from_ref(self.items[item].stmt), &|s| {
            matches!(
                s.kind,
                StmtKind::Assert { .. } | StmtKind::WarpGroup { .. } | StmtKind::Device(_)
            ) || matches!(&s.kind, StmtKind::Thread(op) if !op.only_computes())
        });
        if global || acts || effects.opaque {
            let why =
                format!("what is copied to `{name}` depends on a statement that acts at once");
            return Err(self.refuse(item, why));
        }
        Ok(())
    }

    /// Whether what is written to a buffer may be read of a tensor.
    fn may_overlap(&self, written: Buffer, tensor: Buffer) -> bool {
        let both = |is: &dyn Fn(Buffer) -> bool| is(written) && is(tensor);
        let is_alias = |buffer: Buffer| {
            let mut listed = self.around.may_alias.iter();
            listed.any(|b| self.func.root(*b) == buffer)
        };
        let anywhere = [written, tensor].map(|b| is_anywhere(self.func, b));
        written == tensor
            || self.func.buffers[written].scope == Scope::Global
                && (both(&is_alias) || anywhere != [false; 2])
    }

    fn name(&self, buffer: Buffer) -> &str {
        &self.func.buffers[buffer].name
    }

    fn refuse(&self, item: usize, why: String) -> Refusal {
        Refusal {
            buffer: self.buffer,
            at: self.items[item].stmt.span,
            why,
            wrong: false,
        }
    }
}
