//! What the simulator counted, for `run --counters`.

use serde_json::{Value, json};
use tilewright::ir::SourceMap;
use tilewright::sim::simt::{Counts, InstKind, SimtReport};

/// Counts of the whole run, and of each statement with its place.
#[derive(Debug)]
pub struct Counted {
    all: Counts,
    statements: Vec<Statement>,
}

#[derive(Debug)]
struct Statement {
    place: String,
    what: String,
    counts: Counts,
}

impl Counted {
    pub fn of(report: &SimtReport, sources: &SourceMap) -> Counted {
        // A statement that was written out several times is one.
        let mut statements: Vec<Statement> = Vec::new();
        for s in &report.statements {
            let place = sources.locate(s.span);
            match statements
                .iter_mut()
                .find(|k| k.place == place && k.what == s.what)
            {
                Some(known) => known.counts += s.counts,
                None => statements.push(Statement {
                    place,
                    what: s.what.clone(),
                    counts: s.counts,
                }),
            }
        }
        Counted {
            all: report.counts,
            statements,
        }
    }

    /// The totals, then the statements that touch shared memory, worst first.
    pub fn to_text(&self) -> String {
        let mut text = "counted, once for each warp:\n".to_string();
        for kind in InstKind::ALL {
            match self.all.instructions(kind) {
                0 => {}
                n => text += &format!("  {n:>12} {}\n", kind.name()),
            }
        }
        let Counts {
            shared_transactions,
            bank_conflicts,
            ..
        } = self.all;
        text += &format!("  {shared_transactions:>12} shared-memory transactions\n");
        text += &format!("  {bank_conflicts:>12} of them bank conflicts\n");
        let mut shared: Vec<&Statement> = self.statements.iter().collect();
        shared.retain(|s| s.counts.shared_transactions > 0);
        shared.sort_by_key(|s| std::cmp::Reverse(s.counts.bank_conflicts));
        if !shared.is_empty() {
            text += "  conflicts of transactions, by statement:\n";
        }
        for s in shared {
            text += &format!(
                "  {:>12} of {} in {} at {}\n",
                s.counts.bank_conflicts, s.counts.shared_transactions, s.what, s.place
            );
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let mut object = counts(&self.all);
        let each = self.statements.iter().map(|s| {
            let mut one = counts(&s.counts);
            one["place"] = json!(s.place);
            one["what"] = json!(s.what);
            one
        });
        object["statements"] = each.collect();
        object
    }
}

fn counts(counts: &Counts) -> Value {
    let kinds = InstKind::ALL.into_iter();
    let kinds = kinds.map(|k| (k.name().replace(' ', "_"), counts.instructions(k)));
    let kinds = kinds
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| (name, json!(n)));
    json!({
        "instructions": kinds.collect::<serde_json::Map<String, Value>>(),
        "shared_transactions": counts.shared_transactions,
        "bank_conflicts": counts.bank_conflicts,
    })
}
