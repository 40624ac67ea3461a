//! The interpreter's side of the [host](crate::host): functions of a running Python, what is asked
//! of its objects, and the runs that record a kernel of it.

use std::rc::Rc;

use tilewright_ir::{FileId, Func, Param, Span};

use crate::codes;
use crate::eval::Stage;
use crate::eval::builtins::Builtin;
use crate::eval::call::Args;
use crate::eval::entry::Style;
use crate::eval::modules::ModuleId;
use crate::eval::options::EntryOptions;
use crate::eval::scope::Scope;
use crate::host::{Host, HostFunction, HostObject};
use crate::lang::{Arg, Ty};
use crate::record::settings::{SettingValue, Settings};
use crate::syntax::ast::{BinOp, CmpOp, FuncDef, Module, UnaryOp};
use crate::value::{Closure, JitOptions, Keyword, Role, StagedFn, Value};
use crate::{Error, Result};

/// Built-ins that take objects of the host as they are; the others are the host's own then.
const OWN_BUILTINS: &[&str] = &[
    "all",
    "any",
    "callable",
    "dict",
    "enumerate",
    "filter",
    "getattr",
    "hasattr",
    "iter",
    "list",
    "map",
    "range",
    "reversed",
    "tuple",
    "zip",
];

/// A call of an eager kernel of the host.
#[derive(Clone, Copy, Debug)]
pub struct EagerCall<'a> {
    pub function: &'a HostFunction,
    /// Annotations of its parameters, in order, as the host evaluated them.
    pub annotations: &'a [Option<Value>],
    /// Values of the parameters that are no tensors.
    pub given: &'a [(Rc<str>, Value)],
}

impl Stage {
    /// A compilation without a file of its own, whose names a host explains.
    pub fn hosted(host: Rc<dyn Host>) -> Stage {
        let module = Module {
            body: Vec::new(),
            functions: Vec::new(),
        };
        let mut stage = Stage::new(module, Default::default(), Default::default());
        stage.rec.end_when({
            let host = host.clone();
            move || host.interrupted()
        });
        stage.host = Some(host);
        stage
    }

    /// A host function as one that the interpreter runs.
    pub fn host_closure(&mut self, function: &HostFunction) -> Result<Rc<Closure>> {
        let def = self.host_def(function)?;
        let value_of = |name: &str| {
            let mut all = function.defaults.iter();
            all.find(|(n, _)| &**n == name).map(|(_, v)| v.clone())
        };
        let params = def.params.iter();
        let defaults = params
            .map(|p| value_of(self.symbols.text(p.name.sym)))
            .collect();
        Ok(Rc::new(Closure {
            def,
            scope: Scope::of_host(function.space.clone()),
            defaults,
        }))
    }

    /// A host function in one of the roles that the language's decorators give.
    pub fn host_staged(&mut self, function: &HostFunction, role: Role) -> Result<Value> {
        let closure = self.host_closure(function)?;
        let jit = None;
        Ok(Value::Staged(Rc::new(StagedFn { role, closure, jit })))
    }

    fn host_def(&mut self, function: &HostFunction) -> Result<Rc<FuncDef>> {
        let module = self.host_file(function.file, &function.text)?;
        let text = function.text.as_bytes();
        let line_of = |offset: u32| {
            let upto = &text[..(offset as usize).min(text.len())];
            1 + upto.iter().filter(|b| **b == b'\n').count() as u32
        };
        let here = |def: &&Rc<FuncDef>| {
            let first = def.decorators.first().map_or(def.span, |d| d.span);
            self.symbols.text(def.name.sym) == &function.name
                && line_of(first.start) == function.line
        };
        let inside = function.inside.map(|(line, column)| {
            let ends = text.iter().enumerate().filter(|(_, b)| **b == b'\n');
            let before = ends.map(|(at, _)| at + 1).take(line as usize - 1).last();
            before.unwrap_or(0) as u32 + column
        });
        let holds = |def: &&Rc<FuncDef>| match inside {
            Some(at) => (def.span.start..def.span.end).contains(&at),
            None => true,
        };
        let mut found = module.functions.iter().filter(here);
        // Of lambdas inside each other the innermost has the place; it is parsed first.
        let first = match found.clone().count() {
            0 | 1 => found.next(),
            _ => module.functions.iter().filter(here).find(holds),
        };
        if found.next().is_some() && inside.is_none() {
            let message = "which of the lambdas of this line is meant is not known";
            let span = first.map_or(Span::NONE, |def| def.span);
            let error = self.error(codes::NO_SOURCE, span, message);
            return Err(error.help("write each in a line of its own").into());
        }
        first.cloned().ok_or_else(|| {
            let message = format!(
                "the source of `{}` is not at line {} of its file any more",
                function.name, function.line
            );
            self.error(codes::NO_SOURCE, Span::NONE, message)
                .help("the file was changed after it was imported; start Python again")
                .into()
        })
    }

    fn host_file(&mut self, file: FileId, text: &str) -> Result<Rc<Module>> {
        if let Some(module) = self.files.get(&file) {
            return Ok(module.clone());
        }
        let parsed = crate::syntax::parse_source(text, file, &mut self.symbols);
        let module = Rc::new(parsed.map_err(|mut errors| Error::from(errors.swap_remove(0)))?);
        self.files.insert(file, module.clone());
        Ok(module)
    }

    /// Whether a decorated function is a kernel itself, rather than one that returns a kernel.
    pub fn is_eager(&mut self, function: &HostFunction) -> Result<bool> {
        let def = self.host_def(function)?;
        Ok(self.style(&def) == Style::Eager)
    }

    /// Records a `@T.prim_func` of the host. `annotations` are those of its parameters, in order,
    /// as the host evaluated them.
    pub fn record_prim_func(
        &mut self,
        function: &HostFunction,
        annotations: &[Option<Value>],
    ) -> Result<Func> {
        let closure = self.host_closure(function)?;
        let def = closure.def.clone();
        self.begin(&def);
        let scope = Scope::new(Some(closure.scope.clone()));
        self.rec.building = true;
        self.in_function(scope, true, def.head, |stage| {
            for (position, param) in def.params.iter().enumerate() {
                match annotations.get(position) {
                    Some(Some(value)) => {
                        let at = param.annotation.as_ref().map_or(def.head, |a| a.span);
                        let (name, span) = (param.name.sym, param.name.span);
                        stage.declare_param(name, position, value, span, at)?;
                    }
                    _ => stage.prim_func_param(position, param)?,
                }
            }
            stage.finish_prim_func(&def)
        })?;
        self.finish_hosted(&def)
    }

    /// Where an eager kernel of the host has its `T.const` dimensions: name, the parameter that is
    /// a tensor, and which of its dimensions.
    pub fn const_places(&mut self, kernel: &EagerCall<'_>) -> Result<Vec<(String, String, usize)>> {
        let closure = self.eager_closure(kernel)?;
        self.rec.signature.open_consts = true;
        let options = EntryOptions::default();
        self.trace_eager(&closure, &options, kernel.annotations, true)?;
        let mut places = Vec::new();
        for param in &self.rec.func.params {
            let Param::Tensor { buffer, .. } = param else {
                continue;
            };
            let data = &self.rec.func.buffers[*buffer];
            for (dim, extent) in data.shape.iter().enumerate() {
                if let Some(var) = extent.as_var() {
                    let name = self.rec.func.vars[var].name.clone();
                    places.push((name, data.name.clone(), dim));
                }
            }
        }
        Ok(places)
    }

    /// Records an eager kernel of the host; `consts` are the values of its `T.const` dimensions.
    pub fn record_eager(
        &mut self,
        kernel: &EagerCall<'_>,
        consts: &[(String, i128)],
    ) -> Result<Func> {
        let closure = self.eager_closure(kernel)?;
        let given: Vec<_> = consts
            .iter()
            .map(|(name, value)| (name.clone(), SettingValue::Int(*value)))
            .collect();
        self.rec.settings = Settings::new(&given);
        self.begin(&closure.def);
        let options = EntryOptions::default();
        self.trace_eager(&closure, &options, kernel.annotations, false)?;
        self.finish_hosted(&closure.def)
    }

    /// The function with what the call gives in the place of defaults.
    fn eager_closure(&mut self, kernel: &EagerCall<'_>) -> Result<Rc<Closure>> {
        let closure = self.host_closure(kernel.function)?;
        let mut defaults = closure.defaults.clone();
        for (param, default) in closure.def.params.iter().zip(&mut defaults) {
            let name = self.symbols.text(param.name.sym);
            if let Some((_, value)) = kernel.given.iter().find(|(n, _)| n == name) {
                *default = Some(value.clone());
            }
        }
        Ok(Rc::new(Closure {
            def: closure.def.clone(),
            scope: closure.scope.clone(),
            defaults,
        }))
    }

    fn begin(&mut self, def: &FuncDef) {
        self.rec.func.name = self.symbols.text(def.name.sym).to_string();
        self.rec.func.span = def.head;
    }

    fn finish_hosted(&mut self, def: &FuncDef) -> Result<Func> {
        self.check_launches(def)?;
        self.name_the_nameless();
        Ok(std::mem::replace(&mut self.rec.func, Func::new("")))
    }

    /// The items of a container of the host; other values as they are.
    pub fn own_container(&mut self, value: Value, span: Span) -> Result<Value> {
        match &value {
            Value::Host(object) => match object.clone().contents(self, span)? {
                Some(contents) => Ok(contents),
                None => Ok(value),
            },
            _ => Ok(value),
        }
    }

    /// What a decorator of the host says of the kernel just recorded.
    pub fn apply_options(&mut self, func: Func, jit: &JitOptions) -> Result<Func> {
        self.rec.func = func;
        if let Some((value, span)) = &jit.out_idx {
            self.rec.apply_out_idx(value, *span)?;
        }
        self.record_jit_options(jit);
        Ok(std::mem::replace(&mut self.rec.func, Func::new("")))
    }

    /// An attribute that the interpreter does not know of a value that Python has too.
    pub(super) fn host_attribute(
        &mut self,
        value: &Value,
        name: &str,
        span: Span,
    ) -> Result<Option<Value>> {
        let Some(host) = self.host.clone() else {
            return Ok(None);
        };
        if value.is_block_bound() || matches!(value, Value::Expr(_)) {
            return Ok(None);
        }
        match host.object(value) {
            Some(object) => object.attribute(self, name, span),
            None => Ok(None),
        }
    }

    /// Calls an object of the host.
    pub(super) fn host_call(&mut self, object: &Rc<dyn HostObject>, args: Args) -> Result<Value> {
        let span = args.span;
        self.rec.charge(1, span)?;
        let values: Vec<Value> = args.positional.into_iter().map(|a| a.value).collect();
        let keywords: Vec<(Rc<str>, Value)> = args
            .keywords
            .into_iter()
            .map(|k| (self.symbols.text(k.name).clone(), k.value))
            .collect();
        let outer = std::mem::replace(&mut self.rec.span, span);
        let result = self.nested_call(span, |stage| object.call(stage, &values, &keywords, span));
        self.rec.span = outer;
        // It may have taken any time.
        self.rec.end_if_interrupted(span)?;
        result
    }

    /// Calls a function with arguments that the host made.
    pub fn call_from_host(
        &mut self,
        function: &Value,
        args: Vec<Value>,
        keywords: &[(Rc<str>, Value)],
        span: Span,
    ) -> Result<Value> {
        let mut call = Args::of(args, span);
        for (name, value) in keywords {
            call.keywords.push(Keyword {
                name: self.symbols.intern(name),
                value: value.clone(),
                span,
            });
        }
        self.call(function, call)
    }

    /// Does with operands of which one is the host's what Python does with them.
    pub(super) fn host_operate(
        &mut self,
        name: &str,
        operands: &[Value],
        span: Span,
    ) -> Result<Value> {
        match self.host.clone() {
            Some(host) => host.operate(self, name, operands, span),
            None => Err(self.no_host(span)),
        }
    }

    /// Only a host makes its objects, so one is there.
    fn no_host(&self, span: Span) -> Error {
        let message = "a value of a running Python, and there is none";
        self.error(codes::OPAQUE_VALUE, span, message).into()
    }

    /// `a op= b`, where `a` is the host's: it may change in place.
    pub(super) fn host_aug(
        &mut self,
        op: BinOp,
        a: &Value,
        b: &Value,
        span: Span,
    ) -> Result<Value> {
        if self.rec.is_ir_operand(b) {
            return self.host_binop(op, a, b, span);
        }
        let name = format!("i{}", operator_name(op).trim_end_matches('_'));
        self.host_operate(&name, &[a.clone(), b.clone()], span)
    }

    /// `a op b` with an object of the host on one side.
    pub(super) fn host_binop(
        &mut self,
        op: BinOp,
        a: &Value,
        b: &Value,
        span: Span,
    ) -> Result<Value> {
        if self.rec.is_ir_operand(a) || self.rec.is_ir_operand(b) {
            let (x, y) = (self.plain_number(a, span)?, self.plain_number(b, span)?);
            return self.binop(op, &x, &y, span);
        }
        self.host_operate(operator_name(op), &[a.clone(), b.clone()], span)
    }

    pub(super) fn host_unary(&mut self, op: UnaryOp, value: &Value, span: Span) -> Result<Value> {
        let name = match op {
            UnaryOp::Plus => "pos",
            UnaryOp::Minus => "neg",
            UnaryOp::Invert => "invert",
            UnaryOp::Not => "not_",
        };
        self.host_operate(name, std::slice::from_ref(value), span)
    }

    /// `a op b` of a comparison with an object of the host on one side.
    pub(super) fn host_compare(
        &mut self,
        op: CmpOp,
        a: &Value,
        b: &Value,
        span: Span,
    ) -> Result<Value> {
        let name = match op {
            CmpOp::Eq => "eq",
            CmpOp::Ne => "ne",
            CmpOp::Lt => "lt",
            CmpOp::Le => "le",
            CmpOp::Gt => "gt",
            CmpOp::Ge => "ge",
            CmpOp::Is => "is_",
            CmpOp::IsNot => "is_not",
            CmpOp::In => return self.host_operate("contains", &[b.clone(), a.clone()], span),
            CmpOp::NotIn => {
                let found = self.host_operate("contains", &[b.clone(), a.clone()], span)?;
                return Ok(Value::Bool(!self.rec.truth(&found, span)?));
            }
        };
        if self.rec.is_ir_operand(a) || self.rec.is_ir_operand(b) {
            let (x, y) = (self.plain_number(a, span)?, self.plain_number(b, span)?);
            return self.compare(op, &x, &y, span);
        }
        self.host_operate(name, &[a.clone(), b.clone()], span)
    }

    /// The number that an object of the host stands for; other values as they are.
    fn plain_number(&self, value: &Value, span: Span) -> Result<Value> {
        match value {
            Value::Host(object) => match object.number() {
                Some(number) => Ok(number),
                None => Err(self.rec.wrong_type("a number", value, span)),
            },
            other => Ok(other.clone()),
        }
    }

    /// The host's own built-in, for arguments that only it understands.
    pub(super) fn host_builtin(
        &mut self,
        builtin: Builtin,
        args: &Args,
    ) -> Result<Option<Rc<dyn HostObject>>> {
        let is_host = |v: &Value| matches!(v, Value::Host(_));
        let name = builtin.0.name;
        let mut given = args.positional.iter().map(|a| &a.value);
        // What Python has it prints; what only the kernel has is explained.
        let prints =
            name == "print" && !given.clone().any(|v| v.is_runtime() || v.is_block_bound());
        let own = OWN_BUILTINS.contains(&name)
            || !(given.any(is_host) || args.keywords.iter().any(|k| is_host(&k.value)));
        if own && !prints {
            return Ok(None);
        }
        let Some(host) = self.host.clone() else {
            return Ok(None);
        };
        match host.builtin(self, name, args.span)? {
            Some(Value::Host(object)) => Ok(Some(object)),
            _ => Ok(host.object(&Value::Builtin(builtin))),
        }
    }

    /// An argument of a language function, with what an object of the host stands for in the
    /// place of the object.
    pub(crate) fn host_argument(&mut self, ty: Ty, arg: &mut Arg) -> Result<()> {
        let Value::Host(object) = &arg.value else {
            return Ok(());
        };
        let object = object.clone();
        let plain = match ty {
            Ty::Int | Ty::Bool | Ty::Number | Ty::Scalar => object.number(),
            Ty::DType => object.dtype().map(Value::DType),
            Ty::Shape => match object.number() {
                Some(number) => Some(number),
                None => Some(Value::tuple(object.items(self, arg.span)?)),
            },
            Ty::Sequence => Some(Value::tuple(object.items(self, arg.span)?)),
            Ty::Str => object.string().map(Value::str),
            Ty::Dict => object.contents(self, arg.span)?,
            // Any of these may be meant: items, a number, or the type of a conversion.
            Ty::Any => match object.contents(self, arg.span)? {
                None => object.number().or(object.dtype().map(Value::DType)),
                contents => contents,
            },
            Ty::Buffer | Ty::Tile | Ty::Callable => None,
        };
        if let Some(plain) = plain {
            arg.value = plain;
        }
        Ok(())
    }
}

/// What Python's module `operator` calls an operator.
fn operator_name(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "add",
        BinOp::Sub => "sub",
        BinOp::Mul => "mul",
        BinOp::MatMul => "matmul",
        BinOp::Div => "truediv",
        BinOp::FloorDiv => "floordiv",
        BinOp::Mod => "mod",
        BinOp::Pow => "pow",
        BinOp::Shl => "lshift",
        BinOp::Shr => "rshift",
        BinOp::BitOr => "or_",
        BinOp::BitXor => "xor",
        BinOp::BitAnd => "and_",
    }
}

/// What the host keeps of the language and has said again in a kernel.
impl Stage {
    /// Does what Python's `operator.NAME` does with values of any kind; `getattr` has the name as
    /// its second operand.
    pub fn operate(&mut self, name: &str, operands: &[Value], span: Span) -> Result<Value> {
        let binary = |op| (Some(op), None, None);
        let unary = |op| (None, Some(op), None);
        let compare = |op| (None, None, Some(op));
        let (bin, un, cmp) = match name {
            "add" => binary(BinOp::Add),
            "sub" => binary(BinOp::Sub),
            "mul" => binary(BinOp::Mul),
            "matmul" => binary(BinOp::MatMul),
            "truediv" => binary(BinOp::Div),
            "floordiv" => binary(BinOp::FloorDiv),
            "mod" => binary(BinOp::Mod),
            "pow" => binary(BinOp::Pow),
            "lshift" => binary(BinOp::Shl),
            "rshift" => binary(BinOp::Shr),
            "or_" => binary(BinOp::BitOr),
            "xor" => binary(BinOp::BitXor),
            "and_" => binary(BinOp::BitAnd),
            "pos" => unary(UnaryOp::Plus),
            "neg" => unary(UnaryOp::Minus),
            "invert" => unary(UnaryOp::Invert),
            "eq" => compare(CmpOp::Eq),
            "ne" => compare(CmpOp::Ne),
            "lt" => compare(CmpOp::Lt),
            "le" => compare(CmpOp::Le),
            "gt" => compare(CmpOp::Gt),
            "ge" => compare(CmpOp::Ge),
            _ => (None, None, None),
        };
        match (operands, bin, un, cmp) {
            ([a, b], Some(op), ..) => self.binop(op, a, b, span),
            ([a], _, Some(op), _) => self.unary(op, a, span),
            ([a, b], _, _, Some(op)) => self.compare(op, a, b, span),
            ([a, Value::Str(attribute)], ..) if name == "getattr" => {
                let attribute = attribute.clone();
                self.attribute(a, &attribute, span)
            }
            ([Value::Buffer(b), key], ..) if name == "getitem" => {
                let keys = match key {
                    Value::Tuple(keys) => keys.to_vec(),
                    one => vec![one.clone()],
                };
                let keys: Vec<(Value, Span)> = keys.into_iter().map(|k| (k, span)).collect();
                self.index_buffer(*b, &keys, span)
            }
            ([a, key], ..) if name == "getitem" => self.index_python(a, key, span),
            _ => {
                let message = format!("`{name}` is no operation on values of a kernel");
                Err(self.error(codes::OPERAND_TYPES, span, message).into())
            }
        }
    }

    /// A value of the language by its name.
    pub fn language_name(&mut self, name: &str, span: Span) -> Result<Value> {
        self.module_attribute(ModuleId::Language, name, span)
    }
}
