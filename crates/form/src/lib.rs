//! Closed forms of maps between index boxes, which is what layouts and fragments are.
//!
//! The IR keeps them with its buffers, so this crate knows nothing of the IR. What they are and
//! how they decide is told in `tilewright-layout`, which adds the machines: lanes, banks, which
//! swizzle suits which instruction.

pub mod bits;
pub mod compose;
mod decide;
mod error;
mod form;
mod formula;
mod fragment;
mod layout;
mod place;
mod placement;
pub mod radix;
pub mod split;
pub mod swizzle;
mod table;

pub use compose::{Guard, Pieces};
pub use decide::{Collision, Verdict};
pub use error::{LayoutError, TABLE_LIMIT, Tuple};
pub use form::{Form, Sum, Term};
pub use formula::{Formula, Part, index_names};
pub use fragment::{Fragment, FragmentInverse, Holder, InRuns};
pub use layout::{Layout, check_shape};
pub use place::{Family, Place};
pub use placement::LineDigit;
