//! `tilewright tune`: the fastest of a kernel's configurations.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::frontend::{self, Facts, SettingValue};
use tilewright::ir::{Code, Diagnostic, SourceMap, Span, Target};
use tilewright::passes::schedules::SCHEDULES;
use tilewright::runtime::cache::Cache;
use tilewright::runtime::env::Env;
use tilewright::sim::InputSpec;
use tilewright::tune::space::{self, Limits};
use tilewright::tune::{self, Config, Event, Fate, On, Options, Request, Rules, Subject, Tuned};

use super::gpu::Gpu;
use super::input::{self, Unloaded};
use super::output::{self, Failure, Outcome};
use super::progress::Progress;
use super::{AUTO, KernelArgs, gpu, passes::parse_target, run};

/// Configurations that are tried of those that the tuner chose itself.
const KEPT: usize = 40;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tilewright tune gemm.py --set M=4096 --set N=4096 --set K=4096
  tilewright tune examples/gemm.py --vary block_M=64,128 --vary num_stages=2,3,4
  tilewright tune examples/gemm.py --auto --on model --target gfx950

Without --vary and --auto the configurations are those of the kernel's `@autotune`. A name that is
no parameter of the function but `schedule` varies the schedule of its pipelined loops. The table
at the end has every configuration, and of each that failed the reason.")]
pub struct TuneArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// Try these values of a parameter; several names are combined. May be repeated.
    #[arg(long = "vary", value_name = "NAME=VALUE,…")]
    vary: Vec<String>,
    /// Have the tuner choose what to try by the names of the parameters that have no value: tiles
    /// (`block_M`), `threads`, `num_stages`, `schedule`, switches (`enable_…`). Of what it finds the
    /// cheapest by an estimate are tried.
    #[arg(long, conflicts_with = "vary")]
    auto: bool,
    /// With `--auto`: how many are tried.
    #[arg(long, value_name = "N", default_value_t = KEPT)]
    keep: usize,
    /// What the kernels are lowered for. Without one it is the best that the GPU has.
    #[arg(long)]
    target: Option<String>,
    /// What times them. Without a choice it is a GPU where there is one, else the estimate.
    #[arg(long, value_enum)]
    on: Option<OnArg>,
    /// Rounds in which every configuration that is left runs once, at most.
    #[arg(long, value_name = "N", default_value_t = 200)]
    rounds: u32,
    /// By how many percent another may be faster than the one that is chosen.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    tolerance: f64,
    /// Threads that compile; all cores without this.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Where the random inputs come from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Take all configurations to be right.
    #[arg(long)]
    skip_check: bool,
    /// Let the target's compiler use approximate division and functions.
    #[arg(long)]
    fast_math: bool,
    /// Tune anew, whatever was found before.
    #[arg(long)]
    fresh: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What times configurations.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum OnArg {
    /// a GPU of this machine
    Gpu,
    /// the cycle model of gfx942 and gfx950: one block's cycles, for each round of blocks
    Model,
    /// an estimate from the tile IR alone
    Cost,
}

impl OnArg {
    fn on(self) -> On {
        match self {
            OnArg::Gpu => On::Gpu,
            OnArg::Model => On::Model,
            OnArg::Cost => On::Cost,
        }
    }
}

pub fn tune(args: &TuneArgs) -> Outcome {
    let target = args.target.as_deref().map(parse_target).transpose()?;
    if !(args.tolerance > 0.0 && args.tolerance < 100.0) {
        let text = format!("`--tolerance {}` is no percentage", args.tolerance);
        return Err(Failure::Usage(text));
    }
    let settings = input::parse_settings(&args.kernel.set)?;
    let facts = facts(target, args.on);
    let (configs, values) = configurations(args, facts.target, &settings)?;
    let progress = Progress::new(args.json);
    progress.doing("reading the configurations");
    let mut subjects = Vec::new();
    let mut spec: Option<(InputSpec, Vec<String>)> = None;
    for config in &values {
        let loaded = load(args, facts, &settings, config);
        if let Ok(loaded) = &loaded
            && spec.is_none()
        {
            spec = Some(run::inputs(loaded, args.seed));
        }
        subjects.push(match loaded {
            Ok(loaded) => Ok(Subject {
                fast_math: args.fast_math,
                func: loaded.func,
                sources: loaded.sources,
            }),
            // Of a single one the whole error is worth more than a line of a table.
            Err(why) if values.len() == 1 => return Err(input::refuse(why, args.json)),
            Err(why) => Err(reason(why)),
        });
    }
    let (spec, notes) = spec.unwrap_or_default();
    let cache = match args.fresh {
        true => Cache::off(),
        false => Cache::open(&Env::process()),
    };
    let request = Request {
        configs: &configs,
        subjects: &subjects,
        spec: &spec,
        target,
        on: args.on.map(OnArg::on),
        keep: args.auto.then_some(args.keep),
        options: Options {
            rules: Rules {
                rounds: args.rounds.max(1),
                tolerance: args.tolerance / 100.0,
                ..Rules::default()
            },
            threads: args.jobs,
            unchecked: args.skip_check,
            ..Options::default()
        },
        judge: None,
        cache,
    };
    let tell = |event: Event<'_>| progress.doing(&event.to_string());
    let sources = subjects.iter().flatten().map(|s| &s.sources).next();
    let tuned = tune::tune(request, &tell)
        .map_err(|e| gpu::fail(e, sources.unwrap_or(&SourceMap::new()), args.json))?;
    drop(progress);
    let name = subjects.iter().flatten().map(|s| &*s.func.name).next();
    show(&tuned, name.unwrap_or("kernel"), &notes, args.json)
}

/// What kernels are told of the machine: of the GPU that times them, else of the target.
fn facts(target: Option<Target>, on: Option<OnArg>) -> Facts {
    match on {
        None | Some(OnArg::Gpu) => match Gpu::open(target) {
            Ok(gpu) => gpu.facts(target),
            Err(_) => target.unwrap_or(Target::DEFAULT).into(),
        },
        Some(OnArg::Model | OnArg::Cost) => target.unwrap_or(Target::DEFAULT).into(),
    }
}

type Values = Vec<(String, SettingValue)>;

/// The configurations, as the tuner names them and as values.
fn configurations(
    args: &TuneArgs,
    target: Target,
    settings: &Values,
) -> Result<(Vec<Config>, Vec<Values>), Failure> {
    let (path, entry) = input::split_entry(&args.kernel.kernel);
    let mut survey = frontend::Survey::default();
    if !path.ends_with(".tw") {
        let mut sources = SourceMap::new();
        let file = input::read(&mut sources, path);
        let file = file.map_err(|d| output::fail(&[*d], &sources, args.json))?;
        survey = frontend::survey(&sources, file, entry)
            .map_err(|d| output::fail(&d, &sources, args.json))?;
    }
    let is_set = |name: &str| settings.iter().any(|(known, _)| known == name);
    let mut all: Vec<Values> = Vec::new();
    if args.auto || (survey.auto && args.vary.is_empty()) {
        let axes = chosen(&survey, target, &is_set)?;
        all = combined(&axes)?;
    } else if !args.vary.is_empty() {
        let mut axes = Vec::new();
        for text in &args.vary {
            let usage = |why: &str| Failure::Usage(format!("`--vary {text}`: {why}"));
            let (name, list) = text
                .split_once('=')
                .ok_or_else(|| usage("it is not of the form NAME=VALUE,…"))?;
            // Commas inside a value belong to it.
            let parsed = SettingValue::parse(&format!("({list},)")).map_err(|why| usage(&why))?;
            let SettingValue::Tuple(values) = parsed else {
                return Err(usage("it is not of the form NAME=VALUE,…"));
            };
            axes.push((name.trim().to_owned(), values));
        }
        all = combined(&axes)?;
    } else {
        let known = |name: &str| survey.parameters.iter().any(|(p, _)| p == name);
        for mut config in survey.configs {
            config.retain(|(name, _)| known(name) && !is_set(name));
            if !all.contains(&config) {
                all.push(config);
            }
        }
    }
    if all.is_empty() {
        return Err(Failure::Usage(
            "the kernel has no `@autotune` configurations; give some with `--vary NAME=VALUE,…`, or `--auto`"
                .to_owned(),
        ));
    }
    let text = |config: &Values| Config::new(config.iter().map(|(n, v)| (n, v.to_string())));
    Ok((all.iter().map(text).collect(), all))
}

fn combined(axes: &[(String, Vec<SettingValue>)]) -> Result<Vec<Values>, Failure> {
    let numbered: Vec<(String, Vec<String>)> = axes
        .iter()
        .map(|(name, values)| {
            (
                name.clone(),
                (0..values.len()).map(|n| n.to_string()).collect(),
            )
        })
        .collect();
    let all = space::product(&numbered).ok_or_else(|| {
        Failure::Usage(format!(
            "these are more than {} configurations; vary less",
            space::MOST
        ))
    })?;
    let value = |(name, at): &(String, String)| {
        let (_, values) = axes.iter().find(|(known, _)| known == name)?;
        Some((name.clone(), values.get(at.parse::<usize>().ok()?)?.clone()))
    };
    Ok(all
        .iter()
        .map(|config| config.0.iter().filter_map(value).collect())
        .collect())
}

/// What is tried of each open parameter.
fn chosen(
    survey: &frontend::Survey,
    target: Target,
    is_set: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, Vec<SettingValue>)>, Failure> {
    let machine = target.machine();
    let limits = Limits {
        warp: machine.warp_size,
        threads: machine.max_threads,
        schedules: SCHEDULES.iter().map(|s| s.name.to_owned()).collect(),
    };
    let mut axes = Vec::new();
    for (name, _) in &survey.parameters {
        if is_set(name) {
            continue;
        }
        if let Some(values) = space::values(name, &limits) {
            let values = values.iter().map(|text| SettingValue::parse(text));
            let values: Result<Vec<_>, _> = values.collect();
            axes.push((name.clone(), values.map_err(Failure::Usage)?));
        }
    }
    match axes.is_empty() {
        false => Ok(axes),
        true => Err(Failure::Usage(
            "no parameter's name says what could be tried of it; `--vary NAME=VALUE,…` says it"
                .to_owned(),
        )),
    }
}

/// The kernel of a configuration.
fn load(
    args: &TuneArgs,
    facts: Facts,
    settings: &Values,
    config: &Values,
) -> Result<input::Loaded, Unloaded> {
    let mut settings = settings.clone();
    settings.extend(config.iter().cloned());
    match input::try_load(&args.kernel, facts, &settings) {
        Err(why) => {
            // A schedule that the function does not ask for itself is its loops'.
            let at = settings.iter().position(|(name, _)| name == "schedule");
            match (at.map(|at| settings.remove(at)), &*args.kernel.schedule) {
                (Some((_, SettingValue::Str(name))), AUTO) => {
                    let mut kernel = args.kernel.clone();
                    kernel.schedule = name;
                    input::try_load(&kernel, facts, &settings)
                }
                _ => Err(why),
            }
        }
        loaded => loaded,
    }
}

fn reason(why: Unloaded) -> String {
    match why {
        Unloaded::Usage(text) => text,
        Unloaded::Diagnostics(diags, sources) => match diags.first() {
            Some(first) => format!(
                "{}: {} ({})",
                first.code.0,
                first.message,
                sources.locate(first.primary.span)
            ),
            None => "it cannot be read".to_owned(),
        },
    }
}

fn show(tuned: &Tuned, name: &str, notes: &[String], as_json: bool) -> Outcome {
    let report = &tuned.report;
    if report.best.is_none() {
        let message = format!("no configuration of `{name}` can be used");
        let error = Diagnostic::error(Code("tune-nothing"), Span::NONE, message);
        if !as_json {
            output::note(&report.table());
        }
        return Err(output::fail_with(
            &[error],
            &SourceMap::new(),
            as_json,
            json!({ "configurations": rows(tuned) }),
        ));
    }
    if as_json {
        let best = report.best.and_then(|at| report.rows.get(at));
        output::print_json(&json!({
            "ok": true,
            "kernel": name,
            "target": tuned.target.name(),
            "on": tuned.on.name(),
            "device": tuned.device,
            "unit": unit(tuned),
            "best": report.best,
            "time": report.time(),
            "certain": report.certain,
            "stored": tuned.stored,
            "settings": best.map(|row| object(&row.config)),
            "configurations": rows(tuned),
        }));
        return Ok(());
    }
    let mut text = format!("{name} on {} ({})\n", tuned.device, tuned.target);
    for note in notes {
        text += &format!("  {note}\n");
    }
    if tuned.stored {
        text += "  found before (`--fresh` tunes anew)\n";
    }
    text += &report.table();
    if let Some(row) = report.best.and_then(|at| report.rows.get(at)) {
        let sets: Vec<String> = row
            .config
            .0
            .iter()
            .map(|(n, v)| format!(" --set {n}={v}"))
            .collect();
        text += &format!("take it with{}\n", sets.concat());
    }
    output::print(&text);
    Ok(())
}

fn unit(tuned: &Tuned) -> &'static str {
    match tuned.report.unit {
        tune::Unit::Seconds => "seconds",
        tune::Unit::Cycles => "cycles",
    }
}

fn object(config: &Config) -> Value {
    let items = config.0.iter().map(|(n, v)| (n.clone(), json!(v)));
    Value::Object(items.collect())
}

fn rows(tuned: &Tuned) -> Value {
    let rows = tuned.report.rows.iter().map(|row| {
        let (time, runs, left_out, failed) = match &row.fate {
            Fate::Timed { time, runs } => (Some(*time), Some(*runs), None, None),
            Fate::LeftOut(why) => (None, None, Some(why), None),
            Fate::Failed(why) => (None, None, None, Some(why)),
        };
        json!({
            "settings": object(&row.config),
            "time": time,
            "runs": runs,
            "left_out": left_out,
            "failed": failed,
        })
    });
    Value::Array(rows.collect())
}
