//! The way of all configurations: compiled in parallel, checked one by one, timed in turns.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::lab::{Lab, Unit};
use crate::race::{Rules, race};
use crate::report::{Fate, Report, Row, one_line};
use crate::space::Config;

/// How it is tuned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    pub rules: Rules,
    /// Threads that compile; zero takes as many as there are cores.
    pub threads: usize,
    /// Configurations are taken to be right without a look.
    pub unchecked: bool,
    /// How long one may take to compile.
    pub timeout: Option<Duration>,
    /// Set from elsewhere, it ends the session: what is left is not tried.
    pub cancelled: Option<&'a AtomicBool>,
}

/// What is done at the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    Compiled {
        done: usize,
        of: usize,
    },
    Checked {
        done: usize,
        of: usize,
    },
    /// One more round, of so many that are still in the race; the fastest so far.
    Timed {
        running: usize,
        best: &'a Config,
        time: f64,
        unit: Unit,
    },
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Compiled { done, of } => write!(f, "compiled {done} of {of}"),
            Event::Checked { done, of } => write!(f, "checked {done} of {of}"),
            Event::Timed {
                running,
                best,
                time,
                unit,
            } => write!(
                f,
                "{running} in the race; best {}: {best}",
                unit.show(*time)
            ),
        }
    }
}

/// Tunes: `configs` names what the lab compiles. Those with a fate already are left as they are.
pub fn tune<L: Lab>(
    lab: &L,
    configs: &[Config],
    mut fates: Vec<Option<Fate>>,
    options: &Options<'_>,
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> Report {
    fates.resize(configs.len(), None);
    let open: Vec<usize> = (0..configs.len()).filter(|&i| fates[i].is_none()).collect();
    let mut built = compile(lab, &open, options, tell);
    if !options.unchecked {
        check(lab, &mut built, options, tell);
    }
    let mut places = Vec::new();
    let mut ready = Vec::new();
    for (at, outcome) in built {
        match outcome {
            Ok(built) => {
                places.push(at);
                ready.push(built);
            }
            Err(fate) => fates[at] = Some(fate),
        }
    }
    let unit = lab.unit();
    let finish = race(
        ready.len(),
        options.rules,
        unit.is_exact(),
        |order| {
            if is_cancelled(options) {
                return vec![Err(INTERRUPTED.to_owned()); order.len()];
            }
            let those: Vec<&L::Built> = order.iter().map(|&i| &ready[i]).collect();
            lab.round(&those)
        },
        |runners, leader| {
            let running = runners.iter().filter(|r| r.failed.is_none()).count();
            if let Some(leader) = leader
                && let Some(time) = runners[leader].median()
            {
                tell(Event::Timed {
                    running,
                    best: &configs[places[leader]],
                    time,
                    unit,
                });
            }
        },
    );
    for (&at, runner) in places.iter().zip(&finish.runners) {
        fates[at] = Some(match (&runner.failed, runner.median()) {
            (None, Some(time)) => Fate::Timed {
                time,
                runs: runner.times.len() as u32,
            },
            (Some(why), _) => Fate::Failed(one_line(why)),
            (None, None) => Fate::Failed("it was not timed".to_owned()),
        });
    }
    let rows = configs.iter().zip(fates).map(|(config, fate)| Row {
        config: config.clone(),
        fate: fate.unwrap_or_else(|| Fate::LeftOut(INTERRUPTED.to_owned())),
    });
    Report {
        unit,
        best: finish.leader.map(|at| places[at]),
        certain: finish.certain,
        rows: rows.collect(),
    }
}

const INTERRUPTED: &str = "tuning was interrupted";

fn is_cancelled(options: &Options<'_>) -> bool {
    options.cancelled.is_some_and(|c| c.load(Ordering::Relaxed))
}

type Outcomes<B> = Vec<(usize, Result<B, Fate>)>;

fn compile<L: Lab>(
    lab: &L,
    open: &[usize],
    options: &Options<'_>,
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> Outcomes<L::Built> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match options.threads {
        0 => cores(),
        n => n,
    };
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Vec::new());
    let work = || {
        while let Some(&at) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = match is_cancelled(options) {
                true => Err(Fate::LeftOut(INTERRUPTED.to_owned())),
                false => compile_one(lab, at, options.timeout),
            };
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push((at, outcome));
            drop(results);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let of = open.len();
            tell(Event::Compiled { done, of });
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(open.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results
}

fn compile_one<L: Lab>(lab: &L, at: usize, timeout: Option<Duration>) -> Result<L::Built, Fate> {
    let start = Instant::now();
    let built = lab
        .compile(at)
        .map_err(|why| Fate::Failed(one_line(&why)))?;
    let took = start.elapsed();
    match timeout {
        Some(limit) if took > limit => Err(Fate::Failed(format!(
            "it took {:.1} s to compile, and {:.1} s are allowed",
            took.as_secs_f64(),
            limit.as_secs_f64()
        ))),
        _ => Ok(built),
    }
}

/// Configurations that compute the same.
struct Group<A> {
    answer: A,
    /// Places in the list of outcomes.
    members: Vec<usize>,
    /// How its answer differs from that of the first group.
    differs: String,
}

/// Fails those that compute something else: their answers are compared with each other, and what
/// most of them agree on with what is right.
fn check<L: Lab>(
    lab: &L,
    outcomes: &mut Outcomes<L::Built>,
    options: &Options<'_>,
    tell: &(dyn Fn(Event<'_>) + Sync),
) {
    let of = outcomes.len();
    let mut groups: Vec<Group<L::Answer>> = Vec::new();
    for (place, (at, outcome)) in outcomes.iter_mut().enumerate() {
        let Ok(built) = outcome else { continue };
        if is_cancelled(options) {
            *outcome = Err(Fate::LeftOut(INTERRUPTED.to_owned()));
            continue;
        }
        match lab.answer(*at, built) {
            Err(why) => *outcome = Err(Fate::Failed(one_line(&why))),
            Ok(None) => {}
            Ok(Some(answer)) => {
                let mut differs = String::new();
                let same = groups.iter_mut().find(|group| {
                    let compared = lab.agree(&answer, &group.answer);
                    let same = compared.is_ok();
                    if let Err(why) = compared
                        && differs.is_empty()
                    {
                        differs = why;
                    }
                    same
                });
                match same {
                    Some(group) => group.members.push(place),
                    None => groups.push(Group {
                        answer,
                        members: vec![place],
                        differs,
                    }),
                }
            }
        }
        let done = place + 1;
        tell(Event::Checked { done, of });
    }
    // The largest group that is right.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&g| std::cmp::Reverse(groups[g].members.len()));
    let mut right: Option<usize> = None;
    let mut whys: Vec<Option<String>> = vec![None; groups.len()];
    for g in order {
        let group = &groups[g];
        let rival = right.filter(|&r| groups[r].members.len() == group.members.len());
        let undecided = rival.is_some() && !lab.knows_what_is_right();
        if right.is_none() || undecided {
            let first = outcomes[group.members[0]].0;
            match lab.verify(first, &group.answer) {
                Err(why) => {
                    whys[g] = Some(one_line(&why));
                    continue;
                }
                Ok(()) if right.is_none() => {
                    right = Some(g);
                    continue;
                }
                Ok(()) => {}
            }
        }
        let Some(right) = right else { continue };
        let said = [&group.differs, &groups[right].differs];
        let said = said.into_iter().find(|why| !why.is_empty());
        let said = said.map_or(String::new(), |why| format!(": {}", one_line(why)));
        let those = match groups[right].members.len() {
            1 => "that of another configuration".to_owned(),
            n => format!("those of {n} other configurations"),
        };
        let advice = match undecided {
            true => "; a reference program would say which is right",
            false => "",
        };
        let why = format!("its result differs from {those}{said}{advice}");
        if undecided {
            whys[right].get_or_insert(why.clone());
        }
        whys[g] = Some(why);
    }
    for (group, why) in groups.iter().zip(&whys) {
        for &place in &group.members {
            if let Some(why) = why {
                outcomes[place].1 = Err(Fate::Failed(why.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lab whose configurations are written down.
    struct Paper {
        /// What each computes; none where it does not compile.
        answers: Vec<Option<i32>>,
        right: i32,
        /// Whether it is known what is right; otherwise each answer is what was meant.
        known: bool,
        times: Vec<f64>,
    }

    impl Lab for Paper {
        type Built = usize;
        type Answer = i32;

        fn compile(&self, at: usize) -> Result<usize, String> {
            self.answers[at]
                .map(|_| at)
                .ok_or_else(|| "shared memory:\n  300 kB".to_owned())
        }

        fn answer(&self, at: usize, built: &usize) -> Result<Option<i32>, String> {
            assert_eq!(at, *built);
            match self.answers[at] {
                Some(13) => Err("it read what nobody wrote".to_owned()),
                answer => Ok(answer),
            }
        }

        fn agree(&self, answer: &i32, other: &i32) -> Result<(), String> {
            let same = answer == other;
            same.then_some(())
                .ok_or_else(|| format!("{answer} is not {other}"))
        }

        fn verify(&self, _: usize, answer: &i32) -> Result<(), String> {
            let wrong = || format!("{answer}, and {} is right", self.right);
            let ok = !self.known || *answer == self.right;
            ok.then_some(()).ok_or_else(wrong)
        }

        fn knows_what_is_right(&self) -> bool {
            self.known
        }

        fn round(&self, built: &[&usize]) -> Vec<Result<f64, String>> {
            built.iter().map(|&&at| Ok(self.times[at])).collect()
        }

        fn unit(&self) -> Unit {
            Unit::Seconds
        }
    }

    fn tuned(answers: &[Option<i32>], right: i32, options: &Options<'_>) -> Report {
        tuned_by(answers, right, true, options)
    }

    fn tuned_by(answers: &[Option<i32>], right: i32, known: bool, options: &Options<'_>) -> Report {
        let count = answers.len();
        let lab = Paper {
            answers: answers.to_vec(),
            right,
            known,
            // The later the faster.
            times: (0..count).map(|at| (10 - at) as f64).collect(),
        };
        let configs: Vec<Config> = (0..count)
            .map(|at| Config::new([("n", at.to_string())]))
            .collect();
        tune(&lab, &configs, Vec::new(), options, &|_| {})
    }

    fn why(report: &Report, at: usize) -> &str {
        match &report.rows[at].fate {
            Fate::Failed(why) | Fate::LeftOut(why) => why,
            Fate::Timed { .. } => "timed",
        }
    }

    #[test]
    fn broken_and_wrong_configurations_are_reported_and_not_chosen() {
        let answers = [Some(4), Some(4), Some(13), Some(5), None, Some(4), Some(6)];
        for threads in [1, 3] {
            let options = Options {
                threads,
                ..Options::default()
            };
            let report = tuned(&answers, 4, &options);
            assert_eq!(report.best, Some(5));
            assert_eq!(why(&report, 2), "it read what nobody wrote");
            assert_eq!(
                why(&report, 3),
                "its result differs from those of 3 other configurations: 5 is not 4"
            );
            assert_eq!(why(&report, 4), "shared memory: 300 kB");
            assert_eq!(why(&report, 0), "timed");
            assert!(why(&report, 6).ends_with("6 is not 4"));
        }
    }

    #[test]
    fn what_most_agree_on_may_be_wrong() {
        let report = tuned(&[Some(5), Some(4), Some(5)], 4, &Options::default());
        assert_eq!(report.best, Some(1));
        assert_eq!(why(&report, 0), "5, and 4 is right");
        let report = tuned(&[Some(5), Some(5)], 4, &Options::default());
        assert_eq!((report.best, report.certain), (None, false));
        // Who asks for no check gets none.
        let options = Options {
            unchecked: true,
            ..Options::default()
        };
        assert_eq!(tuned(&[Some(5), Some(5)], 4, &options).best, Some(1));
    }

    #[test]
    fn as_many_against_as_many_are_not_decided_by_chance() {
        let none = Options::default();
        let even = [Some(4), Some(5)];
        let report = tuned_by(&even, 4, false, &none);
        assert_eq!(report.best, None);
        assert!(why(&report, 0).ends_with("a reference program would say which is right"));
        assert!(why(&report, 1).ends_with("a reference program would say which is right"));
        assert_eq!(tuned_by(&even, 4, true, &none).best, Some(0));
        assert_eq!(tuned_by(&even, 5, true, &none).best, Some(1));
        let most = tuned_by(&[Some(5), Some(4), Some(4)], 4, false, &none);
        assert_eq!(most.best, Some(2));
        assert!(why(&most, 0).contains("those of 2 other configurations"));
    }

    #[test]
    fn sessions_can_be_ended_from_elsewhere() {
        let end = AtomicBool::new(true);
        let options = Options {
            cancelled: Some(&end),
            ..Options::default()
        };
        let report = tuned(&[Some(4), Some(4)], 4, &options);
        assert_eq!((report.best, why(&report, 1)), (None, INTERRUPTED));
    }

    #[test]
    fn nothing_to_tune_is_no_panic() {
        assert_eq!(tuned(&[], 4, &Options::default()).best, None);
        let report = tuned(&[None], 4, &Options::default());
        assert_eq!((report.best, report.certain), (None, false));
    }

    #[test]
    fn one_that_takes_too_long_is_said_to() {
        let options = Options {
            timeout: Some(Duration::ZERO),
            ..Options::default()
        };
        let report = tuned(&[Some(4)], 4, &options);
        assert!(why(&report, 0).contains("0.0 s are allowed"));
    }
}
