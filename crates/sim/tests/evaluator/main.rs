//! Tests of the reference evaluator through its public interface; kernels are text.

mod blocks;
mod clusters;
mod common;
mod conformance;
mod errors;
mod fuzz;
mod gemm;
mod groups;
mod lockstep;
mod threads;
