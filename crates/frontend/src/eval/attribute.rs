//! `value.name`.

use std::rc::Rc;

use tilewright_ir::{DType, Expr, ExprKind, Scope, Span};

use crate::codes;
use crate::eval::scope::Binding;
use crate::eval::{Stage, methods, modules};
use crate::record::elsewhere;
use crate::value::{Method, OpaqueReason, Value};
use crate::{Error, Result};

impl Stage {
    pub(crate) fn attribute(&mut self, value: &Value, name: &str, span: Span) -> Result<Value> {
        let found = match value {
            Value::Module(id) => return self.module_attribute(*id, name, span),
            Value::Opaque(o) => {
                let path = format!("{}.{name}", o.name);
                Some(match o.reason {
                    OpaqueReason::Tensor => modules::opaque(&path, o.reason),
                    OpaqueReason::ForeignModule => match self.beside(&path, 0)? {
                        Some(id) => Value::Module(id),
                        None => match self.known_value(&path, span)? {
                            Some(value) => value,
                            None => modules::opaque(&path, o.reason),
                        },
                    },
                })
            }
            Value::Host(object) => object.clone().attribute(self, name, span)?,
            Value::Object(object) => {
                let object = object.clone();
                match object.attr(&mut self.rec, name, span) {
                    Some(result) => return result,
                    None => None,
                }
            }
            Value::Buffer(b) => self.buffer_attribute(*b, name),
            Value::Element(e) if e.indices.is_empty() => self.buffer_attribute(e.buffer, name),
            Value::Region(r) => match name {
                "buffer" => Some(Value::Buffer(r.region.buffer)),
                "dtype" => Some(Value::DType(self.rec.buffer(r.region.buffer).dtype)),
                _ => None,
            },
            Value::Expr(_) | Value::Element(_) if name == "dtype" => {
                let e = self.rec.to_expr(value, span)?;
                Some(Value::DType(e.dtype()))
            }
            Value::DType(d) => match name {
                "bits" => Some(Value::Int(i128::from(d.scalar.bits()))),
                "lanes" => Some(Value::Int(i128::from(d.lanes))),
                "itemsize" | "bytes" => Some(Value::Int(i128::from(d.bits().div_ceil(8)))),
                _ => None,
            },
            Value::Range(r) => match name {
                "start" => Some(Value::Int(r.start)),
                "stop" => Some(Value::Int(r.stop)),
                "step" => Some(Value::Int(r.step)),
                _ => None,
            },
            Value::Slice(s) => match name {
                "start" => Some(s.lower.clone()),
                "stop" => Some(s.upper.clone()),
                "step" => Some(s.step.clone()),
                _ => None,
            },
            Value::Class(class) => {
                let symbol = self.symbols.find(name);
                match symbol.and_then(|s| class.scope.get(s)) {
                    Some(Binding::Live(v)) => Some(v),
                    _ => None,
                }
            }
            // A compiled kernel and the function it was made from are one here.
            Value::Staged(_) if name == "prim_func" => Some(value.clone()),
            Value::Function(f) if name == "__name__" => {
                Some(Value::Str(self.symbols.text(f.def.name.sym).clone()))
            }
            _ => None,
        };
        if let Some(value) = found {
            return Ok(value);
        }
        // A dtype is its name where text is meant.
        let text = match value {
            Value::DType(d) if !methods::exists(value, name) => Some(Value::str(d.to_string())),
            _ => None,
        };
        let value = text
            .as_ref()
            .filter(|t| methods::exists(t, name))
            .unwrap_or(value);
        if methods::exists(value, name) {
            return Ok(Value::Method(Rc::new(Method {
                receiver: value.clone(),
                name: Rc::from(name),
            })));
        }
        if let Some(found) = self.host_attribute(value, name, span)? {
            return Ok(found);
        }
        Err(self.unknown_attribute(value, name, span))
    }

    fn buffer_attribute(&self, buffer: tilewright_ir::Buffer, name: &str) -> Option<Value> {
        let data = self.rec.buffer(buffer);
        Some(match name {
            "shape" => {
                let extents = data.shape.iter().map(|e| self.expr_value(e.clone()));
                Value::tuple(extents.collect())
            }
            "dtype" => Value::DType(data.dtype),
            "name" => Value::str(&data.name),
            "ndim" => Value::Int(data.shape.len() as i128),
            "data" if matches!(data.scope, Scope::Global | Scope::Shared | Scope::Local) => {
                let indices = data.shape.iter().map(|e| Expr::zero(e.dtype())).collect();
                let kind = ExprKind::AddressOf { buffer, indices };
                Value::Expr(Expr::new(kind, DType::HANDLE, data.span))
            }
            "strides" => match &data.strides {
                Some(strides) => {
                    Value::tuple(strides.iter().map(|e| self.expr_value(e.clone())).collect())
                }
                None => {
                    let mut stride = Expr::i32(1);
                    let mut out = Vec::new();
                    for extent in data.shape.iter().rev() {
                        out.push(self.expr_value(stride.clone()));
                        stride = self
                            .rec
                            .binary_expr(
                                tilewright_ir::BinOp::Mul,
                                stride,
                                extent.clone(),
                                data.span,
                            )
                            .ok()?;
                    }
                    out.reverse();
                    Value::tuple(out)
                }
            },
            _ => return None,
        })
    }

    /// A constant expression as the Python value it is.
    pub fn expr_value(&self, e: Expr) -> Value {
        match (e.as_int(), e.dtype()) {
            (Some(v), tilewright_ir::DType::I32 | tilewright_ir::DType::I64) => Value::Int(v),
            (Some(v), tilewright_ir::DType::BOOL) => Value::Bool(v != 0),
            _ => Value::Expr(e),
        }
    }

    fn unknown_attribute(&self, value: &Value, name: &str, span: Span) -> Error {
        let mut d = self.error(
            codes::UNKNOWN_ATTRIBUTE,
            span,
            format!("{} has no attribute `{name}`", self.rec.what_is(value)),
        );
        if let Some(help) =
            tilewright_ir::nearest::suggestion(name, methods::names(value).iter().copied())
        {
            d = d.help(help);
        } else if let Some(help) = elsewhere::attribute(name)
            && (value.is_runtime() || matches!(value, Value::Buffer(_) | Value::Region(_)))
        {
            d = d.help(help);
        }
        d.into()
    }
}
