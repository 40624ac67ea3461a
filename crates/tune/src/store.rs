//! Reports on disk, in the cache of compiled kernels: an entry is whole or absent, one process
//! tunes while the others wait for what it finds, and a disk that is full or cannot be written
//! costs nothing but the entry.

use std::time::Duration;

use tilewright_runtime::cache::{Cache, Key, KeyBuilder};

use crate::report::Report;
use crate::space::Config;

/// Changes when reports are made or written differently.
const FORMAT: &str = "1";

/// How long one waits for another process that tunes the same.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Starts the key of a report: what its configurations are. The caller adds what they are compiled
/// from and measured on.
pub fn key(configs: &[Config]) -> KeyBuilder {
    let mut key = KeyBuilder::new().part("tuning", FORMAT);
    for config in configs {
        key = key.part("configuration", config.to_string());
    }
    key
}

/// The report of a key, from the cache or from `tune`, and whether it was found. One that chose
/// nothing is not kept.
pub fn stored(
    cache: Cache,
    key: &Key,
    label: &str,
    configs: &[Config],
    tune: impl Fn() -> Report,
) -> (Report, bool) {
    let cache = cache.with_patience(PATIENCE);
    let mut made = None;
    let found = cache.get_or_build(key, label, || {
        let report = made.insert(tune());
        report.best.map(|_| report.to_bytes()).ok_or(())
    });
    if let Some(report) = made {
        return (report, false);
    }
    let read = found.map(|(bytes, _)| Report::from_bytes(&bytes, configs));
    match read {
        Ok(Some(report)) => (report, true),
        // The entry is whole, and still no report on these.
        _ => (tune(), false),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::*;
    use crate::lab::Unit;
    use crate::report::{Fate, Row};

    fn configs() -> Vec<Config> {
        let one = |n: u32| Config::new([("block", n.to_string())]);
        vec![one(32), one(64)]
    }

    fn report(best: Option<usize>) -> Report {
        let fate = |at| match best {
            Some(_) => Fate::Timed {
                time: 1.0 + at as f64,
                runs: 1,
            },
            None => Fate::Failed("no".into()),
        };
        let rows = configs().into_iter().enumerate();
        Report {
            unit: Unit::Cycles,
            best,
            certain: true,
            rows: rows
                .map(|(at, config)| Row {
                    config,
                    fate: fate(at),
                })
                .collect(),
        }
    }

    fn asked(folder: &std::path::Path, key: &Key, best: Option<usize>) -> (Report, bool, u32) {
        let calls = Cell::new(0);
        let (report, found) = stored(
            Cache::at(folder, 1 << 20),
            key,
            "tune f",
            &configs(),
            || {
                calls.set(calls.get() + 1);
                report(best)
            },
        );
        (report, found, calls.get())
    }

    #[test]
    fn a_report_is_made_once_for_each_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = key(&configs()).part("device", "one").finish();
        let other = key(&configs()).part("device", "other").finish();
        assert_ne!(one, other);
        assert_ne!(one, key(&configs()[1..]).part("device", "one").finish());
        // One that chose nothing is asked for again.
        assert_eq!(asked(folder.path(), &one, None), (report(None), false, 1));
        assert_eq!(
            asked(folder.path(), &one, Some(1)),
            (report(Some(1)), false, 1)
        );
        assert_eq!(
            asked(folder.path(), &one, Some(0)),
            (report(Some(1)), true, 0)
        );
        assert_eq!(
            asked(folder.path(), &other, Some(0)),
            (report(Some(0)), false, 1)
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_the_entry_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "no folder").expect("it is written");
        let key = key(&configs()).finish();
        for _ in 0..2 {
            assert_eq!(asked(&file, &key, Some(0)), (report(Some(0)), false, 1));
        }
        // Nor does a whole entry that is no report.
        let cache = Cache::at(folder.path(), 1 << 20);
        let put = cache.get_or_build(&key, "f", || Ok::<_, ()>(b"a kernel".to_vec()));
        put.expect("it is stored");
        assert_eq!(
            asked(folder.path(), &key, Some(0)),
            (report(Some(0)), false, 1)
        );
    }

    #[test]
    fn threads_that_tune_the_same_get_one_report() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = key(&configs()).finish();
        let calls = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let cache = Cache::at(folder.path(), 1 << 20);
                    let (found, _) = stored(cache, &key, "tune f", &configs(), || {
                        let call = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(50));
                        report(Some(call % 2))
                    });
                    assert_eq!(found, report(Some(0)));
                });
            }
        });
        assert_eq!(calls.into_inner(), 1);
    }
}
