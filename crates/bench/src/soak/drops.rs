//! A client that hangs up at every moment of a call.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rpc::JwtSecret;

use crate::random::Random;

/// For a node to take what is sent, and to begin its answer; one that is frozen does not.
const PATIENCE: Duration = Duration::from_millis(500);

/// A port whose connections are dropped, and the secret that it asks for.
pub(crate) type Dropped<'a> = (&'a str, Option<JwtSecret>);

/// Opens connections, one after the other, and closes each before, in or after its request, or
/// within the answer. Those that a node does not take are no fault: it may be frozen.
pub(crate) fn drop_connections(ports: &[Dropped<'_>], count: u64, random: &mut Random) {
    for _ in 0..count {
        let (address, secret) = &ports[random.below(ports.len() as u64) as usize];
        drop_one(address, secret.as_ref(), random).ok();
    }
}

fn drop_one(address: &str, secret: Option<&JwtSecret>, random: &mut Random) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let token = secret.map(|secret| format!("authorization: Bearer {}\r\n", secret.token()));
    let request = match random.below(3) {
        0 => websocket(&token.unwrap_or_default()),
        _ => call(&token.unwrap_or_default()),
    };
    let sent = match random.below(3) {
        0 => random.below(request.len() as u64) as usize,
        _ => request.len(),
    };
    stream.write_all(&request.as_bytes()[..sent])?;
    if sent == request.len() && random.chance(0.5) {
        let mut begun = [0; 16];
        stream.read_exact(&mut begun)?;
    }
    Ok(())
}

/// A call whose answer is longer than what is read of it.
fn call(token: &str) -> String {
    let body = r#"[
        {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",true]},
        {"jsonrpc":"2.0","id":2,"method":"eth_syncing","params":[]}
    ]"#;
    let len = body.len();
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\n{token}content-type: application/json\r\n\
         content-length: {len}\r\n\r\n{body}"
    )
}

fn websocket(token: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\n{token}connection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}
