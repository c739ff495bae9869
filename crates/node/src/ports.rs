//! The ports of a node: what listens, and how it stops.

use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rpc::{AllowedOrigins, Handler, JwtSecret, Listener, ServerOptions, serve};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::metrics::MetricsPort;

/// The ports that a node listens on.
#[derive(Debug)]
pub(crate) struct Ports {
    /// Dropped to stop them.
    stop: watch::Sender<()>,
    serving: JoinSet<()>,
}

impl Ports {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { stop: watch::Sender::new(()), serving: JoinSet::new() }
    }

    /// Listens on an address, and returns it with the port that was free.
    ///
    /// # Errors
    /// If the address is taken.
    pub(crate) async fn listen(
        &mut self,
        address: SocketAddr,
        options: ServerOptions,
        handler: impl Handler,
    ) -> anyhow::Result<SocketAddr> {
        // Its sockets are polled by the runtime in which it is bound.
        let listener = runtime_of(&options)
            .spawn(TcpListener::bind(address))
            .await?
            .with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        self.serve(listener.into(), options, handler);
        Ok(address)
    }

    /// Listens on the port of metrics.
    ///
    /// # Errors
    /// If the address is taken.
    pub(crate) async fn listen_for_scrapes(
        &mut self,
        address: SocketAddr,
        origins: AllowedOrigins,
        port: MetricsPort,
    ) -> anyhow::Result<SocketAddr> {
        let options = ServerOptions::new(None, MetricsPort::limits());
        let options = ServerOptions { origins, ..options };
        self.listen(address, options, port).await
    }

    pub(crate) fn serve(
        &mut self,
        listener: Listener,
        options: ServerOptions,
        handler: impl Handler,
    ) {
        let mut stopped = self.stop.subscribe();
        let runtime = runtime_of(&options);
        let serving = async move {
            let stopped = async { while stopped.changed().await.is_ok() {} };
            serve(listener, options, Arc::new(handler), stopped).await;
        };
        self.serving.spawn_on(serving, &runtime);
    }

    /// Stops listening, lets running calls finish, and returns when they have. The Unix socket's
    /// file is removed.
    pub(crate) async fn stop(self, socket: Option<&Path>) {
        let Self { stop, mut serving } = self;
        drop(stop);
        if let Some(path) = socket {
            // It may have been removed already.
            std::fs::remove_file(path).unwrap_or_default();
        }
        while serving.join_next().await.is_some() {}
    }
}

/// The secret in a file that the caller names.
///
/// # Errors
/// If there is none in it.
pub(crate) fn given_secret(file: Option<&Path>) -> anyhow::Result<Option<JwtSecret>> {
    file.map(JwtSecret::load).transpose().context("--authrpc.jwtsecret")
}

/// Listens on a Unix socket. A file that is no socket is never replaced.
///
/// # Errors
/// If the path cannot be used.
pub(crate) fn bind_socket(path: &Path) -> anyhow::Result<Listener> {
    let found = std::fs::symlink_metadata(path).map(|found| found.file_type());
    if let Some(found) = found.ok().filter(|found| !found.is_socket()) {
        let kind = match (found.is_dir(), found.is_symlink()) {
            (true, _) => "directory",
            (_, true) => "link",
            _ => "file",
        };
        bail!(
            "cannot listen on {}: it is a {kind}, and no socket. Name another path with --ipcpath, \
             or remove the {kind}; --ipcdisable starts without a socket",
            path.display()
        );
    }
    let listener = rpc::bind_unix(path).with_context(|| {
        format!("cannot listen on the socket {}: see --ipcpath and --ipcdisable", path.display())
    })?;
    Ok(listener.into())
}

/// The runtime in which a port is served: that of its calls.
pub(crate) fn runtime_of(options: &ServerOptions) -> Handle {
    options.calls.clone().unwrap_or_else(Handle::current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_named_and_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "kept").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        for (path, kind) in
            [(&file, "a file,"), (&link, "a link"), (&directory.path().into(), "a directory")]
        {
            let said = bind_socket(path).expect_err("no socket").to_string();
            for words in [kind, "--ipcpath", path.to_str().expect("UTF-8")] {
                assert!(said.contains(words), "{words}: {said}");
            }
        }
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "kept");
        let socket = directory.path().join("socket");
        drop(bind_socket(&socket).expect("a new one"));
        bind_socket(&socket).expect("one that is left over");
    }
}
