//! Timing in turns until the fastest is certain.
//!
//! In each round every configuration that is still in the race runs once, so that what changes with
//! time (clocks, heat, other programs) meets all of them alike. Two are compared by the quotients of
//! their times in the same rounds. One leaves when it is certain that it is slower than the leader;
//! the race ends when nobody left in it can be faster by more than the tolerance, or when the rounds
//! are used up.

/// How long is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Rounds before those that count.
    pub warmup: u32,
    /// Rounds that count, at most.
    pub rounds: u32,
    /// By how much another may be faster than the one that is chosen, of its time.
    pub tolerance: f64,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            warmup: 2,
            rounds: 200,
            tolerance: 0.01,
        }
    }
}

/// How a race ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// The fastest; none where all failed.
    pub leader: Option<usize>,
    /// Whether nobody can be faster by more than the tolerance.
    pub certain: bool,
    pub runners: Vec<Runner>,
}

/// What was seen of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runner {
    /// Its times, one a round.
    pub times: Vec<f64>,
    /// Why it could not go on.
    pub failed: Option<String>,
    left: bool,
}

impl Runner {
    /// The middle of its times; of an even number the mean of the two.
    pub fn median(&self) -> Option<f64> {
        median(&self.times)
    }

    fn runs(&self) -> bool {
        !self.left && self.failed.is_none()
    }
}

/// Rounds after which one that was always slower by `FAR` leaves.
const FEW: usize = 3;
const FAR: f64 = 1.25;
/// Rounds from which the order of the times says enough: all of ten on one side of the middle
/// happens once in five hundred times.
const ENOUGH: usize = 10;
/// Standard deviations of the place of the middle.
const SURE: f64 = 3.0;

/// Has `count` configurations race. `round` times one run of each that it is given.
pub fn race(
    count: usize,
    rules: Rules,
    is_exact: bool,
    mut round: impl FnMut(&[usize]) -> Vec<Result<f64, String>>,
    mut tell: impl FnMut(&[Runner], Option<usize>),
) -> Finish {
    let mut runners = vec![Runner::default(); count];
    let (warmup, rounds) = match is_exact {
        true => (0, 1),
        false => (rules.warmup, rules.rounds.max(1)),
    };
    let mut certain = is_exact;
    for number in 0..warmup + rounds {
        let mut order: Vec<usize> = (0..count).filter(|&i| runners[i].runs()).collect();
        if order.is_empty() {
            break;
        }
        // Nobody always runs behind the same one.
        let turn = (number as usize * 7 + number as usize / 3) % order.len();
        order.rotate_left(turn);
        if number % 2 == 1 {
            order.reverse();
        }
        let times = round(&order);
        let missing = || Err("it was not timed".to_owned());
        let times = times.into_iter().chain(std::iter::repeat_with(missing));
        for (&at, time) in order.iter().zip(times) {
            match time {
                Ok(time) if time.is_finite() && time > 0.0 => {
                    if number >= warmup {
                        runners[at].times.push(time);
                    }
                }
                Ok(time) => runners[at].failed = Some(format!("its time was {time}")),
                Err(reason) => runners[at].failed = Some(reason),
            }
        }
        if number < warmup {
            continue;
        }
        let Some(leader) = leader(&runners) else {
            continue;
        };
        if !is_exact {
            certain = drop_slower(&mut runners, leader, rules.tolerance);
        }
        tell(&runners, Some(leader));
        if certain {
            break;
        }
    }
    let leader = leader(&runners);
    Finish {
        certain: certain && leader.is_some(),
        leader,
        runners,
    }
}

fn leader(runners: &[Runner]) -> Option<usize> {
    let all = runners.iter().enumerate().filter(|(_, r)| r.runs());
    let timed = all.filter_map(|(at, r)| Some((at, r.median()?)));
    timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

/// Takes those out of the race that are slower; says whether the leader is certain.
fn drop_slower(runners: &mut [Runner], leader: usize, tolerance: f64) -> bool {
    let mut certain = true;
    for at in 0..runners.len() {
        if at == leader || !runners[at].runs() {
            continue;
        }
        let (own, first) = (&runners[at].times, &runners[leader].times);
        let mut quotients: Vec<f64> = own.iter().zip(first).map(|(a, b)| a / b).collect();
        quotients.sort_by(f64::total_cmp);
        let count = quotients.len();
        let least = quotients.first().copied().unwrap_or(0.0);
        if count >= FEW && least > FAR {
            runners[at].left = true;
        } else if count < ENOUGH {
            certain = false;
        } else {
            let place = count as f64 / 2.0 - SURE * (count as f64).sqrt() / 2.0;
            let low = quotients[(place.floor() as usize).max(1) - 1];
            runners[at].left = low > 1.0;
            certain &= low > 1.0 / (1.0 + tolerance);
        }
    }
    certain
}

fn median(times: &[f64]) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in [0, 1), the same on every machine.
    struct Dice(u64);

    impl Dice {
        fn next(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as f64 / (1u64 << 31) as f64
        }

        /// About normal: the sum of twelve.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }
    }

    struct Clock {
        dice: Dice,
        truth: Vec<f64>,
        noise: f64,
        /// How much slower everything is each round.
        drift: f64,
        rounds: usize,
        runs: usize,
    }

    impl Clock {
        fn round(&mut self, order: &[usize]) -> Vec<Result<f64, String>> {
            self.rounds += 1;
            self.runs += order.len();
            let slow = 1.0 + self.drift * self.rounds as f64;
            let mut time = |&at: &usize| {
                let mut t = self.truth[at] * slow * (1.0 + self.noise * self.dice.normal());
                // Now and then something else runs.
                if self.dice.next() < 0.03 {
                    t *= 1.0 + 4.0 * self.dice.next();
                }
                Ok(t.max(1e-9))
            };
            order.iter().map(&mut time).collect()
        }
    }

    fn run(seed: u64, count: usize, noise: f64, drift: f64) -> (Finish, Clock) {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // Some are close to the best, most are not.
        let truth = (0..count).map(|_| 1e-4 * (1.0 + dice.next().powi(2)));
        let truth: Vec<f64> = truth.collect();
        let mut clock = Clock {
            dice,
            truth,
            noise,
            drift,
            rounds: 0,
            runs: 0,
        };
        let rules = Rules {
            rounds: 400,
            ..Rules::default()
        };
        let finish = race(count, rules, false, |order| clock.round(order), |_, _| {});
        (finish, clock)
    }

    #[test]
    fn the_chosen_one_is_within_a_percent_of_the_best() {
        let (mut uncertain, mut runs, mut all) = (0, 0, 0);
        for seed in 0..1500 {
            let count = 2 + (seed as usize * 7) % 59;
            let noise = [0.0, 0.002, 0.01, 0.02][seed as usize % 4];
            let drift = [0.0, 0.001][seed as usize / 4 % 2];
            let (finish, clock) = run(seed, count, noise, drift);
            let best = clock.truth.iter().copied().fold(f64::MAX, f64::min);
            let leader = finish.leader.expect("somebody leads");
            uncertain += usize::from(!finish.certain);
            runs += clock.runs;
            all += 400 * count;
            assert!(
                clock.truth[leader] <= best * 1.01,
                "seed {seed}: {} and the best is {best}",
                clock.truth[leader]
            );
        }
        assert!(uncertain < 15, "{uncertain} races ended without a winner");
        assert!(runs * 10 < all, "{runs} of {all} runs were needed");
    }

    #[test]
    fn much_noise_is_said_to_be_uncertain() {
        let mut clock = Clock {
            dice: Dice(7),
            truth: vec![1.0, 1.001],
            noise: 0.3,
            drift: 0.0,
            rounds: 0,
            runs: 0,
        };
        let rules = Rules {
            rounds: 20,
            ..Rules::default()
        };
        let finish = race(2, rules, false, |order| clock.round(order), |_, _| {});
        assert!(finish.leader.is_some() && !finish.certain);
        assert_eq!(finish.runners[0].times.len(), 20);
    }

    #[test]
    fn one_that_fails_is_not_chosen() {
        let round = |order: &[usize]| {
            let time = |&at: &usize| match at {
                0 => Err("it broke".to_owned()),
                1 => Ok(0.0),
                _ => Ok(at as f64),
            };
            order.iter().map(time).collect()
        };
        let finish = race(4, Rules::default(), false, round, |_, _| {});
        assert_eq!((finish.leader, finish.certain), (Some(2), true));
        assert_eq!(finish.runners[0].failed.as_deref(), Some("it broke"));
        assert_eq!(finish.runners[1].failed.as_deref(), Some("its time was 0"));
        let none = |order: &[usize]| order.iter().map(|_| Err(String::new())).collect();
        let finish = race(2, Rules::default(), false, none, |_, _| {});
        assert_eq!((finish.leader, finish.certain), (None, false));
        // A lab that gives too few times loses no configuration silently.
        let finish = race(2, Rules::default(), false, |_| Vec::new(), |_, _| {});
        assert_eq!(
            finish.runners[1].failed.as_deref(),
            Some("it was not timed")
        );
    }

    #[test]
    fn models_are_asked_once() {
        let mut rounds = 0;
        let round = |order: &[usize]| {
            rounds += 1;
            order.iter().map(|&at| Ok(5.0 - at as f64)).collect()
        };
        let finish = race(3, Rules::default(), true, round, |_, _| {});
        assert_eq!((finish.leader, finish.certain, rounds), (Some(2), true, 1));
    }
}
