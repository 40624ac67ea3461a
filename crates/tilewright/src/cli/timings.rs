//! How long the parts of a command took, as a table and as JSON.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tilewright::lowering::Times;

/// What was measured; what was not done has no time.
#[derive(Debug, Default)]
pub struct Timings {
    pub front_end: Option<Duration>,
    pub lowering: Times,
    pub codegen: Option<Duration>,
    pub toolchain: Option<Duration>,
    pub audit: Option<Duration>,
}

impl Timings {
    /// The time of all passes, and of the verifier after them.
    fn passes(&self) -> (Duration, Duration) {
        let rows = || self.lowering.passes.iter();
        (
            rows().map(|row| row.pass).sum(),
            rows().map(|row| row.verify).sum(),
        )
    }

    /// What is no pass.
    fn parts(&self) -> [(&'static str, Option<Duration>); 5] {
        [
            ("front end", self.front_end),
            ("hazard check", self.lowering.hazards),
            ("code generation", self.codegen),
            ("toolchain", self.toolchain),
            ("audit", self.audit),
        ]
    }

    /// One line a pass in their order, the sum, and the other parts.
    pub fn to_text(&self) -> String {
        let mut text = format!("{:>3}  {:<32}{:>10}{:>10}\n", "", "pass", "ms", "verifier");
        for row in &self.lowering.passes {
            text += &format!(
                "{:>3}  {:<32}{:>10.3}{:>10.3}\n",
                row.step.number,
                row.step.name,
                ms(row.pass),
                ms(row.verify)
            );
        }
        let (passes, verifier) = self.passes();
        text += &format!(
            "{:>3}  {:<32}{:>10.3}{:>10.3}\n",
            "",
            "all passes",
            ms(passes),
            ms(verifier)
        );
        for (name, time) in self.parts() {
            if let Some(time) = time {
                text += &format!("{:>3}  {name:<32}{:>10.3}\n", "", ms(time));
            }
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let rows = self.lowering.passes.iter().map(|row| {
            json!({
                "number": row.step.number,
                "pass": row.step.name,
                "ms": ms(row.pass),
                "verifier_ms": ms(row.verify),
            })
        });
        let (passes, verifier) = self.passes();
        let mut object = Map::new();
        object.insert("passes".to_owned(), rows.collect());
        object.insert("all_passes_ms".to_owned(), json!(ms(passes)));
        object.insert("verifier_ms".to_owned(), json!(ms(verifier)));
        for (name, time) in self.parts() {
            let key = format!("{}_ms", name.replace(' ', "_"));
            object.insert(key, json!(time.map(ms)));
        }
        Value::Object(object)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
