//! `T.GemmWarpPolicy`: how warps share a product.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::{GemmPolicy, Span};

use crate::lang::CallArgs;
use crate::record::Recorder;
use crate::value::{Object, Value};
use crate::{Result, codes};

/// `T.GemmWarpPolicy`, whose members are policies.
#[derive(Debug)]
pub struct GemmWarpPolicy;

/// One of its members.
#[derive(Debug)]
struct PolicyValue(GemmPolicy);

impl Object for GemmWarpPolicy {
    fn type_name(&self) -> &'static str {
        "the class of warp policies"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attr(&self, rec: &mut Recorder, name: &str, span: Span) -> Option<Result<Value>> {
        let policy = match name {
            "Square" => GemmPolicy::Square,
            "FullRow" => GemmPolicy::FullRow,
            "FullCol" => GemmPolicy::FullCol,
            _ => {
                return Some(Err(rec
                    .error(
                        codes::UNKNOWN_ATTRIBUTE,
                        span,
                        format!("there is no warp policy `{name}`"),
                    )
                    .help("the policies are Square, FullRow and FullCol")
                    .into()));
            }
        };
        Some(Ok(Value::Object(Rc::new(PolicyValue(policy)))))
    }
}

impl Object for PolicyValue {
    fn type_name(&self) -> &'static str {
        "a warp policy"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The policy that a call asks for.
pub(super) fn policy(rec: &Recorder, args: &CallArgs) -> Result<GemmPolicy> {
    match args.value("policy") {
        None => Ok(GemmPolicy::Square),
        Some(value) => match value.object::<PolicyValue>() {
            Some(PolicyValue(policy)) => Ok(*policy),
            None => Err(rec
                .error(
                    codes::WRONG_TYPE,
                    args.span_of("policy"),
                    format!(
                        "`policy` must be a warp policy, this is {}",
                        value.type_name()
                    ),
                )
                .help("use `T.GemmWarpPolicy.Square`, `.FullRow` or `.FullCol`")
                .into()),
        },
    }
}
