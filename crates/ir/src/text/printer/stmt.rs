//! Statements, loops and blocks.

use crate::expr::Expr;
use crate::stmt::{Axis, Block, Loop, LoopKind, PipelineSpec, Stmt, StmtKind, Turn};
use crate::text::printer::Printer;

impl Printer<'_> {
    /// ` { … }` with the statements on lines of their own, in a scope of their own.
    pub(super) fn block(&mut self, block: &Block) {
        self.put(" {\n");
        self.indent += 1;
        self.names.open();
        for stmt in block {
            self.stmt(stmt);
        }
        self.names.close();
        self.indent -= 1;
        self.start_line();
        self.put("}");
    }

    /// One statement on its line.
    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        self.start_line();
        if let Some(turn) = stmt.turn {
            self.turn(turn);
        }
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                // The value does not see the name it is given, so it is put into text first.
                let at = self.out.len();
                self.expr(value);
                let text = self.out.split_off(at);
                self.put("let ");
                self.typed_var(*var);
                self.put(" = ");
                self.put(&text);
            }
            StmtKind::Store {
                buffer,
                indices,
                value,
            } => {
                self.element(*buffer, indices);
                self.put(" = ");
                self.expr(value);
            }
            StmtKind::Alloc(buffer) => self.declaration(*buffer),
            StmtKind::For(l) => self.for_loop(l),
            StmtKind::While { cond, body } => {
                self.put("while ");
                self.expr(cond);
                self.block(body);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.put("if ");
                self.expr(cond);
                self.block(then);
                if !otherwise.is_empty() {
                    self.put(" else");
                    self.block(otherwise);
                }
            }
            StmtKind::Break => self.put("break"),
            StmtKind::Continue => self.put("continue"),
            StmtKind::Assert { cond, message } => {
                self.put("assert ");
                self.expr(cond);
                self.put(", ");
                self.string(message);
            }
            StmtKind::Assume(cond) => {
                self.put("assume ");
                self.expr(cond);
            }
            StmtKind::WarpGroup { groups, body } => {
                self.put("warp_group ");
                self.list(groups, |p, g| p.put(&g.to_string()));
                self.block(body);
            }
            StmtKind::Tile(op) => self.tile_op(op),
            StmtKind::Thread(op) => self.thread_op(op),
            StmtKind::Micro(op) => self.micro_op(op),
            StmtKind::Device(op) => self.device_op(op),
        }
        self.end_line();
    }

    /// `@(stage=0, order=2) `
    fn turn(&mut self, turn: Turn) {
        let said = [("stage", turn.stage), ("order", turn.order)];
        let said = said.into_iter().filter_map(|(name, n)| Some((name, n?)));
        self.put("@(");
        self.list(&said.collect::<Vec<_>>(), |p, (name, n)| {
            p.put(&format!("{name}={n}"));
        });
        self.put(") ");
    }

    fn for_loop(&mut self, l: &Loop) {
        // The ranges do not see the indices, so they are put into text first.
        let grouped = matches!(
            l.kind,
            LoopKind::Parallel { .. } | LoopKind::Persistent { .. }
        );
        let at = self.out.len();
        match &l.axes[..] {
            [axis] if !grouped => {
                self.expr(&axis.start);
                self.put(", ");
                self.expr(&axis.stop);
                if axis.step != Expr::int(1, axis.stop.dtype()) {
                    self.put(", ");
                    self.expr(&axis.step);
                }
            }
            axes => self.list(axes, |p, axis| p.axis(axis, grouped)),
        }
        let ranges = self.out.split_off(at);
        let at = self.out.len();
        self.loop_attrs(&l.kind);
        let attrs = self.out.split_off(at);

        self.names.open();
        self.put("for ");
        self.list(&l.axes, |p, axis| {
            p.new_var(axis.var, Some(axis.stop.dtype()))
        });
        self.put(" in ");
        self.put(match l.kind {
            LoopKind::Serial => "serial",
            LoopKind::Unroll { .. } => "unroll",
            LoopKind::Vectorized => "vectorized",
            LoopKind::Parallel { .. } => "parallel",
            LoopKind::Pipelined(_) => "pipelined",
            LoopKind::Persistent { .. } => "persistent",
        });
        self.put("(");
        self.put(&ranges);
        self.put(")");
        self.put(&attrs);
        self.block(&l.body);
        self.names.close();
    }

    /// `64`, `2..64` or `2..64 by 2`. A range from zero in steps of one is its end alone
    /// where that is understood.
    fn axis(&mut self, axis: &Axis, short: bool) {
        let plain = Axis::upto(axis.var, axis.stop.clone());
        if short && *axis == plain {
            return self.expr(&axis.stop);
        }
        self.expr(&axis.start);
        self.put("..");
        self.expr(&axis.stop);
        if axis.step != plain.step {
            self.put(" by ");
            self.expr(&axis.step);
        }
    }

    fn loop_attrs(&mut self, kind: &LoopKind) {
        match kind {
            LoopKind::Serial | LoopKind::Vectorized => {}
            LoopKind::Unroll { factor } => self.attr("factor", *factor),
            LoopKind::Parallel {
                coalesced_width,
                layout,
            } => {
                self.attr("coalesced", *coalesced_width);
                if let Some(layout) = layout {
                    self.layout_attr(layout);
                }
            }
            LoopKind::Pipelined(PipelineSpec {
                stages,
                schedule,
                sync,
                versioned,
            }) => {
                self.attr("stages", Some(stages));
                if let Some(schedule) = schedule {
                    self.put(" schedule=");
                    self.string(schedule);
                }
                self.list_attr("sync", sync, |p, list| {
                    p.put("[");
                    p.list(list, |p, n| p.put(&n.to_string()));
                    p.put("]");
                });
                self.list_attr("versioned", versioned, |p, b| p.buffer(*b));
            }
            LoopKind::Persistent {
                wave_size,
                index,
                group_size,
            } => {
                self.expr_attr("wave", wave_size);
                self.expr_attr("index", index);
                self.expr_attr("group", group_size);
            }
        }
    }
}
