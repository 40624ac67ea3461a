//! Draws a few layouts as text, and as SVG files when given a folder:
//! `cargo run -p tilewright-layout --example draw_layouts -- OUT`.

use std::error::Error;
use std::path::Path;

use tilewright_ir::micro_op::MmaInst;
use tilewright_ir::target::Target;
use tilewright_layout::draw::{svg, text};
use tilewright_layout::lanes::{Operand, lane_map};
use tilewright_layout::{Fragment, swizzle};

fn main() -> Result<(), Box<dyn Error>> {
    let inst = |name: &str| MmaInst::from_name(name).ok_or(format!("no instruction {name}"));
    let map = |name: &str, operand| lane_map(&inst(name)?, operand).ok_or(name.to_owned());
    let fragments = [
        (
            "mma_16x8x16_c",
            map("mma.16x8x16.float16.float32", Operand::C)?,
            32,
        ),
        (
            "mfma_16x16x32_a",
            map("mfma.16x16x32.bfloat16.float32", Operand::A)?,
            64,
        ),
        (
            "mfma_32x32x8_c",
            map("mfma.32x32x8.bfloat16.float32", Operand::C)?,
            64,
        ),
        (
            "wgmma_64x96_c",
            map("wgmma.64x96x16.bfloat16.float32", Operand::C)?,
            32,
        ),
        ("vector_229", Fragment::partition(&[229], 128, 1)?, 32),
    ];
    let layouts = [
        (
            "b128_8x64",
            swizzle::Swizzle::B128.panels(&[8, 64], 16)?,
            16,
            32,
        ),
        (
            "gfx950_64x64",
            swizzle::for_matrix(
                Target::Gfx950,
                &[64, 64],
                &inst("mfma.16x16x32.bfloat16.float32")?,
            )?
            .layout()
            .clone(),
            16,
            64,
        ),
        (
            "f32_16x32",
            swizzle::for_matrix(
                Target::Sm80,
                &[16, 32],
                &inst("mma.16x8x8.tfloat32.float32")?,
            )?
            .layout()
            .clone(),
            32,
            32,
        ),
    ];
    let out = std::env::args_os().nth(1);
    for (name, fragment, lanes) in &fragments {
        println!("{}", text::fragment(fragment));
        if let Some(out) = &out {
            std::fs::write(
                Path::new(out).join(format!("{name}.svg")),
                svg::fragment(name, fragment, *lanes),
            )?;
        }
    }
    for (name, layout, bits, banks) in &layouts {
        println!("{}", text::layout(layout));
        if let Some(out) = &out {
            std::fs::write(
                Path::new(out).join(format!("{name}.svg")),
                svg::layout(name, layout, *bits, *banks),
            )?;
        }
    }
    Ok(())
}
