//! The words of closed enums in the text form.

use crate::buffer::Scope;
use crate::device_op::{Counter, FenceKind};
use crate::func::{Level, RasterOrder};
use crate::micro_op::MicroKind;
use crate::thread_op::{AtomicOp, MemoryOrder, ShuffleKind, VoteKind};
use crate::tile_op::{EvictionPolicy, GemmKind, GemmPolicy, ReduceKind, ScanKind};

/// An enum whose values are single words of the text form.
pub trait Word: Copy + 'static {
    /// What such a word says, for messages: "a memory order".
    const WHAT: &'static str;
    const VALUES: &'static [Self];

    fn word(self) -> &'static str;

    fn from_word(word: &str) -> Option<Self> {
        Self::VALUES.iter().copied().find(|v| v.word() == word)
    }
}

macro_rules! words {
    ($($ty:ident $what:literal { $($variant:ident $word:literal,)* })*) => {$(
        impl Word for $ty {
            const WHAT: &'static str = $what;
            const VALUES: &'static [Self] = &[$($ty::$variant,)*];

            fn word(self) -> &'static str {
                match self { $($ty::$variant => $word,)* }
            }
        }
    )*};
}

words! {
    RasterOrder "a raster order" { Row "row", Column "column", }
    EvictionPolicy "an eviction policy" { Normal "normal", First "first", Last "last", }
    GemmPolicy "a gemm policy" { Square "square", FullRow "full_row", FullCol "full_col", }
    GemmKind "a gemm kind" { Auto "auto", Wgmma "wgmma", Tcgen05 "tcgen05", }
    ScanKind "a scan operation" { Sum "sum", Max "max", }
    AtomicOp "an atomic operation" {
        Add "add", Max "max", Min "min", Or "or", And "and", Xor "xor", Exchange "exchange",
    }
    MemoryOrder "a memory order" {
        Relaxed "relaxed", Consume "consume", Acquire "acquire", Release "release",
        AcqRel "acq_rel", SeqCst "seq_cst",
    }
    ShuffleKind "a kind of shuffle" { Index "index", Up "up", Down "down", Xor "xor", }
    VoteKind "a kind of vote" {
        Any "any", All "all", Ballot "ballot", BlockOr "block_or", BlockAnd "block_and",
        BlockCount "block_count",
    }
}

macro_rules! named {
    ($($ty:ident $what:literal,)*) => {$(
        impl Word for $ty {
            const WHAT: &'static str = $what;
            const VALUES: &'static [Self] = &$ty::ALL;

            fn word(self) -> &'static str {
                self.name()
            }
        }
    )*};
}

named! {
    Level "a level",
    Scope "a scope",
    ReduceKind "a reduction",
    MicroKind "a micro-op",
    Counter "a counter",
    FenceKind "a fence",
}
