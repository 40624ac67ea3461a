//! The shadow of global memory: who touched what of it, in one block.

use rustc_hash::FxHashMap;

use super::shared::{Shared, Trouble, Who};

/// The shadow of what a block does to global memory, page by page as it is touched. Blocks are
/// not ordered among each other, so each has its own.
#[derive(Debug)]
pub(super) struct GlobalShadow {
    pub shadow: Shared,
    pages: FxHashMap<(u32, usize), usize>,
}

/// Bytes of global memory that get a shadow together.
const PAGE: usize = 1024;

impl GlobalShadow {
    pub fn new(warps: usize) -> GlobalShadow {
        GlobalShadow {
            shadow: Shared::new(0, warps),
            pages: FxHashMap::default(),
        }
    }

    pub fn read(&mut self, who: Who<'_>, storage: u32, start: usize, len: usize) -> Trouble {
        let mut trouble = Trouble::default();
        for (at, part) in self.parts(storage, start, len) {
            let part = self.shadow.read(who, at, part.len());
            trouble.race = trouble.race.or(part.race);
        }
        trouble
    }

    pub fn store(&mut self, who: Who<'_>, storage: u32, start: usize, new: &[u8]) -> Trouble {
        let mut trouble = Trouble::default();
        for (at, part) in self.parts(storage, start, new.len()) {
            let part = self.shadow.store(who, at, &new[part]);
            trouble.race = trouble.race.or(part.race);
            trouble.conflict = trouble.conflict.or(part.conflict);
        }
        trouble
    }

    /// Where the shadow of a range is, and which part of the range each piece is of.
    fn parts(
        &mut self,
        storage: u32,
        start: usize,
        len: usize,
    ) -> Vec<(usize, std::ops::Range<usize>)> {
        let mut parts = Vec::with_capacity(2);
        let mut done = 0;
        while done < len {
            let (page, offset) = ((start + done) / PAGE, (start + done) % PAGE);
            let size = (PAGE - offset).min(len - done);
            let next = self.pages.len() * PAGE;
            let base = *self.pages.entry((storage, page)).or_insert(next);
            if base == next {
                self.shadow.grow(next + PAGE);
            }
            parts.push((base + offset, done..done + size));
            done += size;
        }
        parts
    }
}
