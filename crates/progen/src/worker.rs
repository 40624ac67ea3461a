//! Both ends of a worker process: it tests one program after another, and the one who asks sees
//! to it that a program that hangs or ends the process costs no more than itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tilewright_progen::executors::{self, Passed};
use tilewright_progen::failure::Failure;
use tilewright_progen::program::Program;
use tilewright_progen::{generate, plain, shrink};

use crate::cli::PlanArgs;

/// A program by its name.
#[derive(Clone, Debug)]
pub struct Asked {
    pub seed: u64,
    pub steps: Vec<usize>,
}

/// The program that was asked about before, without its last step: the next one is mostly one
/// step from it too.
#[derive(Debug, Default)]
pub struct Recent {
    known: Option<(Asked, Program)>,
}

impl Recent {
    fn find(&mut self, asked: &Asked) -> Option<Program> {
        let (last, before) = match asked.steps.split_last() {
            Some((last, before)) => (Some(*last), before),
            None => (None, &[][..]),
        };
        let (from, program) = match self.known.take() {
            Some((known, program))
                if known.seed == asked.seed && before.starts_with(&known.steps) =>
            {
                (known.steps.len(), program)
            }
            _ => (0, generate::generate(asked.seed)),
        };
        let program = shrink::apply(&program, &before[from..])?;
        let known = Asked {
            seed: asked.seed,
            steps: before.to_vec(),
        };
        self.known = Some((known, program.clone()));
        shrink::apply(&program, last.as_slice())
    }
}

/// Tests a program in this process; a panic is a failure.
pub fn answer(asked: &Asked, plan: &PlanArgs, recent: &mut Recent) -> Result<Passed, Failure> {
    let place = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&place);
    panic::set_hook(Box::new(move |info| {
        if let Ok(mut place) = noted.lock()
            && place.is_empty()
        {
            *place = info.to_string();
        }
    }));
    let tested = panic::catch_unwind(AssertUnwindSafe(|| {
        let Some(program) = recent.find(asked) else {
            return Err(Failure::new("no-program", "there is no such smaller one"));
        };
        let plan = plan
            .plan(asked.seed)
            .map_err(|e| Failure::new("bad-plan", e))?;
        let expected =
            plain::run(&program).map_err(|why| Failure::new("invalid-program", why.to_string()))?;
        executors::check(&program, &expected, &plan)
    }));
    let _ = panic::take_hook();
    tested.unwrap_or_else(|_| {
        let text = place.lock().map(|p| p.clone()).unwrap_or_default();
        Err(Failure::new(format!("panic:{}", panic_place(&text)), text))
    })
}

/// `arith/src/rules.rs:12` of a panic's message.
fn panic_place(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let at = first.split("panicked at ").nth(1).unwrap_or(first);
    let at = at.rsplit("crates/").next().unwrap_or(at);
    let mut parts = at.trim_end_matches(':').split(':');
    let (file, line) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    format!("{file}:{line}")
}

/// Answers for the programs that the standard input names, a line each.
pub fn serve(plan: &PlanArgs) {
    let mut out = std::io::stdout();
    let mut recent = Recent::default();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let mut words = line.split_whitespace();
        let seed = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
        let steps = words.filter_map(|w| w.parse().ok()).collect();
        let text = match answer(&Asked { seed, steps }, plan, &mut recent) {
            Ok(p) => format!(
                "passed {} {} {} {}",
                p.unproved, p.lacking, p.compiled, p.emulated
            ),
            Err(f) => {
                let target = f.target.unwrap_or("-");
                let detail = f.detail.replace('\\', "\\\\").replace('\n', "\\n");
                format!("failed {} {target} {detail}", f.kind.replace(' ', "-"))
            }
        };
        if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// A worker process, started again whenever one is lost.
pub struct Worker {
    plan: PlanArgs,
    running: Option<Running>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
}

impl Worker {
    pub fn new(plan: PlanArgs) -> Worker {
        Worker {
            plan,
            running: None,
        }
    }

    pub fn ask(&mut self, asked: &Asked, timeout: Duration) -> Result<Passed, Failure> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => start(&self.plan).map_err(|e| Failure::new("no-worker", e.to_string()))?,
        };
        let steps: Vec<String> = asked.steps.iter().map(usize::to_string).collect();
        let sent = writeln!(running.input, "{} {}", asked.seed, steps.join(" "))
            .and_then(|()| running.input.flush());
        if let Err(e) = sent {
            running.end();
            return Err(Failure::new("no-worker", e.to_string()));
        }
        match running.lines.recv_timeout(timeout) {
            Ok(line) => {
                self.running = Some(running);
                read(&line)
            }
            Err(RecvTimeoutError::Timeout) => {
                running.end();
                let detail = format!("no answer after {} s", timeout.as_secs());
                Err(Failure::new("hang", detail))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = running.end();
                let said = running.errors.lock().map(|e| e.clone()).unwrap_or_default();
                Err(Failure::new("crash", format!("{status}\n{}", said.trim())))
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.end();
        }
    }
}

impl Running {
    /// Ends the process, if it has not ended itself, and says how.
    fn end(&mut self) -> String {
        // A process that is at its end is given the time to get there, so that its own status
        // is seen.
        for _ in 0..20 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.to_string();
            }
            if self.lines.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                break;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        let _ = self.child.kill();
        self.child
            .wait()
            .map_or_else(|e| e.to_string(), |s| s.to_string())
    }
}

fn start(plan: &PlanArgs) -> std::io::Result<Running> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("worker")
        .args(plan.to_words())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let missing = || std::io::Error::other("a worker without pipes");
    let input = child.stdin.take().ok_or_else(missing)?;
    let output = child.stdout.take().ok_or_else(missing)?;
    let mut told = child.stderr.take().ok_or_else(missing)?;
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let errors = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&errors);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n) = told.read(&mut bytes) {
            if n == 0 {
                return;
            }
            if let Ok(mut text) = kept.lock()
                && text.len() < 4096
            {
                text.push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        }
    });
    Ok(Running {
        child,
        input,
        lines,
        errors,
    })
}

fn read(line: &str) -> Result<Passed, Failure> {
    let (said, rest) = line.split_once(' ').unwrap_or((line, ""));
    match said {
        "passed" => {
            let mut words = rest.split(' ');
            let mut number = || words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
            Ok(Passed {
                unproved: number(),
                lacking: number(),
                compiled: number(),
                emulated: number(),
            })
        }
        "failed" => {
            let mut words = rest.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default();
            let kind = word().to_string();
            let target = word();
            let target = executors::targets().into_iter().find(|t| *t == target);
            let detail = word().replace("\\n", "\n").replace("\\\\", "\\");
            Err(Failure {
                kind,
                target,
                detail,
            })
        }
        _ => Err(Failure::new("bad-answer", line)),
    }
}
