//! Peers that read slowly, and connections that write much.

use super::*;
use crate::limits::{FRAME_BYTES, SEND_BUFFER_BYTES};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::future::poll_fn;
use std::io::IoSlice;
use tokio::io::AsyncWriteExt;

/// So large, the system says soon that there is room.
const SMALL_BUFFER: usize = 16 << 10;

/// Writes until the peer is given up, who takes so many bytes every 10 ms.
async fn write_to_a_slow_peer(
    buffer: usize,
    taken: usize,
    flushes: bool,
    most: Duration,
) -> io::Result<()> {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    set_socket_send_buffer_size(&ours, buffer).expect("set");
    let mut socket = Socket::new(ours, Duration::from_secs(2));
    let mut read = vec![0; taken];
    let reads = async {
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            theirs.try_read(&mut read).unwrap_or_default();
        }
    };
    let writes = async {
        loop {
            socket.write_all(&[7; 16 << 10]).await?;
            if flushes {
                socket.flush().await?;
            }
        }
    };
    tokio::select! {
        () = reads => unreachable!("it goes on"),
        fault = writes => fault,
        () = tokio::time::sleep(most) => Ok(()),
    }
}

#[tokio::test]
async fn a_peer_that_reads_little_is_given_up() {
    let patience = Duration::from_secs(60);
    let long = Duration::from_secs(3);
    let (slow, complete, fast, late) = tokio::join!(
        write_to_a_slow_peer(SMALL_BUFFER, 512, false, patience),
        // All that there was is taken each time.
        write_to_a_slow_peer(SMALL_BUFFER, 4 << 10, true, long),
        write_to_a_slow_peer(SMALL_BUFFER, 256 << 10, false, long),
        // The system says for longer than the limit that there is no room.
        write_to_a_slow_peer(SEND_BUFFER_BYTES, 5 << 10, false, 2 * long),
    );
    assert_eq!(slow.expect_err("too slow").kind(), io::ErrorKind::TimedOut);
    complete.expect("all was taken");
    fast.expect("fast enough");
    late.expect("fast enough, if one looks");
}

/// Although the peer takes all at once.
#[tokio::test]
async fn a_connection_that_writes_much_yields_to_others() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    ours.writable().await.expect("open");
    let mut socket = Socket::new(ours, Duration::from_secs(60));
    let (chunk, mut read) = (vec![7; 16 << 10], vec![0; FRAME_BYTES]);
    for turn in 0..5 {
        let (mut written, mut has_ended) = (0, false);
        let write = poll_fn(|cx| {
            if has_ended {
                return Poll::Ready(());
            }
            loop {
                let socket = Pin::new(&mut socket);
                let now = match turn % 2 {
                    0 => socket.poll_write(cx, &chunk),
                    _ => socket.poll_write_vectored(cx, &[IoSlice::new(&chunk)]),
                };
                let Poll::Ready(now) = now else { break };
                written += now.expect("the peer reads");
                rustix::io::read(&theirs, &mut read).expect("it is there");
            }
            has_ended = true;
            Poll::Pending
        });
        tokio::time::timeout(Duration::from_secs(60), write).await.expect("its turn comes");
        assert_eq!(written, TURN_BYTES, "turn {turn}");
    }
}
