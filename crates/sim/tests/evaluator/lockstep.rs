//! Threads in lockstep do what each of them would do alone.
//!
//! A random body is run by eight threads at once, where branches and loops become masks, and
//! once for each thread number as a constant, where they are plain jumps.

use crate::common::parse;
use proptest::prelude::*;
use tilewright_sim::{Arg, Args, RunOptions, run};

const THREADS: i128 = 8;

/// Writes statements from a list of choices.
struct Writer<'a> {
    choices: std::slice::Iter<'a, u8>,
    text: String,
    loops: usize,
}

impl Writer<'_> {
    fn choose(&mut self, n: u8) -> u8 {
        self.choices.next().copied().unwrap_or(0) % n
    }

    fn operand(&mut self) -> String {
        let loops = self.loops as u8;
        match self.choose(5) {
            0 => "TX".to_string(),
            1 => "x[]".to_string(),
            2 => "y[]".to_string(),
            3 if loops > 0 => format!("i{}", self.choose(loops)),
            _ => self.choose(4).to_string(),
        }
    }

    fn value(&mut self) -> String {
        let (a, b) = (self.operand(), self.operand());
        match self.choose(4) {
            0 => format!("{a} + {b}"),
            1 => format!("{a} * 3 - {b}"),
            2 => format!("({a} ^ {b}) % 16"),
            _ => format!("max({a}, {b})"),
        }
    }

    fn cond(&mut self) -> String {
        let (a, b) = (self.operand(), self.operand());
        match self.choose(3) {
            0 => format!("{a} % 4 < {b} % 4"),
            1 => format!("{a} % 3 == {}", self.choose(3)),
            _ => format!("{a} > {b}"),
        }
    }

    fn block(&mut self, depth: usize) {
        for _ in 0..=self.choose(3) {
            self.stmt(depth);
        }
    }

    fn stmt(&mut self, depth: usize) {
        let kind = self.choose(if depth > 3 { 2 } else { 8 });
        let line = match kind {
            0 => format!("x[] = {}", self.value()),
            1 => format!("y[] = {}", self.value()),
            2 | 3 => {
                let line = format!("if {} {{", self.cond());
                self.line(&line);
                self.block(depth + 1);
                if self.choose(2) == 1 {
                    self.line("} else {");
                    self.block(depth + 1);
                }
                "}".to_string()
            }
            4 | 5 => {
                let stop = self.value();
                let line = format!("for i{} in serial(0, ({stop}) % 5) {{", self.loops);
                self.line(&line);
                self.loops += 1;
                self.block(depth + 1);
                self.loops -= 1;
                "}".to_string()
            }
            6 if self.loops > 0 => format!("if {} {{\nbreak\n}}", self.cond()),
            _ if self.loops > 0 => format!("if {} {{\ncontinue\n}}", self.cond()),
            _ => {
                // A loop that ends: `n` counts down in every iteration.
                self.line("n[] = 5");
                let line = format!("while n[] > 0 && {} {{", self.cond());
                self.line(&line);
                self.line("n[] = n[] - 1");
                self.block(depth + 1);
                "}".to_string()
            }
        };
        self.line(&line);
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }
}

fn body(choices: &[u8]) -> String {
    let mut w = Writer {
        choices: choices.iter(),
        text: String::new(),
        loops: 0,
    };
    w.line("alloc x: var int32\nx[] = 1\nalloc y: var int32\ny[] = 2\nalloc n: var int32\nn[] = 0");
    for _ in 0..3 {
        w.block(0);
    }
    w.line("C[OUT] = x[] * 1000 + y[]");
    w.text
}

fn result(source: &str, thread: i128) -> Result<Vec<f64>, String> {
    let func = parse(source);
    let mut args = Args::new().with("t", Arg::Int(thread));
    let options = RunOptions {
        threads: 1,
        step_limit: 100_000,
        ..RunOptions::default()
    };
    run(&func, &mut args, &options).map_err(|e| e.to_string())?;
    Ok(args.tensor("C").map(|c| c.to_f64()).unwrap_or_default())
}

fn source(threads: i128, elements: i128, body: &str) -> String {
    format!(
        "func @k level=tile {{\nscalar t: int32\noutput C: int32[{elements}]\n\
         kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{\n{body}\n}}\n}}\n"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn masks_agree_with_jumps(choices in prop::collection::vec(any::<u8>(), 0..400)) {
        let body = body(&choices);
        let together = body.replace("TX", "tx").replace("OUT", "tx");
        let alone = body.replace("TX", "t").replace("OUT", "0");
        let all = result(&source(THREADS, THREADS, &together), 0);
        let mut each = Vec::new();
        for thread in 0..THREADS {
            match result(&source(1, 1, &alone), thread) {
                Ok(v) => each.extend(v),
                // One thread alone ran out of steps: nothing to compare with.
                Err(_) => return Ok(()),
            }
        }
        prop_assert_eq!(all, Ok(each), "{}", together);
    }
}
