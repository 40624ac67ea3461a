//! The cycle model and the choice of swizzles each know the phases of LDS; they must be the same.

use tilewright::gfx9::cycles::{Direction, bank_cycles};
use tilewright::ir::Target;
use tilewright::layout::banks::{Kind, cost};

/// Numbers that look random, the same every time.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn phases_of_lds_are_the_same_everywhere() {
    let mut state = 1;
    for target in [Target::Gfx942, Target::Gfx950] {
        let gfx950 = target == Target::Gfx950;
        for (kind, direction) in [
            (Kind::Read, Direction::Read),
            (Kind::Write, Direction::Write),
            (Kind::ReadTransposed, Direction::ReadTransposed),
        ] {
            for width in [2, 4, 8, 12, 16] {
                for round in 0..40 {
                    let mut addresses = [0u32; 64];
                    let mut active = u64::MAX;
                    // Rows of a tile, then anything, then with lanes that do nothing.
                    let stride = 16u64 << (round % 6);
                    for (lane, address) in (0u64..).zip(&mut addresses) {
                        let place = match round < 12 {
                            true => lane % 16 * stride + lane / 16 * u64::from(width),
                            false => next(&mut state) % 4096,
                        };
                        *address = place as u32 / width * width;
                    }
                    if round > 30 {
                        active = next(&mut state) << 32 | next(&mut state);
                    }
                    let lanes: Vec<Option<u32>> = addresses
                        .iter()
                        .enumerate()
                        .map(|(lane, at)| (active >> lane & 1 == 1).then_some(*at))
                        .collect();
                    let Some(cost) = cost(target, kind, width, &lanes) else {
                        continue;
                    };
                    let got = bank_cycles(gfx950, direction, width, &(addresses, active), 0);
                    assert_eq!(
                        got, cost.cycles,
                        "{target:?} {kind:?} {width} {addresses:?}"
                    );
                }
            }
        }
    }
}
