//! What came of each configuration.

use std::fmt::Write as _;

use crate::lab::Unit;
use crate::space::Config;

/// The outcome of tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub unit: Unit,
    /// The place of the configuration that was chosen; none where all failed.
    pub best: Option<usize>,
    /// Whether no other can be faster by more than the tolerance.
    pub certain: bool,
    /// In the order in which they were given.
    pub rows: Vec<Row>,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub config: Config,
    pub fate: Fate,
}

/// What came of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It is right, and this is the middle of so many times.
    Timed { time: f64, runs: u32 },
    /// It was not tried, and why.
    LeftOut(String),
    /// It cannot be compiled, or computes something wrong, or cannot be timed.
    Failed(String),
}

/// A line of the table.
struct Line<'a> {
    at: String,
    time: String,
    beside: String,
    config: String,
    why: &'a str,
}

impl Report {
    /// The time of the configuration that was chosen.
    pub fn time(&self) -> Option<f64> {
        match self.rows.get(self.best?)?.fate {
            Fate::Timed { time, .. } => Some(time),
            _ => None,
        }
    }

    /// A line for each configuration, the fastest first, those that failed with their reasons.
    pub fn table(&self) -> String {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        let rank = |&at: &usize| match self.rows[at].fate {
            Fate::Timed { time, .. } => (usize::from(Some(at) != self.best), time),
            Fate::LeftOut(_) => (2, 0.0),
            Fate::Failed(_) => (3, 0.0),
        };
        order.sort_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let best = self.time();
        let lines: Vec<Line<'_>> = order.iter().map(|&at| self.line(at, best)).collect();
        let width = |f: fn(&Line<'_>) -> usize, head: &str| {
            lines.iter().map(f).max().unwrap_or(0).max(head.len())
        };
        let heads = ["#", "time", "of best"];
        let (n, t) = (
            width(|l| l.at.len(), heads[0]),
            width(|l| l.time.len(), heads[1]),
        );
        let (b, c) = (
            width(|l| l.beside.len(), heads[2]),
            width(|l| l.config.len(), ""),
        );
        let [at, time, beside] = heads;
        let mut text = format!("  {at:>n$}  {time:>t$}  {beside:>b$}  configuration\n");
        for line in &lines {
            let Line {
                at,
                time,
                beside,
                config,
                why,
            } = line;
            let is_best = self.best.is_some_and(|best| *at == best.to_string());
            let mark = if is_best { "*" } else { " " };
            let line = format!("{mark} {at:>n$}  {time:>t$}  {beside:>b$}  {config:<c$}  {why}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        if self.best.is_some() && !self.certain {
            text += "the fastest is not certain: the times vary too much for so few rounds\n";
        }
        text
    }

    fn line(&self, at: usize, best: Option<f64>) -> Line<'_> {
        let row = &self.rows[at];
        let (time, beside, why) = match &row.fate {
            Fate::Timed { time, .. } => {
                let beside = best.map_or(String::new(), |best| format!("{:.3}", time / best));
                (self.unit.show(*time), beside, "")
            }
            Fate::LeftOut(why) => ("not tried".to_owned(), String::new(), why.as_str()),
            Fate::Failed(why) => ("failed".to_owned(), String::new(), why.as_str()),
        };
        Line {
            at: at.to_string(),
            time,
            beside,
            config: row.config.to_string(),
            why,
        }
    }

    /// What is kept on disk.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let best = self.best.map_or(String::new(), |at| at.to_string());
        let mut text = format!("{}\n{best}\n{}\n", self.unit.name(), self.certain);
        for row in &self.rows {
            let (kind, first, second) = match &row.fate {
                // Bits, so that nothing is rounded.
                Fate::Timed { time, runs } => {
                    ("timed", time.to_bits().to_string(), runs.to_string())
                }
                Fate::LeftOut(why) => ("left-out", one_line(why), String::new()),
                Fate::Failed(why) => ("failed", one_line(why), String::new()),
            };
            let _ = writeln!(text, "{kind}\t{first}\t{second}");
        }
        text.into_bytes()
    }

    /// Reads what `to_bytes` wrote, for the same configurations.
    pub(crate) fn from_bytes(bytes: &[u8], configs: &[Config]) -> Option<Report> {
        let text = str::from_utf8(bytes).ok()?;
        let mut lines = text.lines();
        let unit = Unit::named(lines.next()?)?;
        let best = match lines.next()? {
            "" => None,
            at => Some(at.parse().ok()?),
        };
        let certain = lines.next()?.parse().ok()?;
        let mut rows = Vec::new();
        for (config, line) in configs.iter().zip(lines.by_ref()) {
            let mut parts = line.split('\t');
            let (kind, first, second) = (parts.next()?, parts.next()?, parts.next()?);
            let fate = match kind {
                "timed" => Fate::Timed {
                    time: f64::from_bits(first.parse().ok()?),
                    runs: second.parse().ok()?,
                },
                "left-out" => Fate::LeftOut(first.to_owned()),
                "failed" => Fate::Failed(first.to_owned()),
                _ => return None,
            };
            let config = config.clone();
            rows.push(Row { config, fate });
        }
        let report = Report {
            unit,
            best,
            certain,
            rows,
        };
        let whole = report.rows.len() == configs.len() && lines.next().is_none();
        let sound = report.best.is_none() == report.time().is_none();
        (whole && sound).then_some(report)
    }
}

/// Reasons are one line of the table.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let row = |n: usize, fate| Row {
            config: Config::new([("block", format!("{n}")), ("threads", "128".to_owned())]),
            fate,
        };
        Report {
            unit: Unit::Seconds,
            best: Some(2),
            certain: true,
            rows: vec![
                row(
                    32,
                    Fate::Timed {
                        time: 3e-4,
                        runs: 4,
                    },
                ),
                row(512, Fate::Failed("shared memory: 300 kB\nof 227".into())),
                row(
                    64,
                    Fate::Timed {
                        time: 1.5e-4,
                        runs: 40,
                    },
                ),
                row(256, Fate::LeftOut("it is estimated slower".into())),
            ],
        }
    }

    #[test]
    fn the_table_has_the_best_first_and_every_reason() {
        assert_eq!(
            report().table(),
            "  #       time  of best  configuration\n\
             * 2  150.00 us    1.000  block=64, threads=128\n\
             \x20 0  300.00 us    2.000  block=32, threads=128\n\
             \x20 3  not tried           block=256, threads=128  it is estimated slower\n\
             \x20 1     failed           block=512, threads=128  shared memory: 300 kB\nof 227\n"
        );
    }

    #[test]
    fn what_is_stored_is_read() {
        let mut report = report();
        let configs: Vec<Config> = report.rows.iter().map(|r| r.config.clone()).collect();
        let bytes = report.to_bytes();
        report.rows[1].fate = Fate::Failed("shared memory: 300 kB of 227".into());
        assert_eq!(Report::from_bytes(&bytes, &configs), Some(report));
        // Nothing else is.
        assert_eq!(Report::from_bytes(&bytes, &configs[1..]), None);
        assert_eq!(
            Report::from_bytes(&bytes[..bytes.len() - 10], &configs),
            None
        );
        assert_eq!(Report::from_bytes(b"", &configs), None);
        let text = String::from_utf8(bytes).expect("text");
        let other = text.replacen("\n2\n", "\n1\n", 1);
        assert_eq!(Report::from_bytes(other.as_bytes(), &configs), None);
    }
}
