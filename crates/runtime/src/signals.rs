//! Signals that would end the process where an error can be reported.

/// Lets a write past the limit on file sizes (`ulimit -f`) fail with an error, as one to a full
/// disk does, instead of ending the process. For the start of a program: the setting is the whole
/// process's, and its children's.
pub fn report_file_size_limit() {
    #[cfg(any(
        all(
            target_os = "linux",
            not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64"))
        ),
        target_os = "macos",
        target_os = "freebsd"
    ))]
    {
        const SIGXFSZ: std::ffi::c_int = 25;
        const SIG_IGN: usize = 1;
        unsafe extern "C" {
            fn signal(number: std::ffi::c_int, handler: usize) -> usize;
        }
        // SAFETY: `signal` of the C library is given a signal that these systems have, and
        // `SIG_IGN`, which installs no handler; no other code of the process uses the signal.
        unsafe {
            signal(SIGXFSZ, SIG_IGN);
        }
    }
}
