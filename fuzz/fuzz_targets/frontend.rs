//! Any bytes through the front end: no panic, and what it makes satisfies the verifier and
//! survives the text form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_ir::text::{parse, print};
use tilewright_ir::{SourceMap, verify};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz.py", text);
    match tilewright_frontend::stage(&sources, file, None, &[]) {
        Ok(staged) => {
            if let Err(errors) = verify(&staged.func) {
                panic!("{}\n{}", errors[0].render(&sources, false), staged.func);
            }
            let printed = print(&staged.func);
            let again = parse(&printed, file);
            assert!(again.is_ok_and(|f| f == staged.func), "{printed}");
        }
        Err(errors) => {
            for error in &errors {
                error.render(&sources, false);
            }
        }
    }
});
