//! A listener that cannot accept, and answers that wait.

use std::pin::pin;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::jsonrpc::error::Error;
use crate::transport::slot::UnreadAnswers;
use rustix::net::Shutdown;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

struct Nothing;

impl Handler for Nothing {
    fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, Error> {
        Err(Error::method_not_found(method))
    }
}

/// A log that counts its warnings.
#[derive(Default)]
struct Warnings(AtomicUsize);

impl Subscriber for Warnings {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() == Level::WARN {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn connections_that_cannot_be_accepted_are_one_line_in_the_log() {
    let log = Arc::<Warnings>::default();
    let _log = tracing::subscriber::set_default(Arc::clone(&log));
    let port = Port::new(ServerOptions::new(None, Limits::public()), Arc::new(Nothing));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    // From now on the system refuses to accept.
    rustix::net::shutdown(&listener, Shutdown::Both).expect("it listens");
    let listener = Listener::from(listener);
    for _ in 0..5 {
        assert!(port.accept(&listener).await.is_none());
    }
    assert_eq!(log.0.load(Ordering::Relaxed), 1);
}

/// Answers that are made and wait are bounded in bytes: one too many is refused at once.
#[tokio::test]
async fn answers_that_wait_for_memory_are_bounded() {
    let limits = Limits { running_calls: 2, turn_wait: Duration::MAX, ..Limits::public() };
    let most = limits.waiting_answers_bytes();
    let port = Port::new(ServerOptions::new(None, limits), Arc::new(Nothing));
    let slot = || {
        let (peer, unread) = (Peer::new(None), Arc::<UnreadAnswers>::default());
        let place = port.budgets.connections.try_reserve(peer, 1, unread.evicted());
        ConnectionSlot::new(peer, unread, place.expect("free"), false)
    };
    let answers = &port.budgets.answers;
    let all = answers.try_reserve(Peer::PORT, answers.shares.most, &Arc::default());
    let slots = [slot(), slot()];
    let mut first = pin!(port.answer_memory(&slots[0], most / 2 + 1));
    assert!(timeout(Duration::ZERO, &mut first).await.is_err(), "it waits");
    let second = timeout(Duration::ZERO, port.answer_memory(&slots[1], most / 2)).await;
    assert!(matches!(second, Ok(Err(Unanswered::Full))), "{second:?}");
    // A smaller one waits beside the first, and both have what becomes free.
    let mut third = pin!(port.answer_memory(&slots[1], SMALL_ANSWER_BYTES + 1));
    assert!(timeout(Duration::ZERO, &mut third).await.is_err(), "it waits");
    drop(all.expect("free"));
    assert!(first.await.is_ok() && third.await.is_ok());
    assert_eq!(port.budgets.waiting_answers.held(), 0);
}
