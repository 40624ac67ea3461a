//! `tilewright schema`: what the objects of `--json` look like.

use super::output::{self, Outcome};

const SCHEMA: &str = include_str!("schema.json");

pub fn schema() -> Outcome {
    output::print(SCHEMA);
    Ok(())
}
