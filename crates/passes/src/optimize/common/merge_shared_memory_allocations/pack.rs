//! Places for buffers: the largest first, each in the smallest gap between those that it must not
//! lie over, or behind them all.

use tilewright_ir::Buffer;

/// A buffer that wants bytes.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub buffer: Buffer,
    pub bytes: u32,
    /// What it starts at a multiple of.
    pub align: u32,
}

/// The first byte of every item, and the first byte after all of them.
pub(super) fn pack(items: &[Item], share: &dyn Fn(usize, usize) -> bool) -> (Vec<u32>, u32) {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_unstable_by_key(|&i| (std::cmp::Reverse(items[i].bytes), i));
    let mut offsets = vec![0u32; items.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut end = 0u32;
    for i in order {
        let others = placed.iter().filter(|&&j| !share(i, j));
        let mut taken: Vec<(u32, u32)> = others
            .map(|&j| (offsets[j], offsets[j].saturating_add(items[j].bytes)))
            .collect();
        taken.sort_unstable();
        let mut best: Option<(u32, u32)> = None;
        let mut free = 0u32;
        for (start, stop) in taken {
            let at = align(free, items[i].align);
            let gap = start.saturating_sub(free);
            let fits = at.saturating_add(items[i].bytes) <= start;
            if fits && best.is_none_or(|(least, _)| gap < least) {
                best = Some((gap, at));
            }
            free = free.max(stop);
        }
        let at = best.map_or(align(free, items[i].align), |(_, at)| at);
        offsets[i] = at;
        end = end.max(at.saturating_add(items[i].bytes));
        placed.push(i);
    }
    (offsets, end)
}

fn align(at: u32, to: u32) -> u32 {
    at.checked_next_multiple_of(to).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(sizes: &[u32]) -> Vec<Item> {
        let each = sizes.iter().enumerate();
        each.map(|(i, &bytes)| Item {
            buffer: Buffer::from_u32(i as u32),
            bytes,
            align: 128,
        })
        .collect()
    }

    #[test]
    fn apart() {
        let sizes = [100, 256, 300];
        let (offsets, end) = pack(&items(&sizes), &|_, _| false);
        assert_eq!((offsets, end), (vec![640, 384, 0], 740));
    }

    #[test]
    fn the_smallest_gap() {
        // 4 may lie over 0 and over 2; the gap that 2 leaves between 1 and 3 is the smaller one.
        let sizes = [1024, 900, 640, 600, 500];
        let share = |i: usize, j: usize| [(4, 0), (4, 2)].contains(&(i.max(j), i.min(j)));
        let (offsets, end) = pack(&items(&sizes), &share);
        assert_eq!((offsets, end), (vec![0, 1024, 2048, 2688, 2048], 3288));
    }

    #[test]
    fn over_what_it_may_share() {
        let sizes = [1024, 900, 500];
        let (offsets, end) = pack(&items(&sizes), &|i, j| i.min(j) == 0);
        assert_eq!((offsets, end), (vec![0, 0, 1024], 1524));
    }

    #[test]
    fn too_much_does_not_wrap() {
        let sizes = [u32::MAX, 64, u32::MAX];
        let (_, end) = pack(&items(&sizes), &|_, _| false);
        assert_eq!(end, u32::MAX);
    }
}
