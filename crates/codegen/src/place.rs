//! Buffers: where they lie, and addresses of their elements.

use std::rc::Rc;

use tilewright_ir::{
    Buffer, BufferData, BufferOrigin, DType, Expr, ExprKind, LayoutAttr, Scalar, Scope, Span, Var,
};
use tilewright_layout::{Layout, to_expr};

use crate::ctype::{ctype, is_packed, piece_of};
use crate::device::{Needs, Piece};
use crate::expr::{ADD, Code, MUL, POSTFIX};
use crate::kernel::Emitter;
use crate::tensor_offset::sharing;
use crate::{Emit, unsupported};

/// Where a buffer is and how its elements are found.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    pub kind: Kind,
    /// The C expression of its start.
    pub name: String,
    pub scalar: Scalar,
    /// Scalars of an element.
    pub lanes: u32,
    /// Element strides, as factors that are multiplied; unused where a layout places elements.
    strides: Vec<Vec<Expr>>,
    /// How elements are placed that are not row-major.
    layout: Option<Placing>,
    /// Elements from one version to the next.
    version: i64,
    /// Whether offsets need 64 bits.
    wide: bool,
}

/// A layout, and the function of the indices that gives the place.
#[derive(Clone, Debug)]
pub(crate) struct Placing {
    pub function: String,
    pub layout: Rc<Layout>,
}

/// What an element is to C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Global or shared memory.
    Memory,
    /// A C array of registers.
    Array,
    /// Packed registers (`tw::Regs`).
    Regs,
    /// One variable.
    Variable,
    /// Accumulation registers, from a number on ([`crate::numbered`]).
    Numbered,
}

/// An element, or the first of some.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub kind: Kind,
    pub name: String,
    pub scalar: Scalar,
    /// In scalars.
    pub offset: Code,
    /// Of elements that share bytes, the offset without a part that is whole bytes, and that in bytes.
    apart: Option<(Code, Code)>,
    /// Of a place whose version or summands are known, the offset without these, and their sum.
    pub known: Option<(Code, Expr)>,
}

impl Storage {
    /// Elements from one version to the next.
    pub fn version_elements(&self) -> i64 {
        self.version
    }
}

impl Place {
    /// The value there.
    pub fn read(&self) -> Code {
        match self.kind {
            Kind::Variable => Code::primary(self.name.clone()),
            Kind::Numbered => {
                Code::primary(format!("tw::sum<{}>({})", ctype(self.scalar), self.words()))
            }
            Kind::Memory if self.scalar.bits() < 8 => Code::primary(format!(
                "tw::packed<{}>({}, {})",
                ctype(self.scalar),
                self.name,
                self.offset.text
            )),
            Kind::Memory | Kind::Array | Kind::Regs => {
                Code::new(format!("{}[{}]", self.name, self.offset.text), POSTFIX)
            }
        }
    }

    /// The statement that stores a value there. Where elements share a byte, another thread may store
    /// to the rest of it meanwhile.
    pub fn write(&self, value: &str, needs: &mut Needs) -> String {
        match self.kind {
            Kind::Variable => format!("{} = {value};", self.name),
            Kind::Numbered => format!(
                "tw::set_sum<{}>({}, {value});",
                ctype(self.scalar),
                self.words()
            ),
            Kind::Memory if self.scalar.bits() < 8 => {
                needs.piece(Piece::StorePacked);
                format!(
                    "tw::store_packed<{}>({}, {}, {value});",
                    ctype(self.scalar),
                    self.name,
                    self.offset.text
                )
            }
            Kind::Memory | Kind::Array => format!("{}[{}] = {value};", self.name, self.offset.text),
            Kind::Regs => format!("{}.set({}, {value});", self.name, self.offset.text),
        }
    }

    /// A pointer to memory; elements that share bytes start one there.
    pub fn address(&self) -> String {
        if self.scalar.bits() < 8 {
            return format!("{} + {}", self.name, self.bytes());
        }
        match self.offset.text.as_str() {
            "0" => self.name.clone(),
            offset => format!("&{}[{offset}]", self.name),
        }
    }

    /// The start of a shared buffer and the element's place in it, as two arguments.
    pub fn in_shared(&self) -> String {
        match self.scalar.bits() < 8 {
            true => format!("{}, {}", self.name, self.bytes()),
            false => format!("{}, {}", self.name, self.offset.text),
        }
    }

    /// The offset in bytes, of elements that share them.
    fn bytes(&self) -> String {
        let bytes = |offset: &Code| {
            let offset = offset.at_least(MUL);
            match self.scalar.bits() {
                6 => format!("{offset} / 4 * 3"),
                bits => format!("{offset} / {}", 8 / bits),
            }
        };
        match &self.apart {
            Some((rest, apart)) => format!("{} + {}", bytes(rest), apart.at_least(ADD)),
            None => bytes(&self.offset),
        }
    }

    /// A pointer to the words of registers, or the number of the first.
    pub fn words(&self) -> String {
        match self.kind {
            Kind::Regs => format!("{}.at({})", self.name, self.offset.text),
            _ if self.offset.text == "0" => self.name.clone(),
            _ => format!("{} + {}", self.name, self.offset.at_least(ADD)),
        }
    }

    /// The place some scalars further on.
    pub fn plus(&self, scalars: u32) -> Place {
        if scalars == 0 {
            return self.clone();
        }
        let offset = match self.offset.text.parse::<u64>() {
            Ok(v) => Code::primary((v + u64::from(scalars)).to_string()),
            Err(_) => Code::new(format!("{} + {scalars}", self.offset.at_least(ADD)), ADD),
        };
        Place {
            offset,
            apart: None,
            known: None,
            ..self.clone()
        }
    }

    /// The first of some registers.
    pub fn registers(scalar: Scalar, name: String) -> Place {
        Place {
            kind: match is_packed(scalar) {
                true => Kind::Regs,
                false => Kind::Array,
            },
            name,
            scalar,
            offset: Code::primary("0".to_string()),
            apart: None,
            known: None,
        }
    }

    pub fn is_register(&self) -> bool {
        matches!(self.kind, Kind::Array | Kind::Regs)
    }
}

impl Emitter<'_> {
    pub(crate) fn need_type(&mut self, scalar: Scalar) {
        if let Some(piece) = piece_of(scalar) {
            self.needs.piece(piece);
        }
        if scalar.bits() < 8 {
            self.needs.piece(Piece::Packed);
        }
    }

    /// The element at these indices; `outer` is the lane of vector indices.
    pub(crate) fn place(
        &mut self,
        buffer: Buffer,
        indices: &[Expr],
        slot: Option<&Expr>,
        outer: usize,
        span: Span,
    ) -> Emit<Place> {
        let Some(storage) = self.storage.get(&buffer).cloned() else {
            let name = &self.func.buffers[buffer].name;
            return unsupported(span, format!("`{name}` is used where it has no storage"));
        };
        // A plain access to a buffer of several versions names the version first.
        let data = &self.func.buffers[buffer];
        let (slot, indices) = match indices.split_first() {
            Some((first, rest)) if data.versions > 1 && rest.len() == data.shape.len() => {
                (Some(first), rest)
            }
            _ => (slot, indices),
        };
        let mut codes = Vec::with_capacity(indices.len());
        for index in indices {
            let index = self.settled(index);
            // A row of elements starts at the ramp's base.
            let (index, lane) = match index.kind() {
                ExprKind::Ramp { base, stride } if stride.is_int(1) && outer == 0 => {
                    (base.clone(), 0)
                }
                _ if index.dtype().lanes > 1 => (index.clone(), outer),
                _ => (index.clone(), 0),
            };
            codes.push((self.expr(&index, lane)?, index));
        }
        // What all lanes agree on is a scalar of its own there ([`Emitter::version`]).
        let memory = storage.kind == Kind::Memory;
        let scalars = memory && self.machine.scalar_registers;
        let (mut start, mut first) = (None, None);
        let mut version = None;
        if let Some(slot) = slot {
            let slot = self.settled(slot);
            let apart = scalars && slot.as_int().is_none() && !self.may_vary(&slot);
            let elements = self.first_of(&storage, &slot);
            match apart && self.fills_bytes(storage.scalar, &elements) {
                true => start = Some(elements),
                false if slot.is_int(0) => {}
                false => {
                    first = Some(self.expr(&elements, 0)?);
                    version = Some(elements);
                }
            }
        }
        let mut known = None;
        let mut offset = match &storage.layout {
            Some(placing) => {
                let placed = self.placed(placing, &codes, scalars)?;
                known = placed.known;
                match placed.start {
                    Some(more) if self.fills_bytes(storage.scalar, &more) => {
                        start = Some(match start {
                            Some(start) => start + more,
                            None => more,
                        });
                    }
                    Some(more) => first = Some(sum(first, self.expr(&more, 0)?)),
                    None => {}
                }
                placed.offset
            }
            None => self.strided(&storage, &codes)?,
        };
        let apart = match &known {
            Some((rest, part)) if storage.lanes == 1 && first.is_none() => {
                self.whole_bytes(&storage, rest, part)?
            }
            _ => None,
        };
        let known = match (known, version) {
            _ if storage.lanes > 1 => None,
            (Some((rest, part)), Some(version)) => Some((rest, version + part)),
            (None, Some(version)) => Some((offset.clone(), version)),
            (known, None) => known,
        };
        offset = match (first, offset.text.as_str()) {
            (Some(first), "0") => first,
            (first, _) => sum(first, offset),
        };
        if storage.lanes > 1 {
            offset = Code::new(format!("{} * {}", offset.at_least(MUL), storage.lanes), MUL);
        }
        Ok(Place {
            kind: storage.kind,
            name: self.version(&storage, start)?,
            scalar: storage.scalar,
            offset,
            apart,
            known,
        })
    }

    /// Whether so many elements are certainly whole bytes.
    fn fills_bytes(&mut self, scalar: Scalar, elements: &Expr) -> bool {
        let group = sharing(scalar.bits());
        group < 2 || self.analyzer.divides(group.into(), elements).is_yes()
    }

    /// An offset of elements of six bits without a part of it, and that part in bytes: divided as one, the
    /// part would be lost in the division.
    fn whole_bytes(
        &mut self,
        storage: &Storage,
        rest: &Code,
        part: &Expr,
    ) -> Emit<Option<(Code, Code)>> {
        if storage.scalar.bits() != 6 || !self.fills_bytes(storage.scalar, part) {
            return Ok(None);
        }
        let part = self.bytes_in(part, storage.scalar.bits());
        Ok(Some((rest.clone(), self.expr(&part, 0)?)))
    }

    /// The first element of a version.
    fn first_of(&self, storage: &Storage, slot: &Expr) -> Expr {
        match slot.as_int() {
            Some(n) => Expr::int(n * i128::from(storage.version), slot.dtype()),
            None => slot.clone() * storage.version,
        }
    }

    /// `tw::version(A_shared, k % 3 * 4096)`: where the elements start that all lanes agree on.
    fn version(&mut self, storage: &Storage, start: Option<Expr>) -> Emit<String> {
        let Some(mut start) = start else {
            return Ok(storage.name.clone());
        };
        self.needs.piece(Piece::Version);
        if storage.lanes > 1 {
            start = start * i64::from(storage.lanes);
        }
        let bits = storage.scalar.bits();
        if bits < 8 {
            start = self.bytes_in(&start, bits);
        }
        let start = self.expr(&start, 0)?;
        Ok(format!("tw::version({}, {})", storage.name, start.text))
    }

    /// `(by * 128 + i) * 1024 + k`
    fn strided(&mut self, storage: &Storage, codes: &[(Code, Expr)]) -> Emit<Code> {
        let mut terms: Vec<Code> = Vec::new();
        for ((code, index), strides) in codes.iter().zip(&storage.strides) {
            if index.is_int(0) {
                continue;
            }
            let mut factors: Vec<Code> = Vec::new();
            for stride in strides.iter().filter(|s| !s.is_int(1)) {
                factors.push(self.expr(stride, 0)?);
            }
            let wide = storage.wide && (!factors.is_empty() || codes.len() == 1);
            let mut term = match wide && index.dtype() != DType::I64 {
                true => Code::new(format!("(long long){}", code.at_least(POSTFIX)), MUL),
                false => code.clone(),
            };
            for factor in factors {
                term = Code::new(
                    format!("{} * {}", term.at_least(MUL), factor.at_least(POSTFIX)),
                    MUL,
                );
            }
            terms.push(term);
        }
        Ok(terms
            .into_iter()
            .reduce(|a, b| Code::new(format!("{} + {}", a.at_least(ADD), b.at_least(ADD)), ADD))
            .unwrap_or_else(|| Code::primary("0".to_string())))
    }

    /// Describes a buffer with the name of its storage.
    pub(crate) fn describe(&mut self, buffer: Buffer, name: String) -> Emit<Storage> {
        let data = &self.func.buffers[buffer];
        self.need_type(data.dtype.scalar);
        let kind = match data.scope {
            Scope::Global | Scope::Shared | Scope::Barrier => Kind::Memory,
            Scope::Var => Kind::Variable,
            Scope::Local | Scope::Fragment if self.number_of(buffer).is_some() => Kind::Numbered,
            Scope::Local | Scope::Fragment if is_packed(data.dtype.scalar) => {
                self.needs.piece(Piece::Regs);
                Kind::Regs
            }
            Scope::Local | Scope::Fragment => Kind::Array,
            Scope::Tmem | Scope::Reducer => {
                return unsupported(
                    data.span,
                    format!("`{}` is still a {} buffer", data.name, data.scope.name()),
                );
            }
        };
        let mut storage = Storage {
            kind,
            name,
            scalar: data.dtype.scalar,
            lanes: data.dtype.lanes.into(),
            strides: strides(data),
            layout: None,
            version: 0,
            wide: false,
        };
        match data.scope {
            Scope::Global => {
                storage.wide = self
                    .const_elements(data)
                    .is_none_or(|n| n * i64::from(data.dtype.lanes) > i64::from(i32::MAX));
            }
            Scope::Shared => {
                let shape = self.const_shape(data)?;
                let (layout, span) = self.shared_layout(buffer, &shape)?;
                storage.layout = layout;
                storage.version = span;
            }
            _ => {
                self.const_shape(data)?;
            }
        }
        Ok(storage)
    }

    /// The constant extents of a shared or private buffer.
    pub(crate) fn const_shape(&mut self, data: &BufferData) -> Emit<Vec<i64>> {
        let mut shape = Vec::new();
        for extent in &data.shape {
            match self.analyzer.simplify(extent).as_int() {
                Some(n) if n >= 0 && n <= i128::from(i32::MAX) => shape.push(n as i64),
                _ => {
                    return unsupported(
                        data.span,
                        format!("`{}` has a size known at run time only", data.name),
                    );
                }
            }
        }
        Ok(shape)
    }

    fn const_elements(&self, data: &BufferData) -> Option<i64> {
        // Strides of a parameter may spread a small tensor over much memory.
        let mut last = 1i64;
        match &data.strides {
            None => {
                for extent in &data.shape {
                    last = last.checked_mul(i64::try_from(extent.as_int()?).ok()?)?;
                }
            }
            Some(strides) => {
                for (extent, stride) in data.shape.iter().zip(strides) {
                    let steps = i64::try_from(extent.as_int()? - 1).ok()?;
                    let stride = i64::try_from(stride.as_int()?).ok()?;
                    last = last.checked_add(steps.checked_mul(stride)?)?;
                }
            }
        }
        Some(last)
    }

    /// The function that places elements of a shared buffer, where it is not row-major, and the
    /// elements of space it needs.
    fn shared_layout(&mut self, buffer: Buffer, shape: &[i64]) -> Emit<(Option<Placing>, i64)> {
        let data = &self.func.buffers[buffer];
        let count: i64 = shape.iter().product();
        let refuse = |what: &str| {
            unsupported::<(Option<Placing>, i64)>(
                data.span,
                format!("the layout of `{}`: {what}", data.name),
            )
        };
        if data.layout.as_ref().is_some_and(LayoutAttr::is_wish) {
            return refuse("it is not decided");
        }
        let shown = self.shown_layout(buffer, shape)?;
        let layout = match (data.placed(), shown) {
            (None, None) => return Ok((None, count)),
            (None, Some(layout)) => layout,
            (Some(place), _) => place.layout().clone(),
        };
        let names: Vec<String> = match shape.len() {
            1 => vec!["i".to_string()],
            2 => vec!["i".to_string(), "j".to_string()],
            n => (0..n).map(|d| format!("i{d}")).collect(),
        };
        let vars: Vec<Var> = (0..shape.len()).map(|d| self.parameter(d)).collect();
        let index: Vec<Expr> = vars.iter().map(|&v| Expr::var(v, DType::I32)).collect();
        let Some(outputs) = to_expr::layout(&layout, &index) else {
            return refuse("it has no closed form");
        };
        let flat = outputs
            .into_iter()
            .zip(layout.codomain())
            .reduce(|(flat, _), (x, &extent)| (flat * extent + x, &0));
        let flat = flat.map_or_else(|| Expr::int(0, DType::I32), |(e, _)| e);
        self.analyzer.push();
        for ((&var, &extent), name) in vars.iter().zip(shape).zip(&names) {
            let range = tilewright_arith::Interval::new(0, i128::from(extent) - 1);
            self.analyzer.bind_interval(var, DType::I32, range);
            self.var_names.insert(var, name.clone());
        }
        let simple = self.analyzer.simplify(&flat);
        let code = self.expr(&simple, 0);
        self.analyzer.pop();
        let code = code?;
        if code.text == row_major(&names, shape) {
            return Ok((None, layout.span()));
        }
        let function = self.globals.take(&format!("{}_at", data.name));
        let params: Vec<String> = names.iter().map(|n| format!("unsigned {n}")).collect();
        self.helpers.push(format!(
            "// Where an element of {}: {}[{}] is, in elements.\nTW_FN int {function}({}) {{ return {}; }}\n",
            data.name,
            data.dtype,
            shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
            params.join(", "),
            code.text
        ));
        let span = layout.span();
        let layout = Rc::new(layout);
        let placing = Placing { function, layout };
        Ok((Some(placing), span))
    }

    /// Where a view finds the elements of a buffer that is not row-major: they stay where the
    /// buffer has them.
    fn shown_layout(&self, buffer: Buffer, shape: &[i64]) -> Emit<Option<Layout>> {
        let data = &self.func.buffers[buffer];
        let BufferOrigin::View(base) = data.origin else {
            return Ok(None);
        };
        let Some(placing) = self.storage.get(&base).and_then(|s| s.layout.as_ref()) else {
            return Ok(None);
        };
        let shown = match self.func.buffers[base].dtype == data.dtype {
            true => placing.layout.reshape(shape).ok(),
            false => None,
        };
        match shown {
            Some(layout) => Ok(Some(layout)),
            None => unsupported(
                data.span,
                format!(
                    "`{}` shows elements of another type of a buffer that is not row-major",
                    data.name
                ),
            ),
        }
    }

    /// A variable for the parameter of a placing function.
    fn parameter(&self, dim: usize) -> Var {
        Var::from_u32(u32::try_from(self.func.vars.len() + dim).unwrap_or(u32::MAX - 8))
    }
}

/// Factors of each dimension's stride.
fn strides(data: &BufferData) -> Vec<Vec<Expr>> {
    match &data.strides {
        Some(strides) => strides.iter().map(|s| vec![s.clone()]).collect(),
        None => (0..data.shape.len())
            .map(|d| {
                let after = &data.shape[d + 1..];
                match after.iter().map(Expr::as_int).collect::<Option<Vec<_>>>() {
                    // Plain digits: a 64-bit offset is wide by its index already.
                    Some(list) => match list.iter().product::<i128>() {
                        n if n <= i128::from(i32::MAX) => vec![Expr::int(n, DType::I32)],
                        n => vec![Expr::int(n, DType::I64)],
                    },
                    None => after.to_vec(),
                }
            })
            .collect(),
    }
}

/// The text of the row-major place, to recognise it.
fn row_major(names: &[String], shape: &[i64]) -> String {
    let mut terms = Vec::new();
    for (d, name) in names.iter().enumerate() {
        let stride: i64 = shape[d + 1..].iter().product();
        terms.push(match stride {
            1 => name.clone(),
            _ => format!("{name} * {stride}"),
        });
    }
    terms.join(" + ")
}

/// The sum, where there are two.
fn sum(a: Option<Code>, b: Code) -> Code {
    match a {
        Some(a) => Code::new(format!("{} + {}", a.at_least(ADD), b.at_least(ADD)), ADD),
        None => b,
    }
}
