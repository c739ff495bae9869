//! Ports that are the same over restarts.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use tokio::net::TcpSocket;

/// A port of this machine that programs of ours listen at, one after the other. The system gives it
/// to nobody else meanwhile.
#[derive(Debug)]
pub(crate) struct HeldPort {
    address: SocketAddr,
    /// Bound, without listening: on Linux another socket that reuses its address, as servers do,
    /// may listen there.
    _socket: TcpSocket,
}

impl HeldPort {
    /// A port that is free.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let held = || {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            std::io::Result::Ok(Self { address: socket.local_addr()?, _socket: socket })
        };
        held().context("no port is free")
    }

    /// `127.0.0.1:PORT`.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn servers_listen_at_a_held_port_one_after_the_other() {
        let ports = [HeldPort::new().expect("a port"), HeldPort::new().expect("a port")];
        assert_ne!(ports[0].address(), ports[1].address());
        for _ in 0..2 {
            assert!(TcpStream::connect(ports[0].address()).is_err());
            let server = TcpListener::bind(ports[0].address()).expect("it may listen");
            let client = TcpStream::connect(ports[0].address()).expect("it listens");
            drop((server.accept().expect("one is there"), client));
        }
    }
}
