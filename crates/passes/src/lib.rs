//! The passes of Tilewright and the pipeline of each target.
//!
//! A pass is one file with one job and one name: the file `simplify.rs` is the command-line
//! pass `simplify` is the folder `filetests/simplify/`. It is a free function over a [`Func`];
//! it reads no environment and does no I/O.

pub mod legalize;
//SIMP pub mod simplify;

use tilewright_ir::{Diagnostics, Func, Target};

/// Whether a pass changed the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changed {
    Yes,
    No,
}

/// A pass as the command line, the timers and the reports know it.
#[derive(Clone, Copy, Debug)]
pub struct PassInfo {
    /// The name everywhere: command line, filetest folder, timer row.
    pub name: &'static str,
    /// One line for `tilewright passes`.
    pub about: &'static str,
    pub run: fn(&mut Func, Target, &mut Diagnostics) -> Changed,
}

/// Every pass, by name. The order here means nothing; [`pipeline`] has the order.
pub const PASSES: &[PassInfo] = &[];

/// The pass of this name.
pub fn find(name: &str) -> Option<&'static PassInfo> {
    PASSES.iter().find(|p| p.name == name)
}

/// The passes that a function goes through for this target, in order.
pub fn pipeline(target: Target) -> Vec<&'static PassInfo> {
    let names: &[&str] = match target {
        Target::Sm80 | Target::Sm90a | Target::Gfx942 | Target::Gfx950 => &["simplify"],
    };
    names.iter().filter_map(|name| find(name)).collect()
}
