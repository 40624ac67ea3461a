//! A compiled function as bytes: what the kernel cache keeps.
//!
//! Three parts, each with its length: the function's text without kernel bodies, a few lines on
//! each kernel's launch, the compiled program.

use std::fmt::{self, Write as _};

use tilewright_codegen::{KernelArg, KernelSource, Source, TensorMap};
use tilewright_ir::{Buffer, FileId, Func, Param, Span, TmaBox, Var, text};
use tilewright_layout::bulk::BulkTile;
use tilewright_layout::swizzle::Swizzle;
use tilewright_runtime::toolchain::Binary;

use super::error::Error;
use crate::call;

/// How a kernel is launched; its grid and threads are the signature's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMeta {
    pub name: String,
    pub shared_bytes: u32,
    /// All blocks run at once and may wait for each other.
    pub cooperative: bool,
    pub args: Vec<MetaArg>,
}

/// An argument, by its place in the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaArg {
    /// A parameter: a tensor's address, or a scalar.
    Param(usize),
    Workspace(usize),
    Symbol(usize),
    /// What the copy engine is told of a tensor.
    Map {
        /// Its place among the tensors and, behind them, the workspaces.
        tensor: usize,
        tile: TmaBox,
        swizzle: Swizzle,
        once: bool,
    },
}

/// Names the form of an entry, which the hash of the compiler's sources does not see.
pub(super) const FORMAT: &str = "maps";

pub(super) struct Entry {
    pub signature: Func,
    pub kernels: Vec<KernelMeta>,
    pub code: Binary,
}

pub(super) fn encode(device: &Func, source: &Source, code: &Binary) -> Vec<u8> {
    let mut signature = device.clone();
    for kernel in &mut signature.kernels {
        kernel.body.clear();
    }
    let mut lines = String::new();
    for kernel in &source.kernels {
        let _ = writeln!(lines, "{}", KernelMeta::of(device, kernel));
    }
    let mut out = Vec::new();
    let code = code.encode();
    for part in [
        text::print(&signature).as_bytes(),
        lines.as_bytes(),
        code.as_slice(),
    ] {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

pub(super) fn decode(bytes: &[u8]) -> Result<Entry, Error> {
    let bad = |what: &str| Error::plain("jit-bad-entry", Span::NONE, format!("a kernel's {what}"));
    let mut rest = bytes;
    let mut part = || -> Option<&[u8]> {
        let (length, tail) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let part = tail.get(..length)?;
        rest = &tail[length..];
        Some(part)
    };
    let (Some(ir), Some(lines), Some(code)) = (part(), part(), part()) else {
        return Err(bad("entry is cut short"));
    };
    let ir = std::str::from_utf8(ir).map_err(|_| bad("signature is no text"))?;
    let signature = text::parse(ir, FileId(0)).map_err(|_| bad("signature cannot be read"))?;
    let lines = std::str::from_utf8(lines).map_err(|_| bad("launch is no text"))?;
    let kernels: Option<Vec<KernelMeta>> = lines.lines().map(KernelMeta::parse).collect();
    Ok(Entry {
        signature,
        kernels: kernels.ok_or_else(|| bad("launch cannot be read"))?,
        code: Binary::decode(code).map_err(Error::Toolchain)?,
    })
}

impl KernelMeta {
    /// How a kernel of a function is launched.
    pub fn of(func: &Func, kernel: &KernelSource) -> KernelMeta {
        KernelMeta {
            name: kernel.name.clone(),
            shared_bytes: kernel.shared_bytes,
            cooperative: kernel.cooperative,
            args: kernel
                .args
                .iter()
                .filter_map(|a| MetaArg::of(func, *a))
                .collect(),
        }
    }

    fn parse(line: &str) -> Option<KernelMeta> {
        let mut words = line.split(' ');
        let name = words.next()?.to_string();
        let shared_bytes = words.next()?.parse().ok()?;
        let cooperative = words.next()? == "1";
        let args = words.next()?.split(',').filter(|a| !a.is_empty());
        let args: Option<Vec<MetaArg>> = args.map(MetaArg::parse).collect();
        Some(KernelMeta {
            name,
            shared_bytes,
            cooperative,
            args: args?,
        })
    }
}

/// The line of a kernel: `gemm 147504 0 p2,s0,m0:128x64:128`.
impl fmt::Display for KernelMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args: Vec<String> = self.args.iter().map(MetaArg::to_string).collect();
        let cooperative = u8::from(self.cooperative);
        let (name, shared) = (&self.name, self.shared_bytes);
        write!(f, "{name} {shared} {cooperative} {}", args.join(","))
    }
}

impl MetaArg {
    /// Where an argument of a kernel stands in the signature of its function, which has it.
    fn of(func: &Func, arg: KernelArg) -> Option<MetaArg> {
        let param = |wanted: Param| func.params.iter().position(|p| *p == wanted);
        match arg {
            KernelArg::Buffer { buffer, .. } => {
                let tensor = |output| param(Param::Tensor { buffer, output });
                let found = tensor(false).or_else(|| tensor(true)).map(MetaArg::Param);
                let workspace = || func.workspaces.iter().position(|&w| w == buffer);
                found.or_else(|| workspace().map(MetaArg::Workspace))
            }
            KernelArg::Scalar(var) => {
                let found = param(Param::Scalar(var)).map(MetaArg::Param);
                let symbol = || func.symbols.iter().position(|&s| s == var);
                found.or_else(|| symbol().map(MetaArg::Symbol))
            }
            KernelArg::Map(map) => Some(MetaArg::Map {
                tensor: call::tensors(func).position(|b| b == map.buffer)?,
                tile: map.tile,
                swizzle: map.swizzle,
                once: map.once,
            }),
        }
    }

    fn parse(text: &str) -> Option<MetaArg> {
        let mut parts = text.get(1..)?.split(':');
        let index = parts.next()?.parse().ok()?;
        Some(match text.chars().next()? {
            'p' => MetaArg::Param(index),
            'w' => MetaArg::Workspace(index),
            's' => MetaArg::Symbol(index),
            'm' => {
                let tile = TmaBox::from_name(parts.next()?)?;
                let span: i64 = parts.next()?.parse().ok()?;
                MetaArg::Map {
                    tensor: index,
                    tile,
                    swizzle: BulkTile::SWIZZLES.into_iter().find(|s| s.span == span)?,
                    once: match parts.next() {
                        None => false,
                        Some("once") => true,
                        Some(_) => return None,
                    },
                }
            }
            _ => return None,
        })
    }
}

/// `p0`, `w1`, `s2`: parameter, workspace, symbol; `m0:128x64:128`: a tensor's map with the box and
/// the span of the swizzle, `:once` behind it where boxes are read once.
impl fmt::Display for MetaArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetaArg::Param(i) => write!(f, "p{i}"),
            MetaArg::Workspace(i) => write!(f, "w{i}"),
            MetaArg::Symbol(i) => write!(f, "s{i}"),
            MetaArg::Map {
                tensor,
                tile,
                swizzle,
                once,
            } => {
                let once = if *once { ":once" } else { "" };
                write!(f, "m{tensor}:{tile}:{}{once}", swizzle.span)
            }
        }
    }
}

/// What an argument is in the signature.
pub(super) enum Operand {
    Buffer(Buffer),
    Scalar(Var),
    Map(TensorMap),
}

impl MetaArg {
    pub(super) fn operand(self, func: &Func) -> Option<Operand> {
        Some(match self {
            MetaArg::Param(i) => match *func.params.get(i)? {
                Param::Tensor { buffer, .. } => Operand::Buffer(buffer),
                Param::Scalar(var) => Operand::Scalar(var),
            },
            MetaArg::Workspace(i) => Operand::Buffer(*func.workspaces.get(i)?),
            MetaArg::Symbol(i) => Operand::Scalar(*func.symbols.get(i)?),
            MetaArg::Map {
                tensor,
                tile,
                swizzle,
                once,
            } => Operand::Map(TensorMap {
                buffer: call::tensors(func).nth(tensor)?,
                tile,
                swizzle,
                once,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_round_trip() {
        let tile = TmaBox::new(&[128, 64]).expect("a box");
        let map = |once| {
            move |swizzle| MetaArg::Map {
                tensor: 1,
                tile,
                swizzle,
                once,
            }
        };
        let maps = BulkTile::SWIZZLES.into_iter().map(map(false));
        let maps = maps.chain(BulkTile::SWIZZLES.into_iter().map(map(true)));
        let others = [MetaArg::Param(0), MetaArg::Workspace(2), MetaArg::Symbol(1)];
        let meta = KernelMeta {
            name: "gemm".to_string(),
            shared_bytes: 1024,
            cooperative: true,
            args: others.into_iter().chain(maps).collect(),
        };
        assert_eq!(KernelMeta::parse(&meta.to_string()), Some(meta));
        for bad in [
            "gemm 0 0 m0:128x64",
            "gemm 0 0 m0:300x64:128",
            "gemm 0 0 m0:8x8:48",
            "gemm 0 0 m0:8x8:128:twice",
        ] {
            assert_eq!(KernelMeta::parse(bad), None, "{bad}");
        }
    }
}
