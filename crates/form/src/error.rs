//! Why a layout cannot be what was asked for. Callers turn these into located diagnostics.

use std::fmt;

/// Entries of the largest table: maps without a closed form over more elements are refused.
/// It is twice the number of 4-bit elements in the largest shared memory of any target.
pub const TABLE_LIMIT: i64 = 1 << 20;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LayoutError {
    /// A map without a closed form, over too many elements to list.
    TooLarge { elements: i64 },
    /// Two elements in one place.
    Collision {
        a: Vec<i64>,
        b: Vec<i64>,
        place: Vec<i64>,
    },
    /// An element outside the space it is mapped to.
    OutOfRange {
        element: Vec<i64>,
        output: usize,
        value: i64,
        extent: i64,
    },
    /// Shapes that do not fit each other.
    Shape { expected: Vec<i64>, found: Vec<i64> },
    /// A shape with a non-positive extent, or too many elements to count.
    BadShape { shape: Vec<i64> },
    /// An inverse was asked of a map that leaves places empty.
    NotOnto { elements: i64, places: i64 },
    /// An expression that is no function of the element's index alone.
    NotAMap { what: String },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::TooLarge { elements } => write!(
                f,
                "the map has no closed form and {elements} elements; at most {TABLE_LIMIT} can be \
                 listed"
            ),
            LayoutError::Collision { a, b, place } => write!(
                f,
                "elements {} and {} both go to {}",
                Tuple(a),
                Tuple(b),
                Tuple(place)
            ),
            LayoutError::OutOfRange {
                element,
                output,
                value,
                extent,
            } => write!(
                f,
                "element {} goes to {value} in output {output}, outside 0..{extent}",
                Tuple(element)
            ),
            LayoutError::Shape { expected, found } => write!(
                f,
                "the shape is {}, expected {}",
                Tuple(found),
                Tuple(expected)
            ),
            LayoutError::BadShape { shape } => {
                write!(f, "{} is not the shape of a layout", Tuple(shape))
            }
            LayoutError::NotOnto { elements, places } => write!(
                f,
                "{elements} elements do not fill {places} places, so there is no inverse"
            ),
            LayoutError::NotAMap { what } => {
                write!(f, "{what} is not a function of the element's index")
            }
        }
    }
}

impl std::error::Error for LayoutError {}

/// Writes `(1, 2)`.
#[derive(Debug)]
pub struct Tuple<'a>(pub &'a [i64]);

impl fmt::Display for Tuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(i64::to_string).collect();
        write!(f, "({})", parts.join(", "))
    }
}
