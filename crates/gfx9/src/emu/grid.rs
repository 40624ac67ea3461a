//! All blocks of a launch, several at a time.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::asm::Function;
use crate::cycles::Trace;

use super::Arch;
use super::block::{Block, Progress, Shared};
use super::code::Code;
use super::launch::{Launch, plain_descriptor};
use super::memory::{Buffer, Memory};
use super::report::{Finding, Findings};

/// What a launch came to.
#[derive(Debug)]
pub struct Outcome {
    /// The buffers as the kernel left them.
    pub buffers: Vec<Buffer>,
    pub findings: Vec<Finding>,
    /// Blocks wait for each other by atomics: whether they touch one place was not looked at.
    pub blocks_ordered: bool,
    /// The instructions that some wave ran.
    pub ran: Vec<bool>,
    /// What the waves of the block did that was to be traced.
    pub trace: Option<Trace>,
}

/// Runs a kernel.
pub fn run(function: &Function, arch: Arch, mut launch: Launch) -> Result<Outcome, String> {
    let code = Code::new(function);
    let descriptor = match &function.descriptor {
        Some(descriptor) => descriptor.clone(),
        None => plain_descriptor(),
    };
    let mut buffers = std::mem::take(&mut launch.buffers);
    let arguments = Memory::address(buffers.len());
    buffers.push(Buffer {
        name: "arguments".to_owned(),
        bytes: launch.argument_block(function)?,
        element: 4,
        writable: false,
        holds: None,
    });
    let mut memory = Memory::new(buffers);
    memory.blocks_ordered = code.orders_blocks();
    let blocks_ordered = memory.blocks_ordered;
    let memory = Mutex::new(memory);
    let shared = Shared {
        code: &code,
        arch,
        landing: launch.landing,
        memory: &memory,
        steps: launch.steps,
        traced: launch.traced,
    };
    let registers = code.highest();
    let lds = (descriptor.lds_bytes + launch.dynamic_lds) as usize;
    let start = |block: u64| {
        let waves = launch.waves(&descriptor, registers, arguments, block);
        let scratch = descriptor.scratch_bytes as usize;
        Block::new(&shared, block as u32, waves, lds, scratch, launch.seed)
    };
    let (first, end) = match launch.only {
        Some(block) => (u64::from(block), u64::from(block) + 1),
        None => (0, launch.blocks()),
    };
    let next = AtomicU64::new(first);
    let trace = Mutex::new(None);
    let ran = Mutex::new(vec![false; function.instructions.len()]);
    let stop = AtomicBool::new(false);
    let findings = Mutex::new(Findings::default());
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
                Progress::Sleeping => {
                    waiting.push_back(block);
                    continue;
                }
                Progress::Stopped => stop.store(true, Ordering::Relaxed),
                Progress::Done => {}
            }
            let mut all = ran.lock().unwrap_or_else(|e| e.into_inner());
            for (all, ran) in all.iter_mut().zip(&block.ran) {
                *all |= ran;
            }
            drop(all);
            if let Some(noted) = block.trace.take() {
                *trace.lock().unwrap_or_else(|e| e.into_inner()) = Some(noted);
            }
            if !block.findings.is_empty() {
                let mut all = findings.lock().unwrap_or_else(|e| e.into_inner());
                all.extend(block.findings);
            }
        }
    };
    let workers = launch
        .workers
        .clamp(1, 64)
        .min((end - first).max(1) as usize);
    if workers == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
    }
    let memory = memory.into_inner().unwrap_or_else(|e| e.into_inner());
    let mut buffers = memory.into_buffers();
    buffers.pop();
    let findings = findings.into_inner().unwrap_or_else(|e| e.into_inner());
    Ok(Outcome {
        buffers,
        findings: findings.sorted(),
        blocks_ordered,
        ran: ran.into_inner().unwrap_or_else(|e| e.into_inner()),
        trace: trace.into_inner().unwrap_or_else(|e| e.into_inner()),
    })
}
