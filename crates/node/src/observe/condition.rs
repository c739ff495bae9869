//! How a running node is: since when it runs, whether it stops, and who calls its Engine API.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use engine::{ChainEvent, WitnessSize};
use follow::HeadSource;

use super::Observer;
use crate::limits::{CLIENT_MISSING_PAUSE, CLIENT_MISSING_TIME};

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
    last: Option<LastCall>,
    /// When the log said last that no client calls, if it has since the last call.
    warned: Option<Instant>,
}

/// The last call of the Engine API.
#[derive(Debug, Clone)]
pub(crate) struct LastCall {
    pub(crate) at: Instant,
    /// The method, or the path of a resource.
    pub(crate) method: String,
}

/// A line of the log about the consensus client.
#[derive(Debug, PartialEq, Eq)]
enum ClientNews {
    First,
    Back { after: Duration },
    Missing { since: Duration, has_called: bool },
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

    /// A call of the Engine API has come. The first one, and the first after a long pause, are
    /// logged.
    pub(crate) fn called(&self, method: &str) {
        let mut client = self.client();
        let news = client.called(method, self.started, Instant::now());
        let name = client.name.clone();
        drop(client);
        let name = name.as_deref().unwrap_or("without a name");
        match news {
            Some(ClientNews::First) => {
                tracing::info!(name, method, "a consensus client has called for the first time");
            }
            Some(ClientNews::Back { after }) => {
                let seconds = after.as_secs();
                tracing::info!(name, method, seconds, "the consensus client calls again");
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

    /// That no consensus client calls, once that is as long as it takes the log to say so.
    pub(crate) fn client_missing(&self, now: Instant) -> Option<String> {
        let silence = self.client().silence(self.started, now);
        let seconds = silence.as_secs();
        (silence >= CLIENT_MISSING_TIME)
            .then(|| format!("no consensus client has called for {seconds} seconds"))
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
    fn called(&mut self, method: &str, started: Instant, now: Instant) -> Option<ClientNews> {
        let before = self.last.replace(LastCall { at: now, method: method.to_owned() });
        let was_missing = self.warned.take().is_some();
        match before {
            None => Some(ClientNews::First),
            Some(before) if was_missing => {
                let after = now.duration_since(before.at.max(started));
                Some(ClientNews::Back { after })
            }
            Some(_) => None,
        }
    }

    /// The time since the last call, or since the start.
    fn silence(&self, started: Instant, now: Instant) -> Duration {
        now.duration_since(self.last.as_ref().map_or(started, |last| last.at))
    }

    /// That no client calls: once after a minute, then seldom.
    fn missing(&mut self, started: Instant, now: Instant) -> Option<ClientNews> {
        let since = self.silence(started, now);
        let is_due =
            self.warned.is_none_or(|warned| now.duration_since(warned) >= CLIENT_MISSING_PAUSE);
        if since < CLIENT_MISSING_TIME || !is_due {
            return None;
        }
        self.warned = Some(now);
        Some(ClientNews::Missing { since, has_called: self.last.is_some() })
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
        match news {
            Some(ClientNews::Missing { since, has_called: true }) => {
                let seconds = since.as_secs();
                tracing::warn!(seconds, "no consensus client has called: is it running?");
            }
            Some(ClientNews::Missing { since, has_called: false }) => {
                let seconds = since.as_secs();
                tracing::warn!(
                    seconds,
                    "no consensus client has called since the start: is it running, and does it \
                     have the address and the secret of the Engine API?"
                );
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_client_is_said_once_then_seldom_and_so_is_that_it_is_back() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let missing = |seconds, has_called| {
            Some(ClientNews::Missing { since: Duration::from_secs(seconds), has_called })
        };
        let mut client = ConsensusClient::default();
        assert_eq!(client.missing(start, at(59)), None);
        assert_eq!(client.missing(start, at(60)), missing(60, false));
        assert_eq!(client.missing(start, at(61)), None);
        assert_eq!(client.missing(start, at(660)), missing(660, false));
        assert_eq!(client.called("engine_a", start, at(700)), Some(ClientNews::First));
        assert_eq!(client.called("engine_a", start, at(712)), None);
        assert_eq!(client.missing(start, at(771)), None);
        assert_eq!(client.missing(start, at(772)), missing(60, true));
        let back = ClientNews::Back { after: Duration::from_secs(88) };
        assert_eq!(client.called("engine_b", start, at(800)), Some(back));
        assert_eq!(client.called("engine_b", start, at(801)), None);
        assert_eq!(client.last.expect("it has called").method, "engine_b");
    }

    #[test]
    fn a_node_is_ready_as_long_as_the_log_has_not_missed_the_client() {
        let condition = NodeCondition::new(PathBuf::new());
        condition.called("engine_a");
        let last = condition.last_call().1.expect("it has called").at;
        let missing = |seconds| condition.client_missing(last + Duration::from_secs(seconds));
        assert_eq!(missing(59), None);
        assert_eq!(missing(60).as_deref(), Some("no consensus client has called for 60 seconds"));
        condition.called("engine_b");
        assert_eq!(condition.client_missing(Instant::now()), None);
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
