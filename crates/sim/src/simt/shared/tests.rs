//! The shadow by itself.

use super::*;

fn access(s: &mut Shared, warp: u32, clock: &[u32], writes: bool) -> u32 {
    s.instance((0, warp, clock[warp as usize]), false, writes, |_| {})
}

fn who<'c>(id: u32, lane: u32, warp: u32, clock: &'c [u32]) -> Who<'c> {
    Who {
        id,
        lane,
        lanes: 1 << lane,
        warp,
        clock,
        atomic: false,
    }
}

#[test]
fn a_barrier_orders_and_its_absence_does_not() {
    let mut s = Shared::new(16, 2);
    let (a, b) = ([1, 0], [0, 1]);
    let id = access(&mut s, 0, &a, true);
    assert!(s.store(who(id, 3, 0, &a), 4, &[1, 2]).is_none());
    let id = access(&mut s, 1, &b, false);
    let race = s.read(who(id, 0, 1, &b), 5, 1).race;
    assert_eq!(race.map(|(stamp, at)| (stamp & 63, at)), Some((3, 5)));
    // The second warp hears of the first one's clock.
    let b = [1, 1];
    let id = access(&mut s, 1, &b, false);
    assert!(s.read(who(id, 0, 1, &b), 5, 1).is_none());
    s.all_ordered();
    let b = [0, 1];
    let id = access(&mut s, 1, &b, true);
    assert!(s.store(who(id, 0, 1, &b), 4, &[9]).is_none());
}

#[test]
fn equal_values_do_not_race_and_may_be_read_back() {
    let mut s = Shared::new(4, 2);
    let (a, b) = ([1, 0], [0, 1]);
    for (warp, clock) in [(0, &a), (1, &b)] {
        let id = access(&mut s, warp, clock, true);
        assert!(s.store(who(id, 0, warp, clock), 0, &[7]).is_none());
        let id = access(&mut s, warp, clock, false);
        assert!(s.read(who(id, 0, warp, clock), 0, 1).is_none());
    }
    let id = access(&mut s, 0, &a, false);
    assert!(s.read(who(id, 0, 0, &a), 0, 1).is_none());
    let id = access(&mut s, 0, &a, true);
    assert!(s.store(who(id, 0, 0, &a), 0, &[8]).race.is_some());
}

#[test]
fn a_rewrite_of_the_same_value_still_races_with_readers() {
    let mut s = Shared::new(4, 2);
    let (a, b) = ([1, 0], [0, 1]);
    let id = access(&mut s, 0, &a, true);
    s.store(who(id, 0, 0, &a), 0, &[7]);
    s.all_ordered();
    let id = access(&mut s, 1, &b, false);
    assert!(s.read(who(id, 0, 1, &b), 0, 1).is_none());
    let id = access(&mut s, 0, &a, true);
    assert!(s.store(who(id, 0, 0, &a), 0, &[7]).race.is_some());
}

#[test]
fn held_bytes_are_reported_until_released() {
    let mut s = Shared::new(8, 2);
    let (a, b) = ([1, 0], [0, 1]);
    let id = access(&mut s, 0, &a, true);
    assert!(s.announce_write(who(id, 2, 0, &a), 0, 4).is_none());
    let range = Range {
        lane: 2,
        start: 0,
        len: 4,
    };
    s.hold(1, id, true, vec![range]);
    s.all_ordered();
    let read = access(&mut s, 1, &b, false);
    assert_eq!(s.read(who(read, 0, 1, &b), 3, 1).held, Some(3));
    assert_eq!(s.holder(3).map(|p| p.lane), Some(2));
    s.release(1, None, 2);
    let read = access(&mut s, 1, &b, false);
    assert!(s.read(who(read, 0, 1, &b), 3, 1).race.is_some());
    let b = [2, 1];
    let read = access(&mut s, 1, &b, false);
    assert!(s.read(who(read, 0, 1, &b), 3, 1).is_none());
}

#[test]
fn lanes_of_one_instruction_conflict_on_different_values() {
    let mut s = Shared::new(8, 1);
    let a = [1];
    let id = access(&mut s, 0, &a, true);
    assert!(s.store(who(id, 0, 0, &a), 0, &[1]).is_none());
    assert!(s.store(who(id, 1, 0, &a), 0, &[1]).is_none());
    assert!(s.store(who(id, 2, 0, &a), 0, &[2]).conflict.is_some());
}

#[test]
fn packed_elements_share_their_byte() {
    let mut s = Shared::new(3, 2);
    let a = [1, 0];
    for (i, v) in [5u64, 9, 12, 3].into_iter().enumerate() {
        let id = access(&mut s, 0, &a, true);
        assert!(s.store_packed(who(id, 0, 0, &a), (0, 6, i), v).is_none());
    }
    for (i, v) in [5u64, 9, 12, 3].into_iter().enumerate() {
        assert_eq!(crate::memory::read_bits(&s.bytes, 6, i), v);
    }
}
