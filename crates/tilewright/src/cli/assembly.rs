//! A kernel in an assembly file, and a launch of it from what the command line says.

use tilewright::gfx9::asm::{self, Argument as Declared, Function};
use tilewright::gfx9::emu::{self, Arch, Argument, Buffer, Landing, Launch};
use tilewright::ir::{Code, Diagnostic, SourceMap, Span};
use tilewright::sim::room;

/// How a kernel of a file is launched.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// `FILE.s` or `FILE.s:KERNEL`.
    pub path: &'a str,
    pub kernel: Option<&'a str>,
    pub arguments: &'a [String],
    pub threads: Option<u32>,
    pub block: u32,
}

/// A kernel that was run, with what its block did.
#[derive(Debug)]
pub struct Traced {
    pub function: Function,
    pub arch: String,
    pub trace: tilewright::gfx9::cycles::Trace,
}

/// Reads the file and runs one block of the kernel.
pub fn trace(request: &Request<'_>, sources: &mut SourceMap) -> Result<Traced, Vec<Diagnostic>> {
    let file = super::input::read(sources, request.path).map_err(|d| vec![*d])?;
    let sources = &*sources;
    let start = Span::new(file, 0, 0);
    let fail = |text: String| vec![Diagnostic::error(Code("assembly"), start, text)];
    let program = asm::parse(sources.text(file)).map_err(|e| {
        let span = sources.line_span(file, e.line as usize);
        vec![Diagnostic::error(Code("assembly"), span, e.reason)]
    })?;
    let name = program.arch.clone().unwrap_or_default();
    let arch = Arch::named(&name).ok_or_else(|| {
        fail(format!(
            "{} is for `{name}`; code of gfx942 and gfx950 can be timed (`.amdgcn_target` says which it is)",
            request.path
        ))
    })?;
    let function = kernel(&program, request.kernel).map_err(fail)?;
    let mut launch = launch(function, request).map_err(|(text, help)| {
        vec![Diagnostic::error(Code("kernel-arguments"), start, text).help(help)]
    })?;
    launch.room = room::available();
    let outcome = emu::run(function, arch, launch).map_err(|e| fail(e.to_string()))?;
    if !outcome.findings.is_empty() {
        let each = outcome.findings.iter().map(|f| {
            let line = |at: usize| function.instructions.get(at).map(|i| i.line as usize);
            let at = line(f.at).map_or(start, |line| sources.line_span(file, line));
            let text = format!("`{}`: {}", function.name, f.show(function));
            let diag = Diagnostic::error(Code("compiled-code"), at, text);
            match f.other.and_then(line) {
                Some(other) => diag.also(sources.line_span(file, other), "the other"),
                None => diag,
            }
        });
        return Err(each.collect());
    }
    let Some(trace) = outcome.trace else {
        return Err(fail(format!("there is no block {}", request.block)));
    };
    Ok(Traced {
        function: function.clone(),
        arch: name,
        trace,
    })
}

fn kernel<'p>(program: &'p asm::Program, named: Option<&str>) -> Result<&'p Function, String> {
    let kernels: Vec<&Function> = program.kernels().collect();
    let names = || {
        let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
        names.join("`, `")
    };
    match (named, kernels.as_slice()) {
        (Some(name), _) => kernels
            .iter()
            .find(|k| k.name == name)
            .copied()
            .ok_or_else(|| format!("the file has no kernel `{name}`; it has `{}`", names())),
        (None, [one]) => Ok(one),
        (None, []) => {
            Err("the file has no kernel: its metadata (`.amdgpu_metadata`) lists none".to_owned())
        }
        (None, _) => Err(format!(
            "the file has several kernels; name one, as in FILE.s:KERNEL: `{}`",
            names()
        )),
    }
}

/// A launch, or what is wrong with the arguments and what would help.
fn launch(function: &Function, request: &Request<'_>) -> Result<Launch, (String, String)> {
    let needs = function.needs.as_ref();
    let declared: Vec<&Declared> = needs
        .iter()
        .flat_map(|needs| &needs.arguments)
        .filter(|argument| !argument.kind.starts_with("hidden_"))
        .collect();
    if declared.len() != request.arguments.len() {
        let text = format!(
            "`{}` takes {} arguments, {} were given",
            function.name,
            declared.len(),
            request.arguments.len()
        );
        return Err((text, wanted(&declared)));
    }
    let most = needs.map_or(0, |needs| needs.max_threads);
    let threads = request.threads.unwrap_or(most);
    if threads == 0 || most > 0 && threads > most {
        let text = format!("`{}` cannot be run with {threads} threads", function.name);
        return Err((text, format!("give --threads, up to {most}")));
    }
    // The blocks before the one that is looked at exist, and are not run.
    let mut launch = Launch::new([request.block.saturating_add(1), 1, 1], [threads, 1, 1]);
    for (declared, given) in declared.iter().zip(request.arguments) {
        let argument = match given.strip_prefix("buffer:") {
            Some(size) if declared.kind == "global_buffer" || declared.size == 8 => {
                let bytes = bytes(size).ok_or_else(|| bad(given, &declared.kind))?;
                launch.buffers.push(buffer(launch.buffers.len(), bytes));
                Argument::Buffer {
                    index: launch.buffers.len() - 1,
                    offset: 0,
                }
            }
            None if declared.kind != "global_buffer" => {
                let value = scalar(given, declared.size as usize);
                Argument::Bytes(value.ok_or_else(|| bad(given, &declared.kind))?)
            }
            _ => return Err(bad(given, &declared.kind)),
        };
        launch.arguments.push(argument);
    }
    launch.landing = Landing::Early;
    launch.traced = Some(request.block);
    launch.only = Some(request.block);
    Ok(launch)
}

/// What the kernel takes, as one would give it.
fn wanted(declared: &[&Declared]) -> String {
    let each: Vec<String> = declared
        .iter()
        .map(|argument| match argument.kind.as_str() {
            "global_buffer" => "--arg buffer:BYTES".to_owned(),
            _ => format!("--arg N ({} bytes)", argument.size),
        })
        .collect();
    match each.is_empty() {
        true => "the kernel takes no arguments".to_owned(),
        false => format!("give {}, in this order", each.join(" ")),
    }
}

fn bad(given: &str, kind: &str) -> (String, String) {
    let help = match kind {
        "global_buffer" => "give buffer:BYTES; 64K and 4M are sizes too",
        _ => "give a whole number, or one with a point for a float",
    };
    (format!("`--arg {given}` is no {kind}"), help.to_owned())
}

/// `4096`, `64K`, `2M`.
fn bytes(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 1 << 10),
        b'M' | b'm' => (&text[..text.len() - 1], 1 << 20),
        b'G' | b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let size = digits.parse::<usize>().ok()?.checked_mul(unit)?;
    (size <= 8 << 30).then_some(size)
}

fn buffer(index: usize, bytes: usize) -> Buffer {
    Buffer {
        name: format!("argument {index}"),
        bytes: vec![0; bytes],
        element: 1,
        writable: true,
        holds: None,
    }
}

/// A number in as many bytes as the kernel takes.
fn scalar(text: &str, size: usize) -> Option<Vec<u8>> {
    if let Ok(value) = text.parse::<i64>() {
        let bytes = value.to_le_bytes();
        return bytes.get(..size).map(<[u8]>::to_vec);
    }
    let value: f64 = text.parse().ok()?;
    match size {
        4 => Some((value as f32).to_le_bytes().to_vec()),
        8 => Some(value.to_le_bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers() {
        assert_eq!(bytes("64K"), Some(65536));
        assert_eq!(bytes("2M"), Some(2 << 20));
        assert_eq!(bytes("12"), Some(12));
        assert_eq!(bytes("K"), None);
        assert_eq!(bytes(""), None);
        assert_eq!(scalar("-1", 4), Some(vec![255; 4]));
        assert_eq!(scalar("1.5", 4), Some(1.5f32.to_le_bytes().to_vec()));
        assert_eq!(scalar("x", 4), None);
        assert_eq!(scalar("1.5", 2), None);
    }
}
