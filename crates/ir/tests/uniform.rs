//! The analysis of uniformity, as a table: a kernel's body, and what varies in it.
//!
//! Names are those of variables and of private memory on which threads disagree, without `tx`;
//! `print` statements give places names, and those to which threads do not come together are
//! listed behind `|`. A name with `*` is one on which those that run the same regions still agree.

use tilewright_ir::text::parse_module;
use tilewright_ir::uniform::{Among, Points, Uniformity, Way};
use tilewright_ir::visit::child_blocks;
use tilewright_ir::{Block, FileId, Level, StmtKind, ThreadOp, VarKind};

const TILE: (Level, Points) = (Level::Tile, Points::OfThreads);
const LOOP: (Level, Points) = (Level::Loop, Points::OfThreads);
const EVALUATED: (Level, Points) = (Level::Tile, Points::OfBlock);

/// Programs about which all agree.
const ALIKE: &[(&str, &str)] = &[
    // Values.
    ("let x: int32 = tx + n", "x |"),
    ("let x: int32 = bx + n\nlet y: int32 = ty", "|"),
    (
        "let x: int32 = A[0]\nlet y: int32 = A[tx]\nlet z: int32 = S[x]",
        "y |",
    ),
    ("v[] = 3", "|"),
    ("v[] = tx", "v |"),
    ("v[] = S[5]", "|"),
    ("v[] = S[255 - tx]", "v |"),
    ("L[tx % 4] = 1\nlet x: int32 = L[0]", "L x |"),
    (
        "view W: local int32[4] of L\nW[0] = tx\nlet x: int32 = L[1]",
        "L W x |",
    ),
    ("v[] = w[]\nw[] = tx", "v w |"),
    // Branches.
    (
        "if tx < 3 {\nv[] = 1\nprint \"a\"\n} else {\nprint \"b\"\n}\nprint \"c\"",
        "v | a b",
    ),
    ("if n < 3 {\nv[] = 1\nprint \"a\"\n}", "|"),
    ("if tx < 3 {\nlet x: int32 = n\n}", "|"),
    ("if tx < 3 {\nS[0] = 1\n}\nlet x: int32 = S[0]", "|"),
    ("v[] = tx\nif v[] < 3 {\nprint \"a\"\n}", "v | a"),
    ("if w[] < 3 {\nprint \"a\"\n}\nw[] = A[tx]", "w | a"),
    // Loops.
    ("for i in serial(0, n) {\nv[] = i\nprint \"a\"\n}", "|"),
    (
        "for i in serial(0, tx) {\nv[] = 1\nprint \"a\"\n}\nprint \"b\"",
        "i v | a",
    ),
    ("while v[] < 3 {\nv[] = v[] + 1\nprint \"a\"\n}", "|"),
    (
        "while v[] < 3 {\nv[] = v[] + tx\nprint \"a\"\n}\nprint \"b\"",
        "v | a",
    ),
    // Jumps.
    (
        "for i in serial(0, 4) {\nprint \"a\"\nif tx < i {\nbreak\n}\nprint \"b\"\nv[] = 1\n}\nprint \"c\"",
        "i v | a b",
    ),
    (
        "for i in serial(0, 4) {\nprint \"a\"\nif n < i {\nbreak\n}\nv[] = 1\n}",
        "|",
    ),
    (
        "for i in serial(0, 4) {\nprint \"a\"\nw[] = 1\nif tx < i {\ncontinue\n}\nprint \"b\"\nv[] = 1\n}\nprint \"c\"",
        "v | b",
    ),
    // The others leave behind the iteration that some have left.
    (
        "for i in serial(0, 4) {\nif tx < i {\ncontinue\n}\nif n < i {\nbreak\n}\n}",
        "i |",
    ),
    (
        "for i in serial(0, 4) {\nprint \"a\"\nif n < 2 {\nif tx < i {\ncontinue\n}\nprint \"b\"\n}\nprint \"c\"\n}",
        "| b c",
    ),
    // A jump belongs to the innermost loop.
    (
        "for i in serial(0, 4) {\nfor j in serial(0, 4) {\nif tx < j {\nbreak\n}\n}\nprint \"a\"\n}",
        "j |",
    ),
    (
        "while v[] < 3 {\nif tx < 5 {\ncontinue\n}\nv[] = v[] + 1\n}",
        "v |",
    ),
    (
        "while n < 3 {\nprint \"a\"\nif A[tx] < 5 {\nbreak\n}\n}\nprint \"b\"",
        "| a",
    ),
    // Operations of threads.
    ("x = atomic_rmw add A[0], 1 relaxed", "x |"),
    ("x = atomic_load A[0] acquire", "x |"),
    ("atomic_rmw add v[], 1 relaxed", "v |"),
    (
        "x = shuffle xor n, 16 width=32\ny = shuffle xor tx, 16 width=32",
        "y |",
    ),
    ("x = shuffle index n, tx width=32", "x |"),
    (
        "x = vote any n < 3\ny = vote all tx < 3\nz = vote ballot n < 3",
        "y z |",
    ),
    ("if tx < 3 {\nx = vote any n < 3\n}", "x |"),
    ("x = vote block_or tx < 3\nif x > 0 {\nprint \"a\"\n}", "|"),
    ("x = warp_reduce sum n", "x |"),
    (
        "allreduce (a: int32, c: int32) -> a + c, identity=0, tx if tx < 3 -> L[0] axes=[x]",
        "|",
    ),
    (
        "allreduce (a: int32, c: int32) -> a + c, identity=0, tx if tx < 3 -> L[0] axes=[y]",
        "L |",
    ),
    (
        "allreduce (a: int32, c: int32) -> a + c, identity=0, n if n < 3 -> L[0] axes=[y]",
        "|",
    ),
    (
        "if A[tx] < 3 {\nallreduce (a: int32, c: int32) -> a + c, identity=0, n if n < 3 -> L[0] axes=[x]\n}",
        "L |",
    ),
    ("dp4a B[0], B[4] -> L[0]\ndp4a B[tx], B[4] -> v[]", "v |"),
    (
        "x = extern \"f\"(n): int32\ny = extern \"f\"(n): int32 pure\nz = extern \"f\"(tx): int32 pure",
        "x z |",
    ),
    ("extern \"f\"(address_of(L[0])): handle", "L |"),
    // Warp groups.
    (
        "warp_group 0 {\nv[] = 1\nif v[] < 3 {\nprint \"a\"\n}\n}",
        "|",
    ),
    (
        "warp_group 0 {\nv[] = 1\n}\nif v[] < 3 {\nprint \"a\"\nw[] = 1\n}",
        "v* w* | a*",
    ),
    (
        "for i in serial(0, 4) {\nprint \"a\"\nwarp_group 0 {\nbreak\n}\n}",
        "i* | a*",
    ),
    ("warp_group 0 {\nv[] = 1\n}\nv[] = v[] + tx", "v |"),
];

/// Programs that mean different things to different executors.
const APART: &[((Level, Points), &str, &str)] = &[
    // A fragment is one tile of the block, until it is registers.
    (TILE, "F[tx] = tx\nlet x: int32 = F[0]", "|"),
    (LOOP, "F[0] = tx\nlet x: int32 = F[0]", "F x |"),
    (LOOP, "F[0] = 1\nlet x: int32 = F[0]", "|"),
    // The points of a parallel loop are dealt out, or the block's.
    (TILE, "for i in parallel(256) {\nv[] = A[i]\n}", "i v |"),
    (EVALUATED, "for i in parallel(256) {\nv[] = A[i]\n}", "|"),
    (TILE, "for i in parallel(64) {\nv[] = 1\n}", "i v |"),
    (EVALUATED, "for i in parallel(64) {\nv[] = tx\n}", "v |"),
    // Tiles of a thread's own.
    (TILE, "copy A[n +: 4] -> L[0 +: 4]", "|"),
    (TILE, "copy A[tx +: 4] -> L[0 +: 4]", "L |"),
    (TILE, "if tx < 3 {\nfill L[0 +: 4], 0\n}", "L |"),
    (LOOP, "fill F[0 +: 4], 0", "F |"),
];

fn found((level, points): (Level, Points), body: &str) -> String {
    let text = format!(
        "func @f level={} {{
           param A: int32[512]
           param B: int8[512]
           scalar n: int32
           kernel grid(bx: 4) threads(tx: 256, ty: 1, tz: 1) {{
             alloc S: shared int32[512]
             alloc F: fragment int32[512]
             alloc L: local int32[4]
             alloc v: var int32
             alloc w: var int32
             {body}
           }}
         }}",
        level.name()
    );
    let funcs = parse_module(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let func = &funcs[0];
    let kernel = &func.kernels[0];
    let uniformity = Uniformity::of(func, kernel, points);
    let mut names = Vec::new();
    for (var, data) in func.vars.iter() {
        if data.kind != VarKind::ThreadIdx(0) {
            names.extend(name(&data.name, uniformity.of_var(var)));
        }
    }
    for (buffer, data) in func.buffers.iter() {
        names.extend(name(&data.name, uniformity.of_buffer(buffer)));
    }
    names.sort();
    let mut places = Vec::new();
    apart(&uniformity, &kernel.body, Way::TOGETHER, &mut places);
    let words = names.iter().map(String::as_str).chain(["|"]);
    let words: Vec<&str> = words.chain(places.iter().map(String::as_str)).collect();
    words.join(" ")
}

fn name(name: &str, among: Among) -> Option<String> {
    match among {
        Among::Block => None,
        Among::Region => Some(format!("{name}*")),
        Among::Thread => Some(name.to_string()),
    }
}

fn apart(uniformity: &Uniformity<'_>, block: &Block, mut way: Way, places: &mut Vec<String>) {
    for stmt in block {
        if let StmtKind::Thread(ThreadOp::Print { message, .. }) = &stmt.kind {
            places.extend(name(message, way.among));
        }
        for child in child_blocks(stmt) {
            apart(uniformity, child, way.then(uniformity.inside(stmt)), places);
        }
        way = way.then(uniformity.jumps(stmt).both());
    }
}

#[test]
fn what_varies() {
    let alike = ALIKE
        .iter()
        .flat_map(|&(body, wanted)| [TILE, LOOP, EVALUATED].map(|on| (on, body, wanted)));
    let mut wrong = Vec::new();
    for (on, body, wanted) in alike.chain(APART.iter().copied()) {
        let found = found(on, body);
        if found != wanted {
            wrong.push(format!("{on:?}\n{body}\nwanted {wanted}\nfound  {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What parted the threads is named, for whoever has to say so.
#[test]
fn where_threads_part() {
    let text = "func @f level=tile {
      kernel grid(bx: 4) threads(tx: 256, ty: 1, tz: 1) {
        for i in serial(0, 4) {
          if bx < 3 {
            if tx < i {
              break
            }
          }
        }
      }
    }";
    let funcs = parse_module(text, FileId(0)).expect("valid text");
    let kernel = &funcs[0].kernels[0];
    let uniformity = Uniformity::of(&funcs[0], kernel, Points::OfThreads);
    let span = uniformity.inside(&kernel.body[0]).parted;
    assert!(
        text[span.start as usize..].starts_with("tx < i"),
        "{span:?}"
    );
}

/// A region is one where no other has only some of its warp groups.
#[test]
fn regions() {
    let text = "func @f level=tile {
      kernel grid(bx: 4) threads(tx: 512, ty: 1, tz: 1) {
        warp_group 0, 1 {
        }
        warp_group 2, 3 {
        }
        warp_group 3 {
        }
      }
    }";
    let funcs = parse_module(text, FileId(0)).expect("valid text");
    let uniformity = Uniformity::of(&funcs[0], &funcs[0].kernels[0], Points::OfThreads);
    assert_eq!(uniformity.region(&[0, 1]), Among::Region);
    assert_eq!(uniformity.region(&[2, 3]), Among::Block);
    assert_eq!(uniformity.region(&[3]), Among::Region);
}
