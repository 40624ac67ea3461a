//! What a compile log says: messages with their places, and the assembler's own figures.
//!
//! NVRTC and nvcc print the same two forms, one of the C++ compiler and one of the assembler;
//! clang has one of its own:
//!
//! ```text
//! gemm.cu(12): error: identifier "x" is undefined
//! ptxas application ptx input, line 28; error   : Unknown modifier '.ptx'
//! gemm.hip:12:7: error: use of undeclared identifier 'x'
//! ```

use std::fmt;

/// How bad a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Warning,
    Error,
}

/// What the line number of a message counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePlace {
    /// A line of a source file, under the name the program or a `#line` gave it.
    Source { file: String, line: u32 },
    /// A line of the PTX that the compiler made on the way.
    Ptx { line: u32 },
    /// The message has no line.
    Nowhere,
}

/// One error or warning of a compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub severity: Severity,
    pub place: MessagePlace,
    pub text: String,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            MessagePlace::Source { file, line } => write!(f, "{file}:{line}: ")?,
            MessagePlace::Ptx { line } => write!(f, "generated PTX, line {line}: ")?,
            MessagePlace::Nowhere => {}
        }
        match self.severity {
            Severity::Warning => write!(f, "warning: {}", self.text),
            Severity::Error => write!(f, "error: {}", self.text),
        }
    }
}

/// What the assembler reported about one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssemblerReport {
    pub kernel: String,
    pub registers: u32,
    pub static_shared: u32,
    pub stack: u32,
    pub spill_stores: u32,
    pub spill_loads: u32,
}

/// The errors and warnings in a log, in its order.
pub fn messages(log: &str) -> Vec<Message> {
    log.lines().filter_map(message).collect()
}

/// The log without the assembler's report: what a user wants to see of a compile that worked.
pub fn without_report(log: &str) -> String {
    let kept = log.lines().filter(|line| {
        let report = line.starts_with("ptxas info") || line.starts_with("ptxas         .");
        // nvcc prints the figures of a function without the tool's name.
        let bare = line.starts_with("    ") && line.contains("bytes stack frame");
        !report && !bare
    });
    kept.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The assembler's report of each kernel (`--ptxas-options=-v`).
pub fn assembler_reports(log: &str) -> Vec<AssemblerReport> {
    let mut reports: Vec<AssemblerReport> = Vec::new();
    for line in log.lines() {
        if line.contains("Compiling entry function") {
            let kernel = line.split('\'').nth(1).unwrap_or_default().to_owned();
            reports.push(AssemblerReport {
                kernel,
                ..AssemblerReport::default()
            });
            continue;
        }
        let Some(report) = reports.last_mut() else {
            continue;
        };
        // Device functions that were not inlined report frames of their own after the kernel's;
        // their spills are the kernel's too.
        if line.contains("bytes stack frame") {
            report.stack = report.stack.max(figure(line, " bytes stack frame"));
            report.spill_stores += figure(line, " bytes spill stores");
            report.spill_loads += figure(line, " bytes spill loads");
        } else if line.contains(": Used ") {
            report.registers = figure(line, " registers");
            report.static_shared = figure(line, " bytes smem");
            report.stack = report
                .stack
                .max(figure(line, " bytes cumulative stack size"));
        }
    }
    reports
}

/// The number in front of `unit`, or 0 where the line does not have it.
fn figure(line: &str, unit: &str) -> u32 {
    let Some(end) = line.find(unit) else { return 0 };
    let digits = line[..end]
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or_default();
    digits.parse().unwrap_or(0)
}

fn message(line: &str) -> Option<Message> {
    if let Some(rest) = line.strip_prefix("ptxas") {
        return assembler_message(rest);
    }
    if let Some(text) = line.strip_prefix("nvrtc: error: ") {
        return Some(Message {
            severity: Severity::Error,
            place: MessagePlace::Nowhere,
            text: text.to_owned(),
        });
    }
    for (mark, severity) in [
        ("): error: ", Severity::Error),
        ("): error ", Severity::Error),
        ("): catastrophic error: ", Severity::Error),
        ("): warning #", Severity::Warning),
        ("): warning: ", Severity::Warning),
    ] {
        let Some(at) = line.find(mark) else { continue };
        let Some((file, number)) = line[..at].rsplit_once('(') else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        let mut text = &line[at + mark.len()..];
        // `warning #177-D: text` and `error #20: text` carry the compiler's own number.
        if mark.ends_with('#') || mark == "): error " {
            text = text.split_once(": ").map_or(text, |(_, text)| text);
        }
        return Some(Message {
            severity,
            place: MessagePlace::Source {
                file: file.to_owned(),
                line: number,
            },
            text: text.to_owned(),
        });
    }
    clang_message(line)
}

/// `file:line:column: error: text`, or `clang: error: text` of the driver.
fn clang_message(line: &str) -> Option<Message> {
    for (mark, severity) in [
        (": error: ", Severity::Error),
        (": fatal error: ", Severity::Error),
        (": warning: ", Severity::Warning),
    ] {
        let Some((head, text)) = line.split_once(mark) else {
            continue;
        };
        let mut parts = head.rsplitn(3, ':');
        let (column, number, file) = (parts.next(), parts.next(), parts.next());
        let numbers = column
            .and_then(|c| c.parse::<u32>().ok())
            .and_then(|_| number?.parse().ok());
        let place = match (numbers, file) {
            (Some(line), Some(file)) => MessagePlace::Source {
                file: file.to_owned(),
                line,
            },
            _ if head.starts_with("clang") => MessagePlace::Nowhere,
            _ => continue,
        };
        return Some(Message {
            severity,
            place,
            text: text.to_owned(),
        });
    }
    None
}

fn assembler_message(rest: &str) -> Option<Message> {
    for (word, severity) in [
        ("error", Severity::Error),
        ("fatal", Severity::Error),
        ("warning", Severity::Warning),
    ] {
        let Some((head, text)) = rest.split_once(word) else {
            continue;
        };
        let Some(text) = text.trim_start().strip_prefix(':') else {
            continue;
        };
        let line = head
            .rsplit_once(", line ")
            .and_then(|(_, n)| n.trim_end().trim_end_matches(';').parse().ok());
        return Some(Message {
            severity,
            place: line.map_or(MessagePlace::Nowhere, |line| MessagePlace::Ptx { line }),
            text: text.trim().to_owned(),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, line: u32) -> MessagePlace {
        MessagePlace::Source {
            file: file.to_owned(),
            line,
        }
    }

    #[test]
    fn messages_keep_their_place() {
        let log = "k.cu(2): error: expression must have integral type\n    int x = a + 1.0;\n\
                   kernel.py(77): warning #177-D: variable \"u\" was declared but never referenced\n\
                   a b(c).cu(3): error: no\n\
                   ptxas application ptx input, line 28; error   : Unknown modifier '.ptx'\n\
                   ptxas fatal   : Ptx assembly aborted due to errors\n\
                   nvrtc: error: invalid value for --gpu-architecture (-arch)\n\
                   3 errors detected in the compilation of \"k.cu\".\n";
        let got = messages(log);
        let places: Vec<_> = got.iter().map(|m| m.place.clone()).collect();
        assert_eq!(
            places,
            [
                source("k.cu", 2),
                source("kernel.py", 77),
                source("a b(c).cu", 3),
                MessagePlace::Ptx { line: 28 },
                MessagePlace::Nowhere,
                MessagePlace::Nowhere
            ]
        );
        assert_eq!(got[1].severity, Severity::Warning);
        assert_eq!(
            got[1].text,
            "variable \"u\" was declared but never referenced"
        );
        assert_eq!(
            got[3].to_string(),
            "generated PTX, line 28: error: Unknown modifier '.ptx'"
        );
        assert_eq!(
            got[0].to_string(),
            "k.cu:2: error: expression must have integral type"
        );
    }

    #[test]
    fn clangs_messages_keep_their_place() {
        let log = "gemm.hip:12:7: error: use of undeclared identifier 'x'\n   12 |   x = 1;\n\
                   a:b.hip:3:1: warning: unused: error: not this\n\
                   gemm.hip:1:1: note: expanded from here\n\
                   clang: error: unknown argument: '-foo'\n1 error generated.\n";
        let got: Vec<String> = messages(log).iter().map(ToString::to_string).collect();
        assert_eq!(
            got,
            [
                "gemm.hip:12: error: use of undeclared identifier 'x'",
                "a:b.hip:3: warning: unused: error: not this",
                "error: unknown argument: '-foo'",
            ]
        );
    }

    const REPORT: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'spilly' for 'sm_90a'
ptxas info    : Function properties for spilly
ptxas         .     832 bytes stack frame, 1068 bytes spill stores, 1188 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 832 bytes cumulative stack size
ptxas info    : Compile time = 142.697 ms
ptxas info    : Compiling entry function 'vadd' for 'sm_75'
ptxas info    : Function properties for vadd
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem, 512 bytes cmem[0]
";

    #[test]
    fn the_assemblers_figures_are_read() {
        let got = assembler_reports(REPORT);
        assert_eq!(
            got,
            [
                AssemblerReport {
                    kernel: "spilly".into(),
                    registers: 32,
                    static_shared: 0,
                    stack: 832,
                    spill_stores: 1068,
                    spill_loads: 1188
                },
                AssemblerReport {
                    kernel: "vadd".into(),
                    registers: 10,
                    static_shared: 1024,
                    ..Default::default()
                },
            ]
        );
    }

    #[test]
    fn the_report_is_left_out_of_what_a_user_sees() {
        let warning = "ptxas warning : Potential Performance Loss: wgmma serialized";
        let log = format!("{REPORT}{warning}\n");
        assert_eq!(without_report(&log), warning);
        assert_eq!(messages(&log).len(), 1);
    }
}
