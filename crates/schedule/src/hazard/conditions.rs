//! Conditions that are not known, and what follows from one of them for another.
//!
//! A branch whose condition is not known and that no other wave takes part in is walked both
//! ways, one after the other, and what happens in it happens *under* a condition: a conjunction of
//! literals. So the number of ways does not grow with the iterations. What is concluded between
//! operations under conditions:
//! - an operation is certainly there if its literals are among those that hold already, and of
//!   operations on both ways of a branch one is;
//! - a wait under a condition completes what is under way in those cases only;
//! - two operations whose literals contradict each other never both happen.
//!
//! A literal says which values something has: of comparisons of one value with numbers, one may
//! follow from another.
//!
//! Two literals are about the same value if the condition has the same form, at the same values of
//! the loops around it, and reads nothing but memory that the kernel never writes. `k + 2` two
//! iterations ago and `k` now are the same: a form is written with the offset taken away.
//! Everything else is a value of its own at each time it is met, which concludes less.
//!
//! Iterations that a walk leaves out are not counted in the values of loops, so that what was
//! met before them stands for what would have been met since.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHasher};
use tilewright_ir::{BinOp, Expr, ExprKind, Stmt, Var};

use super::scan::{Key, Scan, key};
use super::threshold::{Range, threshold};

/// A value that is not known is one of these: a condition that holds, or one that does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Literal {
    atom: u32,
    range: Range,
}

impl Literal {
    fn negated(self) -> Literal {
        Literal {
            range: self.range.others(),
            ..self
        }
    }

    /// Whether the other holds wherever this one does.
    fn implies(self, other: Literal) -> bool {
        self.atom == other.atom && self.range.is_in(other.range)
    }

    /// Whether the two never hold together.
    fn excludes(self, other: Literal) -> bool {
        self.atom == other.atom && self.range.is_apart(other.range)
    }
}

/// Whether one of the literals implies this one.
fn implied(literal: Literal, by: &[Literal]) -> bool {
    by.iter().any(|l| l.implies(literal))
}

/// All of these hold; none is always.
pub type Under = Rc<[Literal]>;

/// The conditions met in a run, by all groups.
#[derive(Default, Debug)]
pub struct Conditions {
    /// By branch, the form of its condition; none where its value is new each time.
    forms: FxHashMap<Key, Option<Rc<Form>>>,
    /// By form and values of its loops.
    known: FxHashMap<(Expr, Vec<i64>), u32>,
    atoms: Vec<Atom>,
}

/// A value that is not known.
#[derive(Debug)]
struct Atom {
    /// The branch where it was met first.
    stmt: Key,
    /// How many iterations of all loops had begun then; none for a value that is never met again.
    born: Option<u32>,
}

/// A condition over loop indices, each with an offset that was taken away.
#[derive(Debug)]
struct Form {
    /// What it is about.
    expr: Expr,
    /// The values of that for which it holds.
    range: Range,
    loops: Vec<(Var, i64)>,
}

/// A loop that a walk is in.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    pub var: Var,
    /// Its index, less what was left out.
    pub value: i64,
    /// Whether that is the value of the index, not a number of the iteration.
    pub counted: bool,
}

impl Conditions {
    /// Another run begins: what conditions are is not the same any more.
    pub fn clear(&mut self) {
        self.known.clear();
        self.atoms.clear();
    }

    /// The literals of both ways of a branch, met after so many iterations.
    pub fn literals(
        &mut self,
        scan: &Scan<'_>,
        stmt: &Stmt,
        cond: &Expr,
        around: &[Around],
        iterations: u32,
    ) -> [Literal; 2] {
        let holds = |atom, range| Literal { atom, range };
        if scan.varies(cond) {
            // Lanes of a wave may go both ways.
            let ways = [(); 2].map(|()| self.new_atom(stmt, None));
            return ways.map(|atom| holds(atom, Range::TRUE));
        }
        let form = self.forms.entry(key(stmt));
        let form = form.or_insert_with(|| Form::of(scan, cond, around).map(Rc::new));
        let (atom, range) = match form.clone() {
            None => (self.new_atom(stmt, None), Range::TRUE),
            Some(form) => {
                let value = |(var, offset): &(Var, i64)| {
                    let found = around.iter().find(|a| a.var == *var);
                    found.map_or(0, |a| a.value.wrapping_add(*offset))
                };
                let id = (form.expr.clone(), form.loops.iter().map(value).collect());
                let atom = match self.known.get(&id) {
                    Some(atom) => *atom,
                    None => {
                        let atom = self.new_atom(stmt, Some(iterations));
                        self.known.insert(id, atom);
                        atom
                    }
                };
                (atom, form.range)
            }
        };
        [holds(atom, range), holds(atom, range.others())]
    }

    fn new_atom(&mut self, stmt: &Stmt, born: Option<u32>) -> u32 {
        let stmt = key(stmt);
        self.atoms.push(Atom { stmt, born });
        self.atoms.len() as u32 - 1
    }

    /// A number for a conjunction that is the same after more iterations: where each literal
    /// comes from, and how long ago, as far as that decides whether it is met again.
    pub fn relative(&self, under: &[Literal], iterations: u32) -> u64 {
        let mut sum = 0u64;
        for literal in under {
            let atom = &self.atoms[literal.atom as usize];
            let mut h = FxHasher::default();
            let age = atom.born.map(|born| iterations.wrapping_sub(born));
            (atom.stmt, age, literal.range).hash(&mut h);
            sum = sum.wrapping_add(h.finish());
        }
        sum
    }
}

impl Form {
    fn of(scan: &Scan<'_>, cond: &Expr, around: &[Around]) -> Option<Form> {
        let (mut expr, range) = threshold(&scan.expand(cond));
        let (mut lasting, mut used) = (scan.reads_constants(&expr), Vec::<Around>::new());
        expr.walk(&mut |node| {
            let Some(var) = node.as_var() else {
                return;
            };
            match around.iter().find(|a| a.var == var) {
                Some(a) if used.iter().all(|u| u.var != var) => used.push(*a),
                Some(_) => {}
                None => lasting &= scan.is_fixed(var),
            }
        });
        if !lasting {
            return None;
        }
        let mut loops = Vec::new();
        for around in used {
            let mut offset = 0;
            if around.counted {
                (expr, offset) = without_offset(expr, around.var);
            }
            loops.push((around.var, offset));
        }
        Some(Form { expr, range, loops })
    }
}

/// The expression with `var` for `var + c`, and `c`, where the variable comes with the same `c`
/// everywhere; as it is, and 0, otherwise.
fn without_offset(e: Expr, var: Var) -> (Expr, i64) {
    let offset_of = |node: &Expr| match node.kind() {
        ExprKind::Binary(BinOp::Add, a, b) if a.as_var() == Some(var) => {
            i64::try_from(b.as_int()?).ok()
        }
        _ => None,
    };
    let (mut uses, mut offsets) = (0, Vec::new());
    e.walk(&mut |node| {
        uses += usize::from(node.as_var() == Some(var));
        offsets.extend(offset_of(node));
    });
    let Some(&offset) = offsets.first() else {
        return (e, 0);
    };
    if offsets.len() < uses || offsets.iter().any(|o| *o != offset) {
        return (e, 0);
    }
    let plain = e.rewrite(&mut |node| match node.kind() {
        ExprKind::Binary(BinOp::Add, a, _) => offset_of(node).map(|_| a.clone()),
        _ => None,
    });
    (plain, offset)
}

/// The conjunction with one more literal; none where it then never holds.
pub fn with(under: &Under, literal: Literal) -> Option<Under> {
    if under.iter().any(|l| l.excludes(literal)) {
        return None;
    }
    if implied(literal, under) {
        return Some(under.clone());
    }
    Some(under.iter().copied().chain([literal]).collect())
}

/// Whether the first conjunction holds wherever the others both do.
pub fn follows(what: &[Literal], from: &[Literal], and: &[Literal]) -> bool {
    what.iter().all(|l| implied(*l, from) || implied(*l, and))
}

/// Whether the two never hold together.
pub fn contradict(a: &[Literal], b: &[Literal]) -> bool {
    a.iter().any(|l| b.iter().any(|other| l.excludes(*other)))
}

/// How much there is at least of what is counted under conditions, where the literals hold. So
/// many conditions are tried both ways; of more, none is taken to hold.
pub fn fewest(counted: &[(&[Literal], u32)], known: &[Literal], tries: u32) -> u32 {
    let mut sum = 0;
    let mut open: Vec<(&[Literal], u32)> = Vec::new();
    for &(under, count) in counted {
        match follows(under, known, &[]) {
            true => sum += count,
            false if contradict(under, known) => {}
            false => open.push((under, count)),
        }
    }
    // A condition that nothing else contradicts adds nothing where it does not hold.
    let literals = || open.iter().flat_map(|(under, _)| under.iter().copied());
    let mut free = literals().filter(|l| !implied(*l, known));
    let split = free.find(|l| literals().any(|other| other.excludes(*l)));
    let Some(literal) = split.filter(|_| tries > 0) else {
        return sum;
    };
    let under = |literal| {
        let known: Vec<Literal> = known.iter().copied().chain([literal]).collect();
        fewest(&open, &known, tries - 1)
    };
    sum + under(literal).min(under(literal.negated()))
}

/// What holds wherever either does, as far as one conjunction says it.
pub fn either(a: &Under, b: &Under) -> Under {
    if a == b {
        return a.clone();
    }
    let both = a.iter().filter(|l| implied(**l, b));
    let more = b.iter().filter(|l| implied(**l, a) && !a.contains(l));
    both.chain(more).copied().collect()
}

/// Whether all of these may hold while none of the conjunctions does.
pub fn possible(assumed: &[Literal], unless: &[&[Literal]]) -> bool {
    let Some((first, rest)) = unless.split_first() else {
        return true;
    };
    first.iter().any(|l| {
        let more = assumed.iter().copied().chain([l.negated()]);
        !implied(*l, assumed) && possible(&more.collect::<Vec<_>>(), rest)
    })
}

/// The most conditions under which something is remembered to have happened. Forgetting one
/// concludes less, more help only what comes long after, and the state of a loop must not grow.
const MOST: usize = 2;

/// Adds to a list of the latest ones.
pub fn remember<T>(list: &mut Vec<T>, item: T) {
    if list.len() == MOST {
        list.remove(0);
    }
    list.push(item);
}
