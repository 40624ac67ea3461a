//! All blocks of a launch, several at a time.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::asm::{Descriptor, Function};
use crate::cycles::Trace;

use super::Arch;
use super::block::{Block, Progress, Shared};
use super::code::{Code, linked};
use super::launch::{Launch, plain_descriptor};
use super::memory::{Buffer, Memory};
use super::report::{Finding, Findings};
use super::room::{Needs, Refused};
use super::suspects::Suspects;

/// What a launch came to.
#[derive(Debug)]
pub struct Outcome {
    /// The buffers as the kernel left them.
    pub buffers: Vec<Buffer>,
    pub findings: Vec<Finding>,
    /// The instructions that some wave ran.
    pub ran: Vec<bool>,
    /// What the waves of the block did that was to be traced.
    pub trace: Option<Trace>,
}

/// What one run of it came to.
struct Ran {
    buffers: Vec<Buffer>,
    findings: Findings,
    suspects: Suspects,
    ran: Vec<bool>,
    trace: Option<Trace>,
}

/// Runs a kernel.
pub fn run(function: &Function, arch: Arch, mut launch: Launch) -> Result<Outcome, Refused> {
    let function = linked(function, &launch.objects)?;
    let code = Code::new(&function, &launch.atomic_lines);
    if let Some(room) = launch.room {
        let needs = Needs::of(&code, &descriptor_of(&function), &launch);
        let left = room.checked_sub(needs.bytes());
        launch.room = Some(left.ok_or(Refused::NoRoom { needs, room })?);
    }
    let again = launch.clone();
    let first = once(&code, arch, launch, None)?;
    let mut findings = first.findings;
    if !first.suspects.is_empty() {
        let suspects = &first.suspects;
        if suspects.are_all() {
            findings.extend(once(&code, arch, again, Some(suspects))?.findings);
        } else {
            suspects
                .findings()
                .iter()
                .for_each(|f| findings.push(f.clone()));
        }
    }
    Ok(Outcome {
        buffers: first.buffers,
        findings: findings.sorted(),
        ran: first.ran,
        trace: first.trace,
    })
}

fn descriptor_of(function: &Function) -> Descriptor {
    let own = function.descriptor.clone();
    own.unwrap_or_else(plain_descriptor)
}

/// Runs all blocks, and follows what suspects load where there are any.
fn once(
    code: &Code<'_>,
    arch: Arch,
    mut launch: Launch,
    followed: Option<&Suspects>,
) -> Result<Ran, String> {
    let function = code.function;
    let descriptor = descriptor_of(function);
    let mut buffers = std::mem::take(&mut launch.buffers);
    let arguments = Memory::address(buffers.len());
    buffers.push(Buffer {
        name: "arguments".to_owned(),
        bytes: launch.argument_block(function)?,
        element: 4,
        writable: false,
        holds: None,
    });
    let memory = Mutex::new(Memory::new(buffers));
    let shared = Shared {
        code,
        arch,
        landing: launch.landing,
        memory: &memory,
        steps: launch.steps,
        traced: launch.traced,
        turns: code.orders_blocks(),
        changes: AtomicU64::new(0),
        suspects: followed,
        room: launch.room,
    };
    let registers = code.highest();
    let lds = (descriptor.lds_bytes + launch.dynamic_lds) as usize;
    let start = |block: u64| {
        let waves = launch.waves(&descriptor, registers, arguments, block);
        let scratch = descriptor.scratch_bytes as usize;
        let mut block = Block::new(&shared, block as u32, waves, lds, scratch, launch.seed);
        for rest in &launch.lds_rests {
            block.shadow.hold(rest.clone());
        }
        block
    };
    let (first, end) = match launch.only {
        Some(block) => (u64::from(block), u64::from(block) + 1),
        None => (0, launch.blocks()),
    };
    let next = AtomicU64::new(first);
    let stop = AtomicBool::new(false);
    let all = Mutex::new(Ran {
        buffers: Vec::new(),
        findings: Findings::default(),
        suspects: Suspects::default(),
        ran: vec![false; function.instructions.len()],
        trace: None,
    });
    let work = || {
        // Blocks that wait for others are taken up again when these have had their turn.
        let mut waiting: VecDeque<Block<'_>> = VecDeque::new();
        while !stop.load(Ordering::Relaxed) {
            let block = next.fetch_add(1, Ordering::Relaxed);
            let mut block = match block < end {
                true => start(block),
                false => match waiting.pop_front() {
                    Some(block) => block,
                    None => break,
                },
            };
            match block.run() {
                Progress::Waiting => {
                    waiting.push_back(block);
                    continue;
                }
                Progress::Stopped => stop.store(true, Ordering::Relaxed),
                Progress::Done => {}
            }
            let mut all = all.lock().unwrap_or_else(|e| e.into_inner());
            for (all, ran) in all.ran.iter_mut().zip(&block.ran) {
                *all |= ran;
            }
            if let Some(noted) = block.trace.take() {
                all.trace = Some(noted);
            }
            all.findings.extend(block.findings);
            all.suspects.extend(block.suspects);
        }
    };
    // Blocks that hear of each other do so in the same order each time.
    let workers = match shared.turns {
        true => 1,
        false => launch
            .workers
            .clamp(1, 64)
            .min((end - first).max(1) as usize),
    };
    if workers == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
    }
    let mut ran = all.into_inner().unwrap_or_else(|e| e.into_inner());
    let memory = memory.into_inner().unwrap_or_else(|e| e.into_inner());
    ran.buffers = memory.into_buffers();
    ran.buffers.pop();
    Ok(ran)
}
