//! The result of code generation.

use tilewright_ir::{Buffer, Expr, Span, TmaBox, Var};
use tilewright_layout::swizzle::Swizzle;

/// Source text of all kernels of a function, and how they are launched.
#[derive(Clone, Debug)]
pub struct Source {
    pub text: String,
    /// Options for the target's compiler: those that the text is made for, then the kernel's own.
    pub flags: Vec<String>,
    /// In the order they run.
    pub kernels: Vec<KernelSource>,
    /// Where lines of the text come from, ascending; a line that is not listed belongs to the
    /// last one before it.
    pub lines: Vec<LineOrigin>,
}

/// One launch.
#[derive(Clone, Debug)]
pub struct KernelSource {
    /// The name in the compiled program.
    pub name: String,
    /// Blocks along x, y, z, over symbols and scalar parameters.
    pub grid: Vec<Expr>,
    pub threads: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Blocks wait for each other, so all of them must run at once.
    pub cooperative: bool,
    pub args: Vec<KernelArg>,
    pub span: Span,
}

/// One argument of a kernel, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelArg {
    /// The address of a tensor or workspace, aligned to 16 bytes.
    Buffer { buffer: Buffer, written: bool },
    /// A run-time size or a scalar parameter, in its type.
    Scalar(Var),
    /// What the copy engine is told of a tensor: 128 bytes by value.
    Map(TensorMap),
}

/// A tensor as the copy engine knows it: with its own extents and strides, cut into boxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorMap {
    pub buffer: Buffer,
    pub tile: TmaBox,
    /// How the bytes of a box are permuted in shared memory.
    pub swizzle: Swizzle,
    /// Whether what boxes bring is let go first, so that nothing beside them is worth bringing too.
    pub once: bool,
}

/// A line of the text and the place in the user's file it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineOrigin {
    /// From one.
    pub line: u32,
    pub span: Span,
}

impl Source {
    /// Where a line of the text comes from.
    pub fn origin(&self, line: u32) -> Option<Span> {
        let after = self.lines.partition_point(|o| o.line <= line);
        Some(self.lines[after.checked_sub(1)?].span)
    }
}
