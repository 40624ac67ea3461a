//! What the builder takes for indices and regions.

use crate::buffer::Region;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::expr::Expr;

/// An index, extent or size: an expression or an integer. An integer is int32, or int64
/// where it does not fit.
pub trait IntoIndex {
    fn into_index(self) -> Expr;
}

impl IntoIndex for Expr {
    fn into_index(self) -> Expr {
        self
    }
}

impl IntoIndex for &Expr {
    fn into_index(self) -> Expr {
        self.clone()
    }
}

macro_rules! int_indices {
    ($($t:ty)*) => {$(
        impl IntoIndex for $t {
            fn into_index(self) -> Expr {
                let value = self as i128;
                let fits = i32::try_from(value).is_ok();
                Expr::int(value, if fits { DType::I32 } else { DType::I64 })
            }
        }
    )*};
}
int_indices!(i32 i64 u32 usize);

/// One index a dimension: an array, a vector, or a tuple of unlike ones.
pub trait IndexList {
    fn into_exprs(self) -> Vec<Expr>;
}

impl<T: IntoIndex, const N: usize> IndexList for [T; N] {
    fn into_exprs(self) -> Vec<Expr> {
        self.into_iter().map(IntoIndex::into_index).collect()
    }
}

impl<T: IntoIndex> IndexList for Vec<T> {
    fn into_exprs(self) -> Vec<Expr> {
        self.into_iter().map(IntoIndex::into_index).collect()
    }
}

/// The single element of a variable.
impl IndexList for () {
    fn into_exprs(self) -> Vec<Expr> {
        Vec::new()
    }
}

macro_rules! tuple_indices {
    ($($t:ident)*) => {
        impl<$($t: IntoIndex),*> IndexList for ($($t,)*) {
            fn into_exprs(self) -> Vec<Expr> {
                #[expect(non_snake_case, reason = "the variables are named as their types")]
                let ($($t,)*) = self;
                vec![$($t.into_index()),*]
            }
        }
    };
}
tuple_indices!(A B);
tuple_indices!(A B C);
tuple_indices!(A B C D);
tuple_indices!(A B C D E);

/// A tile: a region, or the whole of a tensor.
pub trait IntoRegion {
    fn into_region(self) -> Region;
}

impl IntoRegion for Region {
    fn into_region(self) -> Region {
        self
    }
}

impl IntoRegion for &Region {
    fn into_region(self) -> Region {
        self.clone()
    }
}

impl IntoRegion for &Tensor {
    fn into_region(self) -> Region {
        self.whole()
    }
}
