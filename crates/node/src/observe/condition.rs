//! How a running node is: since when it runs, whether it stops, and who calls its Engine API.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use engine::{ChainEvent, WitnessSize};
use follow::HeadSource;

use super::Observer;
use crate::limits::{CLIENT_IDLE_TIME, CLIENT_MISSING_PAUSE, CLIENT_MISSING_TIME};

/// A running node, as its ports and its observers know it.
#[derive(Debug)]
pub(crate) struct NodeCondition {
    /// The data directory, as an absolute path.
    pub(crate) data_dir: PathBuf,
    pub(crate) started: Instant,
    /// Whether a fork choice was applied since the start.
    has_chosen: AtomicBool,
    is_stopping: AtomicBool,
    client: Mutex<ConsensusClient>,
    /// The head's source, where that is no consensus client.
    head_source: OnceLock<HeadSource>,
}

/// The consensus client, as its calls show it.
#[derive(Debug, Default)]
struct ConsensusClient {
    /// The name that it gave itself: by `engine_getClientVersionV1`, or else as its User-Agent.
    name: Option<String>,
    has_told_version: bool,
    /// Whether the log has said that it has called.
    is_known: bool,
    last: Option<LastCall>,
    /// Since when it is to send a block or a fork choice: since its last one, or since it is there.
    awaited: Option<Instant>,
    /// The lack that the log has told of, and when it did so last. Nothing once it is over.
    warned: Option<(Lack, Instant)>,
}

/// The last call on a port of the Engine API that shows a consensus client.
#[derive(Debug, Clone)]
pub(crate) struct LastCall {
    pub(crate) at: Instant,
    /// The method, or the path of a resource.
    pub(crate) method: String,
}

/// A call that shows a consensus client, by how much it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    /// It reads, such as by `eth_getBlockByNumber` where slots have no block.
    Life,
    /// It calls the Engine API.
    Engine,
    /// It sends a block, or a fork choice.
    Update,
}

impl Sign {
    /// The sign that a call of an offered method is, on the Engine API's own port or on another.
    /// Methods of other namespaces are for provers and monitors, and all but the Engine API's are
    /// for everybody on a Unix socket.
    pub(crate) fn of(method: &str, is_engine_port: bool) -> Option<Self> {
        let name = method.strip_prefix("engine_");
        let is_update = |name: &str| {
            ["newPayload", "forkchoiceUpdated"].iter().any(|update| name.starts_with(update))
        };
        match name {
            Some(name) if is_update(name) => Some(Self::Update),
            Some(_) => Some(Self::Engine),
            None => (is_engine_port && method.starts_with("eth_")).then_some(Self::Life),
        }
    }
}

/// A thing that does not come from the consensus client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    Calls,
    /// It calls, but sends no block and no fork choice.
    Updates,
}

/// A line of the log about the consensus client.
#[derive(Debug, PartialEq, Eq)]
enum ClientNews {
    First,
    Back { lack: Lack, after: Duration },
    Missing { lack: Lack, since: Duration, has_called: bool },
}

impl NodeCondition {
    /// Of a node that starts now.
    pub(crate) fn new(data_dir: PathBuf) -> Self {
        Self {
            data_dir: std::path::absolute(&data_dir).unwrap_or(data_dir),
            started: Instant::now(),
            has_chosen: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            client: Mutex::default(),
            head_source: OnceLock::new(),
        }
    }

    /// A call has come that shows a consensus client. The first one of the Engine API, and the
    /// first after a long pause, are logged.
    pub(crate) fn called(&self, method: &str, sign: Sign) {
        let mut client = self.client();
        let news = client.called((method, sign), self.started, Instant::now());
        let name = client.name.clone();
        drop(client);
        let name = name.as_deref().unwrap_or("without a name");
        match news {
            Some(ClientNews::First) => {
                tracing::info!(name, method, "a consensus client has called for the first time");
            }
            Some(ClientNews::Back { lack: Lack::Calls, after }) => {
                let seconds = after.as_secs();
                tracing::info!(name, method, seconds, "the consensus client calls again");
            }
            Some(ClientNews::Back { lack: Lack::Updates, after }) => {
                let seconds = after.as_secs();
                tracing::info!(name, method, seconds, "the consensus client leads again");
            }
            Some(ClientNews::Missing { .. }) | None => {}
        }
    }

    /// The User-Agent of one who calls the Engine API.
    pub(crate) fn user_agent(&self, user_agent: &str) {
        let mut client = self.client();
        if !client.has_told_version && client.name.as_deref() != Some(user_agent) {
            client.name = Some(rpc::quote(user_agent));
        }
    }

    /// The consensus client has told its name and version.
    pub(crate) fn told_version(&self, name: String) {
        let mut client = self.client();
        client.has_told_version = true;
        if client.name.as_deref() != Some(&*name) {
            client.name = Some(name.clone());
            drop(client);
            tracing::info!(name, "the consensus client");
        }
    }

    /// The name of the consensus client and its last call, as far as they are known.
    pub(crate) fn last_call(&self) -> (Option<String>, Option<LastCall>) {
        let client = self.client();
        (client.name.clone(), client.last.clone())
    }

    /// A text in which files of the data directory are named by their paths in there.
    pub(crate) fn without_directory(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.data_dir.display()), "")
    }

    /// A fork choice was applied.
    pub(crate) fn chosen(&self) {
        self.has_chosen.store(true, Ordering::Relaxed);
    }

    /// Whether a consensus client has named a head since the start.
    pub(crate) fn has_chosen(&self) -> bool {
        self.has_chosen.load(Ordering::Relaxed)
    }

    /// That no consensus client calls, or that it sends nothing, once that is as long as it takes
    /// the log to say so.
    pub(crate) fn client_missing(&self, now: Instant) -> Option<String> {
        let (lack, since) = self.client().lack(self.started, now)?;
        let seconds = since.as_secs();
        Some(match lack {
            Lack::Calls => format!("no consensus client has called for {seconds} seconds"),
            Lack::Updates => format!(
                "the consensus client has sent no block and no fork choice for {seconds} seconds"
            ),
        })
    }

    /// The head comes from here, and from no consensus client.
    pub(crate) fn follow(&self, source: HeadSource) {
        self.head_source.set(source).expect("it is set once, at the start");
    }

    /// The head's source, where that is no consensus client.
    pub(crate) fn head_source(&self) -> Option<&HeadSource> {
        self.head_source.get()
    }

    /// Why the head of the upstream is not the head, where the head comes from one.
    pub(crate) fn not_followed(&self) -> Option<String> {
        let status = self.head_source()?.status();
        match (status.upstream, status.problem) {
            (_, Some(problem)) => Some(problem),
            (None, None) => Some("no upstream has answered yet (--follow.head)".into()),
            (Some(_), None) => None,
        }
    }

    /// The node stops.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    fn client(&self) -> MutexGuard<'_, ConsensusClient> {
        self.client.lock().expect("nothing panics while it is locked")
    }
}

impl ConsensusClient {
    fn called(
        &mut self,
        (method, sign): (&str, Sign),
        started: Instant,
        now: Instant,
    ) -> Option<ClientNews> {
        let before = self.last.replace(LastCall { at: now, method: method.to_owned() });
        let is_what_lacked = |lack| lack == Lack::Calls || sign == Sign::Update;
        let ended = self.warned.take_if(|(lack, _)| is_what_lacked(*lack)).map(|(lack, _)| lack);
        let back = ended.map(|lack| {
            let since = match lack {
                Lack::Calls => before.as_ref().map(|before| before.at),
                Lack::Updates => self.awaited,
            };
            ClientNews::Back { lack, after: now.duration_since(since.unwrap_or(started)) }
        });
        if before.is_none() || back.is_some() || sign == Sign::Update {
            self.awaited = Some(now);
        }
        let was_known = self.is_known;
        self.is_known |= sign >= Sign::Engine;
        match (was_known, self.is_known) {
            (false, true) => Some(ClientNews::First),
            (false, false) => None,
            _ => back,
        }
    }

    /// The time since the last call, or since the start.
    fn silence(&self, started: Instant, now: Instant) -> Duration {
        now.duration_since(self.last.as_ref().map_or(started, |last| last.at))
    }

    /// A thing that has not come for long, and for how long.
    fn lack(&self, started: Instant, now: Instant) -> Option<(Lack, Duration)> {
        let silence = self.silence(started, now);
        if silence >= CLIENT_MISSING_TIME {
            return Some((Lack::Calls, silence));
        }
        let idle = self.awaited.map(|awaited| now.duration_since(awaited));
        idle.filter(|idle| *idle >= CLIENT_IDLE_TIME).map(|idle| (Lack::Updates, idle))
    }

    /// A thing that has not come for long: once, then seldom.
    fn missing(&mut self, started: Instant, now: Instant) -> Option<ClientNews> {
        let (lack, since) = self.lack(started, now)?;
        let is_said = self.warned.is_some_and(|(said, at)| {
            said == lack && now.duration_since(at) < CLIENT_MISSING_PAUSE
        });
        if is_said {
            return None;
        }
        self.warned = Some((lack, now));
        Some(ClientNews::Missing { lack, since, has_called: self.last.is_some() })
    }
}

/// How much a reason says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    /// Nothing about the machine, such as its paths: anyone may read it.
    Public,
    /// All that is known.
    Whole,
}

impl Detail {
    /// An event, and its cause as far as that is told.
    pub(crate) fn of(self, what: &str, cause: &dyn fmt::Display) -> String {
        match self {
            Self::Public => what.to_owned(),
            Self::Whole => format!("{what}: {}", rpc::shortened(cause)),
        }
    }
}

/// Says in the log that no consensus client calls.
#[derive(Debug)]
pub(crate) struct ClientWatch(pub(crate) Arc<NodeCondition>);

impl Observer for ClientWatch {
    fn event(&mut self, _: &ChainEvent, _: Option<WitnessSize>) {}

    fn second(&mut self) {
        if self.0.head_source().is_some() {
            return;
        }
        let news = self.0.client().missing(self.0.started, Instant::now());
        let Some(ClientNews::Missing { lack, since, has_called }) = news else { return };
        let seconds = since.as_secs();
        match (lack, has_called) {
            (Lack::Calls, true) => {
                tracing::warn!(seconds, "no consensus client has called: is it running?");
            }
            (Lack::Calls, false) => tracing::warn!(
                seconds,
                "no consensus client has called since the start: is it running, and does it have \
                 the address and the secret of the Engine API?"
            ),
            (Lack::Updates, _) => tracing::warn!(
                seconds,
                "the consensus client calls, but has sent no block and no fork choice: is it in \
                 step with its network?"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client on a clock of its own, which starts with it.
    struct Timed {
        start: Instant,
        client: ConsensusClient,
    }

    impl Timed {
        fn new() -> Self {
            Self { start: Instant::now(), client: ConsensusClient::default() }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        fn missing(&mut self, seconds: u64) -> Option<ClientNews> {
            self.client.missing(self.start, self.at(seconds))
        }

        fn called(&mut self, method: &str, seconds: u64) -> Option<ClientNews> {
            let sign = Sign::of(method, true).expect("it shows a client");
            self.client.called((method, sign), self.start, self.at(seconds))
        }
    }

    fn missing(lack: Lack, seconds: u64, has_called: bool) -> Option<ClientNews> {
        Some(ClientNews::Missing { lack, since: Duration::from_secs(seconds), has_called })
    }

    fn back(lack: Lack, seconds: u64) -> Option<ClientNews> {
        Some(ClientNews::Back { lack, after: Duration::from_secs(seconds) })
    }

    #[test]
    fn a_missing_client_is_said_once_then_seldom_and_so_is_that_it_is_back() {
        let mut client = Timed::new();
        assert_eq!(client.missing(59), None);
        assert_eq!(client.missing(60), missing(Lack::Calls, 60, false));
        assert_eq!(client.missing(61), None);
        assert_eq!(client.missing(660), missing(Lack::Calls, 660, false));
        assert_eq!(client.called("engine_newPayloadV4", 700), Some(ClientNews::First));
        assert_eq!(client.called("engine_forkchoiceUpdatedV3", 712), None);
        assert_eq!(client.missing(771), None);
        assert_eq!(client.missing(772), missing(Lack::Calls, 60, true));
        assert_eq!(client.called("engine_newPayloadV4", 800), back(Lack::Calls, 88));
        assert_eq!(client.called("engine_getPayloadV4", 801), None);
        assert_eq!(client.client.last.expect("it has called").method, "engine_getPayloadV4");
    }

    /// As Prysm does in each slot that has no block.
    #[test]
    fn a_client_that_only_reads_is_not_missing_but_sends_nothing() {
        let mut client = Timed::new();
        assert_eq!(client.called("engine_forkchoiceUpdatedV3", 0), Some(ClientNews::First));
        for seconds in (12..120).step_by(12) {
            assert_eq!(client.called("eth_getBlockByNumber", seconds), None);
            assert_eq!(client.missing(seconds + 11), None);
        }
        assert_eq!(client.missing(120), missing(Lack::Updates, 120, true));
        assert_eq!(client.called("eth_getBlockByNumber", 121), None);
        assert_eq!(client.called("engine_exchangeCapabilities", 122), None);
        assert_eq!(client.missing(123), None);
        // It ends, which is another fault.
        assert_eq!(client.missing(182), missing(Lack::Calls, 60, true));
        assert_eq!(client.called("eth_chainId", 190), back(Lack::Calls, 68));
        // And has two minutes again for its first block.
        assert_eq!(client.missing(249), None);
        assert_eq!(client.called("eth_chainId", 249), None);
        assert_eq!(client.missing(308), None);
        assert_eq!(client.called("eth_chainId", 308), None);
        assert_eq!(client.missing(310), missing(Lack::Updates, 120, true));
        assert_eq!(client.called("engine_newPayloadV4", 320), back(Lack::Updates, 130));
        assert_eq!(client.missing(321), None);
    }

    /// A client that has called nothing of the Engine API yet is not announced as one.
    #[test]
    fn one_that_reads_is_a_sign_of_life_and_no_first_call() {
        let mut client = Timed::new();
        assert_eq!(client.called("eth_chainId", 1), None);
        assert_eq!(client.missing(60), None);
        assert_eq!(client.missing(61), missing(Lack::Calls, 60, true));
        assert_eq!(client.called("eth_chainId", 70), None);
        assert_eq!(client.called("engine_exchangeCapabilities", 71), Some(ClientNews::First));
    }

    #[test]
    fn a_call_shows_a_client_by_its_method_and_its_port() {
        for is_engine_port in [true, false] {
            let of = |method| Sign::of(method, is_engine_port);
            assert_eq!(of("engine_newPayloadWithWitnessV4"), Some(Sign::Update));
            assert_eq!(of("engine_forkchoiceUpdatedV1"), Some(Sign::Update));
            assert_eq!(of("engine_getPayloadV5"), Some(Sign::Engine));
            assert_eq!(of("eth_getLogs"), is_engine_port.then_some(Sign::Life));
            for other in ["deponent_status", "debug_executionWitness", "net_version"] {
                assert_eq!(of(other), None, "{other}");
            }
        }
    }

    #[test]
    fn a_node_is_ready_as_long_as_the_log_has_not_missed_the_client() {
        let condition = NodeCondition::new(PathBuf::new());
        let in_seconds = |seconds| {
            let last = condition.last_call().1.expect("it has called").at;
            condition.client_missing(last + Duration::from_secs(seconds))
        };
        condition.called("engine_newPayloadV4", Sign::Update);
        assert_eq!(in_seconds(59), None);
        let silent = "no consensus client has called for 60 seconds";
        assert_eq!(in_seconds(60).as_deref(), Some(silent));
        condition.called("eth_getBlockByNumber", Sign::Life);
        assert_eq!(condition.client_missing(Instant::now()), None);
        let mut client = condition.client();
        client.awaited = client.awaited.and_then(|since| since.checked_sub(CLIENT_IDLE_TIME));
        drop(client);
        let idle = "the consensus client has sent no block and no fork choice for 120 seconds";
        assert_eq!(in_seconds(0).as_deref(), Some(idle));
    }

    #[test]
    fn a_public_reason_has_no_path() {
        let cause = state::Error::Io {
            file: "/data/chain/nodes.0".into(),
            action: "write",
            offset: 7,
            cause: std::io::Error::from(std::io::ErrorKind::StorageFull).into(),
        };
        assert_eq!(Detail::Public.of("a write has failed", &cause), "a write has failed");
        let whole = Detail::Whole.of("a write has failed", &cause);
        assert!(whole.starts_with("a write has failed: /data/chain/nodes.0: could"), "{whole}");
    }

    #[test]
    fn the_version_that_a_client_tells_is_better_than_its_user_agent() {
        let condition = NodeCondition::new(PathBuf::new());
        condition.user_agent("agent/1");
        assert_eq!(condition.last_call().0.as_deref(), Some("agent/1"));
        condition.told_version("Lighthouse v5".into());
        condition.user_agent("agent/1");
        assert_eq!(condition.last_call().0.as_deref(), Some("Lighthouse v5"));
    }
}
