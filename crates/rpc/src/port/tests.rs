//! A listener that cannot accept.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::jsonrpc::error::Error;
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
