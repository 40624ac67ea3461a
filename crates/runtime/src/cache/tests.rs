//! The cache inside one process; `tests/cache_processes.rs` has many.

use super::*;
use std::convert::Infallible;
use std::fs::{self, File};
use std::sync::atomic::AtomicUsize;

fn key(name: &str) -> Key {
    Key::of([("name", name.as_bytes())])
}

fn get(cache: &Cache, name: &str, bytes: &[u8]) -> (Vec<u8>, Outcome) {
    let build = || Ok::<_, Infallible>(bytes.to_vec());
    let Ok(got) = cache.get_or_build(&key(name), name, build);
    got
}

fn age(cache: &Cache, name: &str, seconds: u64) {
    let file = entry::path(cache.path().unwrap(), &key(name));
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::open(file).unwrap().set_modified(time).unwrap();
}

fn names(cache: &Cache) -> Vec<String> {
    let mut names: Vec<_> = cache.ls().unwrap().into_iter().map(|e| e.label).collect();
    names.sort();
    names
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_under(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn the_second_request_is_a_hit() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("new/folder"), DEFAULT_CAP);
    assert_eq!(get(&cache, "a", b"one"), (b"one".to_vec(), Outcome::Built));
    assert_eq!(get(&cache, "a", b"two"), (b"one".to_vec(), Outcome::Hit));
    assert_eq!(get(&cache, "b", b""), (Vec::new(), Outcome::Built));
    assert_eq!(get(&cache, "b", b"x"), (Vec::new(), Outcome::Hit));
    let stats = cache.stats().unwrap();
    assert_eq!((stats.entries, stats.hits, stats.builds), (2, 2, 2));
    assert_eq!(names(&cache), ["a", "b"]);
    assert_eq!(cache.take_warning(), None);
    // Nothing but the two entries is left: no locks, no temporary files.
    assert_eq!(files_under(cache.path().unwrap()).len(), 2);
    assert_eq!(cache.clear().unwrap().removed, 2);
    assert_eq!(cache.ls().unwrap(), []);
    assert_eq!(get(&cache, "a", b"two"), (b"two".to_vec(), Outcome::Built));
}

#[test]
fn a_build_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), DEFAULT_CAP);
    let failed = cache.get_or_build(&key("a"), "a", || Err("no"));
    assert_eq!(failed, Err("no"));
    assert_eq!(files_under(folder.path()), Vec::<PathBuf>::new());
    assert_eq!(get(&cache, "a", b"one").1, Outcome::Built);
}

#[test]
fn any_damage_is_found_and_healed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), DEFAULT_CAP);
    get(&cache, "a", b"the payload");
    let file = entry::path(folder.path(), &key("a"));
    let good = fs::read(&file).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..good.len())
        .map(|at| {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            bytes
        })
        .collect();
    damaged.extend((0..good.len()).map(|length| good[..length].to_vec()));
    damaged.push([good.as_slice(), b"more"].concat());
    damaged.push(entry::encode(&key("b"), "a", b"the payload"));
    for bytes in damaged {
        fs::write(&file, &bytes).unwrap();
        let (got, outcome) = get(&cache, "a", b"the payload");
        assert_eq!(got, b"the payload");
        assert!(
            matches!(outcome, Outcome::Healed(_)),
            "{outcome:?} for {bytes:?}"
        );
        assert_eq!(get(&cache, "a", b"").1, Outcome::Hit);
        assert_eq!(fs::read(&file).unwrap(), good);
    }
    fs::write(&file, b"").unwrap();
    let healed = Outcome::Healed("it is cut short".to_owned());
    assert_eq!(get(&cache, "a", b"the payload").1, healed);
}

#[test]
fn the_entries_used_longest_ago_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), 10_000);
    for (index, name) in ["a", "b", "c", "d"].iter().enumerate() {
        get(&cache, name, &[0; 2000]);
        age(&cache, name, 1000 - 100 * index as u64);
    }
    // A hit makes `a` the youngest, so that `b` goes.
    assert_eq!(get(&cache, "a", &[]).1, Outcome::Hit);
    get(&cache, "e", &[0; 2000]);
    assert_eq!(names(&cache), ["a", "c", "d", "e"]);
    assert!(cache.stats().unwrap().bytes <= 10_000);
    // Another process (here: another cache object) keeps the same cap.
    let other = Cache::at(folder.path(), 10_000);
    get(&other, "f", &[0; 4000]);
    assert_eq!(names(&cache), ["a", "e", "f"]);
    // The entry just written stays, whatever its age.
    let tight = Cache::at(folder.path(), 4200);
    get(&tight, "g", &[0; 4000]);
    assert_eq!(names(&cache), ["g"]);
}

#[test]
fn many_stores_never_pass_the_cap() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), 20_000);
    for index in 0..200 {
        get(
            &cache,
            &index.to_string(),
            &vec![1; 500 + 17 * (index % 13)],
        );
        let bytes = cache.stats().unwrap().bytes;
        assert!(bytes <= 20_000, "{bytes} after {index}");
    }
    assert!(cache.stats().unwrap().entries > 10);
}

#[test]
fn an_entry_that_is_being_read_is_not_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), 5000);
    for (name, seconds) in [("old", 300), ("older", 400)] {
        get(&cache, name, &[0; 2000]);
        age(&cache, name, seconds);
    }
    let reader = File::open(entry::path(folder.path(), &key("older"))).unwrap();
    reader.lock_shared().unwrap();
    get(&cache, "new", &[0; 2000]);
    assert_eq!(names(&cache), ["new", "older"]);
    assert_eq!(cache.clear().unwrap().kept, 1);
    drop(reader);
    assert_eq!(cache.clear().unwrap().kept, 0);
}

#[test]
fn a_kernel_larger_than_the_cap_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), 1000);
    get(&cache, "small", &[0; 100]);
    let (bytes, outcome) = get(&cache, "big", &[0; 1000]);
    assert_eq!(bytes.len(), 1000);
    assert!(
        matches!(
            outcome,
            Outcome::BuiltUncached(Reason::TooLarge { cap: 1000, .. })
        ),
        "{outcome:?}"
    );
    assert_eq!(names(&cache), ["small"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let cache = Cache::at(file.join("cache"), DEFAULT_CAP);
    for _ in 0..2 {
        let (bytes, outcome) = get(&cache, "a", b"one");
        assert_eq!(bytes, b"one");
        assert!(matches!(outcome, Outcome::BuiltUncached(Reason::Io { .. })));
    }
    let warning = cache.take_warning().unwrap();
    assert!(
        warning.starts_with("compiled kernels are not cached: cannot lock"),
        "{warning}"
    );
    assert!(warning.contains("TILEWRIGHT_CACHE_DIR"), "{warning}");
    get(&cache, "a", b"one");
    assert_eq!(cache.take_warning(), None);
}

#[test]
fn only_a_full_disk_counts_as_full() {
    assert!(is_full(&io::Error::from(io::ErrorKind::StorageFull)));
    assert!(!is_full(&io::Error::from(
        io::ErrorKind::ReadOnlyFilesystem
    )));
}

#[test]
fn the_folder_follows_the_environment() {
    let path = |vars: &[(&str, &str)]| {
        let cache = Cache::open(&Env::fixed("/", vars.iter().copied()));
        cache.path().map(Path::to_owned)
    };
    let of = |text: &str| Ok(PathBuf::from(text));
    let home = ("HOME", "/h");
    assert_eq!(path(&[home]), of("/h/.cache/tilewright"));
    assert_eq!(path(&[home, ("XDG_CACHE_HOME", "/x")]), of("/x/tilewright"));
    assert_eq!(
        path(&[home, ("XDG_CACHE_HOME", "x")]),
        of("/h/.cache/tilewright")
    );
    assert_eq!(path(&[home, ("TILEWRIGHT_CACHE_DIR", "/c")]), of("/c"));
    assert_eq!(
        path(&[home, ("TILEWRIGHT_CACHE_DIR", "")]),
        Err(Reason::Off)
    );
    assert_eq!(path(&[]), Err(Reason::NoFolder));
}

#[test]
fn without_a_home_kernels_are_built_and_it_is_said() {
    let cache = Cache::open(&Env::fixed("/", []));
    let uncached = Outcome::BuiltUncached(Reason::NoFolder);
    assert_eq!(get(&cache, "a", b"one"), (b"one".to_vec(), uncached));
    assert!(cache.take_warning().unwrap().contains("no home folder"));
    let off = Cache::open(&Env::fixed("/", [("TILEWRIGHT_CACHE_DIR", "")]));
    assert_eq!(
        get(&off, "a", b"one").1,
        Outcome::BuiltUncached(Reason::Off)
    );
    assert_eq!(off.take_warning(), None);
}

#[test]
fn the_cap_is_read_with_its_unit() {
    let read = |text: &str| {
        let vars = [("HOME", "/h"), ("TILEWRIGHT_CACHE_SIZE", text)];
        let cache = Cache::open(&Env::fixed("/", vars));
        cache.path().map(|_| cache.cap)
    };
    assert_eq!(read(""), Ok(DEFAULT_CAP));
    assert_eq!(read("123"), Ok(123));
    assert_eq!(read("5K"), Ok(5 << 10));
    assert_eq!(read("7M"), Ok(7 << 20));
    assert_eq!(read("2G"), Ok(2 << 30));
    for bad in ["G", "-1", "1KB", "1 G", "99999999999G", "2GG"] {
        assert_eq!(read(bad), Err(Reason::BadCap(bad.to_owned())));
    }
}

#[test]
fn threads_of_one_process_build_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), DEFAULT_CAP);
    let builds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let build = || {
                    builds.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(50));
                    Ok::<_, Infallible>(b"one".to_vec())
                };
                let Ok((bytes, _)) = cache.get_or_build(&key("a"), "a", build);
                assert_eq!(bytes, b"one");
            });
        }
    });
    assert_eq!(builds.into_inner(), 1);
}

#[test]
fn a_builder_that_hangs_does_not_hang_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), DEFAULT_CAP).with_patience(Duration::from_millis(20));
    let never = || None::<()>;
    let held = lock::acquire(folder.path(), &key("a"), Duration::ZERO, never).unwrap();
    assert!(matches!(held, Acquired::Lock(_)));
    assert_eq!(get(&cache, "a", b"one"), (b"one".to_vec(), Outcome::Built));
    assert_eq!(get(&cache, "a", b"two").1, Outcome::Hit);
}

#[test]
fn leftovers_of_killed_processes_are_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), DEFAULT_CAP);
    get(&cache, "a", b"one");
    let shard = entry::path(folder.path(), &key("a"))
        .parent()
        .unwrap()
        .to_owned();
    let old = shard.join("tmp-old");
    let young = shard.join("tmp-young");
    for (file, seconds) in [(&old, 7200), (&young, 0)] {
        fs::write(file, b"half an entry").unwrap();
        let time = SystemTime::now() - Duration::from_secs(seconds);
        File::open(file).unwrap().set_modified(time).unwrap();
    }
    let locks = folder.path().join(lock::FOLDER);
    fs::write(locks.join("free.lock"), b"").unwrap();
    let held = File::create(locks.join("held.lock")).unwrap();
    held.lock().unwrap();
    get(&Cache::at(folder.path(), DEFAULT_CAP), "b", b"two");
    assert!(!old.exists() && young.exists());
    assert!(!locks.join("free.lock").exists() && locks.join("held.lock").exists());
    // Neither is an entry.
    assert_eq!(names(&cache), ["a", "b"]);
}

#[test]
fn a_damaged_entry_is_listed_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), DEFAULT_CAP);
    get(&cache, "a", b"one");
    fs::write(entry::path(folder.path(), &key("a")), b"short").unwrap();
    assert_eq!(names(&cache), ["(damaged)"]);
}

#[test]
fn labels_of_any_length_are_kept_or_cut() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), DEFAULT_CAP);
    let label = "é".repeat(1000);
    get(&cache, &label, b"one");
    assert_eq!(get(&cache, &label, b"").1, Outcome::Hit);
    assert_eq!(names(&cache), ["é".repeat(512)]);
}

/// A pipe where a file of the cache should be has nobody at its other end: opening it would wait
/// for ever.
#[cfg(unix)]
#[test]
fn pipes_in_the_folder_are_not_waited_for() {
    let pipe = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), DEFAULT_CAP);
    let entry = entry::path(folder.path(), &key("a"));
    pipe(&entry);
    let (bytes, outcome) = get(&cache, "a", b"one");
    assert_eq!(bytes, b"one");
    assert!(matches!(outcome, Outcome::Healed(_)), "{outcome:?}");
    assert_eq!(get(&cache, "a", b"two").1, Outcome::Hit);

    pipe(
        &folder
            .path()
            .join(lock::FOLDER)
            .join(format!("{}.lock", key("b"))),
    );
    let (bytes, outcome) = get(&cache, "b", b"two");
    assert_eq!(bytes, b"two");
    assert!(matches!(outcome, Outcome::BuiltUncached(_)), "{outcome:?}");
    assert_eq!(names(&cache), ["a"]);
    assert_eq!(cache.clear().unwrap().removed, 1);
}
