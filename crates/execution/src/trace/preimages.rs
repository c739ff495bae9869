//! `keccak256PreimageTracer`: what contracts hash.

use super::instruction::{Instruction, Judgement};
use super::json;
use super::view::View;
use super::watch::{Tracer, TransactionEnd};
use alloy_primitives::{B256, keccak256};
use revm::bytecode::opcode as op;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct PreimageTracer {
    preimages: BTreeMap<B256, Vec<u8>>,
    taken: usize,
}

impl Tracer for PreimageTracer {
    fn instruction(&mut self, instruction: &Instruction<'_>, _: &Judgement, _: &mut dyn View) {
        let [.., length, offset] = *instruction.stack else { return };
        if instruction.op != op::KECCAK256 {
            return;
        }
        let Some(preimage) = instruction.padded_memory(offset, length) else { return };
        let hash = keccak256(&preimage);
        if !self.preimages.contains_key(&hash) {
            self.taken += 80 + 2 * preimage.len();
            self.preimages.insert(hash, preimage);
        }
    }

    fn taken(&self) -> usize {
        self.taken
    }

    fn finish(self: Box<Self>, _: &TransactionEnd<'_>, _: &mut dyn View) -> String {
        let mut out = String::from("{");
        for (hash, preimage) in &self.preimages {
            json::member(&mut out, &hash.to_string());
            json::bytes(&mut out, preimage);
        }
        out.push('}');
        out
    }
}
