//! Writing kernels in Rust.
//!
//! A [`FuncBuilder`] makes the function, a [`BlockBuilder`] the statements of a block. Loops
//! and conditions take closures that fill their bodies. Nothing fails on the way: what is
//! wrong comes out of [`FuncBuilder::finish`], which runs the verifier.
//!
//! ```
//! use tilewright_ir::DType;
//! use tilewright_ir::builder::FuncBuilder;
//!
//! let (m, n, k) = (1024, 1024, 512);
//! let mut f = FuncBuilder::new("matmul");
//! let a = f.param("A", DType::F16, [m, k]);
//! let b = f.param("B", DType::F16, [k, n]);
//! let c = f.output("C", DType::F16, [m, n]);
//! f.kernel([n / 128, m / 128], 128, |t, [bx, by]| {
//!     let a_tile = t.shared("A_tile", DType::F16, [128, 32]);
//!     let b_tile = t.shared("B_tile", DType::F16, [32, 128]);
//!     let acc = t.fragment("acc", DType::F32, [128, 128]);
//!     t.fill(&acc, 0.0);
//!     t.pipelined(k / 32, 3, |t, ko| {
//!         t.copy(a.tile([&by * 128, &ko * 32], [128, 32]), &a_tile);
//!         t.copy(b.tile([&ko * 32, &bx * 128], [32, 128]), &b_tile);
//!         t.gemm(&a_tile, &b_tile, &acc);
//!     });
//!     t.parallel([128, 128], |t, [i, j]| {
//!         t.store(&acc, [&i, &j], acc.at([&i, &j]).max(0.0));
//!     });
//!     t.copy(&acc, c.tile([by * 128, bx * 128], [128, 128]));
//! });
//! let func = f.finish().expect("the kernel is sound");
//! assert!(func.to_string().contains("gemm A_tile["));
//! ```
//!
//! What is wrong is reported, not panicked on:
//!
//! ```
//! # use tilewright_ir::DType;
//! # use tilewright_ir::builder::FuncBuilder;
//! let mut f = FuncBuilder::new("bad");
//! let a = f.param("A", DType::F16, [64, 64]);
//! f.kernel([1], 128, |t, [_]| {
//!     let s = t.shared("S", DType::F16, [32, 64]);
//!     t.copy(&a, &s);
//! });
//! let errors = f.finish().unwrap_err();
//! assert_eq!(errors[0].code.0, "copy-extents");
//! ```

mod block;
mod operand;

pub use block::BlockBuilder;
pub use operand::{IndexList, IntoIndex, IntoRegion};

use std::array;

use crate::buffer::{BufferData, BufferOrigin, Region, RegionDim, Scope};
use crate::diag::{Diagnostic, Span};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::{Func, Kernel, KernelAttrs, Param, VarKind};
use crate::ids::Buffer;
use crate::verify::verify;

/// Makes a function.
#[derive(Debug)]
pub struct FuncBuilder {
    func: Func,
}

/// A buffer of the function being built. Use it only with the builder it came from.
#[derive(Clone, Debug)]
pub struct Tensor {
    buffer: Buffer,
    dtype: DType,
    shape: Vec<Expr>,
}

impl Tensor {
    pub fn id(&self) -> Buffer {
        self.buffer
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &[Expr] {
        &self.shape
    }

    /// The element at these indices, as a value.
    pub fn at(&self, indices: impl IndexList) -> Expr {
        Expr::load(self.buffer, indices.into_exprs(), self.dtype)
    }

    /// The region of these extents that begins at these indices.
    pub fn tile(&self, starts: impl IndexList, extents: impl IndexList) -> Region {
        let (starts, mut extents) = (starts.into_exprs(), extents.into_exprs());
        // One missing is an extent of one, as in the text form; the verifier sees the rank.
        extents.resize_with(starts.len(), || Expr::i32(1));
        let dims = starts.into_iter().zip(extents);
        Region {
            buffer: self.buffer,
            dims: dims
                .map(|(start, extent)| RegionDim { start, extent })
                .collect(),
        }
    }

    /// All of it.
    pub fn whole(&self) -> Region {
        let dims = self.shape.iter().map(|extent| RegionDim {
            start: Expr::zero(extent.dtype()),
            extent: extent.clone(),
        });
        Region {
            buffer: self.buffer,
            dims: dims.collect(),
        }
    }
}

impl FuncBuilder {
    pub fn new(name: impl Into<String>) -> FuncBuilder {
        FuncBuilder {
            func: Func::new(name),
        }
    }

    /// A size known when the function is called, from the shapes of its tensors.
    pub fn symbol(&mut self, name: &str) -> Expr {
        let var = self.func.add_var(name, DType::I32, VarKind::Symbol);
        self.func.symbols.push(var);
        self.func.var_expr(var)
    }

    /// A scalar parameter.
    pub fn scalar(&mut self, name: &str, dtype: DType) -> Expr {
        let var = self.func.add_var(name, dtype, VarKind::Param);
        self.func.params.push(Param::Scalar(var));
        self.func.var_expr(var)
    }

    /// A tensor parameter.
    pub fn param(&mut self, name: &str, dtype: DType, shape: impl IndexList) -> Tensor {
        self.tensor(name, dtype, shape, false)
    }

    /// A tensor parameter that the function fills.
    pub fn output(&mut self, name: &str, dtype: DType, shape: impl IndexList) -> Tensor {
        self.tensor(name, dtype, shape, true)
    }

    /// Global memory that lives for the call and is shared by its kernels.
    pub fn workspace(&mut self, name: &str, dtype: DType, shape: impl IndexList) -> Tensor {
        let tensor = new_tensor(
            &mut self.func,
            name,
            Scope::Global,
            dtype,
            shape.into_exprs(),
            BufferOrigin::Workspace,
        );
        self.func.workspaces.push(tensor.buffer);
        tensor
    }

    /// Adds a kernel: the extents of its grid, the threads of a block, and its body, which is
    /// given the block's indices.
    pub fn kernel<const N: usize>(
        &mut self,
        grid: [impl IntoIndex; N],
        threads: u32,
        body: impl FnOnce(&mut BlockBuilder<'_>, [Expr; N]),
    ) {
        self.kernel_with(grid, [threads, 1, 1], KernelAttrs::default(), body);
    }

    /// A kernel with threads along three axes, and attributes.
    pub fn kernel_with<const N: usize>(
        &mut self,
        grid: [impl IntoIndex; N],
        threads: [u32; 3],
        attrs: KernelAttrs,
        body: impl FnOnce(&mut BlockBuilder<'_>, [Expr; N]),
    ) {
        let extents: Vec<Expr> = grid.into_iter().map(IntoIndex::into_index).collect();
        let names = ["bx", "by", "bz"];
        let vars = extents.iter().enumerate().map(|(axis, extent)| {
            let name = names.get(axis).copied().unwrap_or("b");
            let kind = VarKind::BlockIdx(u8::try_from(axis).unwrap_or(u8::MAX));
            self.func.add_var(name, extent.dtype(), kind)
        });
        let vars: Vec<_> = vars.collect();
        let thread_vars = array::from_fn(|axis| {
            let name = ["tx", "ty", "tz"][axis];
            let kind = VarKind::ThreadIdx(axis as u8);
            self.func.add_var(name, DType::I32, kind)
        });
        let indices = array::from_fn(|axis| self.func.var_expr(vars[axis]));
        let mut block = BlockBuilder::new(&mut self.func, thread_vars);
        body(&mut block, indices);
        let body = block.into_block();
        self.func.kernels.push(Kernel {
            grid: vars.into_iter().zip(extents).collect(),
            threads,
            thread_vars,
            attrs,
            body,
            span: Span::NONE,
        });
    }

    /// What was built so far, to change by hand.
    pub fn func_mut(&mut self) -> &mut Func {
        &mut self.func
    }

    /// The function, or all that is wrong with it.
    pub fn finish(self) -> Result<Func, Vec<Diagnostic>> {
        verify(&self.func)?;
        Ok(self.func)
    }

    fn tensor(&mut self, name: &str, dtype: DType, shape: impl IndexList, output: bool) -> Tensor {
        let tensor = new_tensor(
            &mut self.func,
            name,
            Scope::Global,
            dtype,
            shape.into_exprs(),
            BufferOrigin::Param,
        );
        self.func.params.push(Param::Tensor {
            buffer: tensor.buffer,
            output,
        });
        tensor
    }
}

fn new_tensor(
    func: &mut Func,
    name: &str,
    scope: Scope,
    dtype: DType,
    shape: Vec<Expr>,
    origin: BufferOrigin,
) -> Tensor {
    let buffer = func.buffers.push(BufferData {
        origin,
        ..BufferData::new(name, scope, dtype, shape.clone())
    });
    Tensor {
        buffer,
        dtype,
        shape,
    }
}
