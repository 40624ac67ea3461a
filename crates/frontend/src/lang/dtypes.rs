//! Names of dtypes: those of the IR and the language's aliases.

use tilewright_ir::{DType, Scalar};

/// Other spellings, and what they mean.
const ALIASES: &[(&str, Scalar)] = &[
    ("half", Scalar::F16),
    ("float", Scalar::F32),
    ("double", Scalar::F64),
    ("short", Scalar::I16),
    ("int", Scalar::I32),
    ("long", Scalar::I64),
    ("uint", Scalar::U32),
    ("bf16", Scalar::BF16),
    ("fp16", Scalar::F16),
    ("fp32", Scalar::F32),
    ("float8_e4m3", Scalar::F8E4M3FN),
    ("float8_e8m0", Scalar::F8E8M0),
    ("float6_e2m3", Scalar::F6E2M3),
    ("float6_e3m2", Scalar::F6E3M2),
    ("float4_e2m1", Scalar::F4E2M1),
    ("boolean", Scalar::Bool),
];

/// The dtype of this name or alias, lanes included: `float16`, `half`, `int8x4`.
pub fn from_name(name: &str) -> Option<DType> {
    if let Some(dtype) = DType::from_name(name) {
        return Some(dtype);
    }
    if let Some((_, scalar)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
        return Some(DType::scalar(*scalar));
    }
    let (base, lanes) = name.rsplit_once('x')?;
    let (_, scalar) = ALIASES.iter().find(|(alias, _)| *alias == base)?;
    let lanes: u16 = lanes.parse().ok()?;
    (lanes >= 2).then_some(DType::vector(*scalar, lanes))
}

/// Every scalar name, for suggestions.
pub fn names() -> impl Iterator<Item = &'static str> {
    let scalars = Scalar::ALL.iter().map(|s| s.name());
    scalars.chain(ALIASES.iter().map(|(alias, _)| *alias))
}

/// `int`, `float` and `bool` of Python used as dtypes.
pub fn of_builtin(name: &str) -> Option<DType> {
    match name {
        "int" => Some(DType::I32),
        "float" => Some(DType::F32),
        "bool" => Some(DType::BOOL),
        _ => None,
    }
}
