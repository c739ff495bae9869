//! A server that does nothing: what the instrument can do at most is measured against it.

use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::answer;
use super::message::{Messages, Wire, push_frame_head};
use crate::stream::Stream;

/// What it answers.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    /// `"0x1"`, to whatever was called.
    One,
    /// This body, to any message.
    Body(Arc<Vec<u8>>),
}

/// A server on a free port of 127.0.0.1, or on a Unix socket. Dropped, it takes no further
/// connection; those that are there end with their clients.
#[derive(Debug)]
pub(crate) struct NullServer {
    /// As the command line has it.
    pub(crate) url: String,
    wire: Wire,
    ended: Arc<AtomicBool>,
}

impl NullServer {
    pub(crate) fn start(wire: Wire, says: Says) -> io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ended);
        let serve = move |stream: io::Result<Stream>| {
            let (says, stream) = (says.clone(), stream?);
            // A connection that breaks is its client's affair.
            std::thread::spawn(move || serve(stream, wire, &says).ok());
            io::Result::Ok(())
        };
        let goes_on = move || !has_ended.load(Ordering::SeqCst);
        let url = if wire == Wire::Ipc {
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::SeqCst);
            let name = format!("deponent-null-{}-{number}.ipc", std::process::id());
            let path = std::env::temp_dir().join(name);
            let listener = UnixListener::bind(&path)?;
            std::thread::spawn(move || {
                while let (Ok((stream, _)), true) = (listener.accept(), goes_on()) {
                    serve(Ok(Stream::Unix(stream))).ok();
                }
            });
            path.display().to_string()
        } else {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let url = format!("{}://{}", wire.name(), listener.local_addr()?);
            std::thread::spawn(move || {
                while let (Ok((stream, _)), true) = (listener.accept(), goes_on()) {
                    serve(stream.set_nodelay(true).map(|()| Stream::Tcp(stream))).ok();
                }
            });
            url
        };
        Ok(Self { url, wire, ended })
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        self.url.split_once("://").map_or(&*self.url, |(_, address)| address)
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Who waits for a connection looks up when there is one.
        if self.wire == Wire::Ipc {
            let path = PathBuf::from(&self.url);
            Stream::unix(&path).ok();
            std::fs::remove_file(path).ok();
        } else {
            std::net::TcpStream::connect(self.address()).ok();
        }
    }
}

/// Answers the messages of a connection until that ends.
fn serve(mut stream: Stream, wire: Wire, says: &Says) -> io::Result<()> {
    let mut is_open = wire != Wire::WebSocket;
    let mut messages = Messages::new(if is_open { wire } else { Wire::Http });
    let (mut out, mut text) = (Vec::new(), Vec::new());
    while messages.read(&mut stream)? > 0 {
        while let Some(message) = messages.next().map_err(|_| io::ErrorKind::InvalidData)? {
            if !is_open {
                // To the nonce of RFC 6455's example, which our clients send.
                out.extend_from_slice(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                      Connection: Upgrade\r\n\
                      Sec-WebSocket-Accept: s3pPLBMxaxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
                );
                (is_open, messages.wire) = (true, Wire::WebSocket);
                continue;
            }
            text.clear();
            let body: &[u8] = match says {
                Says::Body(body) => body,
                Says::One => {
                    one(messages.bytes(&message.body), &mut text);
                    &text
                }
            };
            match wire {
                Wire::Http => {
                    write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())?
                }
                Wire::WebSocket => push_frame_head(&mut out, false, false, body.len()),
                Wire::Ipc => {}
            }
            match says {
                Says::One => out.extend_from_slice(body),
                Says::Body(body) => {
                    stream.write_all(&out)?;
                    out.clear();
                    stream.write_all(body)?;
                }
            }
            if wire == Wire::Ipc {
                out.push(b'\n');
            }
        }
        stream.write_all(&out)?;
        out.clear();
    }
    Ok(())
}

/// Writes the answer to a call or to a batch.
fn one(calls: &[u8], out: &mut Vec<u8>) {
    let is_batch = answer::read(calls, |call| {
        out.extend_from_slice(br#",{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(call.id.unwrap_or(b"null"));
        out.extend_from_slice(br#","result":"0x1"}"#);
    });
    // The first comma is one too many.
    match is_batch {
        Ok(true) if !out.is_empty() => {
            out[0] = b'[';
            out.push(b']');
        }
        Ok(_) => drop(out.drain(..1)),
        Err(_) => out.clear(),
    }
}
