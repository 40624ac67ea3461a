//! What the machine has.
