//! A day with alloy on a chain for tests: contracts, their events and errors, each type of
//! transaction, the node's own accounts, a connection that drops and comes back, a snapshot, a
//! reorganisation, alloy's own methods of anvil.
//!
//! `alloy-day http://127.0.0.1:8545`

mod anvil;
mod network;

use std::time::Duration;

use alloy::consensus::transaction::SignerRecoverable as _;
use alloy::consensus::{BlobTransactionSidecarVariant, SidecarBuilder, SimpleCoder};
use alloy::contract::Error as CallError;
use alloy::eips::eip2930::{AccessList, AccessListItem};
use alloy::eips::eip7702::Authorization;
use alloy::network::{EthereumWallet, TransactionBuilder4844 as _, TransactionBuilder7702 as _};
use alloy::primitives::{Address, B256, Bytes, Log, Signature, TxHash, U256, address, bytes};
use alloy::providers::ext::AnvilApi as _;
use alloy::providers::{DynProvider, Provider, ProviderBuilder, WsConnect};
use alloy::rpc::types::anvil::ReorgOptions;
use alloy::rpc::types::{Filter, Log as MinedLog, TransactionReceipt, TransactionRequest};
use alloy::signers::local::coins_bip39::English;
use alloy::signers::local::{MnemonicBuilder, PrivateKeySigner};
use alloy::signers::{Signer as _, SignerSync as _};
use alloy::sol;
use alloy::sol_types::{Panic, Revert, SolEvent as _, eip712_domain};
use alloy::transports::TransportError;
use eyre::{Result, ensure, eyre};
use futures_util::{Stream, StreamExt as _};
use network::Droppable;
use serde_json::{Value, json};
use till::Till;

/// The contract of Till.sol.
#[allow(missing_docs, clippy::all)]
mod till {
    alloy::sol!(
        #[sol(rpc)]
        #[derive(Debug, PartialEq)]
        Till,
        "../Till.json"
    );
}

sol! {
    /// Data that is signed as EIP-712 has it.
    #[derive(serde::Serialize)]
    struct Bill {
        address to;
        uint256 amount;
    }
}

const PHRASE: &str = "test test test test test test test test test test test junk";
const CHAIN: u64 = 31337;
const OTHER: Address = address!("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
/// A wait for news of the node, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

type Deployed = till::Till::TillInstance<DynProvider>;

/// The state that the parts of the day share.
struct Day {
    url: String,
    /// Signs for all accounts; the first one pays where no other is named.
    provider: DynProvider,
    payer: PrivateKeySigner,
    saver: PrivateKeySigner,
    till: Deployed,
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).ok_or_else(|| eyre!("usage: alloy-day URL"))?;
    let day = Day::begin(url).await?;
    day.errors().await?;
    day.events().await?;
    day.transactions().await?;
    day.blobs_and_delegations().await?;
    day.accounts().await?;
    day.dropped().await?;
    anvil::all(&day.url).await?;
    day.turns().await?;
    let done = ["errors", "events", "transactions", "accounts", "dropped", "anvil", "turns"];
    println!("{}", json!({ "done": done }));
    Ok(())
}

fn account(index: u32) -> Result<PrivateKeySigner> {
    Ok(MnemonicBuilder::<English>::default().phrase(PHRASE).index(index)?.build()?)
}

/// A provider that asks again at once, since this chain changes at once.
async fn connected(url: &str, wallet: Option<EthereumWallet>) -> Result<DynProvider> {
    let builder = ProviderBuilder::new().with_simple_nonce_management();
    let provider = match wallet {
        Some(wallet) => builder.wallet(wallet).connect(url).await?.erased(),
        None => builder.connect(url).await?.erased(),
    };
    provider.client().set_poll_interval(Duration::from_millis(20));
    Ok(provider)
}

/// Does something again and again until a stream has an item that `check` takes.
async fn heard<T, F>(
    mut stream: impl Stream<Item = T> + Unpin,
    check: impl Fn(&T) -> bool,
    mut act: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Result<TransactionReceipt>>,
{
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        ensure!(tokio::time::Instant::now() < end, "nothing was heard within two minutes");
        act().await?;
        let pause = Duration::from_millis(100);
        while let Ok(item) = tokio::time::timeout(pause, stream.next()).await {
            let item = item.ok_or_else(|| eyre!("the stream has ended"))?;
            if check(&item) {
                return Ok(item);
            }
        }
    }
}

fn says(error: &TransportError, words: &str) -> Result<()> {
    let message = error.as_error_resp().map_or("", |error| &error.message);
    ensure!(message.to_lowercase().contains(words), "{error}, not {words}");
    Ok(())
}

impl Day {
    async fn begin(url: String) -> Result<Self> {
        let [owner, payer, saver] = [account(0)?, account(1)?, account(3)?];
        let mut wallet = EthereumWallet::new(owner.clone());
        wallet.register_signer(payer.clone());
        let provider = connected(&url, Some(wallet)).await?;
        let nonce = provider.get_transaction_count(owner.address()).await?;
        let till = Till::deploy(provider.clone(), U256::from(100)).await?;
        ensure!(*till.address() == owner.address().create(nonce));
        ensure!(till.least().call().await? == U256::from(100));

        // The receipt has the event.
        let day = Self { url, provider, payer, saver, till };
        let who = day.payer.address();
        let receipt = day.pay("coffee", 150).await?;
        let event: Log<Till::Paid> =
            receipt.decoded_log().ok_or_else(|| eyre!("no event in {receipt:?}"))?;
        let paid = Till::Paid { from: who, amount: U256::from(150), note: "coffee".into() };
        ensure!(event.data == paid);
        ensure!(day.paid().await? == U256::from(150));
        let before = receipt.block_number.unwrap_or_default() - 1;
        ensure!(day.till.paid(who).block(before.into()).call().await? == U256::ZERO);
        let balance = day.provider.get_balance(*day.till.address()).await?;
        ensure!(balance == U256::from(150));
        Ok(day)
    }

    async fn pay(&self, note: &str, value: u64) -> Result<TransactionReceipt> {
        self.pay_at(&self.till, note, value).await
    }

    async fn pay_at(&self, till: &Deployed, note: &str, value: u64) -> Result<TransactionReceipt> {
        let payment = till.pay(note.into()).value(U256::from(value)).from(self.payer.address());
        Ok(payment.send().await?.get_receipt().await?)
    }

    async fn paid(&self) -> Result<U256> {
        Ok(self.till.paid(self.payer.address()).call().await?)
    }

    fn from_payer(&self) -> TransactionRequest {
        TransactionRequest::default().from(self.payer.address()).to(OTHER)
    }

    async fn mined(&self, request: TransactionRequest) -> Result<TransactionReceipt> {
        let receipt = self.provider.send_transaction(request).await?.get_receipt().await?;
        ensure!(receipt.status(), "{receipt:?}");
        Ok(receipt)
    }

    async fn errors(&self) -> Result<()> {
        let who = self.payer.address();
        let poor = || self.till.pay("tea".into()).value(U256::ONE).from(who);
        let too_little = Till::TooLittle { offered: U256::ONE, least: U256::from(100) };
        // The estimate of gas fails before anything is sent, in the same way as a call.
        let estimated = poor().send().await.err();
        for error in [poor().call().await.err(), estimated] {
            let error: CallError = error.ok_or_else(|| eyre!("it is not refused"))?;
            ensure!(error.as_decoded_error::<Till::TooLittle>() == Some(too_little.clone()));
        }
        let refused = self.till.setLeast(U256::ONE).from(who).call().await.err();
        let reason = refused.and_then(|error| error.as_decoded_error::<Revert>());
        ensure!(reason.is_some_and(|reason| reason.reason == "only the owner"));
        let divided = self.till.share(U256::ZERO).call().await.err();
        let panic = divided.and_then(|error| error.as_decoded_error::<Panic>());
        ensure!(panic.is_some_and(|panic| panic.code == U256::from(0x12)));

        // With a gas limit of its own it is mined, and fails there.
        let receipt = poor().gas(100_000).send().await?.get_receipt().await?;
        ensure!(!receipt.status());

        let rich = self.from_payer().value(U256::from(10).pow(U256::from(23))).gas_limit(21_000);
        let sent = self.provider.send_transaction(rich).await.err();
        says(&sent.ok_or_else(|| eyre!("it is sent"))?, "insufficient funds")?;
        let again = self.from_payer().nonce(0).gas_limit(21_000);
        let sent = self.provider.send_transaction(again).await.err();
        says(&sent.ok_or_else(|| eyre!("it is sent"))?, "nonce too low")
    }

    async fn events(&self) -> Result<()> {
        let who = self.payer.address();
        let tea = || self.pay("tea", 200);
        let is_tea = |found: &alloy::sol_types::Result<(Till::Paid, MinedLog)>| {
            found.as_ref().is_ok_and(|(paid, _)| paid.note == "tea" && paid.from == who)
        };
        // By a filter of the node.
        let filter = self.till.Paid_filter().watch().await?;
        heard(filter.into_stream(), is_tea, tea).await??;
        // By a subscription.
        let socket = connected(&self.url.replace("http", "ws"), None).await?;
        let over = Till::new(*self.till.address(), socket.clone());
        let subscription = over.Paid_filter().subscribe().await?;
        heard(subscription.into_stream(), is_tea, tea).await??;
        // Blocks, and transactions that wait.
        let blocks = socket.subscribe_blocks().await?.into_stream();
        heard(blocks, |block| block.number > 1, tea).await?;
        let pending = socket.subscribe_pending_transactions().await?.into_stream();
        let pending = heard(pending, |_| true, tea).await?;
        let found = self.provider.get_transaction_by_hash(pending).await?;
        ensure!(found.is_some_and(|found| found.inner.signer() == who));

        let of = async |topic: Address| {
            let filter = self.till.Paid_filter().topic1(topic.into_word()).from_block(0);
            filter.query().await
        };
        ensure!(of(who).await?.len() >= 4);
        ensure!(of(OTHER).await?.is_empty());
        Ok(())
    }

    async fn transactions(&self) -> Result<()> {
        let price = self.provider.get_gas_price().await?;
        let item = AccessListItem { address: OTHER, storage_keys: vec![B256::ZERO] };
        let one = || self.from_payer().value(U256::ONE);
        for (kind, request) in [
            (0, one().gas_price(price)),
            (1, one().gas_price(price).access_list(AccessList(vec![item]))),
            (2, one().max_fee_per_gas(2 * price).max_priority_fee_per_gas(1)),
        ] {
            let receipt = self.mined(request).await?;
            let sent = self.provider.get_transaction_by_hash(receipt.transaction_hash).await?;
            let sent = sent.ok_or_else(|| eyre!("no transaction of {receipt:?}"))?;
            ensure!(receipt.transaction_type() as u8 == kind);
            let signer = sent.inner.inner().recover_signer()?;
            ensure!(signer == self.payer.address(), "the signature fits");
        }

        // A receipt as the answer to the transaction itself, by EIP-7966.
        let receipt = self.provider.send_transaction_sync(one()).await?;
        ensure!(receipt.status() && receipt.from == self.payer.address());
        Ok(())
    }

    async fn blobs_and_delegations(&self) -> Result<()> {
        let text = SidecarBuilder::<SimpleCoder>::from_slice(b"a blob with words in it");
        let sidecar = BlobTransactionSidecarVariant::Eip7594(text.build_7594()?);
        let request = self.from_payer().with_blob_sidecar(sidecar);
        let receipt = self.mined(request).await?;
        ensure!(receipt.transaction_type() as u8 == 3 && receipt.blob_gas_used == Some(131_072));

        // An account has the code of the till, until it takes that back.
        let saver = self.saver.address();
        let become_ = async |address: Address| {
            let nonce = self.provider.get_transaction_count(saver).await?;
            let order = Authorization { chain_id: U256::from(CHAIN), address, nonce };
            let signature: Signature = self.saver.sign_hash_sync(&order.signature_hash())?;
            let list = vec![order.into_signed(signature)];
            let request = TransactionRequest::default().to(OTHER).with_authorization_list(list);
            self.mined(request).await
        };
        let receipt = become_(*self.till.address()).await?;
        ensure!(receipt.transaction_type() as u8 == 4);
        let code = [bytes!("ef0100").as_ref(), self.till.address().as_slice()].concat();
        ensure!(self.provider.get_code_at(saver).await? == Bytes::from(code));
        let delegated = Till::new(saver, self.provider.clone());
        self.pay_at(&delegated, "to a person", 5).await?;
        ensure!(delegated.paid(self.payer.address()).call().await? == U256::from(5));
        become_(Address::ZERO).await?;
        ensure!(self.provider.get_code_at(saver).await?.is_empty());
        Ok(())
    }

    /// The node signs for its accounts.
    async fn accounts(&self) -> Result<()> {
        let node = connected(&self.url, None).await?;
        let who = self.payer.address();
        ensure!(node.get_accounts().await?[1] == who);
        let request = self.from_payer().value(U256::ONE);
        ensure!(node.send_transaction(request).await?.get_receipt().await?.status());
        let sign = async |method: &'static str, params: Value| -> Result<Signature> {
            Ok(node.raw_request::<_, Bytes>(method.into(), params).await?.as_ref().try_into()?)
        };
        let message = Bytes::from_static(b"hello");
        let ours = self.payer.sign_message(&message).await?;
        ensure!(sign("eth_sign", json!([who, message])).await? == ours);
        ensure!(sign("personal_sign", json!([message, who])).await? == ours);

        let domain = eip712_domain! { name: "Till", version: "1", chain_id: CHAIN, };
        let bill = Bill { to: OTHER, amount: U256::from(5) };
        let ours = self.payer.sign_typed_data(&bill, &domain).await?;
        let typed = alloy::dyn_abi::TypedData::from_struct(&bill, Some(domain));
        let theirs = sign("eth_signTypedData_v4", json!([who, typed])).await?;
        ensure!(theirs == ours);
        Ok(())
    }

    /// A connection that drops: alloy makes another one, and subscribes again.
    async fn dropped(&self) -> Result<()> {
        let mut path = Droppable::new(&self.url).await?;
        let connect = WsConnect::new(format!("ws://{}", path.address))
            .with_max_retries(1000)
            .with_retry_interval(Duration::from_millis(100));
        let socket = ProviderBuilder::new().connect_ws(connect).await?.erased();
        let filter =
            Filter::new().address(*self.till.address()).event_signature(Till::Paid::SIGNATURE_HASH);
        let mut logs = socket.subscribe_logs(&filter).await?.into_stream();
        let of = |note: &'static str| {
            move |log: &MinedLog| {
                log.log_decode::<Till::Paid>().is_ok_and(|log| log.inner.data.note == note)
            }
        };
        heard(&mut logs, of("before"), || self.pay("before", 200)).await?;
        path.drop_all();
        heard(&mut logs, of("after"), || self.pay("after", 200)).await?;
        ensure!(path.connections() >= 2, "it has connected again");
        Ok(())
    }

    /// A snapshot is come back to, and a block replaced by another one: a filter takes logs back.
    async fn turns(&self) -> Result<()> {
        let id = self.provider.anvil_snapshot().await?;
        self.turn(async || {
            ensure!(self.provider.anvil_revert(id).await?);
            Ok(())
        })
        .await?;
        ensure!(!self.provider.anvil_revert(id).await?, "it is gone");
        let options = || ReorgOptions { depth: 1, tx_block_pairs: Vec::new() };
        self.turn(async || Ok(self.provider.anvil_reorg(options()).await?)).await?;
        self.turn(async || Ok(self.provider.anvil_rollback(Some(1)).await?)).await
    }

    async fn turn(&self, back: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let filter = Filter::new().address(*self.till.address());
        let filter = self.provider.new_filter(&filter).await?;
        let before = self.paid().await?;
        let receipt = self.pay("for nothing", 200).await?;
        let hash: TxHash = receipt.transaction_hash;
        let news = async || -> Result<Vec<(bool, Option<B256>)>> {
            let logs: Vec<MinedLog> = self.provider.get_filter_changes(filter).await?;
            Ok(logs.iter().map(|log| (log.removed, log.block_hash)).collect())
        };
        ensure!(news().await? == [(false, receipt.block_hash)]);
        back().await?;
        ensure!(news().await? == [(true, receipt.block_hash)]);
        ensure!(self.paid().await? == before);
        ensure!(self.provider.get_transaction_receipt(hash).await?.is_none());
        ensure!(self.provider.uninstall_filter(filter).await?);
        Ok(())
    }
}
