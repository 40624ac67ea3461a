//! Drawings of the layouts that layout inference decided: which thread holds which element of a
//! fragment, and where shared memory holds it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tilewright::ir::{BufferData, BufferOrigin, Diagnostic, Func, Scope, StmtKind, Target, visit};
use tilewright::layout::draw::{svg, text};
use tilewright::layout::{Fragment, Layout};

use tilewright::timeline::{timelines, to_svg};

use super::output;

/// What is known of one buffer of a kernel.
pub struct Drawn {
    /// `kernel 0: A_shared, shared float16[128, 32]`
    title: String,
    /// The buffer's name.
    buffer: String,
    /// The same with a number where several share it: the file's name.
    name: String,
    placement: Placement,
}

enum Placement {
    Fragment {
        fragment: Arc<Fragment>,
        lanes: i64,
    },
    Shared {
        layout: Layout,
        element_bits: i64,
        banks: i64,
    },
    /// The same storage as the buffer of this name.
    View(String),
    /// Why there is nothing to draw.
    None(String),
}

/// Every shared buffer and fragment of the function's kernels, in program order.
pub fn all(func: &Func, target: Target) -> Vec<Drawn> {
    let mut drawn: Vec<Drawn> = Vec::new();
    for (number, kernel) in func.kernels.iter().enumerate() {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            let StmtKind::Alloc(buffer) = &stmt.kind else {
                return;
            };
            let data = &func.buffers[*buffer];
            if !matches!(data.scope, Scope::Shared | Scope::Fragment) {
                return;
            }
            let mut title = format!("{}, {} {}", data.name, data.scope.name(), data.dtype);
            if let Some(shape) = data.const_shape() {
                let shape: Vec<String> = shape.iter().map(i64::to_string).collect();
                title += &format!("[{}]", shape.join(", "));
            }
            if func.kernels.len() > 1 {
                title = format!("kernel {number}: {title}");
            }
            let same = drawn.iter().filter(|d| d.buffer == data.name).count();
            let name = match same {
                0 => data.name.clone(),
                n => format!("{}_{n}", data.name),
            };
            let placement = place(func, data, target);
            drawn.push(Drawn {
                title,
                buffer: data.name.clone(),
                name,
                placement,
            });
        });
    }
    drawn
}

fn place(func: &Func, data: &BufferData, target: Target) -> Placement {
    if let BufferOrigin::View(of) = data.origin {
        return Placement::View(func.buffers[of].name.clone());
    }
    let Some(shape) = data.const_shape() else {
        return Placement::None("its shape is not constant".to_owned());
    };
    let machine = target.machine();
    if let Some(fragment) = data.held() {
        return Placement::Fragment {
            fragment: fragment.clone(),
            lanes: i64::from(machine.warp_size),
        };
    }
    if data.scope == Scope::Fragment {
        return Placement::None("no operation needs it in registers".to_owned());
    }
    let layout = match data.placed() {
        Some(place) => Ok(place.layout().clone()),
        None => Layout::linear(&shape),
    };
    match layout {
        Ok(layout) => Placement::Shared {
            layout,
            element_bits: i64::from(data.dtype.bits()),
            banks: i64::from(machine.shared.banks),
        },
        Err(e) => Placement::None(e.to_string()),
    }
}

impl Drawn {
    pub fn to_text(&self) -> String {
        let drawing = match &self.placement {
            Placement::Fragment { fragment, .. } => text::fragment(fragment),
            Placement::Shared { layout, .. } => text::layout(layout),
            Placement::View(of) => format!("the same storage as {of}\n"),
            Placement::None(why) => format!("not drawn: {why}\n"),
        };
        format!("{}\n{drawing}", self.title)
    }

    pub fn to_json(&self) -> Value {
        json!({ "buffer": self.name, "title": self.title, "text": self.to_text() })
    }

    /// `None` where there is nothing to draw.
    fn to_svg(&self) -> Option<String> {
        match &self.placement {
            Placement::Fragment { fragment, lanes } => {
                Some(svg::fragment(&self.title, fragment, *lanes))
            }
            Placement::Shared {
                layout,
                element_bits,
                banks,
            } => Some(svg::layout(&self.title, layout, *element_bits, *banks)),
            Placement::View(_) | Placement::None(_) => None,
        }
    }
}

/// Writes one SVG file for each kernel with a pipelined loop into the folder, and returns their paths.
pub fn write_schedules(
    func: &Func,
    target: Target,
    folder: &Path,
) -> Result<Vec<String>, Box<Diagnostic>> {
    fs::create_dir_all(folder).map_err(|e| Box::new(output::unwritable(folder, &e)))?;
    let mut paths = Vec::new();
    for (number, one) in timelines(func, target).iter().enumerate() {
        let name = match number {
            0 => "schedule.svg".to_string(),
            n => format!("schedule_{n}.svg"),
        };
        let path = folder.join(name);
        output::write_file(&path, to_svg(one).as_bytes())?;
        paths.push(path.display().to_string());
    }
    Ok(paths)
}

/// Writes one SVG file a buffer into the folder, made if it is not there, and returns their
/// paths.
pub fn write_svgs(drawn: &[Drawn], folder: &Path) -> Result<Vec<String>, Box<Diagnostic>> {
    fs::create_dir_all(folder).map_err(|e| Box::new(output::unwritable(folder, &e)))?;
    let mut paths = Vec::new();
    for one in drawn {
        if let Some(svg) = one.to_svg() {
            let path = folder.join(format!("{}.svg", one.name));
            output::write_file(&path, svg.as_bytes())?;
            paths.push(path.display().to_string());
        }
    }
    Ok(paths)
}
