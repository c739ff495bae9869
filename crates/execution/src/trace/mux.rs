//! `muxTracer`: several tracers in one run.

use super::instruction::{Instruction, Judgement};
use super::json;
use super::view::View;
use super::watch::{Entry, Exit, InstructionEnd, Tracer, TransactionEnd};
use alloy_primitives::Log;

#[derive(Debug)]
pub(crate) struct MuxTracer(pub(crate) Vec<(String, Box<dyn Tracer>)>);

impl Tracer for MuxTracer {
    fn instruction(
        &mut self,
        instruction: &Instruction<'_>,
        judgement: &Judgement,
        view: &mut dyn View,
    ) {
        for (_, tracer) in &mut self.0 {
            tracer.instruction(instruction, judgement, view);
        }
    }

    fn instruction_done(&mut self, end: &InstructionEnd<'_>) {
        self.0.iter_mut().for_each(|(_, tracer)| tracer.instruction_done(end));
    }

    fn enter(&mut self, entry: &Entry, view: &mut dyn View) {
        self.0.iter_mut().for_each(|(_, tracer)| tracer.enter(entry, view));
    }

    fn exit(&mut self, exit: &Exit<'_>) {
        self.0.iter_mut().for_each(|(_, tracer)| tracer.exit(exit));
    }

    fn log(&mut self, log: &Log, index: usize) {
        self.0.iter_mut().for_each(|(_, tracer)| tracer.log(log, index));
    }

    fn taken(&self) -> usize {
        self.0.iter().map(|(_, tracer)| tracer.taken()).sum()
    }

    fn finish(self: Box<Self>, end: &TransactionEnd<'_>, view: &mut dyn View) -> String {
        let mut out = String::from("{");
        for (name, tracer) in self.0 {
            json::member(&mut out, &name);
            out.push_str(&tracer.finish(end, view));
        }
        out.push('}');
        out
    }
}
