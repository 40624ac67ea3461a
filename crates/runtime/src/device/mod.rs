//! GPUs.
