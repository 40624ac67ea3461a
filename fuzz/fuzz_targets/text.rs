//! Any bytes through the text parser: no panic, and what parses prints to what parses to the
//! same. The verifier and the renderer of diagnostics run along.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_ir::text::{parse, parse_module, print};
use tilewright_ir::{SourceMap, verify};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz.tw", text.as_ref());
    let funcs = match parse_module(&text, file) {
        Ok(funcs) => funcs,
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in &errors {
                error.render(&sources, false);
            }
            return;
        }
    };
    for func in funcs {
        let sound = verify(&func);
        let printed = print(&func);
        match parse(&printed, file) {
            Ok(again) => {
                assert!(again == func, "not the same:\n{printed}");
                assert_eq!(print(&again), printed);
            }
            // A name used out of its scope, which the verifier refuses, may not come back.
            Err(errors) => assert!(sound.is_err(), "{printed}\n{errors:?}"),
        }
        if let Err(errors) = sound {
            for error in &errors {
                error.render(&sources, false);
            }
        }
    }
});
