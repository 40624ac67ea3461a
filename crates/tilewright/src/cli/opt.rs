//! `tilewright opt`: passes on IR in text form.

use clap::Args;
use serde_json::json;
use tilewright::ir::{SourceMap, Target, text, verify};
use tilewright::lowering::Times;
use tilewright::passes::driver::{self, Options};

use super::output::{self, Failure, Outcome};
use super::show::{PrintTo, Show, ShowArgs, find_pass};
use super::{input, passes::parse_target};

#[derive(Args, Debug)]
pub struct OptArgs {
    /// IR in text form.
    #[arg(value_name = "FILE.tw")]
    file: String,
    /// Passes to run, in this order. Without any, the IR is parsed, verified and printed.
    #[arg(long = "pass", value_name = "NAME[,NAME…]", value_delimiter = ',')]
    passes: Vec<String>,
    /// The target that the passes lower for.
    #[arg(long, default_value = Target::DEFAULT.name())]
    target: String,
    /// Print one JSON object that holds the text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    show: ShowArgs,
}

pub fn opt(args: &OptArgs) -> Outcome {
    let target = parse_target(&args.target)?;
    let passes = args
        .passes
        .iter()
        .map(|name| find_pass(name))
        .collect::<Result<Vec<_>, _>>()?;
    args.show.check(&passes)?;
    if args.file.ends_with(".py") {
        return Err(Failure::Usage(format!(
            "`opt` takes IR in text form; `tilewright compile {} --emit tile -o K.tw` makes some",
            args.file
        )));
    }
    let mut sources = SourceMap::new();
    let file = input::read(&mut sources, &args.file);
    let file = file.map_err(|d| output::fail(&[*d], &sources, args.json))?;
    let parsed = text::parse(sources.text(file), file);
    let mut func = parsed.map_err(|d| output::fail(&d, &sources, args.json))?;
    verify::verify(&func).map_err(|d| output::fail(&d, &sources, args.json))?;

    let mut show = Show::new(&args.show, &func, PrintTo::beside(args.json), &sources)?;
    let options = Options {
        passes: Some(passes),
        ..Options::default()
    };
    let (report, mut errors) = match driver::run_with(&mut func, target, &options, &mut show) {
        Ok(report) => (report, Vec::new()),
        Err(failed) => (*failed.report, failed.errors.into_vec()),
    };
    output::warn(&report.said.into_vec(), &sources);
    show.explain(&report.remarks, &sources);
    let times = Times {
        passes: report.timings,
        hazards: None,
    };
    errors.extend(show.finish(times).err().map(|d| *d));
    show.print_timings();
    if !errors.is_empty() {
        return Err(show.fail(&errors, &sources));
    }
    let result = text::print(&func);
    if args.json {
        let mut object = json!({ "ok": true, "text": result });
        show.add_to(&mut object);
        output::print_json(&object);
    } else {
        output::print(&result);
    }
    Ok(())
}
