//! Random numbers of a thread: Philox 4x32 with ten rounds, in the order in which cuRAND gives
//! them.

use tilewright_ir::{BinOp, Buffer, BufferOrigin, DType, Expr, Scalar, Scope, Span, StmtKind};

use super::{CallArgs, LangFn, Ty, func, opt, req, warp};
use crate::record::Recorder;
use crate::record::emit::BlockKind;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "rng_init",
        &[
            req("seed", Ty::Scalar),
            opt("seq", Ty::Scalar),
            opt("off", Ty::Scalar),
            opt("generator", Ty::Str),
        ],
        init,
    ),
    func("rng_rand", &[], |rec, args| {
        rand(rec, args.span()).map(Value::Expr)
    }),
    func(
        "rng_rand_float",
        &[opt("bit", Ty::Int), opt("dist", Ty::Str)],
        rand_float,
    ),
];

const GENERATOR: &str = "curandStatePhilox4_32_10_t";
const ROUNDS: usize = 10;
const MULTIPLIERS: [i128; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [i128; 2] = [0x9E37_79B9, 0xBB67_AE85];
const U32: DType = DType::scalar(Scalar::U32);
const U64: DType = DType::scalar(Scalar::U64);

/// The generator's state: variables of each thread.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    counter: [Buffer; 4],
    key: [Buffer; 2],
    output: [Buffer; 4],
    /// Which of the four outputs comes next.
    next: Buffer,
}

/// A generator, with the kernel and the depth of the block that has it.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    kernel: usize,
    depth: usize,
    generator: Generator,
}

fn init(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span();
    if let Some(generator) = args.str("generator")
        && generator != GENERATOR
    {
        return Err(super::not_supported(
            rec,
            args.span_of("generator"),
            &format!("the generator `{generator}`"),
            &format!("leave it out, or write \"{GENERATOR}\""),
        ));
    }
    if rec.in_parallel() {
        return Err(in_parallel(rec, "T.rng_init", span));
    }
    let wide = |rec: &mut Recorder, name: &str, or: Expr| -> Result<Expr> {
        let value = match args.value(name).cloned() {
            Some(value) => {
                let e = rec.to_expr(&value, args.span_of(name))?;
                super::check_index(rec, &e, args.span_of(name), &format!("`{name}`"))?;
                e
            }
            None => or,
        };
        let value = rec.cast_expr(value, U64, span)?;
        rec.let_value(name, value, span)
    };
    let seed = wide(rec, "seed", Expr::i32(0))?;
    // Without a sequence each thread of the grid has its own.
    let own = match args.has("seq") {
        true => Expr::i32(0),
        false => own_sequence(rec, span)?,
    };
    let sequence = wide(rec, "seq", own)?;
    let offset = wide(rec, "off", Expr::i32(0))?;
    let mut var = |name: &str| {
        let data = rec.buffer_data(name, Scope::Var, U32, vec![], BufferOrigin::Alloc, span);
        rec.alloc(data)
    };
    let generator = Generator {
        counter: [
            var("rng_counter_0")?,
            var("rng_counter_1")?,
            var("rng_counter_2")?,
            var("rng_counter_3")?,
        ],
        key: [var("rng_key_0")?, var("rng_key_1")?],
        output: [
            var("rng_output_0")?,
            var("rng_output_1")?,
            var("rng_output_2")?,
            var("rng_output_3")?,
        ],
        next: var("rng_next")?,
    };
    let quarter = op(rec, BinOp::Shr, &offset, 2, span)?;
    let within = op(rec, BinOp::BitAnd, &offset, 3, span)?;
    let halves = [
        (generator.key, &seed),
        ([generator.counter[0], generator.counter[1]], &quarter),
        ([generator.counter[2], generator.counter[3]], &sequence),
    ];
    for (words, value) in halves {
        let high = op(rec, BinOp::Shr, value, 32, span)?;
        store(
            rec,
            words[0],
            rec.cast_expr(value.clone(), U32, span)?,
            span,
        )?;
        store(rec, words[1], rec.cast_expr(high, U32, span)?, span)?;
    }
    let within = rec.cast_expr(within, U32, span)?;
    store(rec, generator.next, within, span)?;
    produce(rec, &generator, span)?;
    rec.lang.generator = Some(Made {
        kernel: rec.func.kernels.len(),
        depth: rec.blocks.len(),
        generator,
    });
    Ok(Value::None)
}

/// The number of the thread in the grid's first dimension.
fn own_sequence(rec: &mut Recorder, span: Span) -> Result<Expr> {
    let thread = warp::linear_thread(rec, "`T.rng_init`")?;
    let kernel = rec.kernel("`T.rng_init`")?;
    let threads = kernel.num_threads();
    let block = kernel.grid[0].0;
    let block = rec.var_expr(block);
    let block = rec.cast_expr(block, U64, span)?;
    let first = op(rec, BinOp::Mul, &block, threads.into(), span)?;
    let thread = rec.cast_expr(thread, U64, span)?;
    rec.binary_expr(BinOp::Add, first, thread, span)
}

/// The next 32 random bits.
fn rand(rec: &mut Recorder, span: Span) -> Result<Expr> {
    let here = rec.func.kernels.len();
    rec.kernel("`T.rng_rand`")?;
    let generator = match rec.lang.generator {
        Some(made) if made.kernel == here && made.depth <= rec.blocks.len() => made.generator,
        _ => {
            return Err(rec
                .error(
                    codes::WRONG_VALUE,
                    span,
                    "random numbers without a `T.rng_init` in this kernel, or behind the block it is in",
                )
                .help("begin the kernel with `T.rng_init(seed)`")
                .into());
        }
    };
    if rec.in_parallel() {
        return Err(in_parallel(rec, "T.rng_rand", span));
    }
    let next = load(generator.next);
    let [a, b, c, d] = generator.output.map(load);
    let mut value = d;
    for (at, output) in [(2, c), (1, b), (0, a)] {
        let here = rec.binary_expr(BinOp::Eq, next.clone(), Expr::int(at, U32), span)?;
        value = rec.choose(false, here, output, value, span)?;
    }
    let value = rec.let_value("random", value, span)?;
    let after = op(rec, BinOp::Add, &next, 1, span)?;
    store(rec, generator.next, after, span)?;
    let used_up = rec.binary_expr(BinOp::Eq, next, Expr::int(4, U32), span)?;
    rec.open_block(BlockKind::Branch, span)?;
    let renewed = renew(rec, &generator, span);
    let then = rec.close_block();
    renewed?;
    let renewal = StmtKind::If {
        cond: used_up,
        then,
        otherwise: Vec::new(),
    };
    rec.emit_at(renewal, span)?;
    Ok(value)
}

/// Counts one further, with carries, and makes four more outputs.
fn renew(rec: &mut Recorder, generator: &Generator, span: Span) -> Result<()> {
    let mut carry = Expr::int(1, U32);
    for word in generator.counter {
        let sum = rec.binary_expr(BinOp::Add, load(word), carry, span)?;
        let sum = rec.let_value("count", sum, span)?;
        let over = rec.binary_expr(BinOp::Lt, sum.clone(), load(word), span)?;
        let over = rec.cast_expr(over, U32, span)?;
        carry = rec.let_value("carry", over, span)?;
        store(rec, word, sum, span)?;
    }
    store(rec, generator.next, Expr::zero(U32), span)?;
    produce(rec, generator, span)
}

/// The four outputs of the counter.
fn produce(rec: &mut Recorder, generator: &Generator, span: Span) -> Result<()> {
    let mut words = generator.counter.map(load);
    let mut keys = generator.key.map(load);
    for round in 0..ROUNDS {
        if round > 0 {
            for (key, step) in keys.iter_mut().zip(KEY_STEPS) {
                let next = op(rec, BinOp::Add, key, step, span)?;
                *key = rec.let_value("key", next, span)?;
            }
        }
        let mut products = Vec::new();
        for (word, multiplier) in [&words[0], &words[2]].into_iter().zip(MULTIPLIERS) {
            let word = rec.cast_expr(word.clone(), U64, span)?;
            let product = op(rec, BinOp::Mul, &word, multiplier, span)?;
            let product = rec.let_value("product", product, span)?;
            let high = op(rec, BinOp::Shr, &product, 32, span)?;
            products.push((
                rec.cast_expr(high, U32, span)?,
                rec.cast_expr(product, U32, span)?,
            ));
        }
        let mixed = |rec: &mut Recorder, high: &Expr, word: &Expr, key: &Expr| {
            let a = rec.binary_expr(BinOp::BitXor, high.clone(), word.clone(), span)?;
            let a = rec.binary_expr(BinOp::BitXor, a, key.clone(), span)?;
            rec.let_value("word", a, span)
        };
        let first = mixed(rec, &products[1].0, &words[1], &keys[0])?;
        let third = mixed(rec, &products[0].0, &words[3], &keys[1])?;
        let second = rec.let_value("word", products[1].1.clone(), span)?;
        let fourth = rec.let_value("word", products[0].1.clone(), span)?;
        words = [first, second, third, fourth];
    }
    for (output, word) in generator.output.into_iter().zip(words) {
        store(rec, output, word, span)?;
    }
    Ok(())
}

/// A float in (0, 1].
fn rand_float(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span();
    let bits = args.int_or(rec, "bit", 32)?;
    let dist = args.str("dist").unwrap_or("uniform");
    if dist != "uniform" || bits != 32 {
        return Err(super::not_supported(
            rec,
            span,
            &format!("`T.rng_rand_float` of {bits} bits with the distribution \"{dist}\""),
            "uniform floats of 32 bits are there; make others of them",
        ));
    }
    let value = rand(rec, span)?;
    let value = rec.cast_expr(value, DType::F32, span)?;
    let unit = Expr::float(1.0 / 4_294_967_296.0, DType::F32);
    let half = Expr::float(0.5 / 4_294_967_296.0, DType::F32);
    let scaled = rec.binary_expr(BinOp::Mul, value, unit, span)?;
    let value = rec.binary_expr(BinOp::Add, scaled, half, span)?;
    rec.let_value("random", value, span).map(Value::Expr)
}

fn op(rec: &mut Recorder, op: BinOp, a: &Expr, b: i128, span: Span) -> Result<Expr> {
    rec.binary_expr(op, a.clone(), Expr::int(b, a.dtype()), span)
}

fn load(buffer: Buffer) -> Expr {
    Expr::load(buffer, Vec::new(), U32)
}

fn store(rec: &mut Recorder, buffer: Buffer, value: Expr, span: Span) -> Result<()> {
    let indices = Vec::new();
    rec.emit_at(
        StmtKind::Store {
            buffer,
            indices,
            value,
        },
        span,
    )
}

fn in_parallel(rec: &Recorder, what: &str, span: Span) -> crate::Error {
    rec.error(
        codes::BAD_LOOP,
        span,
        format!("{what} inside `T.Parallel`: the generator is a thread's, points are no threads"),
    )
    .help("draw numbers in a loop of the thread, `for i in T.serial(n)`")
    .into()
}
