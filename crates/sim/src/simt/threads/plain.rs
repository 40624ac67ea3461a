//! What a thread does for itself: functions of values, printing, and what only a GPU can do.

use tilewright_ir::{Scalar, Span, ThreadOp, thread_ops};

use super::{ThreadCode, stray};
use crate::compile::names::Compiled;
use crate::error::{RunError, codes};
use crate::exec::threads::plain::{dot4, printed};
use crate::exec::{decode, encode};
use crate::simt::access::Addresses;
use crate::simt::compile::Compiler;
use crate::simt::device::DeviceCode;
use crate::simt::env::Env;
use crate::simt::program::{Op, Slot};
use crate::simt::step::Pause;
use crate::simt::warp::{Lanes, Warp};

#[derive(Clone, Debug)]
pub(in crate::simt) enum Code {
    Dp4a {
        a: u32,
        b: u32,
        c: u32,
    },
    Print {
        message: String,
        args: Box<[(Slot, Scalar)]>,
    },
}

pub(super) fn compile(c: &mut Compiler<'_>, op: &ThreadOp, span: Span) -> Compiled<Op> {
    let code = match op {
        ThreadOp::Dp4a {
            a,
            a_indices,
            b,
            b_indices,
            c: sum,
            c_indices,
        } => {
            let access = c.element(*sum, c_indices, 1, true, span)?;
            let number = c.program.accesses[access as usize].buffer;
            c.note_traffic(number, false);
            Code::Dp4a {
                a: c.element(*a, a_indices, 4, false, span)?,
                b: c.element(*b, b_indices, 4, false, span)?,
                c: access,
            }
        }
        ThreadOp::Extern { name, .. } => {
            return Err(RunError::new(
                codes::FOREIGN_CODE,
                span,
                format!("`{name}` is foreign code, which only a GPU can run"),
            ));
        }
        ThreadOp::Print { message, args } => {
            let values: Box<[Slot]> = c.scalars(args)?;
            let scalars = args.iter().map(|a| a.dtype().scalar);
            Code::Print {
                message: message.clone(),
                args: values.into_iter().zip(scalars).collect(),
            }
        }
        ThreadOp::SetMaxRegs { .. } => {
            return Ok(Op::Device(DeviceCode::Nothing));
        }
        thread_ops!(atomics lanes barriers) => return Err(stray(span)),
    };
    Ok(Op::Thread(Box::new(ThreadCode::Plain(code))))
}

impl Env<'_> {
    pub(super) fn plain_op(&mut self, warp: &mut Warp, code: &Code) -> Pause {
        match code {
            Code::Dp4a { a, b, c } => self.dp4a(warp, [*a, *b, *c]),
            Code::Print { message, args } => {
                for lane in Lanes(warp.mask) {
                    let values = args.iter().map(|&(slot, scalar)| {
                        printed(scalar, warp.regs.lane(slot, lane as usize))
                    });
                    let values: Vec<String> = values.collect();
                    let thread = warp.thread(lane);
                    let line = match values.is_empty() {
                        true => format!("thread {thread}: {message}"),
                        false => format!("thread {thread}: {message} {}", values.join(", ")),
                    };
                    self.print(line);
                }
            }
        }
        Pause::Turn
    }

    fn dp4a(&mut self, warp: &mut Warp, [a, b, c]: [u32; 3]) {
        if warp.mask == 0 {
            return;
        }
        let (a, from_a) = self.read_words(warp, a);
        let (b, from_b) = self.read_words(warp, b);
        let (sum, mut to) = self.read_words(warp, c);
        let access = &self.program.accesses[c as usize];
        let scalar = self.program.buffers[access.buffer as usize].scalar;
        to.mask &= from_a.mask & from_b.mask;
        to.uniform = false;
        self.store_raw(warp, access, &to, |_, _, lane| {
            let l = lane as usize;
            let pairs = std::array::from_fn(|i| (a[4 * l + i], b[4 * l + i]));
            encode(scalar, dot4(scalar, sum[l], pairs))
        });
    }

    /// What each active lane reads at an access, word by word, and where.
    fn read_words(&mut self, warp: &mut Warp, access: u32) -> (Vec<u64>, Addresses) {
        let access = &self.program.accesses[access as usize];
        let scalar = self.program.buffers[access.buffer as usize].scalar;
        let addresses = self.addresses(warp, access, warp.mask);
        self.check_read(warp, access, &addresses);
        let width = access.width as usize;
        let mut words = vec![0; warp.width as usize * width];
        for lane in Lanes(addresses.mask) {
            for (i, word) in words[lane as usize * width..][..width]
                .iter_mut()
                .enumerate()
            {
                let at = addresses.at[lane as usize] + i;
                *word = decode(scalar, self.raw(warp, access, lane, at));
            }
        }
        (words, addresses)
    }
}
