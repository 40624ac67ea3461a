//! The race check of parallel loops: who touched which element, followed while a loop runs.

use rustc_hash::FxHashMap;

use crate::program::Space;

/// What the points of one loop did to the elements that are followed.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// By storage and first bit.
    touched: FxHashMap<(Space, usize), Touch>,
    /// The number of the current point.
    pub point: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Touch {
    writer: Option<(u64, u64)>,
    /// A point that read it; `several` when more than one did.
    reader: Option<u64>,
    several: bool,
}

/// Why two points must not do this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Race {
    /// Two points write different values.
    Writes,
    /// One point reads what another one writes.
    ReadsWritten,
}

impl Tracker {
    pub fn read(&mut self, space: Space, bit: usize) -> Result<(), Race> {
        let touch = self.touched.entry((space, bit)).or_default();
        match touch.writer {
            Some((point, _)) if point != self.point => return Err(Race::ReadsWritten),
            _ => {}
        }
        match touch.reader {
            Some(point) if point != self.point => touch.several = true,
            _ => touch.reader = Some(self.point),
        }
        Ok(())
    }

    pub fn write(&mut self, space: Space, bit: usize, value: u64) -> Result<(), Race> {
        let touch = self.touched.entry((space, bit)).or_default();
        if touch.several || touch.reader.is_some_and(|point| point != self.point) {
            return Err(Race::ReadsWritten);
        }
        match touch.writer {
            Some((point, other)) if point != self.point && other != value => {
                return Err(Race::Writes);
            }
            _ => touch.writer = Some((self.point, value)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_may_agree_but_not_meet() {
        let s = Space::Block(0);
        let mut t = Tracker::default();
        assert_eq!(t.write(s, 0, 1), Ok(()));
        assert_eq!(t.read(s, 0), Ok(()), "its own write");
        t.point = 1;
        assert_eq!(t.read(s, 0), Err(Race::ReadsWritten));
        assert_eq!(t.write(s, 32, 7), Ok(()));
        t.point = 2;
        assert_eq!(t.write(s, 32, 7), Ok(()), "the same value");
        assert_eq!(t.write(s, 32, 8), Ok(()), "its own again");
        t.point = 3;
        assert_eq!(t.write(s, 32, 9), Err(Race::Writes));
        assert_eq!(t.read(s, 64), Ok(()));
        t.point = 4;
        assert_eq!(t.write(s, 64, 0), Err(Race::ReadsWritten));
    }
}
