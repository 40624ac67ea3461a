//! Layouts: where the elements of a tile live.
//!
//! A tile kernel speaks of tensors; the hardware has addresses, threads and registers. A
//! *layout* is the map between them. Everything the compiler decides about placement is a
//! question about such maps: is this swizzle a permutation, does this thread already hold what
//! that loop needs, how many elements can one instruction move, do these lanes meet in a bank?
//! This crate answers them in closed form, in microseconds, without a solver.
//!
//! # 1. Two kinds of placement
//!
//! A [`Layout`] maps each index of a tensor to a place, usually an offset in shared memory. A
//! 2 x 4 tile in row-major order, and with its rows padded by one element:
//!
//! ```text
//!  linear     0 1 2 3         padded     0 1 2 3
//!          0  0 1 2 3                 0  0 1 2 3
//!          1  4 5 6 7                 1  5 6 7 8
//! ```
//!
//! A [`Fragment`] maps each index to a thread and a register *slot* of that thread: the tensor
//! is one object of the whole block, spread over its threads. The 16 x 8 result of `mma.sync`
//! (rows 0 to 2 of 16; `5:1` is slot 1 of thread 5):
//!
//! ```text
//!        0    1    2    3    4    5    6    7
//!  0   0:0  0:1  1:0  1:1  2:0  2:1  3:0  3:1
//!  1   4:0  4:1  5:0  5:1  6:0  6:1  7:0  7:1
//!  2   8:0  8:1  9:0  9:1 10:0 10:1 11:0 11:1
//! ```
//!
//! An element may have several copies: then the index has one more coordinate, the number of
//! the copy. And a pair of thread and slot may hold nothing: 229 elements on 128 threads take two
//! slots a thread, and 27 pairs stay empty. No size is special.
//!
//! # 2. Digits
//!
//! All these maps cut an index into *digits*. Element `(i, j)` of the fragment above is in
//! thread `4 (i % 8) + j / 2` and slot `2 (i / 8) + j % 2`; so cut `i` at 8 and `j` at 2, and
//! each digit simply gets a new weight:
//!
//! | digit | values | adds to the thread | adds to the slot |
//! |---|---|---|---|
//! | `j % 2` | 2 | 0 | 1 |
//! | `j / 2` | 4 | 1 | 0 |
//! | `i % 8` | 8 | 4 | 0 |
//! | `i / 8` | 2 | 0 | 2 |
//!
//! A dimension may be cut at any chain of positions that divide each other ([`radix`]): 192 at
//! 64, at 8 and 64, at 3. The topmost digit is whatever remains, so 229 may be cut at 128 into
//! `x % 128` and `x / 128`; not all pairs of those digits are indices, which is no harm.
//!
//! ```
//! use tilewright_layout::Fragment;
//! use tilewright_layout::radix::Digit;
//!
//! let (i, j) = (0, 1);
//! let c = Fragment::from_digits(
//!     &[16, 8],
//!     1,
//!     &[Digit::new(j, 2, 4), Digit::new(i, 1, 8)], // thread, lowest digit first
//!     &[Digit::new(j, 1, 2), Digit::new(i, 8, 2)], // slot
//! )?;
//! let holder = c.holder(&[1, 3], 0);
//! assert_eq!((holder.thread, holder.slot), (5, 1));
//! # Ok::<(), tilewright_layout::LayoutError>(())
//! ```
//!
//! # 3. Parities
//!
//! Shared memory is served by banks, and rows that start at the same bank collide. So tiles are
//! *swizzled*: the chunks of a row are permuted by an XOR with bits of the row's number. A 4 x 8
//! tile in chunks of two, `i*8 + (i ^ j/2)*2 + j%2`:
//!
//! ```text
//!       0  1  2  3  4  5  6  7
//!  0    0  1  2  3  4  5  6  7
//!  1   10 11  8  9 14 15 12 13
//!  2   20 21 22 23 16 17 18 19
//!  3   30 31 28 29 26 27 24 25
//! ```
//!
//! XOR is no sum of digits, but each *bit* of it is a parity. Cut down to bits, the offset is a
//! weighted sum again, with parities among the summands:
//!
//! | bits | weight |
//! |---|---|
//! | `j0` | 1 |
//! | `j1 ⊕ i0` | 2 |
//! | `j2 ⊕ i1` | 4 |
//! | `i0` | 8 |
//! | `i1` | 16 |
//!
//! That is the closed form of this crate ([`Form`]): **each output is an offset plus weighted
//! digits plus weighted parities of bits**. Sums of digits are the mixed-radix layouts; parities
//! with powers of two as weights are the matrices over GF(2), the field of the two bits; and a
//! swizzled tile of 192 or 229 rows is both at once, bits below and an ordinary digit on top.
//!
//! # 4. Decisions
//!
//! **Equality.** The parities of bit vectors are linearly independent functions (they are the
//! characters of the group of bit vectors). So over one set of cuts the weights of a function
//! are unique: two layouts are equal exactly when their tables of weights are. Layouts cut
//! differently are first cut alike; a digit of weight `w` and extent `e` cut at `c` becomes
//! digits of weight `w` and `w·c`, which changes nothing.
//!
//! **Injectivity.** Sort the summands of an output by weight. If each weight exceeds all that the
//! ones below can add up to, the output determines every summand, as a number determines its
//! digits; the summands *nest*. Digits are then known directly, and bits are known exactly if
//! the parities have full rank over GF(2): 5 rows above, 5 bits, rank 5. If the rank is too low,
//! a vector of the kernel is a pair of elements in one place, which is what the error message
//! shows. Weights that do not nest (3 and 2, say) are decided by a search for digit
//! differences that cancel; it looks only at what smaller weights can still repair.
//!
//! | layout | summands by weight | verdict |
//! |---|---|---|
//! | padded, `5i + j` | `j`: 1 up to 3, `i`: 5 | 5 > 3, injective |
//! | overlapping, `3i + j`, j < 4 | `j`: 1 up to 3, `i`: 3 | 3 ≤ 3; `(0, 3)` and `(1, 0)` collide |
//! | `(i ^ j)` over 4 x 4 | `i0 ⊕ j0`: 1, `i1 ⊕ j1`: 2 | rank 2 of 4 bits; `(0, 0)` and `(1, 1)` collide |
//!
//! **Surjectivity** of an injective map is a count. **Containment** of fragments (does every
//! thread that needs an element hold a copy of it?) is solvability of a linear system: for all
//! elements and needed copies there must be a copy number, so the columns of what differs must lie
//! in the span of the columns of the copy number.
//!
//! # 5. Operations
//!
//! | operation | what it is | how |
//! |---|---|---|
//! | [`Layout::then`] | first this, then that | cut the inner outputs where the outer inputs are cut; multiply weights, XOR parities |
//! | [`Layout::inverse`] | from place to element | digits go back one by one, bits by the inverse matrix |
//! | [`Layout::product`] | a layout of tiles, each with a layout inside | weights of the outer times the size of the inner |
//! | [`Layout::concat`] | both side by side | union of the tables |
//! | [`Layout::permute`], [`slice`](Layout::slice), [`reshape`](Layout::reshape) | transposition, a window, a view | relabel; shift; compose |
//! | [`Fragment::repeat_in_slots`], [`repeat_over_threads`](Fragment::repeat_over_threads), [`replicate`](Fragment::replicate) | more registers, more warps, more copies | products |
//! | [`Fragment::image`], [`project`](Fragment::project) | the placement an access or a reduction implies | digits that are not used become copies |
//! | [`Fragment::complete`] | slots, when only threads are decided | number what the thread leaves free |
//!
//! A block's accumulator is a product: 2 x 2 warps over 2 x 4 repetitions over the lane map.
//!
//! ```
//! use tilewright_ir::micro_op::MmaInst;
//! use tilewright_layout::lanes::{Operand, lane_map};
//!
//! let inst = MmaInst::from_name("mma.16x8x16.float16.float32").unwrap();
//! let lanes = lane_map(&inst, Operand::C).unwrap();
//! let block = lanes.repeat_in_slots(&[2, 4])?.repeat_over_threads(&[2, 2])?;
//! assert_eq!(block.shape(), [64, 64]);
//! assert_eq!((block.threads(), block.slots()), (128, 32));
//!
//! // The sums of its rows: the four threads of a quad and both columns of warps hold copies.
//! let sums = block.project(1)?.unwrap();
//! assert_eq!((sums.replicas(), sums.slots()), (8, 4));
//! # Ok::<(), tilewright_layout::LayoutError>(())
//! ```
//!
//! **When there is no closed form.** `(72 i + j) ^ …` carries across a cut, and `i * i` is no
//! sum at all. Such a map is listed point by point, up to [`TABLE_LIMIT`] elements; it has the
//! same interface, and if the list is linear over bits it gets its closed form back. A partition
//! of 5 x 229 elements over 128 threads is a form over the flattened index. No layout that this
//! crate builds itself needs a list.
//!
//! # 6. The rest of the house
//!
//! | module | holds |
//! |---|---|
//! | [`bits`] | linear algebra over GF(2) (this and the next four are of `tilewright-form`) |
//! | [`radix`] | digits of an index box |
//! | [`Form`] | the closed form; its composition and its decisions |
//! | [`Layout`], [`Fragment`] | the two kinds of placement |
//! | [`split`] | addresses in two parts, a thread's own and a constant one |
//! | [`swizzle`] | 128/64/32-byte swizzles, matrix-core swizzles, HipKittens subtiles; the choice of one |
//! | [`lanes`] | which lane holds what of `mma.sync`, `ldmatrix`, wgmma, MFMA |
//! | [`bulk`] | tiles in shared memory as the copy engine writes them |
//! | [`descriptor`] | tiles in shared memory as wgmma is told of them |
//! | [`banks`] | cycles of shared-memory accesses, by each target's phases |
//! | [`transposed`] | reads that transpose across lanes |
//! | [`from_expr`], [`to_expr`] | layouts that users wrote as expressions, and the way back |
//! | [`wave_places`] | whether threads write places in a row |
//! | [`draw`] | drawings as text and SVG |

pub mod banks;
pub mod bulk;
pub mod descriptor;
pub mod draw;
pub mod from_expr;
pub mod lanes;
pub mod swizzle;
pub mod to_expr;
pub mod transposed;
pub mod wave_places;

pub use tilewright_form::{
    Collision, Family, Form, Formula, Fragment, FragmentInverse, Guard, Holder, InRuns, Layout,
    LayoutError, LineDigit, Part, Place, Sum, TABLE_LIMIT, Term, Verdict, bits, radix, split,
};
