//! The other end of a connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

/// A connection, and the address that it comes from: what a share of a
/// [`Budget`](crate::transport::budget::Budget) is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) connection: u64,
    /// `None` for programs of this host, which would all be one.
    pub(crate) host: Option<IpAddr>,
}

/// Numbers connections over all ports, since some ports share their budgets.
static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

impl Peer {
    /// The port itself, which has no share of its own budgets.
    pub(crate) const PORT: Self = Self { connection: 0, host: None };

    /// A new connection from an address, or from a Unix socket.
    pub(crate) fn new(address: Option<IpAddr>) -> Self {
        let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        Self { connection, host: address.and_then(host) }
    }
}

fn host(address: IpAddr) -> Option<IpAddr> {
    let host = match address.to_canonical() {
        // A network of 64 bits has one owner (RFC 4291 section 2.5.4).
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()
        }
        address => address,
    };
    let own: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    (!own.contains(&host)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_the_network_of_one() {
        let of = |text: &str| host(text.parse().expect("an address")).map(|host| host.to_string());
        assert_eq!(of("127.0.0.1"), None);
        assert_eq!(of("127.0.0.7").as_deref(), Some("127.0.0.7"));
        assert_eq!(of("::1"), None);
        assert_eq!(of("::ffff:127.0.0.1"), None);
        assert_eq!(of("192.0.2.7").as_deref(), Some("192.0.2.7"));
        assert_eq!(of("::ffff:192.0.2.7").as_deref(), Some("192.0.2.7"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6").as_deref(), Some("2001:db8:1:2::"));
    }
}
