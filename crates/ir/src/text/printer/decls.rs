//! Functions, buffers, kernels, layouts and attributes.

use crate::buffer::{BufferData, BufferOrigin, Scope};
use crate::declare::undeclared;
use crate::dtype::DType;
use crate::func::{AttrValue, Kernel, Param};
use crate::ids::{Buffer, Var};
use crate::text::names::{Entity, is_continue, is_start};
use crate::text::printer::Printer;
use crate::text::printer::expr::float_digits;
use crate::text::words::Word;

impl Printer<'_> {
    pub(super) fn func(&mut self) {
        let func = self.func;
        self.names.open();
        self.put("func @");
        self.key(&func.name);
        self.put_fmt(format_args!(" level={} {{\n", func.level.name()));
        self.indent += 1;
        for &symbol in &func.symbols {
            self.start_line();
            self.put("symbol ");
            self.typed_var(symbol);
            self.end_line();
        }
        for param in &func.params {
            self.start_line();
            match *param {
                Param::Scalar(var) => {
                    self.put("scalar ");
                    self.typed_var(var);
                }
                Param::Tensor { buffer, output } => {
                    self.put(if output { "output " } else { "param " });
                    self.buffer_decl(buffer);
                }
            }
            self.end_line();
        }
        for &buffer in &func.workspaces {
            self.start_line();
            self.put("workspace ");
            self.buffer_decl(buffer);
            self.end_line();
        }
        for buffer in undeclared(func) {
            self.start_line();
            self.declaration(buffer);
            self.end_line();
        }
        self.func_attrs();
        for kernel in &func.kernels {
            self.kernel(kernel);
        }
        self.indent -= 1;
        self.put("}\n");
        self.names.close();
    }

    /// `m: int32`, and `m` is visible from here on.
    pub(in crate::text) fn typed_var(&mut self, var: Var) {
        self.names.declare(Entity::Var(var));
        self.var(var);
        let dtype = self.var_dtype(var);
        self.put_fmt(format_args!(": {dtype}"));
    }

    /// The name, with the type if it is not the expected one, and visible from here on.
    pub(in crate::text) fn new_var(&mut self, var: Var, expected: Option<DType>) {
        self.names.declare(Entity::Var(var));
        self.var(var);
        let dtype = self.var_dtype(var);
        if expected != Some(dtype) {
            self.put_fmt(format_args!(": {dtype}"));
        }
    }

    fn var_dtype(&self, var: Var) -> DType {
        self.func.vars.get(var).map_or(DType::I32, |d| d.dtype)
    }

    /// `alloc S: shared float16[128, 32]`, `view …` or `pointer …`.
    pub(super) fn declaration(&mut self, buffer: Buffer) {
        let word = match self.func.buffers.get(buffer).map(|b| &b.origin) {
            Some(BufferOrigin::View(_)) => "view ",
            Some(BufferOrigin::Pointer(_)) => "pointer ",
            Some(
                BufferOrigin::Param
                | BufferOrigin::Workspace
                | BufferOrigin::Alloc
                | BufferOrigin::Barriers(_)
                | BufferOrigin::Reducer(_),
            )
            | None => "alloc ",
        };
        self.put(word);
        self.buffer_decl(buffer);
    }

    /// `S: shared float16[128, 32] layout=…`, and `S` is visible from here on.
    fn buffer_decl(&mut self, buffer: Buffer) {
        let Some(data) = self.func.buffers.get(buffer) else {
            self.buffer(buffer);
            return;
        };
        self.names.declare(Entity::Buffer(buffer));
        self.buffer(buffer);
        self.put(": ");
        let global = matches!(
            data.origin,
            BufferOrigin::Param | BufferOrigin::Workspace | BufferOrigin::Pointer(_)
        );
        if !(global && data.scope == Scope::Global) {
            self.put(data.scope.name());
            self.put(" ");
        }
        self.put(&data.dtype.to_string());
        if !data.shape.is_empty() {
            self.put("[");
            self.list(&data.shape, |p, e| p.expr(e));
            self.put("]");
        }
        self.origin(data);
        if let Some(strides) = &data.strides {
            self.put(" strides=[");
            self.list(strides, |p, e| p.expr(e));
            self.put("]");
        }
        if let Some(value) = &data.safe_value {
            self.expr_attr("safe", value);
        }
        if data.versions != 1 {
            self.attr("versions", Some(data.versions));
        }
        self.attr("offset", data.place.map(|p| p.offset));
        self.attr("bytes", data.place.map(|p| p.bytes));
        if let Some(layout) = &data.layout {
            self.layout_attr(layout);
        }
    }

    fn origin(&mut self, data: &BufferData) {
        match &data.origin {
            BufferOrigin::Param | BufferOrigin::Workspace | BufferOrigin::Alloc => {}
            BufferOrigin::Barriers(arrivals) => {
                self.put(" arrivals=[");
                self.list(arrivals, |p, n| p.put(&n.to_string()));
                self.put("]");
            }
            BufferOrigin::Reducer(kind) => self.attr("op", Some(kind.name())),
            BufferOrigin::View(base) => {
                self.put(" of ");
                self.buffer(*base);
            }
            BufferOrigin::Pointer(address) => {
                self.put(" at ");
                self.expr(address);
            }
        }
    }

    fn func_attrs(&mut self) {
        let attrs = &self.func.attrs;
        if !attrs.compile_flags.is_empty() {
            self.start_line();
            self.put("attr compile_flags = [");
            self.list(&attrs.compile_flags, |p, s| p.string(s));
            self.put("]\n");
        }
        for (key, value) in &attrs.pass_configs {
            self.start_line();
            self.put("attr pass_config ");
            self.key(key);
            self.put(" = ");
            self.attr_value(value);
            self.end_line();
        }
        for config in &attrs.autotune {
            self.start_line();
            self.put("attr autotune = (");
            for (i, (key, value)) in config.iter().enumerate() {
                if i > 0 {
                    self.put(", ");
                }
                self.key(key);
                self.put(" = ");
                self.attr_value(value);
            }
            self.put(")\n");
        }
        if let Some(prints) = &attrs.prints {
            self.start_line();
            self.put("attr prints = ");
            self.buffer(prints.buffer);
            self.put("[");
            self.list(&prints.formats, |p, format| {
                p.put_fmt(format_args!("[{}, ", format.kernel));
                p.string(&format.message);
                for scalar in &format.values {
                    p.put_fmt(format_args!(", {}", scalar.name()));
                }
                p.put("]");
            });
            self.put("]\n");
        }
    }

    /// A name of something that is not a variable: as it is, or quoted.
    fn key(&mut self, text: &str) {
        if text.chars().next().is_some_and(is_start) && text.chars().all(is_continue) {
            self.put(text);
        } else {
            self.string(text);
        }
    }

    fn attr_value(&mut self, value: &AttrValue) {
        match value {
            AttrValue::Bool(b) => self.put(if *b { "true" } else { "false" }),
            AttrValue::Int(i) => self.put(&i.to_string()),
            AttrValue::Float(f) => self.put(&float_digits(f.0)),
            AttrValue::Str(s) => self.string(s),
            AttrValue::DType(t) => self.put(&t.to_string()),
            AttrValue::List(items) => {
                self.put("[");
                self.list(items, |p, v| p.attr_value(v));
                self.put("]");
            }
            AttrValue::None => self.put("none"),
        }
    }

    fn kernel(&mut self, kernel: &Kernel) {
        self.names.open();
        self.start_line();
        self.put("kernel grid(");
        self.list(&kernel.grid, |p, (var, extent)| {
            p.index_var(*var, extent.dtype());
            p.expr(extent);
        });
        self.put(") threads(");
        for (axis, (&var, &count)) in kernel.thread_vars.iter().zip(&kernel.threads).enumerate() {
            if axis > 0 {
                self.put(", ");
            }
            self.index_var(var, DType::I32);
            self.put(&count.to_string());
        }
        self.put(")");
        let attrs = &kernel.attrs;
        if let Some(swizzle) = attrs.swizzle {
            let order = swizzle.order.word();
            self.put_fmt(format_args!(" swizzle={order}({})", swizzle.panel));
        }
        self.attr("min_blocks", attrs.min_blocks_per_sm);
        if let Some([x, y, z]) = attrs.cluster {
            self.put_fmt(format_args!(" cluster=({x}, {y}, {z})"));
        }
        if let Some(rank) = attrs.rank {
            self.names.declare(Entity::Var(rank));
            self.put(" rank=");
            self.var(rank);
        }
        self.flag("no_reg_realloc", attrs.no_reg_realloc);
        self.flag("resident", attrs.resident);
        self.list_attr("l2", &attrs.l2_hit_ratio, |p, (buffer, ratio)| {
            p.buffer(*buffer);
            p.put(": ");
            p.expr(ratio);
        });
        self.list_attr("may_alias", &attrs.may_alias, |p, b| p.buffer(*b));
        for source in &attrs.imports {
            self.put(" import=");
            self.string(source);
        }
        self.block(&kernel.body);
        self.end_line();
        self.names.close();
    }

    /// `bx: ` or, where the type is not the expected one, `bx int64: `.
    fn index_var(&mut self, var: Var, expected: DType) {
        self.names.declare(Entity::Var(var));
        self.var(var);
        let dtype = self.var_dtype(var);
        if dtype != expected {
            self.put_fmt(format_args!(" {dtype}"));
        }
        self.put(": ");
    }
}
