//! What other libraries say of numbers and of the machine, where no Python is needed to know it:
//! `triton.next_power_of_2`, `driver.get_num_sms()`, `torch.version.hip`.
//!
//! What depends on the machine is the target's, or a setting's where one has its name.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::Span;
use tilewright_ir::target::Dialect;

use crate::eval::Stage;
use crate::eval::builtins::PyArgs;
use crate::eval::call::Args;
use crate::lang::{self, dtypes};
use crate::record::Recorder;
use crate::value::{Object, Value};
use crate::{Result, codes};

/// Settings that say what is known of the machine.
const SETTINGS: &[&str] = &[
    "num_sms",
    "is_available",
    "torch.version.hip",
    "torch.version.cuda",
];

/// Libraries whose names these are.
const LIBRARIES: &[&str] = &["torch", "triton", "tilelang", "tilewright", "tvm"];

/// Whether a setting of this name says something of the machine.
pub(super) fn is_setting(name: &str) -> bool {
    SETTINGS.contains(&name)
}

/// The two ends of a dotted path.
fn ends(path: &str) -> Option<(&str, &str)> {
    let (root, rest) = path.split_once('.')?;
    let last = rest.rsplit('.').next().unwrap_or(rest);
    LIBRARIES.contains(&root).then_some((root, last))
}

impl Stage {
    /// The value of a name of another library, where it is known.
    pub(super) fn known_value(&mut self, path: &str, span: Span) -> Result<Option<Value>> {
        let dialect = self.rec.target.machine().dialect;
        let version = |this: Dialect, name: &str| match dialect == this {
            true => Value::str(name),
            false => Value::None,
        };
        Ok(Some(match path {
            "torch.version.hip" => self.rec.fact(path, version(Dialect::Hip, "hip"), span)?,
            "torch.version.cuda" => self.rec.fact(path, version(Dialect::Cuda, "cuda"), span)?,
            _ => match path.rsplit_once('.') {
                Some((dtype, "itemsize")) => match ends(dtype).map(|(_, n)| dtypes::from_name(n)) {
                    Some(Some(d)) => Value::Int(i128::from(d.bits().div_ceil(8))),
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            },
        }))
    }

    /// The result of a function of another library, where it is known.
    pub(super) fn known_call(&mut self, path: &str, args: Args) -> Result<Option<Value>> {
        let Some((root, last)) = ends(path) else {
            return Ok(None);
        };
        let ours = matches!(root, "tilelang" | "tilewright");
        let span = args.span;
        Ok(Some(match last {
            "cdiv" if root == "triton" => match lang::name("cdiv") {
                Some(cdiv) => self.call(&cdiv, args)?,
                None => return Ok(None),
            },
            "next_power_of_2" if ours || root == "triton" => {
                next_power_of_2(self, &args.into_py())?
            }
            "DataType" if ours || root == "tvm" => data_type(self, &args.into_py())?,
            "get_num_sms" if ours => self.rec.num_sms(span)?,
            "is_available" if path == "torch.cuda.is_available" => {
                self.rec.fact("is_available", Value::Bool(true), span)?
            }
            "get_device_properties" if root == "torch" => {
                let count = self.rec.num_sms(span)?;
                Value::Object(Rc::new(Device { count }))
            }
            _ => return Ok(None),
        }))
    }
}

/// `torch.cuda.get_device_properties(0)`
#[derive(Debug)]
struct Device {
    count: Value,
}

impl Object for Device {
    fn type_name(&self) -> &'static str {
        "the properties of a device"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attr(&self, rec: &mut Recorder, name: &str, _: Span) -> Option<Result<Value>> {
        match name {
            "multi_processor_count" => Some(Ok(self.count.clone())),
            "warp_size" => {
                let lanes = rec.target.machine().warp_size;
                Some(Ok(Value::Int(lanes.into())))
            }
            _ => None,
        }
    }
}

fn next_power_of_2(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "next_power_of_2", 1, 1)?;
    let n = stage.rec.to_int(&args[0], a.span(), "the argument")?;
    match u64::try_from(n)
        .ok()
        .and_then(u64::checked_next_power_of_two)
    {
        Some(power) if n > 0 => Ok(Value::Int(power.into())),
        _ => {
            let message = format!("`next_power_of_2` of {n}: a positive number is meant");
            Err(stage.error(codes::WRONG_VALUE, a.span(), message).into())
        }
    }
}

fn data_type(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "DataType", 1, 1)?;
    Ok(Value::DType(stage.rec.to_dtype(&args[0], a.span())?))
}
