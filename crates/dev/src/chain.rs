use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_consensus::{Header, Transaction as _};
use alloy_hardforks::EthereumHardforks as _;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rpc_types_engine::{ForkchoiceState, PayloadAttributes};
use engine::{
    Amendment, BlockRecord, Built, Engine, HeaderChoice, PendingBlock, StateHandle, StateNames,
    Verdict, WholeAccount,
};
use execution::{GAS_LIMIT_MINIMUM, Transaction, next_base_fee};
use pool::{HeadChange, Options, Pool, Pooled, Sent};

use crate::Error;
use crate::accounts::EngineAccounts;
use crate::clock::Clock;
use crate::dump::{amendments, name_changes};
use crate::genesis::{contracts, missing_contracts};
use crate::limits::{BLOCKS_AT_ONCE, FINALIZED_DEPTH, SAFE_DEPTH};
use crate::mining::{Interval, Mining};
use crate::snapshots::{Snapshot, SnapshotId, Snapshots};

/// A chain for tests.
///
/// All its functions may be called from any thread; what changes the chain is done one at a time.
#[derive(Debug)]
pub struct DevChain {
    engine: Arc<Engine>,
    pool: Arc<Pool>,
    interval: Arc<Interval>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The first block, as it was when the chain was started.
    first: StateHandle,
    is_automatic: bool,
    clock: Clock,
    snapshots: Snapshots,
    coinbase: Address,
    /// Of the next block, once.
    base_fee: Option<u64>,
    prev_randao: Option<B256>,
    /// From the next block on.
    gas_limit: Option<u64>,
    extra_data: Bytes,
    impersonated: HashSet<Address>,
    impersonates_all: bool,
    /// Accounts and slots of the first block and of amendments, for dumps.
    names: StateNames,
}

impl DevChain {
    /// A chain whose blocks an engine has, with a pool in memory that takes any tip.
    ///
    /// # Errors
    /// When the engine's head cannot be read.
    ///
    /// # Panics
    /// If the engine's chain is none for tests.
    pub fn new(engine: Arc<Engine>, mining: Mining) -> Result<Arc<Self>, Error> {
        let options = Options { minimum_tip: 0, ..Options::default() };
        let head = head(&engine)?.block.header.clone();
        let senders = Box::new(EngineAccounts::of(&engine));
        let pool = Pool::new(engine.chain().clone(), options, senders, head);
        Self::with_pool(engine, Arc::new(pool), mining)
    }

    /// The same with this pool, which is told of each block.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// If the engine's chain is none for tests.
    pub fn with_pool(
        engine: Arc<Engine>,
        pool: Arc<Pool>,
        mining: Mining,
    ) -> Result<Arc<Self>, Error> {
        assert!(engine.chain().is_dev(), "a chain for tests says so in its configuration");
        engine.draw_from(pool.clone());
        let first = engine.state_handle(engine.heads().genesis)?;
        let interval = Arc::<Interval>::default();
        interval.set(mining.interval);
        let state = State {
            first,
            is_automatic: mining.is_automatic,
            clock: Clock::default(),
            snapshots: Snapshots::default(),
            coinbase: Address::ZERO,
            base_fee: None,
            prev_randao: None,
            gas_limit: None,
            extra_data: engine.extra_data(),
            impersonated: HashSet::new(),
            impersonates_all: false,
            names: contracts().map(|(address, _)| (address, BTreeSet::new())).into(),
        };
        let chain = Arc::new(Self { engine, pool, interval, state: Mutex::new(state) });
        chain.choose(chain.engine.heads().head)?;
        let (interval, weak) = (chain.interval.clone(), Arc::downgrade(&chain));
        std::thread::Builder::new()
            .name("mine".into())
            .spawn(move || interval.run(|| Some(weak.upgrade()?.mine(1, None).map(drop))))
            .expect("the system starts a thread");
        Ok(chain)
    }

    /// The engine.
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The pool.
    pub const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Takes a transaction, and mines a block if that is done for each. Returns its hash.
    ///
    /// # Errors
    /// [`Error::Refused`] when the pool does not take it; [`Error::Fee`] when blocks are mined for
    /// transactions alone, and it offers less than the next one costs: it would wait for ever, and
    /// all later ones of its sender with it; as [`mine`](Self::mine).
    pub fn send(&self, transaction: impl Into<Sent>) -> Result<B256, Error> {
        let sent = transaction.into();
        let mut state = self.state();
        if state.is_automatic && self.interval.get().is_none() {
            self.check_fee(&state, &sent.transaction)?;
        }
        let added = self.pool.add(sent)?;
        if state.is_automatic && added.is_pending {
            self.mine_one(&mut state)?;
        }
        Ok(added.hash)
    }

    /// Mines so many blocks, `seconds` apart where that is given, and returns their hashes.
    ///
    /// # Errors
    /// [`Error::TooManyBlocks`]; [`Error::Engine`] and [`Error::Invalid`] when a block cannot be
    /// built.
    pub fn mine(&self, blocks: u64, seconds: Option<u64>) -> Result<Vec<B256>, Error> {
        if blocks > BLOCKS_AT_ONCE {
            return Err(Error::TooManyBlocks { blocks, most: BLOCKS_AT_ONCE });
        }
        let mut state = self.state();
        let mut mined = Vec::new();
        for index in 0..blocks {
            if let Some(seconds) = seconds.filter(|_| index > 0) {
                let parent = head(&self.engine)?.block.header.timestamp;
                state.clock.set_next(parent.saturating_add(seconds.max(1)), parent)?;
            }
            mined.push(self.mine_one(&mut state)?);
        }
        Ok(mined)
    }

    /// Mines a block at this time.
    ///
    /// # Errors
    /// [`Error::Time`] when it is not after the head's; as [`mine`](Self::mine).
    pub fn mine_at(&self, time: u64) -> Result<B256, Error> {
        let mut state = self.state();
        let parent = head(&self.engine)?.block.header.timestamp;
        state.clock.set_next(time, parent)?;
        self.mine_one(&mut state)
    }

    /// Whether a block is mined for each transaction.
    pub fn is_automatic(&self) -> bool {
        self.state().is_automatic
    }

    /// Says whether a block is mined for each transaction.
    pub fn set_automatic(&self, is_automatic: bool) {
        self.state().is_automatic = is_automatic;
    }

    /// The time between blocks that are mined by themselves; `None` where none are.
    pub fn interval(&self) -> Option<Duration> {
        self.interval.get()
    }

    /// Sets that time.
    pub fn set_interval(&self, interval: Option<Duration>) {
        self.interval.set(interval);
    }

    /// The clock's time.
    pub fn now(&self) -> u64 {
        self.state().clock.now()
    }

    /// Moves the clock on, and returns how many seconds it is ahead in all.
    pub fn increase_time(&self, seconds: u64) -> i128 {
        self.state().clock.increase(seconds)
    }

    /// Sets the clock, and returns how many seconds that moved it.
    pub fn set_time(&self, time: u64) -> i128 {
        self.state().clock.set(time)
    }

    /// Says when the next block is; the clock goes on from there.
    ///
    /// # Errors
    /// [`Error::Time`] when that is not after the head.
    pub fn set_next_time(&self, time: u64) -> Result<(), Error> {
        let mut state = self.state();
        let parent = head(&self.engine)?.block.header.timestamp;
        state.clock.set_next(time, parent)
    }

    /// Has blocks be so many seconds apart, or follow the clock again. Returns what held before.
    pub fn set_time_between(&self, seconds: Option<u64>) -> Option<u64> {
        self.state().clock.set_interval(seconds)
    }

    /// Sets the fee recipient of the blocks from now on.
    pub fn set_coinbase(&self, coinbase: Address) {
        self.state().coinbase = coinbase;
    }

    /// The fee recipient of blocks.
    pub fn coinbase(&self) -> Address {
        self.state().coinbase
    }

    /// Sets the base fee of the next block, in wei; those after it follow from it.
    pub fn set_next_base_fee(&self, base_fee: u64) {
        self.state().base_fee = Some(base_fee);
    }

    /// The base fee of the next block, in wei: what was set, or what follows from the head.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn next_base_fee(&self) -> Result<u64, Error> {
        let state = self.state();
        let head = head(&self.engine)?;
        Ok(state.base_fee.unwrap_or_else(|| next_base_fee(&head.block.header)))
    }

    /// Sets the randomness of the next block.
    pub fn set_prev_randao(&self, prev_randao: B256) {
        self.state().prev_randao = Some(prev_randao);
    }

    /// Sets the gas limit of blocks from now on.
    ///
    /// # Errors
    /// [`Error::GasLimit`] when no block has it.
    pub fn set_gas_limit(&self, gas_limit: u64) -> Result<(), Error> {
        if !(GAS_LIMIT_MINIMUM..=i64::MAX as u64).contains(&gas_limit) {
            return Err(Error::GasLimit { given: gas_limit });
        }
        self.state().gas_limit = Some(gas_limit);
        Ok(())
    }

    /// Changes accounts at the head. Reads at the head, and all blocks from now on, see it.
    ///
    /// # Errors
    /// [`Error::Engine`], [`Error::Pool`].
    pub fn amend(&self, amendments: &[(Address, Amendment)]) -> Result<(), Error> {
        let mut state = self.state();
        let record = head(&self.engine)?;
        self.engine.amend(record.hash(), amendments)?;
        for (address, amendment) in amendments {
            let slots = state.names.entry(*address).or_default();
            if let Amendment::Storage { slot, .. } = amendment {
                slots.insert(*slot);
            }
        }
        self.pool_at(&record, HashSet::new())
    }

    /// Names accounts of the first block, which a [dump](Self::dump) cannot find otherwise: a state
    /// has the hashes of their addresses alone.
    pub fn name_accounts(&self, addresses: impl IntoIterator<Item = Address>) {
        let mut state = self.state();
        for address in addresses {
            state.names.entry(address).or_default();
        }
    }

    /// The same, with slots.
    pub fn name_state(&self, names: StateNames) {
        let mut state = self.state();
        for (address, slots) in names {
            state.names.entry(address).or_default().extend(slots);
        }
    }

    /// All accounts at the head, by address. All blocks are run again to find them.
    ///
    /// # Errors
    /// [`Error::Unnamed`] when the address of an account, or a slot, is not known;
    /// [`Error::Engine`].
    pub fn dump(&self) -> Result<Vec<WholeAccount>, Error> {
        let state = self.state();
        if self.engine.remote().is_some() {
            return Err(Error::Unnamed);
        }
        let mut names = state.names.clone();
        let first = self.engine.number(&state.first.block_hash())?.unwrap_or(0);
        for number in first + 1..=head(&self.engine)?.number() {
            let Some(hash) = self.engine.canonical_hash(number)? else { continue };
            let record = self.engine.block(hash)?.ok_or(engine::Error::UnknownBlock(hash))?;
            name_changes(&self.engine, &record, &mut names)?;
        }
        let hash = self.engine.heads().head;
        self.engine.whole_state(hash, &names)?.ok_or(Error::Unnamed)
    }

    /// Makes accounts at the head what they are in a dump, of this chain or of another one. Other
    /// accounts, and their other slots, stay.
    ///
    /// # Errors
    /// As [`amend`](Self::amend).
    pub fn load(&self, accounts: &[WholeAccount]) -> Result<(), Error> {
        self.amend(&amendments(accounts))
    }

    /// Adds to the balance of an account at the head, up to the highest balance that there is.
    ///
    /// # Errors
    /// As [`amend`](Self::amend).
    pub fn add_balance(&self, address: Address, amount: U256) -> Result<(), Error> {
        let state = self.engine.state(self.engine.heads().head)?;
        let balance = state.account(address)?.map_or(U256::ZERO, |account| account.balance);
        self.amend(&[(address, Amendment::Balance(balance.saturating_add(amount)))])
    }

    /// Lets an account send transactions without a signature.
    pub fn impersonate(&self, address: Address) {
        self.state().impersonated.insert(address);
    }

    /// Ends that.
    pub fn stop_impersonating(&self, address: &Address) {
        self.state().impersonated.remove(address);
    }

    /// Says whether all accounts may send transactions without a signature.
    pub fn impersonate_all(&self, all: bool) {
        self.state().impersonates_all = all;
    }

    /// The accounts that may send transactions without a signature, where not all may.
    pub fn impersonated(&self) -> Vec<Address> {
        let mut accounts: Vec<_> = self.state().impersonated.iter().copied().collect();
        accounts.sort_unstable();
        accounts
    }

    /// Whether an account may send transactions without a signature.
    pub fn impersonates(&self, address: &Address) -> bool {
        let state = self.state();
        state.impersonates_all || state.impersonated.contains(address)
    }

    /// Removes a waiting transaction; `None` where there is none.
    pub fn drop_transaction(&self, hash: B256) -> Option<B256> {
        self.pool.remove(hash).map(|pooled| pooled.hash())
    }

    /// Removes all waiting transactions, or those of one sender.
    pub fn drop_transactions(&self, sender: Option<Address>) {
        let content = match sender {
            Some(sender) => self.pool.content_from(sender),
            None => self.pool.content(),
        };
        for pooled in content.pending.values().chain(content.queued.values()).flatten() {
            self.pool.remove(pooled.hash());
        }
    }

    /// Makes a place to come back to: the head and its state, the clock, and the transactions that
    /// wait.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn snapshot(&self) -> Result<SnapshotId, Error> {
        let mut state = self.state();
        let record = head(&self.engine)?;
        let (head, number) = (record.hash(), record.number());
        let (handle, clock) = (self.engine.state_handle(head)?, state.clock.clone());
        let snapshot = Snapshot { head, number, state: handle, clock, waiting: self.waiting() };
        Ok(state.snapshots.add(snapshot))
    }

    /// The snapshots that one can come back to, each with the number and the hash of its head.
    pub fn snapshots(&self) -> Vec<(SnapshotId, u64, B256)> {
        self.state().snapshots.all()
    }

    /// Comes back to a snapshot, which ends it and all later ones; `false` if there is none of that
    /// number. The blocks since then stay on a branch of their own, so that filters and
    /// subscriptions see a reorganisation.
    ///
    /// # Errors
    /// [`Error::Engine`], [`Error::Pool`].
    pub fn revert(&self, id: SnapshotId) -> Result<bool, Error> {
        let mut state = self.state();
        let Some(snapshot) = state.snapshots.get(id).cloned() else { return Ok(false) };
        self.engine.restore(&snapshot.state)?;
        self.go_to(snapshot.head)?;
        self.drop_transactions(None);
        self.add_again(snapshot.waiting);
        state.clock = snapshot.clock;
        state.snapshots.end(id);
        Ok(true)
    }

    /// Goes back so many blocks.
    ///
    /// # Errors
    /// [`Error::TooDeep`], [`Error::Engine`], [`Error::Pool`].
    pub fn roll_back(&self, depth: u64) -> Result<(), Error> {
        let _state = self.state();
        self.go_back(depth)
    }

    /// Puts as many new blocks in the place of the last ones, with these transactions in the block
    /// of this index. `sign` makes each of them when the blocks before it are there. When it fails,
    /// or a transaction is refused, the last blocks stay.
    ///
    /// # Errors
    /// [`Error::BeyondDepth`], those of `sign`; as [`roll_back`](Self::roll_back) and
    /// [`send`](Self::send).
    pub fn reorganise<T, E: From<Error>>(
        &self,
        depth: u64,
        transactions: Vec<(T, u64)>,
        sign: impl FnMut(T) -> Result<Transaction, E>,
    ) -> Result<Vec<B256>, E> {
        if let Some(&(_, index)) = transactions.iter().find(|(_, index)| *index >= depth) {
            return Err(Error::BeyondDepth { index, depth }.into());
        }
        let mut state = self.state();
        let (before, waiting) = (self.engine.heads().head, self.waiting());
        let said = (state.clock.clone(), state.base_fee, state.prev_randao);
        self.go_back(depth)?;
        let mined = self.mine_with(&mut state, depth, transactions, sign);
        if mined.is_err() {
            (state.clock, state.base_fee, state.prev_randao) = said;
            self.go_to(before)?;
            self.drop_transactions(None);
            self.add_again(waiting);
        }
        mined
    }

    /// Mines so many blocks, with these transactions in the block of this index.
    fn mine_with<T, E: From<Error>>(
        &self,
        state: &mut State,
        blocks: u64,
        transactions: Vec<(T, u64)>,
        mut sign: impl FnMut(T) -> Result<Transaction, E>,
    ) -> Result<Vec<B256>, E> {
        let mut by_block = BTreeMap::<u64, Vec<T>>::new();
        for (transaction, index) in transactions {
            by_block.entry(index).or_default().push(transaction);
        }
        let mut mined = Vec::new();
        for index in 0..blocks {
            for transaction in by_block.remove(&index).into_iter().flatten() {
                self.pool.add(sign(transaction)?).map_err(Error::from)?;
            }
            mined.push(self.mine_one(state)?);
        }
        Ok(mined)
    }

    /// Goes back to the first block, and forgets transactions, snapshots and the clock's changes.
    ///
    /// # Errors
    /// [`Error::Engine`], [`Error::Pool`].
    pub fn reset(&self) -> Result<(), Error> {
        let mut state = self.state();
        self.engine.restore(&state.first)?;
        self.go_to(state.first.block_hash())?;
        self.forget(&mut state);
        Ok(())
    }

    /// Begins anew with a block of another chain, after which these accounts are changed, and
    /// forgets what [`reset`](Self::reset) does.
    ///
    /// # Errors
    /// As [`Engine::begin_anew`], [`Error::Pool`].
    ///
    /// # Panics
    /// As [`Engine::begin_anew`].
    pub fn begin_anew(
        &self,
        header: Header,
        amendments: &[(Address, Amendment)],
    ) -> Result<(), Error> {
        let mut state = self.state();
        self.engine.begin_anew(header)?;
        let first = self.engine.heads().genesis;
        let missing = missing_contracts(&self.engine)?;
        self.engine.amend(first, &[amendments, &missing].concat())?;
        state.first = self.engine.state_handle(first)?;
        self.choose(first)?;
        self.pool_at(&*head(&self.engine)?, HashSet::new())?;
        self.forget(&mut state);
        Ok(())
    }

    /// Forgets transactions, snapshots, and what was said of the next blocks.
    fn forget(&self, state: &mut State) {
        self.drop_transactions(None);
        (state.clock, state.snapshots) = (Clock::default(), Snapshots::default());
        (state.base_fee, state.prev_randao, state.gas_limit) = (None, None, None);
    }

    fn go_back(&self, depth: u64) -> Result<(), Error> {
        let record = head(&self.engine)?;
        let first = self.engine.number(&self.engine.heads().genesis)?.unwrap_or(0);
        let height = record.number() - first;
        let number = record.number().checked_sub(depth).filter(|number| *number >= first);
        let number = number.ok_or(Error::TooDeep { depth, height })?;
        let target = self.engine.canonical_hash(number)?;
        self.go_to(target.ok_or(Error::TooDeep { depth, height })?)
    }

    fn go_to(&self, hash: B256) -> Result<(), Error> {
        self.engine.reset_head(hash)?;
        self.choose(hash)?;
        self.pool_at(&*head(&self.engine)?, HashSet::new())
    }

    /// The transactions that wait, each sender's by nonce.
    fn waiting(&self) -> Vec<Arc<Pooled>> {
        let content = self.pool.content();
        content.pending.into_values().chain(content.queued.into_values()).flatten().collect()
    }

    /// Whether the next block can have a transaction with these fees.
    fn check_fee(&self, state: &State, transaction: &Transaction) -> Result<(), Error> {
        let head = head(&self.engine)?;
        let header = &head.block.header;
        let base_fee = state.base_fee.unwrap_or_else(|| execution::next_base_fee(header));
        at_least("gas", transaction.max_fee_per_gas(), base_fee.into())?;
        let Some(fee) = transaction.max_fee_per_blob_gas() else { return Ok(()) };
        let params = self.engine.chain().blob_params(state.clock.peek(header.timestamp));
        let least = params.and_then(|params| header.next_block_blob_fee(params));
        at_least("blob gas", fee, least.unwrap_or(0))
    }

    fn add_again(&self, waiting: Vec<Arc<Pooled>>) {
        for pooled in waiting {
            // One that cannot be there again was one of a state that is not there any more.
            let _ = self.pool.add(pooled.transaction().clone());
        }
    }

    fn mine_one(&self, state: &mut State) -> Result<B256, Error> {
        let parent = head(&self.engine)?;
        let header = &parent.block.header;
        let timestamp = state.clock.peek(header.timestamp);
        let attributes = self.attributes(state, header, timestamp);
        let choice = state.choice();
        let Built { block, .. } = self.engine.build_best(parent.hash(), attributes, choice)?;
        let hash = block.hash();
        match self.engine.new_block(block)? {
            Verdict::Valid => {}
            verdict => return Err(Error::Invalid { hash, reason: format!("{verdict:?}") }),
        }
        self.choose(hash)?;
        state.clock.take(header.timestamp);
        (state.base_fee, state.prev_randao) = (None, None);
        let record = head(&self.engine)?;
        let included = record.block.body.transactions.iter().map(|it| *it.tx_hash()).collect();
        self.pool_at(&record, included)?;
        Ok(hash)
    }

    /// The next block as it would be mined now.
    ///
    /// # Errors
    /// Those of [`Engine::pending`].
    pub fn pending(&self) -> Result<PendingBlock, engine::Error> {
        let state = self.state();
        let hash = self.engine.heads().head;
        let parent = self.engine.block(hash)?.ok_or(engine::Error::UnknownBlock(hash))?;
        let header = &parent.block.header;
        let attributes = self.attributes(&state, header, state.clock.peek(header.timestamp));
        self.engine.pending(hash, attributes, state.choice())
    }

    fn attributes(&self, state: &State, parent: &Header, timestamp: u64) -> PayloadAttributes {
        let chain = self.engine.chain();
        let number = parent.number + 1;
        let cancun = chain.is_cancun_active_at_timestamp(timestamp);
        PayloadAttributes {
            timestamp,
            prev_randao: state.prev_randao.unwrap_or_else(|| keccak256(number.to_be_bytes())),
            suggested_fee_recipient: state.coinbase,
            withdrawals: chain.is_shanghai_active_at_timestamp(timestamp).then(Vec::new),
            parent_beacon_block_root: cancun.then_some(B256::ZERO),
            slot_number: chain.is_amsterdam_active_at_timestamp(timestamp).then_some(number),
            target_gas_limit: None,
        }
    }

    /// Makes a block the head; an epoch behind it is safe, two are finalized, or the first block.
    fn choose(&self, hash: B256) -> Result<(), Error> {
        let number = self.engine.number(&hash)?.unwrap_or(0);
        let first = self.engine.number(&self.engine.heads().genesis)?.unwrap_or(0);
        let behind = |depth: u64| {
            let number = number.saturating_sub(depth).max(first);
            Ok::<_, Error>(self.engine.canonical_hash(number)?.unwrap_or(B256::ZERO))
        };
        let state = ForkchoiceState {
            head_block_hash: hash,
            safe_block_hash: behind(SAFE_DEPTH)?,
            finalized_block_hash: behind(FINALIZED_DEPTH)?,
        };
        self.engine.choose_head(state)?;
        Ok(())
    }

    fn pool_at(&self, record: &BlockRecord, included: HashSet<B256>) -> Result<(), Error> {
        let finalized = match self.engine.heads().finalized {
            Some(hash) => self.engine.number(&hash)?,
            None => None,
        };
        let (head, returned) = (record.block.header.clone(), Vec::new());
        let change = HeadChange { head, included, returned, finalized };
        self.pool.head_changed(change).map_err(Error::Pool)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // All that takes several steps is in the engine and the pool.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The parts of the next header that were set.
    fn choice(&self) -> HeaderChoice {
        HeaderChoice {
            extra_data: self.extra_data.clone(),
            base_fee: self.base_fee,
            gas_limit: self.gas_limit,
        }
    }
}

impl Drop for DevChain {
    fn drop(&mut self) {
        self.interval.end();
    }
}

fn at_least(kind: &'static str, fee: u128, least: u128) -> Result<(), Error> {
    let [shown_fee, shown_least] = [fee, least].map(|wei| wei.try_into().unwrap_or(u64::MAX));
    match fee < least {
        true => Err(Error::Fee { kind, fee: shown_fee, least: shown_least }),
        false => Ok(()),
    }
}

fn head(engine: &Engine) -> Result<Arc<BlockRecord>, Error> {
    let hash = engine.heads().head;
    Ok(engine.block(hash)?.ok_or(engine::Error::UnknownBlock(hash))?)
}
