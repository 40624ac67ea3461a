//! Where the dialects part: what CUDA and HIP say each in its own way, one function a thing.
//!
//! This is the emitter's only question about the language it prints; the device header has the
//! other ([`crate::device`]). What one machine can and another cannot is no matter of dialect: it is
//! asked of the [`Machine`](tilewright_ir::Machine). The ways themselves are in `cuda` and `hip`.

use tilewright_ir::{DeviceOp, Dialect, Expr, Kernel, Span, Var, VoteKind};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::stmt::c_string;
use crate::{Emit, cuda, hip};

impl Emitter<'_> {
    fn dialect(&self) -> Dialect {
        self.machine.dialect
    }

    /// The head of a kernel: attributes, name, parameters.
    pub(crate) fn head(&self, kernel: &Kernel, name: &str, params: &[String]) -> Emit<String> {
        let line = params.join(", ");
        let params = match line.len() > 60 {
            true => format!("\n    {}", params.join(",\n    ")),
            false => line,
        };
        match self.dialect() {
            Dialect::Cuda => Ok(self.cuda_head(kernel, name, &params)),
            Dialect::Hip => self.hip_head(kernel, name, &params),
        }
    }

    /// Options of the compiler that the text is made for.
    pub(crate) fn flags(&self) -> Vec<String> {
        match self.dialect() {
            Dialect::Cuda => Vec::new(),
            Dialect::Hip => hip::flags(self.func),
        }
    }

    /// The declaration of a kernel's shared memory.
    pub(crate) fn shared_array(&self) -> &'static str {
        match self.dialect() {
            Dialect::Cuda => cuda::SHARED_ARRAY,
            Dialect::Hip => hip::LDS_ARRAY,
        }
    }

    /// Once all of it is known, says how much shared memory the kernel has; gives the bytes that its
    /// launch asks for. In HIP the array has a size, which the compiler knows.
    pub(crate) fn size_shared(&mut self) -> u32 {
        match self.dialect() {
            Dialect::Cuda => self.shared,
            Dialect::Hip => {
                self.out.fill_in(hip::LDS_BYTES, &self.shared.to_string());
                0
            }
        }
    }

    pub(crate) fn vote(
        &mut self,
        kind: VoteKind,
        value: &str,
        result: Var,
        span: Span,
    ) -> Emit<()> {
        let call = match self.dialect() {
            Dialect::Cuda => self.cuda_vote(kind, value),
            Dialect::Hip => self.hip_vote(kind, value, result, span)?,
        };
        self.result(Some(result), &call);
        Ok(())
    }

    /// Stands before the threads of a block meet. A fence for the device is one thread's, and shows
    /// other blocks what its block wrote before they met: in CUDA as far as it is ordered before, in
    /// HIP as far as it is done.
    pub(crate) fn settle(&mut self) {
        if self.dialect() == Dialect::Hip && self.plan.releases {
            self.out.line("tw::settle();");
        }
    }

    /// Keeps the matrix instruction before this, with so many slots of a lane for its sums, where it
    /// stands. In CUDA it is assembly that nothing moves.
    pub(crate) fn hold(&mut self, sum: &str, slots: u32) {
        if self.dialect() == Dialect::Hip {
            self.needs.piece(Piece::Waits);
            self.out.line(format!("tw::multiplied<{slots}>({sum});"));
        }
    }

    /// The statement at which the lanes of a warp meet.
    pub(crate) fn sync_warp(&mut self) -> String {
        match self.dialect() {
            Dialect::Cuda => format!("__syncwarp({});", self.lane_mask()),
            Dialect::Hip => {
                self.needs.piece(Piece::Warp);
                "tw::sync_warp();".to_string()
            }
        }
    }

    /// The lanes that take part, as the first argument of what a warp does together.
    pub(crate) fn lane_argument(&self) -> String {
        match self.dialect() {
            Dialect::Cuda => format!("{}, ", self.lane_mask()),
            Dialect::Hip => String::new(),
        }
    }

    /// `c` plus the products of the four bytes of two words.
    pub(crate) fn dot4(&self, a: &str, b: &str, c: &str) -> String {
        match self.dialect() {
            Dialect::Cuda => format!("__dp4a({a}, {b}, {c})"),
            Dialect::Hip => format!("__builtin_amdgcn_sdot4({a}, {b}, {c}, false)"),
        }
    }

    pub(crate) fn print(&mut self, message: &str, args: &[Expr], span: Span) -> Emit<()> {
        match self.dialect() {
            Dialect::Cuda => self.cuda_print(message, args),
            Dialect::Hip => self.hip_print(message, args, span),
        }
    }

    /// The statement that stops the kernel where a condition does not hold.
    pub(crate) fn assertion(&self, cond: &str, message: &str) -> String {
        match self.dialect() {
            Dialect::Cuda => {
                let text = c_string(&format!("assertion failed: {message}\n"));
                format!("if (!({cond})) {{ printf(\"%s\", {text}); __trap(); }}")
            }
            Dialect::Hip => format!("if (!({cond})) __builtin_trap();"),
        }
    }

    pub(crate) fn device_op(&mut self, op: &DeviceOp, span: Span) -> Emit<()> {
        match self.dialect() {
            Dialect::Cuda => self.cuda_device_op(op, span),
            Dialect::Hip => self.hip_device_op(op, span),
        }
    }

    /// Whether instructions in inline assembly may be guarded by a predicate.
    pub(crate) fn has_predicates(&self) -> bool {
        match self.dialect() {
            Dialect::Cuda => true,
            Dialect::Hip => false,
        }
    }

    /// Whether the compiler is told which loops certainly run. Where one may not, clang keeps what is before
    /// it beside what is behind, in registers of their own.
    pub(crate) fn is_told_of_loops(&self) -> bool {
        match self.dialect() {
            Dialect::Cuda => false,
            Dialect::Hip => true,
        }
    }

    /// How many iterations of a long loop the compiler may have at once; unlimited where it
    /// decides well by itself.
    pub(crate) fn unroll_limit(&self) -> Option<u32> {
        match self.dialect() {
            Dialect::Cuda => None,
            Dialect::Hip => Some(hip::UNROLL),
        }
    }
}
