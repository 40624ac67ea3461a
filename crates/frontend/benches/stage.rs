//! From text to tile IR: every kernel of the examples that needs no settings.

use tilewright_ir::SourceMap;
use tilewright_testkit::bench::time;

fn main() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the examples")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let text = std::fs::read_to_string(&path).expect("an example");
        let mut sources = SourceMap::new();
        let file = sources.add(name.clone(), text);
        time(&name, || {
            tilewright_frontend::stage(&sources, file, None, &[]).expect("it stages")
        });
    }
}
