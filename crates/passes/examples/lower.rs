//! Lowers a kernel file and prints it: `cargo run -p tilewright-passes --example lower -- k.py sm_80`.

use std::{env, fs};

use tilewright_frontend as frontend;
use tilewright_ir::{Diagnostics, SourceMap, Target, text};
use tilewright_passes as passes;

fn main() {
    let args: Vec<String> = env::args().collect();
    let (file, entry) = args[1].split_once(':').map_or((args[1].as_str(), None), |(f, e)| (f, Some(e)));
    let target = Target::from_name(&args[2]).expect("a target");
    let source = fs::read_to_string(file).expect("a file");
    let mut sources = SourceMap::new();
    let id = sources.add(file, source);
    let staged = match frontend::stage(&sources, id, entry, &[]) {
        Ok(s) => s,
        Err(d) => {
            for d in d {
                println!("{}", d.render(&sources, false));
            }
            return;
        }
    };
    let mut func = staged.func;
    if args.len() > 3 {
        println!("{}", text::print(&func));
    }
    let mut diags = Diagnostics::new();
    for pass in passes::pipeline(target) {
        let start = std::time::Instant::now();
        (pass.run)(&mut func, target, &mut diags);
        eprintln!("{:40} {:?}", pass.name, start.elapsed());
        if diags.has_errors() {
            break;
        }
    }
    println!("{}", diags.render(&sources, false));
    println!("{}", text::print(&func));
}
