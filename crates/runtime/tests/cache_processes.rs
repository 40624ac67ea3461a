//! One cache, many processes: this binary starts copies of itself with `--child`.
//!
//! Full disks and read-only folders are real ones, mounted in a namespace of their own. Where
//! mounts are not permitted, another failure of the same kind is provoked; the test prints which.

use std::convert::Infallible;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright_runtime::cache::{Cache, DEFAULT_CAP, Key, Outcome};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "--child") {
        child(&arguments[2..]);
        return;
    }
    let arguments = Arguments::from_args();
    let tests = vec![
        Trial::test("fifty_processes_build_once", fifty_processes_build_once),
        Trial::test("a_killed_builder_is_replaced", a_killed_builder_is_replaced),
        Trial::test("a_full_disk_is_survived", a_full_disk_is_survived),
        Trial::test(
            "a_read_only_folder_is_survived",
            a_read_only_folder_is_survived,
        ),
        Trial::test("processes_evict_side_by_side", processes_evict_side_by_side),
        Trial::test(
            "a_hit_in_a_new_process_is_fast",
            a_hit_in_a_new_process_is_fast,
        ),
    ];
    libtest_mimic::run(&arguments, tests).exit();
}

/// `FOLDER KEY SIZE SLEEP_MS LOG [CAP]`: asks for a kernel; a build adds a line to the log, then
/// takes its time. Prints the outcome and the microseconds since the process started its work.
fn child(arguments: &[String]) {
    let start = Instant::now();
    let number = |at: usize| arguments[at].parse::<u64>().expect("a number");
    let cap = match arguments.len() {
        6 => number(5),
        _ => DEFAULT_CAP,
    };
    let cache = Cache::at(&arguments[0], cap);
    let name = &arguments[1];
    let key = Key::of([("name", name.as_bytes())]);
    let build = || {
        let mut log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&arguments[4])
            .expect("the log");
        log.write_all(format!("{name}\n").as_bytes())
            .expect("the log");
        std::thread::sleep(Duration::from_millis(number(3)));
        Ok::<_, Infallible>(payload(name, number(2)))
    };
    let Ok((bytes, outcome)) = cache.get_or_build(&key, name, build);
    let micros = start.elapsed().as_micros();
    assert!(
        bytes == payload(name, number(2)),
        "the bytes of {name} are wrong"
    );
    let word = match &outcome {
        Outcome::Hit => "hit".to_owned(),
        Outcome::Built => "built".to_owned(),
        Outcome::Healed(reason) => format!("healed: {reason}"),
        Outcome::BuiltUncached(reason) => format!("uncached: {reason}"),
    };
    println!("{micros} {word}");
}

fn payload(name: &str, size: u64) -> Vec<u8> {
    name.bytes().cycle().take(size as usize).collect()
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn builds(&self) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("log"));
        log.unwrap_or_default().lines().count()
    }

    fn arguments(&self, name: &str, size: u64, sleep: u64) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        vec![
            "--child".to_owned(),
            path("cache"),
            name.to_owned(),
            size.to_string(),
            sleep.to_string(),
            path("log"),
        ]
    }

    fn start(&self, name: &str, size: u64, sleep: u64, more: &[&str]) -> Child {
        Command::new(std::env::current_exe().expect("this file"))
            .args(self.arguments(name, size, sleep))
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child")
    }

    fn run(&self, name: &str, size: u64) -> String {
        word(
            &self
                .start(name, size, 0, &[])
                .wait_with_output()
                .expect("output"),
        )
    }

    /// Runs a child in a mount namespace of its own, after `setup`. `None` where the system does
    /// not permit that. The user becomes root in it where they are not.
    fn run_mounted(&self, setup: &str, name: &str, size: u64) -> Option<String> {
        let exe = std::env::current_exe().expect("this file");
        for flags in ["-m", "-Urm"] {
            let output = Command::new("unshare")
                .args([flags, "sh", "-c"])
                .arg(format!("({setup}) || exit 77; exec \"$@\""))
                .arg("sh")
                .arg(&exe)
                .args(self.arguments(name, size, 0))
                .output()
                .ok()?;
            // Only a refused mount or namespace is a reason to try another way.
            let refused = String::from_utf8_lossy(&output.stderr).starts_with("unshare:");
            if output.status.code() != Some(77) && !refused {
                return Some(word(&output));
            }
        }
        None
    }
}

/// A child that is killed when the test lets go of it, also when the test fails. `kill` is
/// SIGKILL, so no destructor runs in the child.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a child said, without the time.
fn word(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "a child failed: {text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.trim().split_once(' ').expect("two words").1.to_owned()
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a file").path();
        match path.is_dir() {
            true => found.extend(files_under(&path)),
            false => found.push(path),
        }
    }
    found
}

fn fifty_processes_build_once() -> Result<(), Failed> {
    for round in 0..3 {
        let place = Place::new();
        let children: Vec<Child> = (0..50)
            .map(|_| place.start("gemm", 100_000, 200, &[]))
            .collect();
        let words: Vec<String> = children
            .into_iter()
            .map(|child| word(&child.wait_with_output().expect("output")))
            .collect();
        let count = |wanted: &str| words.iter().filter(|word| *word == wanted).count();
        assert_eq!(
            (count("built"), count("hit")),
            (1, 49),
            "round {round}: {words:?}"
        );
        assert_eq!(place.builds(), 1);
        assert_eq!(
            files_under(&place.cache()).len(),
            1,
            "locks or temporary files are left"
        );
    }
    Ok(())
}

fn a_killed_builder_is_replaced() -> Result<(), Failed> {
    let place = Place::new();
    let builder = Killed(place.start("gemm", 1000, 600_000, &[]));
    wait_until(|| place.builds() == 1);
    // Others wait for it; when it dies, one of them takes over at once.
    let waiting: Vec<Child> = (0..5).map(|_| place.start("gemm", 1000, 0, &[])).collect();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(place.builds(), 1, "a waiter did not wait");
    let killed = Instant::now();
    drop(builder);
    let words: Vec<String> = waiting
        .into_iter()
        .map(|child| word(&child.wait_with_output().expect("output")))
        .collect();
    assert_eq!(
        words.iter().filter(|word| *word == "built").count(),
        1,
        "{words:?}"
    );
    assert_eq!(
        words.iter().filter(|word| *word == "hit").count(),
        4,
        "{words:?}"
    );
    assert!(killed.elapsed() < Duration::from_secs(10));
    assert_eq!(place.builds(), 2);
    assert_eq!(
        files_under(&place.cache()).len(),
        1,
        "the dead process's lock is left"
    );
    Ok(())
}

fn a_full_disk_is_survived() -> Result<(), Failed> {
    let place = Place::new();
    std::fs::create_dir_all(place.cache())?;
    let setup = format!(
        "mount -t tmpfs -o size=64k tmpfs '{}'",
        place.cache().display()
    );
    if let Some(word) = place.run_mounted(&setup, "gemm", 200_000) {
        println!("full disk: a tmpfs of 64 KiB");
        assert!(word.starts_with("uncached: cannot write"), "{word}");
        assert!(word.contains("No space left on device"), "{word}");
        assert_eq!(
            place.run_mounted(&setup, "small", 1000).as_deref(),
            Some("built")
        );
        // Old entries make room for a new one.
        let exe = std::env::current_exe()?;
        let other = place.arguments("other", 40_000, 0).join(" ");
        let fill = format!("{setup} && {} {other} >&2", exe.display());
        assert_eq!(
            place.run_mounted(&fill, "gemm", 40_000).as_deref(),
            Some("built")
        );
    } else {
        println!("full disk: mounts are not permitted here; a limit on the file size instead");
        let output = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"])
            .arg(std::env::current_exe()?)
            .args(place.arguments("gemm", 200_000, 0))
            .output()?;
        let word = word(&output);
        assert!(word.starts_with("uncached: cannot write"), "{word}");
        assert_eq!(files_under(&place.cache()), Vec::<PathBuf>::new());
    }
    assert_eq!(place.run("gemm", 200_000), "built");
    Ok(())
}

fn a_read_only_folder_is_survived() -> Result<(), Failed> {
    let place = Place::new();
    assert_eq!(place.run("old", 1000), "built");
    let folder = place.cache();
    let folder = folder.display();
    let setup =
        format!("mount --bind '{folder}' '{folder}' && mount -o remount,ro,bind '{folder}'");
    if let Some(word) = place.run_mounted(&setup, "gemm", 1000) {
        println!("read-only folder: a read-only mount");
        assert!(word.starts_with("uncached: cannot lock"), "{word}");
        assert!(word.contains("Read-only file system"), "{word}");
        // What is there can still be used.
        assert_eq!(
            place.run_mounted(&setup, "old", 1000).as_deref(),
            Some("hit")
        );
    } else {
        println!("read-only folder: mounts are not permitted here; a file in its place instead");
        std::fs::remove_dir_all(place.cache())?;
        std::fs::write(place.cache(), b"")?;
        let word = place.run("gemm", 1000);
        assert!(word.starts_with("uncached: cannot lock"), "{word}");
        std::fs::remove_file(place.cache())?;
    }
    assert_eq!(place.run("gemm", 1000), "built");
    Ok(())
}

fn processes_evict_side_by_side() -> Result<(), Failed> {
    let place = Place::new();
    let cap = 40_000;
    let children: Vec<Child> = (0..60)
        .map(|index| place.start(&format!("k{}", index % 20), 3000, 1, &[&cap.to_string()]))
        .collect();
    for child in children {
        let word = word(&child.wait_with_output()?);
        assert!(word == "built" || word == "hit", "{word}");
    }
    // A last store settles what the others left above the cap while they all wrote at once.
    word(
        &place
            .start("last", 3000, 0, &[&cap.to_string()])
            .wait_with_output()?,
    );
    let stats = Cache::at(place.cache(), cap)
        .stats()
        .map_err(|r| r.to_string())?;
    assert!(stats.bytes <= cap, "{stats:?}");
    assert!(stats.entries >= 8, "{stats:?}");
    Ok(())
}

fn a_hit_in_a_new_process_is_fast() -> Result<(), Failed> {
    let place = Place::new();
    assert_eq!(place.run("gemm", 100_000), "built");
    let mut inside = Vec::new();
    let mut outside = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        let output = place.start("gemm", 100_000, 0, &[]).wait_with_output()?;
        outside.push(start.elapsed());
        assert_eq!(word(&output), "hit");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let micros = text.split_once(' ').expect("two words").0.parse()?;
        inside.push(Duration::from_micros(micros));
    }
    inside.sort();
    outside.sort();
    println!(
        "cache hit, 100 kB: lookup {:?} median, {:?} best; whole process {:?} median, {:?} best",
        inside[10], inside[0], outside[10], outside[0]
    );
    // The best of twenty, because other work on the machine only ever adds time.
    assert!(inside[0] < Duration::from_millis(5), "{inside:?}");
    Ok(())
}

fn wait_until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}
