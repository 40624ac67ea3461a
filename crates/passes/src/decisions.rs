//! What the compiler decides by a cost, and who would rather decide it himself can switch.
//!
//! A switch is a setting of the kernel: `pass_configs={"tilewright.pairs": False}` in the file,
//! `--decide pairs=off` on the command line. Without one the cost decides. Off is always possible; on
//! leaves out the question whether it pays, not whether it can be done.

use tilewright_ir::{AttrValue, Func};

/// A decision with a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    pub name: &'static str,
    /// What is done where it is on.
    pub does: &'static str,
}

/// Blocks that stay and take one tile after another.
pub const RESIDENT: Decision = Decision {
    name: "resident",
    does: "blocks stay on their multiprocessor and take one tile after another",
};

/// Blocks that bring each other halves of tiles.
pub const PAIRS: Decision = Decision {
    name: "pairs",
    does: "two blocks bring each other halves of what both read",
};

/// The order in which blocks that stay take tiles, where the kernel says none.
pub const PANELS: Decision = Decision {
    name: "panels",
    does: "blocks that stay take tiles by panels of rows, where the kernel says no order",
};

/// Results that the copy engine stores.
pub const BULK_STORES: Decision = Decision {
    name: "bulk_stores",
    does: "results of products leave shared memory by the copy engine",
};

/// Tiles that several blocks sum up.
pub const SPLIT_K: Decision = Decision {
    name: "split_k",
    does: "where tiles are few, several blocks sum up parts of one along K, and a second kernel adds them",
};

/// Sections of the grid for each die.
pub const CHIPLETS: Decision = Decision {
    name: "chiplets",
    does: "each die of the GPU takes sections of the grid",
};

/// Tiles that are fetched to the L2 cache before the block that reads them starts.
pub const PREFETCH: Decision = Decision {
    name: "prefetch",
    does: "blocks that read a tile once have the L2 cache fetch that of a later block",
};

/// Tiles that leave the L2 cache before others.
pub const STREAM: Decision = Decision {
    name: "stream",
    does: "what the copy engine brings and nobody reads again leaves the L2 cache first",
};

/// Tiles that are not loaded again.
pub const KEEP: Decision = Decision {
    name: "keep",
    does: "a tile is not loaded again where a fragment still has what is made of it",
};

/// Products that start before the one before them is done.
pub const OVERLAP: Decision = Decision {
    name: "overlap",
    does: "warp groups start a product before the one before it is done, and hand its tiles back later",
};

/// All of them.
pub const DECISIONS: &[Decision] = &[
    RESIDENT,
    PAIRS,
    PANELS,
    BULK_STORES,
    SPLIT_K,
    CHIPLETS,
    PREFETCH,
    STREAM,
    KEEP,
    OVERLAP,
];

const PREFIX: &str = "tilewright.";

impl Decision {
    /// What the kernel says of it, if it does.
    pub fn asked(self, func: &Func) -> Option<bool> {
        match func.attrs.pass_configs.get(&self.key())? {
            AttrValue::Bool(on) => Some(*on),
            AttrValue::Int(n) => Some(*n != 0),
            _ => None,
        }
    }

    /// Says it for a kernel.
    pub fn ask(self, func: &mut Func, on: bool) {
        let configs = &mut func.attrs.pass_configs;
        configs.insert(self.key(), AttrValue::Bool(on));
    }

    fn key(self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// `pairs=off` as the decision and what is said of it.
    pub fn from_text(text: &str) -> Result<(Decision, bool), String> {
        let names = || {
            let names: Vec<&str> = DECISIONS.iter().map(|d| d.name).collect();
            names.join(", ")
        };
        let Some((name, value)) = text.split_once('=') else {
            return Err("write it as NAME=on or NAME=off".to_string());
        };
        let Some(decision) = DECISIONS.iter().find(|d| d.name == name) else {
            return Err(format!(
                "there is no decision `{name}`: there are {}",
                names()
            ));
        };
        match value {
            "on" => Ok((*decision, true)),
            "off" => Ok((*decision, false)),
            _ => Err(format!("`{name}` is on or off, not `{value}`")),
        }
    }
}
