//! Storage slots, and the proof of an account against a header.

use alloy_primitives::{Address, B256, Bytes, U64, U256, keccak256};
use anyhow::{Context, bail, ensure};
use clap::Args;
use rpc::read_json;
use serde::Deserialize;
use serde_json::{Value, json};
use trie::{Account, StateTrie, by_hash, hashed_slot};

use crate::endpoint::{EndpointArgs, Node};
use crate::error::{Misuse, Output};
use crate::input::{self, BlockChoice};
use crate::reads::AtArgs;
use crate::table;

/// The arguments of `storage`.
#[derive(Debug, Args)]
pub struct StorageArgs {
    /// The account's address.
    #[arg(value_name = "ADDRESS", value_parser = input::address)]
    who: Address,
    /// The slots, in decimal or in hex.
    #[arg(value_name = "SLOT", value_parser = input::word, required_unless_present = "proof")]
    slots: Vec<U256>,
    /// Ask for proofs, check them against the block's header, and print the account as well. The
    /// header's hash is computed from its fields; with --block HASH nothing is trusted.
    #[arg(long)]
    proof: bool,
    #[command(flatten)]
    at: AtArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn storage(args: &StorageArgs) -> anyhow::Result<Output> {
    if args.proof && args.at.block == BlockChoice::Tag("pending") {
        return Err(Misuse::error("the pending block has no header to check a proof against"));
    }
    let mut node = args.endpoint.connect()?;
    if args.proof {
        let proved = Proved::fetch(&mut node, args.who, &args.slots, args.at.block)?;
        return Ok(match args.endpoint.json {
            true => Output::of(proved.json()),
            false => Output::of(proved.text()),
        });
    }
    let mut values = Vec::new();
    for slot in &args.slots {
        let params = json!([args.who, input::quantity(*slot), args.at.block.of_state()]);
        values.push(node.call::<B256>("eth_getStorageAt", &params)?);
    }
    match args.endpoint.json {
        true if values.len() == 1 => Ok(Output::of(json!(values[0]))),
        true => Ok(Output::of(json!(values))),
        false => {
            Ok(Output::of(values.iter().map(|value| format!("{value}\n")).collect::<String>()))
        }
    }
}

/// A header, as far as it is checked and printed.
struct HeaderFields {
    number: u64,
    hash: B256,
    state_root: B256,
}

/// An account and slots of it that a header's state root proves.
struct Proved {
    header: HeaderFields,
    address: Address,
    /// `None` where the state has no such account.
    account: Option<Account>,
    slots: Vec<(U256, B256)>,
    nodes: usize,
}

/// An answer of `eth_getProof`, as far as it is checked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProofAnswer {
    balance: U256,
    nonce: U64,
    account_proof: Vec<Bytes>,
    storage_proof: Vec<SlotAnswer>,
}

#[derive(Deserialize)]
struct SlotAnswer {
    value: U256,
    proof: Vec<Bytes>,
}

impl Proved {
    fn fetch(
        node: &mut Node,
        address: Address,
        slots: &[U256],
        block: BlockChoice,
    ) -> anyhow::Result<Self> {
        let header = header(node, block)?;
        let keys: Vec<_> = slots.iter().map(|slot| B256::from(*slot)).collect();
        let params = json!([address, keys, input::quantity(header.number)]);
        let answer: ProofAnswer = node.call("eth_getProof", &params)?;
        ensure!(
            answer.storage_proof.len() == slots.len(),
            "eth_getProof answers {} slots, and {} were asked for",
            answer.storage_proof.len(),
            slots.len()
        );
        Self::check(header, address, slots, &answer)
    }

    /// Reads account and slots out of the nodes of the proofs, whose hashes lead there from the
    /// state root, and compares them with what the answer says beside them.
    fn check(
        header: HeaderFields,
        address: Address,
        slots: &[U256],
        answer: &ProofAnswer,
    ) -> anyhow::Result<Self> {
        let of_slots = answer.storage_proof.iter().flat_map(|slot| &slot.proof);
        let nodes = by_hash(answer.account_proof.iter().chain(of_slots).cloned());
        let (mut state, key) = (StateTrie::new(header.state_root), keccak256(address));
        let unproved = "the proof does not fit the header's state root";
        let account = state.account(key, &nodes).context(unproved)?;
        let proved = account.unwrap_or_default();
        ensure!(
            (proved.balance, proved.nonce) == (answer.balance, answer.nonce.to()),
            "the answer says balance {} and nonce {}, and its proof {} and {}",
            answer.balance,
            answer.nonce,
            proved.balance,
            proved.nonce
        );
        let mut values = Vec::new();
        for (slot, said) in slots.iter().zip(&answer.storage_proof) {
            let value = state.storage(key, hashed_slot(*slot), &nodes);
            let value = value.with_context(|| format!("slot {slot}: {unproved}"))?;
            ensure!(
                value == said.value,
                "the answer says {} for slot {slot}, and its proof {value}",
                said.value
            );
            values.push((*slot, B256::from(value)));
        }
        Ok(Self { header, address, account, slots: values, nodes: nodes.len() })
    }

    fn text(&self) -> String {
        let line =
            |name: &str, value: &dyn std::fmt::Display| table::line(name, &value.to_string());
        let mut text = line("blockNumber", &self.header.number);
        text += &line("blockHash", &self.header.hash);
        text += &line("stateRoot", &self.header.state_root);
        text += &line("address", &self.address);
        match self.account {
            None => text += &line("account", &"absent"),
            Some(account) => {
                text += &line("balance", &account.balance);
                text += &line("nonce", &account.nonce);
                text += &line("codeHash", &account.code_hash);
                text += &line("storageHash", &account.storage_root);
            }
        }
        for (slot, value) in &self.slots {
            let name = if slot.bit_len() > 64 { format!("{slot:#x}") } else { slot.to_string() };
            text += &line(&format!("slot {name}"), value);
        }
        text + &line("proof", &format_args!("valid ({} nodes)", self.nodes))
    }

    fn json(&self) -> Value {
        let account = self.account.map(|account| {
            json!({
                "balance": account.balance,
                "nonce": U64::from(account.nonce),
                "codeHash": account.code_hash,
                "storageHash": account.storage_root,
            })
        });
        let slots = self.slots.iter();
        json!({
            "blockNumber": U64::from(self.header.number),
            "blockHash": self.header.hash,
            "stateRoot": self.header.state_root,
            "address": self.address,
            "account": account,
            "slots": slots.map(|(slot, value)| json!({"slot": slot, "value": value}))
                .collect::<Vec<_>>(),
            "proofNodes": self.nodes,
        })
    }
}

/// The header of a block, whose hash is that of its fields.
fn header(node: &mut Node, block: BlockChoice) -> anyhow::Result<HeaderFields> {
    let (method, choice) = block.lookup();
    let text = node.text(method, &json!([choice, false]))?;
    if text == "null" {
        bail!("the endpoint has no such block");
    }
    let header: alloy_rpc_types_eth::Header = read_json(&text).context(method)?;
    let hash = header.inner.hash_slow();
    ensure!(
        hash == header.hash,
        "the fields of the header hash to {hash}, and the endpoint says {}",
        header.hash
    );
    match block {
        BlockChoice::Hash(wanted) => {
            ensure!(hash == wanted, "the endpoint gave block {hash} for {wanted}");
        }
        BlockChoice::Number(wanted) => ensure!(
            header.inner.number == wanted,
            "the endpoint gave block {} for {wanted}",
            header.inner.number
        ),
        BlockChoice::Tag(_) => {}
    }
    let (number, state_root) = (header.inner.number, header.inner.state_root);
    Ok(HeaderFields { number, hash, state_root })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trie::{AccountChange, AccountInfo, StateChanges};

    const WHO: Address = Address::repeat_byte(7);

    /// A state of one account with one slot, as `eth_getProof` answers it.
    fn state() -> (HeaderFields, ProofAnswer) {
        let mut state = StateTrie::new(trie::EMPTY_ROOT_HASH);
        let info = AccountInfo { balance: U256::from(5), ..AccountInfo::EMPTY };
        let change = AccountChange {
            storage: vec![(hashed_slot(U256::from(1)), U256::from(9))],
            ..change(info)
        };
        let none = by_hash([]);
        let state_root = state.apply(&StateChanges { accounts: vec![change] }, &none);
        let state_root = state_root.expect("nothing is missing");
        let mut nodes = Vec::new();
        state.new_nodes(&mut |_, node| nodes.push(node));
        let storage_proof = vec![SlotAnswer { value: U256::from(9), proof: nodes.clone() }];
        let answer = ProofAnswer {
            balance: U256::from(5),
            nonce: U64::ZERO,
            account_proof: nodes,
            storage_proof,
        };
        (HeaderFields { number: 3, hash: B256::ZERO, state_root }, answer)
    }

    fn change(info: AccountInfo) -> AccountChange {
        AccountChange {
            hashed_address: keccak256(WHO),
            account: Some(info),
            storage_wiped: false,
            storage: Vec::new(),
        }
    }

    fn checked(change: impl FnOnce(&mut HeaderFields, &mut ProofAnswer)) -> anyhow::Result<Proved> {
        let (mut header, mut answer) = state();
        change(&mut header, &mut answer);
        Proved::check(header, WHO, &[U256::from(1)], &answer)
    }

    #[test]
    fn what_a_proof_does_not_prove_is_refused() {
        let proved = checked(|_, _| ()).expect("it is right");
        assert_eq!(proved.slots, [(U256::from(1), B256::with_last_byte(9))]);
        let text = proved.text();
        assert!(text.contains("balance              5\n"), "{text}");
        assert!(text.ends_with("proof                valid (2 nodes)\n"), "{text}");

        let check = |change: fn(&mut HeaderFields, &mut ProofAnswer), expected: &str| {
            let Err(error) = checked(change) else { panic!("not refused: {expected}") };
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(|header, _| header.state_root = B256::ZERO, "does not fit the header's state root");
        check(|_, answer| answer.balance = U256::from(6), "says balance 6");
        check(|_, answer| answer.nonce = U64::from(1), "nonce 1, and its proof 5 and 0");
        check(|_, answer| answer.storage_proof[0].value = U256::ZERO, "says 0 for slot 1");
        let without = |_: &mut HeaderFields, answer: &mut ProofAnswer| {
            answer.account_proof.clear();
            answer.storage_proof[0].proof.clear();
        };
        check(without, "does not fit");
    }
}
