//! Products of warp groups, which read shared memory by descriptors while their warps go on.
//!
//! Each of the four warps has 16 of the 64 rows, so each does its part by itself: its rows of A,
//! all of B. Where the bytes of a tile lie is worked out from its first byte as the hardware does,
//! not asked of the buffer's layout.

use tilewright_ir::{Major, MmaInst};
use tilewright_layout::descriptor::MatrixDescriptor;
use tilewright_layout::lanes::Operand;

use super::access::byte_of;
use super::counts::InstKind;
use super::env::{Env, Which, who};
use super::mma::{Map, Matrices, multiply};
use super::program::MicroCode;
use super::queue::{Pending, When};
use super::report::FindingKind;
use super::shared::Range;
use super::warp::{HELD, Lanes, Local, Warp};
use crate::memory::read_bits;

/// Warps of a group, and rows of one.
const WARPS: usize = 4;
const ROWS: usize = 16;

/// What is known of an instruction before it runs.
#[derive(Debug)]
pub(super) struct GroupTable {
    pub inst: MmaInst,
    /// How A and B lie in shared memory; A is absent where it lies in registers.
    pub a: Option<Tile>,
    pub b: Tile,
    /// Of a fresh sum, the register of the step: the first one adds to nothing.
    pub step: Option<u32>,
    /// By warp of the group, its part of A in registers and of C.
    left: Option<[Map; WARPS]>,
    sum: [Map; WARPS],
}

/// An operand in shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    pub descriptor: MatrixDescriptor,
    pub major: Major,
}

impl GroupTable {
    pub fn new(inst: &MmaInst, a: Option<Tile>, b: Tile) -> Option<GroupTable> {
        let lanes = 32;
        let parts = |map: Map, columns: u16| {
            [0, 1, 2, 3].map(|warp| map.of_warp(warp, lanes, usize::from(columns)))
        };
        let left = match a {
            Some(_) => None,
            None => Some(parts(Map::new(inst, Operand::A)?, inst.k)),
        };
        Some(GroupTable {
            inst: *inst,
            a,
            b,
            step: None,
            left,
            sum: parts(Map::new(inst, Operand::C)?, inst.n),
        })
    }

    /// Elements of A that a lane holds, and of C.
    pub fn per_lane(&self) -> (u32, u32) {
        let left = self.left.as_ref().map_or(0, |maps| maps[0].per_lane);
        (left, self.sum[0].per_lane)
    }
}

impl Tile {
    /// The first bytes of the runs of 16 bytes in which rows (or columns) of the instruction's tile
    /// lie, `across` counted along M or N.
    fn chunks(
        &self,
        start: usize,
        across: std::ops::Range<usize>,
        k: usize,
        bits: usize,
    ) -> Vec<usize> {
        let per_chunk = 128 / bits;
        let (rows, columns) = match self.major {
            Major::K => (across, 0..k),
            Major::Mn => (0..k, across),
        };
        let mut chunks = Vec::new();
        for row in rows {
            for column in columns.clone().step_by(per_chunk) {
                let at = self.descriptor.byte(
                    start as i64,
                    self.major,
                    row as i64,
                    (column * bits / 8) as i64,
                );
                chunks.push(at as usize);
            }
        }
        chunks
    }

    /// An element, by its place along M or N and along K.
    fn bits(&self, bytes: &[u8], start: usize, (across, k): (usize, usize), bits: u32) -> u64 {
        let (row, column) = match self.major {
            Major::K => (across, k),
            Major::Mn => (k, across),
        };
        let column = (column * bits as usize / 8) as i64;
        let at = self
            .descriptor
            .byte(start as i64, self.major, row as i64, column);
        read_bits(&bytes[at as usize..], bits, 0)
    }
}

/// A product that was issued: what it needs when it is done.
#[derive(Debug)]
pub(super) struct Product {
    table: std::sync::Arc<GroupTable>,
    warp: usize,
    /// By lane, the first private byte of A and of C.
    left: Vec<usize>,
    sum: Vec<usize>,
    /// The first shared byte of A and of B.
    a: usize,
    b: usize,
    fresh: bool,
}

impl Env<'_> {
    /// One product of a warp group: the part of one of its warps.
    pub(super) fn group_mma(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64) {
        let Some(table) = code.group.clone() else {
            return;
        };
        self.count(warp, InstKind::Mma);
        if !self.whole_warp(warp, taken, &code.inst) {
            return;
        }
        let program = self.program;
        let [a, b] = [0, 1].map(|i| &program.accesses[code.sources[i] as usize]);
        let c = &program.accesses[code.dest as usize];
        let [a_at, b_at, c_at] = [a, b, c].map(|access| self.addresses(warp, access, warp.mask));
        if [a_at.mask, b_at.mask, c_at.mask] != [warp.mask; 3] {
            return;
        }
        let info = |access: &super::program::Access| &program.buffers[access.buffer as usize];
        let number = warp.index as usize % WARPS;
        let (m, n, k) = (ROWS, usize::from(table.inst.n), usize::from(table.inst.k));
        let bits = table.inst.a.bits() as usize;
        let starts = |access, at: &[usize]| -> Vec<usize> {
            at.iter().map(|&at| byte_of(info(access), at)).collect()
        };
        let product = Product {
            left: if table.a.is_none() {
                starts(a, &a_at.at)
            } else {
                Vec::new()
            },
            sum: starts(c, &c_at.at),
            a: byte_of(info(a), a_at.at[0]),
            b: byte_of(info(b), b_at.at[0]),
            warp: number,
            fresh: table
                .step
                .is_some_and(|at| warp.regs.ones[at as usize] == 0),
            table: table.clone(),
        };
        // What is added to may be in flight in a product before this one, which is in order.
        let acc_len = (table.per_lane().1 * table.inst.acc.bits() / 8) as usize;
        let flag = |lane: u32| warp.local.flag(lane, product.sum[lane as usize], acc_len);
        if !product.fresh && !Lanes(warp.mask).all(|lane| flag(lane) == HELD) {
            self.check_content(warp, c, &c_at);
        }
        if table.a.is_none() {
            self.check_content(warp, a, &a_at);
        }
        let unfenced = |at: &usize| warp.local.is_unfenced(*at);
        if product.sum.iter().chain(&product.left).any(unfenced) {
            self.report(warp, FindingKind::MissingFence, None, || {
                format!("no `fence wgmma` hands the registers to `{}`", code.inst)
            });
        }
        let mut ranges = Vec::new();
        let id = self.instance(warp, Which::Shared, false, false);
        let rows = number * m..(number + 1) * m;
        let tiles = [
            table
                .a
                .map(|tile| (a, tile.chunks(product.a, rows, k, bits))),
            Some((b, table.b.chunks(product.b, 0..n, k, bits))),
        ];
        for (access, chunks) in tiles.into_iter().flatten() {
            self.shared.through(info(access).owner);
            for (i, &start) in chunks.iter().enumerate() {
                let (lane, len) = (i as u32 % warp.width, 16);
                if start + len > self.shared.bytes.len() {
                    self.report(warp, FindingKind::OutOfBounds, Some(lane), || {
                        format!("`{}` reads past the end of shared memory", code.inst)
                    });
                    return;
                }
                let proxies = self.shared.proxies.as_ref();
                if let Some(at) = proxies.and_then(|p| p.unseen(start, len)) {
                    let name = &info(access).name;
                    self.report(warp, FindingKind::MissingFence, Some(lane), || {
                        format!(
                            "no `fence async_proxy` and barrier show byte {at} of `{name}` to it"
                        )
                    });
                }
                let trouble = self.shared.read(who(warp, id, lane, false), start, len);
                if !trouble.is_none() {
                    self.trouble(warp, Which::Shared, lane, false, trouble);
                }
                ranges.push(Range { lane, start, len });
            }
        }
        let Some(counter) = code.counter else {
            self.add_product(warp, &product);
            return;
        };
        let mut op = Pending::new(counter);
        for lane in Lanes(warp.mask) {
            let start = product.sum[lane as usize];
            op.registers.push((lane, start as u32, acc_len as u32));
        }
        self.next_token += 1;
        op.token = Some(self.next_token);
        self.shared.hold(self.next_token, id, false, ranges);
        match self.landing.of(counter) {
            When::Early => self.add_product(warp, &product),
            When::Late => op.product = Some(product),
        }
        for &(lane, offset, len) in &op.registers {
            warp.local
                .set_flags(lane, offset as usize, len as usize, HELD);
        }
        if let Some(full) = warp.queue.push(op) {
            self.land(warp, full);
        }
    }

    /// The product is done.
    pub(super) fn add_product(&mut self, warp: &mut Warp, product: &Product) {
        let mut matrices = OfGroup {
            local: &mut warp.local,
            shared: &self.shared.bytes,
            product,
        };
        multiply(&product.table.inst, &mut matrices);
    }
}

/// The matrices of a warp's part of a product.
struct OfGroup<'a> {
    local: &'a mut Local,
    shared: &'a [u8],
    product: &'a Product,
}

impl Matrices for OfGroup<'_> {
    fn left<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T> {
        let Product {
            table,
            warp,
            left,
            a,
            ..
        } = self.product;
        let bits = table.inst.a.bits();
        if let Some(maps) = &table.left {
            return maps[*warp].gather(self.local, left, bits, zero, read);
        }
        let k = usize::from(table.inst.k);
        let mut matrix = vec![zero; ROWS * k];
        for (at, element) in matrix.iter_mut().enumerate() {
            if let Some(tile) = &table.a {
                let place = (warp * ROWS + at / k, at % k);
                *element = read(tile.bits(self.shared, *a, place, bits));
            }
        }
        matrix
    }

    fn right<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T> {
        let Product { table, b, .. } = self.product;
        let (n, k) = (usize::from(table.inst.n), usize::from(table.inst.k));
        let mut matrix = vec![zero; n * k];
        for (at, element) in matrix.iter_mut().enumerate() {
            let place = (at % n, at / n);
            *element = read(table.b.bits(self.shared, *b, place, table.inst.b.bits()));
        }
        matrix
    }

    fn sum<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T> {
        let Product {
            table, warp, sum, ..
        } = self.product;
        if self.product.fresh {
            return vec![zero; ROWS * usize::from(table.inst.n)];
        }
        let bits = table.inst.acc.bits();
        table.sum[*warp].gather(self.local, sum, bits, zero, read)
    }

    fn store<T: Copy>(&mut self, values: &[T], write: impl Fn(T) -> u64) {
        let Product {
            table, warp, sum, ..
        } = self.product;
        let bits = table.inst.acc.bits();
        table.sum[*warp].scatter(self.local, sum, bits, values, write);
    }
}
