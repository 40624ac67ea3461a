//! Placeholder.

pub mod bits;
mod compose;
mod decide;
mod error;
mod form;
mod layout;
pub mod radix;
mod table;

pub use compose::Guard;
pub use decide::{Collision, Verdict};
pub use error::{LayoutError, TABLE_LIMIT};
pub use form::{Form, Sum, Term};
pub use layout::Layout;
mod fragment;
pub mod lanes;
pub use fragment::{Fragment, FragmentInverse, Holder};
mod placement;
pub mod swizzle;
pub mod banks;
pub mod from_attr;
mod to_expr;
