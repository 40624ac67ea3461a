//! Races between blocks.
//!
//! Blocks have no order, so what one of them writes no other may touch. For every element of
//! global memory that the kernel writes this remembers who wrote it, who updated it atomically
//! and which two blocks read it; two are enough to know whether another block than the next
//! writer was among them. A grid barrier orders what was before it with what comes after.
//!
//! Where blocks talk to each other by atomics (flags, tickets, a loop that watches memory) the
//! order they make so is not known here, and nothing is noted: see [`Watch`].

use rustc_hash::FxHashMap;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Diagnostic, Kernel, Span, StmtKind, ThreadOp};

use crate::error::codes;
use crate::memory::Storage;
use crate::program::Traffic;

/// What can be said of races between the blocks of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Watch {
    /// Every access to memory that the kernel writes was looked at.
    Watched,
    /// Blocks order their accesses by atomics, so they were not looked at.
    NotWatched,
}

/// Whether the blocks of a kernel can be watched.
pub(crate) fn watch(kernel: &Kernel, traffic: &Traffic) -> Watch {
    let mut talks = traffic.spins && traffic.blocks_share();
    walk_stmts(&kernel.body, &mut |stmt| {
        talks |= matches!(
            stmt.kind,
            StmtKind::Thread(
                ThreadOp::AtomicLoad { .. }
                    | ThreadOp::AtomicStore { .. }
                    | ThreadOp::AtomicRmw {
                        result: Some(_),
                        ..
                    }
                    | ThreadOp::Extern { .. }
            )
        );
    });
    match talks {
        true => Watch::NotWatched,
        false => Watch::Watched,
    }
}

/// What a log or a note speaks of, for reports.
pub(crate) trait Sites {
    /// The place of the statement that did it.
    fn span(&self, site: u32) -> Span;
    /// The name of a buffer in a global storage.
    fn name(&self, storage: u32) -> &str;
    /// Bytes of the narrowest element that a global storage is accessed by.
    fn granule(&self, storage: u32) -> usize;
    /// Axes of the grid.
    fn rank(&self) -> usize;
}

/// What a block does to an element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Touch {
    Read,
    Write,
    /// An atomic update.
    Update,
}

/// A statement of a block, between two grid barriers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Actor {
    block: [u64; 3],
    epoch: u64,
    site: u32,
}

/// Who touched the elements of one storage: numbers of actors, zero for nobody.
#[derive(Debug, Default)]
struct Notes {
    granule: usize,
    writer: Vec<u32>,
    updater: Vec<u32>,
    readers: Vec<[u32; 2]>,
}

/// Two statements of different blocks that meet.
#[derive(Debug)]
struct Clash {
    storage: u32,
    element: usize,
    first: (Actor, Touch),
    second: (Actor, Touch),
    count: u64,
}

/// What makes two clashes one: the statements and what they do, in whichever order they came, and
/// whether the value changes.
type Key = (u32, (u32, Touch), (u32, Touch), bool);

/// Who touched what, over all blocks of a launch.
#[derive(Debug, Default)]
pub(crate) struct BlockRaces {
    /// By storage; `None` for what the kernel does not write.
    notes: Vec<Option<Notes>>,
    actors: Vec<Actor>,
    /// By statement: the number of the actor that it is now, zero for none yet.
    current: Vec<u32>,
    block: [u64; 3],
    epoch: u64,
    clashes: Vec<Clash>,
    known: FxHashMap<Key, usize>,
}

impl BlockRaces {
    pub fn new(sites: &dyn Sites, traffic: &Traffic, watch: Watch) -> BlockRaces {
        let watched = |(number, &written): (usize, &bool)| {
            (written && watch == Watch::Watched).then(|| Notes {
                granule: sites.granule(number as u32),
                ..Notes::default()
            })
        };
        BlockRaces {
            notes: traffic.written.iter().enumerate().map(watched).collect(),
            ..BlockRaces::default()
        }
    }

    /// Says whose accesses follow, and how many grid barriers lie behind it.
    pub fn turn(&mut self, block: [u64; 3], epoch: u64) {
        if (self.block, self.epoch) != (block, epoch) {
            (self.block, self.epoch) = (block, epoch);
            self.current.clear();
        }
    }

    /// Says that the block has passed a grid barrier, and how many lie behind it now.
    pub fn pass_grid_barrier(&mut self, epoch: u64) {
        self.turn(self.block, epoch);
    }

    /// Notes a read of bytes.
    pub fn read(&mut self, storage: u32, site: u32, start: usize, len: usize) {
        self.touch(storage, site, Touch::Read, start, len, |_, _| true);
    }

    /// Notes that bytes are about to be replaced.
    pub fn write(&mut self, storage: u32, site: u32, start: usize, new: &[u8], mem: &Storage) {
        let old = &mem.bytes[start..start + new.len()];
        // Blocks that agree do no harm; what is there must have been written to agree with.
        let changes = |at: usize, len: usize| old[at..at + len] != new[at..at + len];
        self.touch(storage, site, Touch::Write, start, new.len(), changes);
    }

    /// Notes an atomic update of bytes.
    pub fn update(&mut self, storage: u32, site: u32, start: usize, len: usize) {
        self.touch(storage, site, Touch::Update, start, len, |_, _| true);
    }

    /// `changes` says of a part of the bytes whether it gets another value.
    fn touch(
        &mut self,
        storage: u32,
        site: u32,
        touch: Touch,
        start: usize,
        len: usize,
        changes: impl Fn(usize, usize) -> bool,
    ) {
        let Some(notes) = self
            .notes
            .get_mut(storage as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        let me = Actor {
            block: self.block,
            epoch: self.epoch,
            site,
        };
        let statement = site as usize;
        if self.current.len() <= statement {
            self.current.resize(statement + 1, 0);
        }
        if self.current[statement] == 0 {
            self.actors.push(me);
            self.current[statement] = self.actors.len() as u32;
        }
        let number = self.current[statement];
        let granule = notes.granule;
        let elements = start / granule..(start + len).div_ceil(granule);
        notes.reach(touch, elements.end);
        let actors = &self.actors;
        let other = |number: u32| {
            let actor = *actors.get(number.checked_sub(1)? as usize)?;
            (actor.block != me.block && actor.epoch == me.epoch).then_some(actor)
        };
        for e in elements {
            let met = notes.meets(e, touch, &other);
            notes.enter(e, touch, number, &other);
            let Some((theirs, what)) = met else { continue };
            let at = (e * granule).saturating_sub(start);
            let matters = changes(at, granule.min(len - at));
            let mine = (site, touch);
            let pair = ((theirs.site, what), mine);
            let (low, high) = (pair.0.min(pair.1), pair.0.max(pair.1));
            let key = (storage, low, high, matters);
            match self.known.get(&key) {
                Some(&at) => self.clashes[at].count += 1,
                None => {
                    self.known.insert(key, self.clashes.len());
                    self.clashes.push(Clash {
                        storage,
                        element: e,
                        first: (theirs, what),
                        second: (me, touch),
                        count: 1,
                    });
                }
            }
        }
    }

    /// What was found: errors, and notes where the blocks only agree by chance.
    pub fn finish(self, sites: &dyn Sites) -> Vec<Diagnostic> {
        // Statements that differ somewhere need not be told that they agree elsewhere.
        let worse = |&(storage, a, b, matters): &Key| {
            !matters && self.known.contains_key(&(storage, a, b, true))
        };
        let mut keys: Vec<(&Key, &usize)> =
            self.known.iter().filter(|(key, _)| !worse(key)).collect();
        keys.sort_unstable_by_key(|&(_, &at)| at);
        keys.into_iter()
            .map(|(key, &at)| self.clashes[at].diagnostic(sites, key.3))
            .collect()
    }
}

impl Clash {
    fn diagnostic(&self, sites: &dyn Sites, matters: bool) -> Diagnostic {
        let name = sites.name(self.storage);
        let block = |actor: Actor| {
            let axes = actor.block[..sites.rank().min(3)].iter();
            let axes: Vec<String> = axes.map(u64::to_string).collect();
            format!("block ({})", axes.join(", "))
        };
        let ((a, did), (b, does)) = (self.first, self.second);
        let message = match (did, does, matters) {
            (Touch::Write, Touch::Write, true) => {
                format!("two blocks write different values to one element of `{name}`")
            }
            (Touch::Write, Touch::Write, false) => {
                format!("two blocks write one element of `{name}`, and the same value")
            }
            (Touch::Update, _, _) | (_, Touch::Update, _) => format!(
                "a block updates an element of `{name}` atomically that another one {}s plainly",
                if did == Touch::Update {
                    does.verb()
                } else {
                    did.verb()
                }
            ),
            (_, _, true) => {
                format!("a block reads an element of `{name}` that another one writes")
            }
            (_, _, false) => format!(
                "a block reads an element of `{name}` that another one overwrites with the same value"
            ),
        };
        let span = sites.span(b.site);
        let d = match matters {
            true => Diagnostic::error(codes::RACE_BLOCKS, span, message),
            false => Diagnostic::warning(codes::RACE_BLOCKS, span, message),
        };
        let mut d = d.label(format!("{} by {}", does.noun(), block(b)));
        if a.site != b.site {
            d = d.also(
                sites.span(a.site),
                format!("{} by {}", did.noun(), block(a)),
            );
        }
        d = d.note(format!(
            "element {} in storage order: {} by {}, {} by {}",
            self.element,
            did.noun(),
            block(a),
            does.noun(),
            block(b)
        ));
        if self.count > 1 {
            d = d.note(format!("it happened {} times at these places", self.count));
        }
        match matters {
            true => d.help(
                "blocks have no order: let each write what no other touches, use atomics, or split the kernel in two",
            ),
            false => d,
        }
    }
}

impl Touch {
    const fn verb(self) -> &'static str {
        match self {
            Touch::Read => "read",
            Touch::Write => "write",
            Touch::Update => "update",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Touch::Read => "read",
            Touch::Write => "written",
            Touch::Update => "updated atomically",
        }
    }
}

impl Notes {
    /// Makes room for what is noted of a touch.
    fn reach(&mut self, touch: Touch, end: usize) {
        match touch {
            Touch::Read if self.readers.len() < end => self.readers.resize(end, [0; 2]),
            Touch::Write if self.writer.len() < end => self.writer.resize(end, 0),
            Touch::Update if self.updater.len() < end => self.updater.resize(end, 0),
            _ => {}
        }
    }

    /// Another block whose access to the element may not meet this one.
    #[inline]
    fn meets(
        &self,
        e: usize,
        touch: Touch,
        other: &impl Fn(u32) -> Option<Actor>,
    ) -> Option<(Actor, Touch)> {
        let one = |list: &[u32], what| Some((other(*list.get(e)?)?, what));
        let writer = one(&self.writer, Touch::Write);
        let updater = || match touch {
            Touch::Update => None,
            _ => one(&self.updater, Touch::Update),
        };
        let reader = || match touch {
            Touch::Read => None,
            _ => {
                let [a, b] = *self.readers.get(e)?;
                Some((other(b).or_else(|| other(a))?, Touch::Read))
            }
        };
        writer.or_else(updater).or_else(reader)
    }

    #[inline]
    fn enter(
        &mut self,
        e: usize,
        touch: Touch,
        number: u32,
        other: &impl Fn(u32) -> Option<Actor>,
    ) {
        match touch {
            Touch::Write => self.writer[e] = number,
            Touch::Update => self.updater[e] = number,
            Touch::Read => {
                let [a, b] = &mut self.readers[e];
                // The first reader stays while it is another block's; the second slot follows.
                match other(*a) {
                    Some(_) => *b = number,
                    None => *a = number,
                }
            }
        }
    }
}
