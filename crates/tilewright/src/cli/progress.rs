//! A bar on stderr while something takes long, unless nobody watches.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Says what is being done, and how far it is where that is counted in blocks.
pub struct Progress(ProgressBar);

impl Progress {
    pub fn new(quiet: bool) -> Progress {
        if quiet || !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// What is done now; it is not known how long it takes.
    pub fn doing(&self, what: &str) {
        self.style("{spinner} {msg}, {elapsed}");
        self.0.set_message(what.to_owned());
    }

    /// What is done now, block by block.
    pub fn blocks(&self, what: &str) {
        self.style("{msg} {bar:40} {pos}/{len} blocks, {eta} left");
        self.0.reset();
        self.0.set_message(what.to_owned());
    }

    pub fn at(&self, done: u64, blocks: u64) {
        self.0.set_length(blocks);
        self.0.set_position(done);
    }

    fn style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
