//! The steps of generated source, read from its text: braces, `for`, `while`, `if`, and calls.

use crate::{Step, Way, end};

/// Where the kernels start, behind the device header.
pub fn kernels_start(text: &str) -> usize {
    const HEADER_END: &str = "}  // namespace tw\n";
    text.rfind(HEADER_END).map_or(0, |at| at + HEADER_END.len())
}

/// The steps of all kernels of a file.
pub fn steps(text: &str) -> Vec<Step> {
    scan(&text[kernels_start(text)..])
}

/// The operations of one line alone.
pub fn steps_of_line(line: &str) -> Vec<Step> {
    let mut steps = scan(line);
    steps.retain(|step| matches!(step, Step::Op(..)));
    steps
}

/// Bytes of an element of a register array, by its last declaration.
fn element_size(before: &str, name: &str) -> Option<u32> {
    let (packed, array) = (format!("> {name};"), format!(" {name}["));
    let element = before.lines().rev().find_map(|line| {
        let line = line.trim();
        match line.strip_prefix("tw::Regs<") {
            Some(rest) if rest.ends_with(&packed) => rest.split(',').next(),
            Some(_) => None,
            None if line.ends_with("];") && !line.contains('=') => {
                line.split_once(&array).map(|(element, _)| element)
            }
            None => None,
        }
    })?;
    Some(match element {
        "tw::f16" | "tw::bf16" | "short" | "unsigned short" => 2,
        "float" | "int" | "unsigned" => 4,
        "double" | "long long" | "unsigned long long" => 8,
        _ => 1,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Brace {
    Plain,
    Loop,
    If,
}

struct Scan<'t> {
    text: &'t str,
    rest: &'t str,
    braces: Vec<Brace>,
    /// An `if` without braces is open.
    single: bool,
    /// The last directive says that the loop below it is written out.
    written_out: bool,
    steps: Vec<Step>,
}

fn scan(text: &str) -> Vec<Step> {
    let mut scan = Scan {
        text,
        rest: text,
        braces: Vec::new(),
        single: false,
        written_out: false,
        steps: Vec::new(),
    };
    while let Some(first) = scan.rest.chars().next() {
        match first {
            '#' => {
                let line = scan.until('\n');
                scan.written_out = line.trim() == "#pragma unroll";
            }
            '/' if scan.rest.starts_with("//") => drop(scan.until('\n')),
            '/' if scan.rest.starts_with("/*") => {
                let end = scan.rest.find("*/").map_or(scan.rest.len(), |at| at + 2);
                scan.rest = &scan.rest[end..];
            }
            '"' => {
                scan.rest = &scan.rest[1..];
                scan.until('"');
                scan.rest = scan.rest.get(1..).unwrap_or("");
            }
            '{' => scan.open(Brace::Plain),
            '}' => {
                scan.rest = &scan.rest[1..];
                if scan.braces.pop() == Some(Brace::Loop) {
                    end(&mut scan.steps);
                }
            }
            ';' => {
                scan.rest = &scan.rest[1..];
                scan.single = false;
            }
            c if c.is_alphabetic() || c == '_' => {
                let word = scan.word();
                scan.named(word);
            }
            _ => scan.rest = &scan.rest[first.len_utf8()..],
        }
    }
    scan.steps
}

impl<'t> Scan<'t> {
    /// The text before a character, which is next then.
    fn until(&mut self, c: char) -> &'t str {
        let at = self.rest.find(c).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(at);
        self.rest = rest;
        text
    }

    fn word(&mut self) -> &'t str {
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let at = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(at);
        self.rest = rest;
        word
    }

    /// What stands between brackets that come next; they may nest.
    fn group(&mut self, open: char, close: char) -> Option<&'t str> {
        let trimmed = self.rest.trim_start();
        if !trimmed.starts_with(open) {
            return None;
        }
        let mut depth = 0;
        for (at, c) in trimmed.char_indices() {
            depth += i32::from(c == open) - i32::from(c == close);
            if depth == 0 {
                self.rest = &trimmed[at + 1..];
                return Some(&trimmed[1..at]);
            }
        }
        None
    }

    fn open(&mut self, brace: Brace) {
        self.until('{');
        self.rest = self.rest.get(1..).unwrap_or("");
        self.braces.push(brace);
    }

    fn op(&mut self, name: impl Into<String>, guarded: bool) {
        let guarded = guarded || self.single || self.braces.contains(&Brace::If);
        self.steps.push(Step::Op(name.into(), guarded));
    }

    fn named(&mut self, word: &'t str) {
        match word {
            "for" | "while" => {
                let head = self.group('(', ')').unwrap_or("");
                let way = match self.written_out {
                    true if head.starts_with("int turn") => Way::Turning,
                    true => Way::WrittenOut,
                    false => Way::Serial,
                };
                self.written_out = false;
                self.steps.push(Step::Loop(way));
                self.open(Brace::Loop);
            }
            "if" => {
                self.group('(', ')');
                self.under();
            }
            "else" => self.under(),
            _ => self.call(word),
        }
    }

    /// What comes next is under a condition.
    fn under(&mut self) {
        match self.rest.trim_start().starts_with('{') {
            true => self.open(Brace::If),
            false => self.single = true,
        }
    }

    fn call(&mut self, word: &str) {
        match word {
            "__syncthreads" => return self.op("barrier", false),
            "__threadfence" => return self.op("fence device", false),
            "__threadfence_block" => return self.op("fence block", false),
            "__syncwarp" => return self.op("sync_warp", false),
            "__any_sync" | "__all_sync" | "__ballot_sync" => return self.op("vote", false),
            "__syncthreads_or" | "__syncthreads_and" | "__syncthreads_count" => {
                return self.op("block_vote", false);
            }
            _ => {}
        }
        let Some(name) = word.strip_prefix("tw::") else {
            return;
        };
        let (name, guarded) = match name.strip_suffix("_if") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let given = self.template();
        let op = match name {
            "load" | "store" => format!("{name} {given}"),
            "load_row" | "load_apart" => format!("load {}", apart(&given)),
            "store_apart" => format!("store {}", apart(&given)),
            "load_buffer" => {
                let before = &self.text[..self.text.len() - self.rest.len()];
                let registers = self.rest.trim_start_matches('(').split(',').next();
                let element = registers.and_then(|name| element_size(before, name));
                // A single element.
                if element.is_some_and(|size| size.to_string() == given) {
                    return;
                }
                // Lanes that a condition leaves out read past the end.
                let list = self.group('(', ')').unwrap_or("");
                let guarded = guarded || list.contains(" : -1u");
                return self.op(format!("load {given}"), guarded);
            }
            "drop"
                if self
                    .rest
                    .lines()
                    .next()
                    .is_some_and(|l| l.contains("tw::fetch")) =>
            {
                format!("copy {given}")
            }
            "cp_async" | "cp_async_or_zero" => format!("cp_async {given}"),
            "copy_to_lds" => format!("copy_to_lds {given}"),
            "ldmatrix" | "stmatrix" => format!("{name} {given}"),
            "ldmatrix_trans" => format!("ldmatrix {given} trans"),
            "stmatrix_trans" => format!("stmatrix {given} trans"),
            "cp_async_wait" => format!("wait cp_async {given}"),
            "cp_async_commit" => "commit".to_string(),
            "wgmma_wait" => format!("wait wgmma {given}"),
            "wgmma_commit" => "commit wgmma".to_string(),
            "wgmma_fence" => "fence wgmma".to_string(),
            "show_barriers" => "fence barriers".to_string(),
            "tma_load" => {
                // A place of two, the map and the barrier come before the indices.
                let (list, evict) = policy(self.group('(', ')').unwrap_or(""));
                format!("tma_load {}{evict}", commas(list).saturating_sub(3))
            }
            "tma_multicast" => {
                // The blocks come before that.
                let (list, evict) = policy(self.group('(', ')').unwrap_or(""));
                format!("tma_multicast {}{evict}", commas(list).saturating_sub(4))
            }
            "tma_store" => {
                // The map and a place of two.
                let (list, evict) = policy(self.group('(', ')').unwrap_or(""));
                format!("tma_store {}{evict}", commas(list).saturating_sub(2))
            }
            "tma_store_commit" => "commit tma_store".to_string(),
            "tma_store_wait" => format!("wait tma_store {given}"),
            "tma_store_wait_read" => format!("wait tma_store {given} read"),
            "fence_async_proxy" => "fence async_proxy".to_string(),
            "wait" => format!("wait {given}"),
            "barrier" => "bare".to_string(),
            "sync_named" => "named".to_string(),
            "any" | "all" | "ballot" => "vote".to_string(),
            "block_count" => "block_vote".to_string(),
            "mbarrier_arrive_expect" => "mbarrier_expect".to_string(),
            "read_transposed"
            | "atomic"
            | "atomic_load"
            | "atomic_store"
            | "warp_fold"
            | "sync_warp"
            | "sync_grid"
            | "sync_cluster"
            | "cluster_arrive"
            | "cluster_wait"
            | "mbarrier_init"
            | "mbarrier_arrive"
            | "mbarrier_arrive_warp"
            | "mbarrier_arrive_at"
            | "mbarrier_arrive_cluster"
            | "mbarrier_arrive_cluster_warp"
            | "mbarrier_wait"
            | "mbarrier_expect" => name.to_string(),
            "atomic_add" => {
                let list = self.group('(', ')').unwrap_or("");
                format!("atomic_add {}", commas(list))
            }
            _ if name.starts_with("shuffle_") => "shuffle".to_string(),
            _ => match name.split_once('_') {
                Some(("mma" | "mfma", shape)) => {
                    // Those with metadata or scales are called so.
                    let special = ["sp_", "scale_"];
                    let plain = special.iter().find_map(|word| shape.strip_prefix(word));
                    format!("mma {}", sizes(plain.unwrap_or(shape)))
                }
                Some(("wgmma", shape)) => format!("wgmma {}", sizes(shape)),
                _ => return,
            },
        };
        self.op(op, guarded);
    }

    /// The arguments in angle brackets, without the types among them that brackets follow.
    fn template(&mut self) -> String {
        match self.rest.starts_with('<') {
            true => self.group('<', '>').unwrap_or("").to_string(),
            false => String::new(),
        }
    }
}

/// `4, 8`: four elements whose registers are eight apart.
fn apart(given: &str) -> String {
    given.replace(", ", " apart ")
}

/// The arguments of a bulk copy behind what it tells the L2 cache, and that.
fn policy(list: &str) -> (&str, String) {
    let told = list.strip_prefix("tw::").and_then(|l| l.split_once("(), "));
    match told.filter(|(name, _)| name.starts_with("evict_")) {
        Some((name, rest)) => (rest, format!(" {name}")),
        None => (list, String::new()),
    }
}

/// Commas that stand in no brackets.
fn commas(list: &str) -> usize {
    let mut depth = 0;
    let mut count = 0;
    for c in list.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

/// `m16n8k16_f16_f32` and `16x16x32_float16`: `16x8x16`.
fn sizes(shape: &str) -> String {
    let shape = shape.split('_').next().unwrap_or(shape);
    let numbers = shape.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<&str> = numbers.filter(|n| !n.is_empty()).collect();
    numbers.join("x")
}
