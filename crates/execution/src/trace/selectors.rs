//! `4byteTracer`: the selectors that calls name, with the length of what follows them.

use super::json;
use super::view::View;
use super::watch::{Entry, Tracer, TransactionEnd};
use alloy_primitives::hex;
use alloy_primitives::map::AddressSet;
use revm::bytecode::opcode as op;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct SelectorTracer {
    /// The precompiled contracts, which are left out.
    precompiled: AddressSet,
    counts: BTreeMap<String, u64>,
}

impl SelectorTracer {
    pub(crate) fn new(precompiled: AddressSet) -> Self {
        Self { precompiled, counts: BTreeMap::new() }
    }
}

impl Tracer for SelectorTracer {
    fn enter(&mut self, entry: &Entry, _: &mut dyn View) {
        let is_call =
            matches!(entry.op, op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL);
        let Some((selector, rest)) = entry.input.split_first_chunk::<4>() else { return };
        if is_call && !self.precompiled.contains(&entry.to) {
            let key = format!("{}-{}", hex::encode_prefixed(selector), rest.len());
            *self.counts.entry(key).or_default() += 1;
        }
    }

    fn taken(&self) -> usize {
        64 * self.counts.len()
    }

    fn finish(self: Box<Self>, _: &TransactionEnd<'_>, _: &mut dyn View) -> String {
        let mut out = String::from("{");
        for (key, count) in &self.counts {
            json::member(&mut out, key);
            json::number(&mut out, *count);
        }
        out.push('}');
        out
    }
}

/// `noopTracer`: it answers an empty object.
#[derive(Debug)]
pub(crate) struct NoopTracer;

impl Tracer for NoopTracer {
    fn taken(&self) -> usize {
        0
    }

    fn finish(self: Box<Self>, _: &TransactionEnd<'_>, _: &mut dyn View) -> String {
        "{}".into()
    }
}
