//! What the arguments of a call make of a function, whoever runs it: the GPU and the emulator take
//! their memory, grids and scalar arguments from here.

use rustc_hash::FxHashMap;
use tilewright_ir::small_float::{self, Number};
use tilewright_ir::{Buffer, Expr, Func, Kernel, Scalar, Var};
use tilewright_runtime::device::{Arg, ScalarType};
use tilewright_sim::Resolved;

use crate::jit::Error;

/// The tensors of a function, its workspaces behind its parameters.
pub fn tensors(func: &Func) -> impl Iterator<Item = Buffer> {
    let params = func.tensors().map(|(buffer, _)| buffer);
    params.chain(func.workspaces.iter().copied())
}

/// The bytes that the elements of a tensor or workspace take.
pub fn bytes(func: &Func, buffer: Buffer, call: &Resolved) -> usize {
    let shape = call.tensors.get(&buffer).map(|(shape, _)| shape);
    let count: i64 = shape.map_or(0, |shape| shape.iter().product());
    let bits = func.buffers[buffer].dtype.bits() as usize;
    (count.max(0) as usize * bits).div_ceil(8)
}

/// The value of an integer expression over sizes and indices that have these values; none where it
/// reads memory.
pub fn value(
    func: &Func,
    call: &Resolved,
    values: &FxHashMap<Var, i128>,
    e: &Expr,
) -> Option<i128> {
    if let Some(value) = e.as_int() {
        return Some(value);
    }
    let known = e.rewrite(&mut |node| {
        let value = values.get(&node.as_var()?)?;
        Some(Expr::int(*value, node.dtype()))
    });
    match known.names_memory() {
        true => None,
        false => match call.constant(func, &known).ok()? {
            Number::Int(value) => Some(value),
            Number::Float(_) => None,
        },
    }
}

/// The blocks of a launch in x, y, z.
pub fn grid(func: &Func, kernel: &Kernel, call: &Resolved) -> Result<[u32; 3], Error> {
    let mut grid = [1; 3];
    for (blocks, (_, extent)) in grid.iter_mut().zip(&kernel.grid) {
        *blocks = match call.constant(func, extent)? {
            Number::Int(n) if (0..=i128::from(i32::MAX)).contains(&n) => n as u32,
            _ => {
                let text = "a grid extent is negative or too large";
                return Err(Error::plain("launch-extent", extent.span(), text));
            }
        };
    }
    Ok(grid)
}

/// A size or scalar parameter as kernels take it.
pub fn scalar(func: &Func, var: Var, call: &Resolved) -> Option<Arg<'static>> {
    let scalar = func.vars[var].dtype.scalar;
    let (int, float) = match call.scalar(func, var)? {
        Number::Int(v) => (v, v as f64),
        Number::Float(v) => (v as i128, v),
    };
    let bits = || small_float::float_to_bits(scalar, float) as u16;
    Some(match scalar_type(scalar)? {
        ScalarType::Bool => Arg::Bool(int != 0),
        ScalarType::I8 => Arg::I8(int as i8),
        ScalarType::I16 => Arg::I16(int as i16),
        ScalarType::I32 => Arg::I32(int as i32),
        ScalarType::I64 => Arg::I64(int as i64),
        ScalarType::U8 => Arg::U8(int as u8),
        ScalarType::U16 => Arg::U16(int as u16),
        ScalarType::U32 => Arg::U32(int as u32),
        ScalarType::U64 => Arg::U64(int as u64),
        ScalarType::F16 => Arg::F16(bits()),
        ScalarType::BF16 => Arg::BF16(bits()),
        ScalarType::F32 => Arg::F32(float as f32),
        ScalarType::F64 => Arg::F64(float),
    })
}

/// The type of a scalar argument; none where kernels take no such argument.
pub fn scalar_type(scalar: Scalar) -> Option<ScalarType> {
    Some(match scalar {
        Scalar::Bool => ScalarType::Bool,
        Scalar::I8 => ScalarType::I8,
        Scalar::I16 => ScalarType::I16,
        Scalar::I32 => ScalarType::I32,
        Scalar::I64 => ScalarType::I64,
        Scalar::U8 => ScalarType::U8,
        Scalar::U16 => ScalarType::U16,
        Scalar::U32 => ScalarType::U32,
        Scalar::U64 => ScalarType::U64,
        Scalar::F16 => ScalarType::F16,
        Scalar::BF16 => ScalarType::BF16,
        Scalar::F32 => ScalarType::F32,
        Scalar::F64 => ScalarType::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{FileId, text};
    use tilewright_sim::{Arg as Given, Args, resolve};

    const FUNC: &str = "\
func @f level=device {
  scalar n: int32
  scalar x: float16
  scalar y: uint8
  workspace W: int4[n, 3]
  kernel grid(bx: n - 2, by: 3) threads(tx: 32, ty: 1, tz: 1) {
  }
}
";

    fn called(n: i128) -> (Func, Resolved) {
        let func = text::parse(FUNC, FileId(0)).expect("it parses");
        let given = [
            ("n", Given::Int(n)),
            ("x", Given::Float(1.5)),
            ("y", Given::Int(200)),
        ];
        let given = given.into_iter();
        let mut args = given.fold(Args::new(), |args, (name, arg)| args.with(name, arg));
        let call = resolve(&func, &mut args).expect("the arguments fit");
        (func, call)
    }

    #[test]
    fn arguments_say_what_is_launched() {
        let (func, call) = called(7);
        assert_eq!(grid(&func, &func.kernels[0], &call).ok(), Some([5, 3, 1]));
        let workspaces: Vec<Buffer> = tensors(&func).collect();
        assert_eq!(workspaces, func.workspaces);
        // Halves of bytes are not left out.
        assert_eq!(bytes(&func, workspaces[0], &call), 11);
        let named = |name: &str| {
            let var = func.vars.iter().find(|(_, data)| data.name == name);
            let arg = scalar(&func, var.expect("it is there").0, &call);
            arg.and_then(|arg| arg.bytes())
        };
        assert_eq!(named("n"), Some(vec![7, 0, 0, 0]));
        assert_eq!(named("x"), Some(vec![0, 0x3e]));
        assert_eq!(named("y"), Some(vec![200]));
    }

    #[test]
    fn grids_below_zero_are_refused() {
        let (func, call) = called(1);
        let refused = grid(&func, &func.kernels[0], &call).expect_err("-1 blocks");
        assert!(refused.to_string().contains("a grid extent is negative"));
    }
}
