//! How wide shared memory can be accessed.

use tilewright_ir::{Buffer, BufferOrigin, Func};
use tilewright_layout::Layout;

/// How many elements along the last dimension lie side by side wherever a shared buffer's layout
/// puts them.
pub fn shared_width(func: &Func, buffer: Buffer) -> i64 {
    let data = &func.buffers[buffer];
    // The elements of a view lie where the buffer has them.
    let moved = func.buffers[func.root(buffer)].placed().is_some();
    if moved && matches!(data.origin, BufferOrigin::View(_)) && data.layout.is_none() {
        return 1;
    }
    let Some(last) = data.shape.len().checked_sub(1) else {
        return 1;
    };
    if let Some(place) = data.placed() {
        return place.vector_width(last);
    }
    let linear = data.const_shape().and_then(|s| Layout::linear(&s).ok());
    linear.map_or(1, |l| l.vector_width(last))
}
