//! A stretch of network that can be cut.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use eyre::{Result, eyre};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// A listener that passes all on to another address, until it drops its connections.
#[derive(Debug)]
pub(crate) struct Droppable {
    pub(crate) address: SocketAddr,
    open: Arc<Mutex<Vec<AbortHandle>>>,
    connections: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl Droppable {
    pub(crate) async fn new(url: &str) -> Result<Self> {
        let far = url.strip_prefix("http://").ok_or_else(|| eyre!("{url} is not http"))?;
        let far = far.trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (open, connections) = (Arc::default(), Arc::default());
        let accepting =
            tokio::spawn(accept(listener, far, Arc::clone(&open), Arc::clone(&connections)));
        Ok(Self { address, open, connections, accepting: accepting.abort_handle() })
    }

    /// Ends the connections that go through it; the next ones may.
    pub(crate) fn drop_all(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.drain(..).for_each(|connection| connection.abort());
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Droppable {
    fn drop(&mut self) {
        self.accepting.abort();
        self.drop_all();
    }
}

async fn accept(
    listener: TcpListener,
    far: String,
    open: Arc<Mutex<Vec<AbortHandle>>>,
    connections: Arc<AtomicUsize>,
) {
    while let Ok((mut near, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        let far = far.clone();
        let passing = tokio::spawn(async move {
            let mut far = TcpStream::connect(far).await?;
            tokio::io::copy_bidirectional(&mut near, &mut far).await
        });
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(passing.abort_handle());
    }
}
