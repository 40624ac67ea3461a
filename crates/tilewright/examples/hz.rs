use tilewright::{ir::*, frontend, passes, schedule::hazard};
fn main() {
    let mut all = std::time::Duration::ZERO;
    for f in std::env::args().skip(1) {
        for target in [Target::Sm80, Target::Gfx942, Target::Gfx950] {
            let mut sources = SourceMap::new();
            let text = std::fs::read_to_string(&f).unwrap();
            let file = sources.add(&f, text.as_str());
            let mut funcs = vec![];
            if f.ends_with(".tw") { funcs.push(text::parse(&text, file).unwrap()); } else {
            let mut names: Vec<String> = vec![]; let mut dec=false;
            for l in text.lines() { if let Some(d)=l.strip_prefix("def ") { let n=d.split('(').next().unwrap().to_string(); if dec {names.push(n);} dec=false; } else if l.starts_with("@tilelang.jit") {dec=true;} }
            for n in names {
                match frontend::stage(&sources, file, Some(&n), &[]) { Ok(s)=>{
                    let mut func = s.func; let mut d = Diagnostics::new();
                    for p in passes::pipeline(target) { (p.run)(&mut func, target, &mut d); }
                    if d.has_errors() { println!("{f}:{n} {target} LOWER ERR"); continue; }
                    funcs.push(func);
                }, Err(_)=>println!("{f}:{n} stage err") }
            } }
            for func in funcs {
                let t = std::time::Instant::now();
                let r = hazard::check(&func, target);
                let mut e = t.elapsed(); for _ in 0..4 { let t = std::time::Instant::now(); hazard::check(&func, target); e = e.min(t.elapsed()); } all += e;
                println!("{} {} {target}: {} hazards, proved {} runs {} {:?}", f, func.name, r.hazards.len(), r.proved, r.runs, e);
                for h in r.hazards.iter().take(4) { println!("   {h}  @{}", sources.locate(h.second.span)); }
                for h in &r.reasons { println!("   ? {} @{}", h.text, sources.locate(h.span)); }
            }
        }
    }
    println!("{all:?}");
}
