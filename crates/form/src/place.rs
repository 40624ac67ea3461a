//! Places in memory, known by the family of their layout.

use std::ops::Deref;

use crate::error::LayoutError;
use crate::layout::{Layout, check_shape};
use crate::swizzle::{RowXor, Swizzle};

/// The layout of a buffer in memory: no two elements share a place. What only needs the places
/// asks the layout; what needs a mode of the hardware asks the family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    family: Family,
    layout: Layout,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Row-major.
    Linear,
    /// Row-major with each row lengthened by so many elements.
    Padded(u32),
    /// Rows whose chunks are permuted.
    Swizzle(RowXor),
    /// Panels as wide as the swizzle's span, side by side.
    Panels(Swizzle),
    /// A layout without a name.
    Other,
}

impl Place {
    /// The layout of this family over a shape, for elements of so many bits.
    pub fn new(family: Family, shape: &[i64], bits: i64) -> Result<Place, LayoutError> {
        check_shape(shape)?;
        let layout = match &family {
            Family::Linear => Layout::linear(shape)?,
            Family::Padded(pad) => Layout::padded(shape, (*pad).into())?,
            Family::Swizzle(rows) => rows.layout(shape, bits)?,
            Family::Panels(swizzle) => swizzle.panels(shape, bits)?,
            Family::Other => {
                return Err(LayoutError::NotAMap {
                    what: "a family without a name".to_owned(),
                });
            }
        };
        layout.require_injective()?;
        Ok(Place { family, layout })
    }

    /// A layout of no family.
    pub fn other(layout: Layout) -> Result<Place, LayoutError> {
        layout.require_injective()?;
        Ok(Place {
            family: Family::Other,
            layout,
        })
    }

    pub fn family(&self) -> &Family {
        &self.family
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

impl Deref for Place {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_without_elements_have_no_place() {
        let families = [
            Family::Linear,
            Family::Padded(8),
            Family::Panels(Swizzle::B128),
            Family::Swizzle(RowXor {
                chunk: 16,
                pairs: vec![(0, 0)],
            }),
        ];
        for family in families {
            for shape in [[-4, 64], [i64::MIN, 64], [i64::MAX, 64], [0, 64], [64, -64]] {
                let place = Place::new(family.clone(), &shape, 16);
                assert!(place.is_err(), "{family:?} {shape:?}");
            }
        }
    }
}
