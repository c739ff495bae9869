//! The client whose calls are measured: one kept connection, one call at a time. A call that comes
//! after a long pause has a new connection, which the server has to accept within the call.
//!
//! `rpc::Client` would do, but its runtime and its copies would be in every measurement. Here a
//! request is rendered before the clock starts, and the answer is read into memory used before
//! and looked at after the clock has stopped.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use rpc::{ClientError, JwtSecret, RawValue, response};

use crate::fault::Fault;
use crate::stream::is_idle;

/// The longest that a call may take: a block that makes state takes seconds.
const ANSWER_TIME: Duration = Duration::from_secs(600);
/// Free space to read into, at least.
const ROOM_BYTES: usize = 1 << 20;
/// The largest chunk that an answer may have.
const CHUNK_BYTES: usize = 1 << 32;
/// A connection that was not used for so long is not used again: its server may be about to close
/// it. One that was stopped meanwhile does so when it goes on, which is when the call comes.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// For what a server said before it stopped to read.
const LAST_WORDS_TIME: Duration = Duration::from_secs(1);
const HEAD_END: &[u8] = b"\r\n\r\n";

/// When parts of an answer were here, counted from before the first byte was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing {
    pub(crate) first_byte: Duration,
    pub(crate) whole: Duration,
    pub(crate) answer_bytes: usize,
}

/// A connection to a JSON-RPC server.
#[derive(Debug)]
pub(crate) struct Connection {
    address: String,
    secret: Option<JwtSecret>,
    stream: TcpStream,
    /// Whether it is not used again: the server said that it closes it, or a call failed.
    is_over: bool,
    last_used: Instant,
    patience: Duration,
    /// By when the running call has to be answered.
    until: Instant,
    request: Vec<u8>,
    /// The answer is its first `filled` bytes.
    answer: Vec<u8>,
    filled: usize,
}

impl Connection {
    /// Connects to `host:port`.
    pub(crate) fn open(address: &str, secret: Option<JwtSecret>) -> anyhow::Result<Self> {
        let (stream, now) = (connect(address)?, Instant::now());
        Ok(Self {
            address: address.into(),
            secret,
            stream,
            is_over: false,
            last_used: now,
            patience: ANSWER_TIME,
            until: now,
            request: Vec::new(),
            answer: Vec::new(),
            filled: 0,
        })
    }

    /// Bounds the time from the first byte sent to the last one of the answer.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Another connection to the same server.
    pub(crate) fn another(&self) -> anyhow::Result<Self> {
        Self::open(&self.address, self.secret.clone())
    }

    /// Where it goes, and with which secret.
    pub(crate) fn endpoint(&self) -> (String, Option<JwtSecret>) {
        (self.address.clone(), self.secret.clone())
    }

    /// Calls a method; `params` is a JSON array.
    pub(crate) fn call(
        &mut self,
        method: &str,
        params: &str,
    ) -> anyhow::Result<(Timing, &RawValue)> {
        let context = |what: &str| format!("{what} {method} at {}", self.address);
        let (sending, reading) = (context("cannot send"), context("no answer to"));
        self.render(method, params);
        if self.is_over || self.last_used.elapsed() > IDLE_TIME || !is_idle(&self.stream) {
            self.stream = connect(&self.address)?;
        }
        // Until the whole answer is there.
        self.is_over = true;
        let start = Instant::now();
        self.filled = 0;
        self.until = start + self.patience;
        let sent = self.write();
        if sent.is_err() {
            // It may have said why it does not read on.
            self.until = Instant::now() + LAST_WORDS_TIME;
        }
        let is_cut = sent.is_err();
        let head_end = match (self.read_head(), sent) {
            (Ok(end), _) => end,
            (Err(_), Err(error)) => return Err(Fault::of_io(error, 0)).context(sending),
            (Err(error), Ok(())) => {
                return Err(Fault::of_io(error, self.filled)).context(reading);
            }
        };
        let first_byte = start.elapsed();
        let (body, closes) = self.read_body(head_end).context(reading)?;
        let whole = start.elapsed();
        self.is_over = closes || is_cut;
        self.last_used = Instant::now();
        let status = self.answer[..head_end].split(|byte| *byte == b' ').nth(1);
        if status != Some(b"200") {
            let answer = String::from_utf8_lossy(&self.answer[..self.filled.min(500)]);
            return Err(Fault::Refusing.error(format!("{method} at {}: {answer}", self.address)));
        }
        let body = self.unchunk(head_end, body);
        let timing = Timing { first_byte, whole, answer_bytes: body.len() };
        let result = response::result(body).map_err(|error| {
            let is_refusal = matches!(error, ClientError::Rpc(_));
            let fault = if is_refusal { Fault::Refusing } else { Fault::Garbled };
            anyhow::Error::new(error).context(fault)
        });
        Ok((timing, result.with_context(|| method.to_owned())?))
    }

    fn render(&mut self, method: &str, params: &str) {
        let body_bytes = params.len() + method.len() + 46;
        self.request.clear();
        let token = self.secret.as_ref().map(|secret| secret.token());
        let token = token.map_or_else(String::new, |t| format!("Authorization: Bearer {t}\r\n"));
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{token}\
             Accept-Encoding: identity\r\nContent-Length: {body_bytes}\r\n\r\n\
             {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":",
            self.address
        );
        self.request.extend_from_slice(head.as_bytes());
        self.request.extend_from_slice(params.as_bytes());
        self.request.push(b'}');
        debug_assert!(self.request.ends_with(b"}"));
    }

    /// Sends the request.
    fn write(&mut self) -> std::io::Result<()> {
        let mut written = 0;
        while written < self.request.len() {
            self.stream.set_write_timeout(Some(self.left()?))?;
            match self.stream.write(&self.request[written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What is left of the time for the call.
    fn left(&self) -> std::io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }

    /// Reads what is there, or waits for it.
    fn read(&mut self) -> std::io::Result<()> {
        if self.answer.len() < self.filled + ROOM_BYTES {
            self.answer.resize((self.filled + ROOM_BYTES).max(self.answer.len() * 2), 0);
        }
        loop {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.read(&mut self.answer[self.filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.filled += read;
                    return Ok(());
                }
                // A signal came, as when we are stopped and go on.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The same within an answer: its end is a fault.
    fn read_on(&mut self) -> anyhow::Result<()> {
        self.read().map_err(|error| Fault::of_io(error, self.filled))
    }

    /// Reads until the head is there; where it ends.
    fn read_head(&mut self) -> std::io::Result<usize> {
        loop {
            self.read()?;
            if let Some(end) = find(&self.answer[..self.filled], HEAD_END) {
                return Ok(end + HEAD_END.len());
            }
        }
    }

    /// Reads the rest of the answer; and whether the connection ends with it.
    fn read_body(&mut self, start: usize) -> anyhow::Result<(Body, bool)> {
        let head = String::from_utf8_lossy(&self.answer[..start]).to_ascii_lowercase();
        let closes = header(&head, "connection") == Some("close");
        if let Some(encoding) = header(&head, "content-encoding").filter(|it| *it != "identity") {
            let said = format!("it came as {encoding}, which was not asked for");
            return Err(Fault::Compressed.error(said));
        }
        if let Some(length) = header(&head, "content-length") {
            let length: usize = length.parse().context(Fault::Garbled)?;
            let end = start.saturating_add(length);
            while self.filled < end {
                self.read_on()?;
            }
            return Ok((Body::Whole(start..end), closes));
        }
        if header(&head, "transfer-encoding") != Some("chunked") {
            // It ends with the connection (RFC 9112 section 6.3).
            return loop {
                match self.read() {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                        break Ok((Body::Whole(start..self.filled), true));
                    }
                    Err(error) => break Err(Fault::of_io(error, self.filled)),
                }
            };
        }
        let (mut chunks, mut at) = (Vec::new(), start);
        loop {
            let line = self.read_line(at)?;
            let digits = String::from_utf8_lossy(&self.answer[line.clone()]).into_owned();
            // Behind a semicolon there may be extensions.
            let size = digits.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).ok().filter(|size| *size <= CHUNK_BYTES);
            let Some(size) = size else {
                return Err(Fault::Garbled.error(format!("a chunk of {digits:.100} bytes")));
            };
            if size == 0 {
                let mut at = line.end + 2;
                // There may be trailers.
                loop {
                    let line = self.read_line(at)?;
                    if line.is_empty() {
                        return Ok((Body::Chunks(chunks), closes));
                    }
                    at = line.end + 2;
                }
            }
            let data = line.end + 2..line.end + 2 + size;
            while self.filled < data.end + 2 {
                self.read_on()?;
            }
            at = data.end + 2;
            chunks.push(data);
        }
    }

    /// The line that begins there, without its end.
    fn read_line(&mut self, at: usize) -> anyhow::Result<std::ops::Range<usize>> {
        loop {
            if let Some(len) = find(&self.answer[at..self.filled], b"\r\n") {
                return Ok(at..at + len);
            }
            self.read_on()?;
        }
    }

    /// The body in one piece.
    fn unchunk(&mut self, start: usize, body: Body) -> &[u8] {
        match body {
            Body::Whole(range) => &self.answer[range],
            Body::Chunks(chunks) => {
                let mut end = start;
                for chunk in chunks {
                    let len = chunk.len();
                    self.answer.copy_within(chunk, end);
                    end += len;
                }
                &self.answer[start..end]
            }
        }
    }
}

/// Where a body lies in the answer.
enum Body {
    Whole(std::ops::Range<usize>),
    Chunks(Vec<std::ops::Range<usize>>),
}

fn connect(address: &str) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(address).context(Fault::Unreachable);
    let stream = stream.with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that reads one request and gives one answer, for each answer, on one connection.
    fn server(answers: Vec<&'static str>) -> String {
        server_of(vec![answers])
    }

    /// The same for one connection after the other.
    fn server_of(connections: Vec<Vec<&'static str>>) -> String {
        listen(move |listener| {
            let mut kept = Vec::new();
            for answers in connections {
                let (stream, _) = listener.accept().expect("a client");
                kept.push(stream);
                let stream = kept.last_mut().expect("pushed just now");
                serve(stream, answers);
            }
        })
    }

    /// Has a thread serve on a free port.
    fn listen(serve: impl FnOnce(TcpListener) + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has an address").to_string();
        std::thread::spawn(move || serve(listener));
        address
    }

    fn serve(stream: &mut TcpStream, answers: Vec<&'static str>) {
        for answer in answers {
            let mut request = Vec::new();
            while !request.ends_with(b"[1]}") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a request");
                request.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&request);
            let (head, body) = head.split_once("\r\n\r\n").expect("a head");
            let length = header(&head.to_ascii_lowercase(), "content-length")
                .and_then(|length| length.parse().ok());
            assert_eq!(length, Some(body.len()));
            stream.write_all(answer.as_bytes()).expect("it is read");
        }
    }

    #[test]
    fn a_connection_that_was_idle_for_long_is_not_used_again() {
        let answers = [
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"result\":1}",
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"result\":2}",
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"result\":3}",
        ];
        let address = server_of(vec![answers[..2].to_vec(), answers[2..].to_vec()]);
        let mut connection = Connection::open(&address, None).expect("it listens");
        for expected in ["1", "2", "3"] {
            if expected == "3" {
                connection.last_used -= 2 * IDLE_TIME;
            }
            assert_eq!(connection.call("a", "[1]").expect("an answer").1.get(), expected);
        }
    }

    #[test]
    fn answers_of_any_form_are_read() {
        // One that ends with its connection, one that closes it, extensions and trailers of chunks.
        let address = server_of(vec![
            vec![
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n{\"result\":1}",
            ],
            vec![
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                 5;a=b\r\n{\"res\r\n7 ; c\r\nult\":2}\r\n0\r\nX: y\r\n\r\n",
            ],
        ]);
        let mut connection = Connection::open(&address, None).expect("it listens");
        for expected in ["1", "2"] {
            assert_eq!(connection.call("a", "[1]").expect("an answer").1.get(), expected);
        }
        let answer = |answer: &'static str| {
            let address = listen(move |listener| {
                let (mut stream, _) = listener.accept().expect("a client");
                serve(&mut stream, vec![answer]);
            });
            let mut connection = Connection::open(&address, None).expect("it listens");
            connection.call("a", "[1]").map(|(_, result)| result.get().to_owned())
        };
        assert_eq!(answer("HTTP/1.1 200 OK\r\n\r\n{\"result\":3}").expect("an answer"), "3");
        let refused = format!("{:#}", answer("HTTP/1.1 401 No\r\n\r\nno token").expect_err("no"));
        assert!(refused.contains("401") && refused.contains("no token"), "{refused}");
    }

    #[test]
    fn a_server_that_does_not_read_or_answers_slowly_is_given_up() {
        let address = listen(|listener| {
            let (first, _) = listener.accept().expect("a client");
            let (mut second, _) = listener.accept().expect("a client");
            // Of the first nothing is read, and the second is answered a byte at a time.
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".iter().cycle() {
                std::thread::sleep(Duration::from_millis(20));
                if second.write_all(&[*byte]).is_err() {
                    break;
                }
            }
            drop(first);
        });
        let long = format!("[\"{}\"]", "x".repeat(20_000_000));
        for params in [&*long, "[1]"] {
            let mut connection = Connection::open(&address, None).expect("it listens");
            connection.set_patience(Duration::from_millis(300));
            let begun = Instant::now();
            let fault = connection.call("a", params).expect_err("no answer");
            assert_eq!(Fault::of(&fault), Some(Fault::Hanging), "{fault:#}");
            assert!(begun.elapsed() < Duration::from_secs(10));
        }
    }

    /// As a server does whose bound a body is over.
    #[test]
    fn a_refusal_before_all_was_sent_is_read() {
        let address = listen(|listener| {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.read_exact(&mut [0; 10]).expect("a request");
            stream.write_all(b"HTTP/1.1 413 Long\r\nContent-Length: 2\r\n\r\nno").expect("sent");
            std::thread::sleep(Duration::from_secs(5));
        });
        let mut connection = Connection::open(&address, None).expect("it listens");
        connection.set_patience(Duration::from_millis(300));
        let long = format!("[\"{}\"]", "x".repeat(20_000_000));
        let refused = connection.call("a", &long).expect_err("a refusal");
        assert!(format!("{refused:#}").contains("413"), "{refused:#}");
    }

    #[test]
    fn answers_with_a_length_and_in_chunks_are_read() {
        let address = server(vec![
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"result\":7}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\n{\"res\r\n8\r\nult\":42}\r\n0\r\n\r\n",
            "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno",
        ]);
        let mut connection = Connection::open(&address, None).expect("it listens");
        assert_eq!(connection.call("a", "[1]").expect("an answer").1.get(), "7");
        let (timing, result) = connection.call("a", "[1]").expect("an answer");
        assert_eq!((timing.answer_bytes, result.get()), (13, "42"));
        let refusal = connection.call("a", "[1]").expect_err("a refusal");
        assert!(format!("{refusal:#}").contains("403"), "{refusal:#}");
    }
}
