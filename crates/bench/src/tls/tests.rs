//! Both ends over loopback, with certificates made for these tests: of `localhost`, of `localhost`
//! and signed by nobody whom the first has to do with, and of an authority.

use std::net::TcpListener;
use std::path::PathBuf;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::*;

/// A file of these tests.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls").join(name)
}

/// The server's end, with the certificate in this file.
pub(crate) fn accept(tcp: TcpStream, certificate: &str) -> io::Result<TlsStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificates = CertificateDer::pem_file_iter(file(certificate)).expect("a file");
    let key = PrivateKeyDer::from_pem_file(file("localhost.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(certificates.map(|it| it.expect("PEM")).collect(), key)
        .expect("the key is that of the certificate");
    let tls = ServerConnection::new(Arc::new(config)).expect("a server");
    TlsStream::new(tls.into(), tcp)
}

/// Connects to a server with this certificate, and has it send back what it is sent.
fn connect(certificate: &'static str, trusted: &str, host: &str) -> io::Result<TlsStream> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let tcp = TcpStream::connect(listener.local_addr()?)?;
    std::thread::spawn(move || {
        let mut stream = accept(listener.accept()?.0, certificate)?;
        let mut bytes = [0; 10_000];
        loop {
            let count = stream.read(&mut bytes)?;
            stream.write_all(&bytes[..count])?;
            if count == 0 {
                return io::Result::Ok(());
            }
        }
    });
    Trust::new(Some(&file(trusted))).expect("certificates").connect(host, tcp)
}

#[test]
fn bytes_come_back_as_they_were_sent() {
    let mut stream = connect("localhost.pem", "localhost.pem", "localhost").expect("trusted");
    let sent: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut back = vec![0; sent.len()];
    for (sent, back) in sent.chunks(70_000).zip(back.chunks_mut(70_000)) {
        stream.write_all(sent).expect("sent");
        stream.read_exact(back).expect("back");
    }
    assert!(back == sent, "other bytes came back");
    // The end of a connection is one, said or not.
    stream.tcp.shutdown(std::net::Shutdown::Write).expect("it is open");
    assert_eq!(stream.read(&mut [0; 10]).expect("the end"), 0);
}

#[test]
fn a_socket_without_room_takes_the_rest_later() {
    let mut stream = connect("localhost.pem", "localhost.pem", "localhost").expect("trusted");
    stream.tcp.set_nonblocking(true).expect("a socket");
    // Nobody reads what comes back, so that in the end there is no room for what is sent.
    let (mut sent, chunk) = (0, [7; 100_000]);
    loop {
        match stream.write(&chunk) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(stream.wants_write(), "{sent} bytes had room");
    stream.tcp.set_nonblocking(false).expect("a socket");
    let mut back = vec![0; sent];
    let mut read = 0;
    while read < sent {
        read += stream.read(&mut back[read..]).expect("more");
        stream.tcp.set_nonblocking(true).expect("a socket");
        match stream.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => done.expect("sent"),
        }
        stream.tcp.set_nonblocking(false).expect("a socket");
    }
    assert!(!stream.wants_write() && back.iter().all(|byte| *byte == 7));
}

#[test]
fn who_is_not_trusted_is_told_apart() {
    let check = |certificate, trusted, host, kind, words: &str| {
        let error = connect(certificate, trusted, host).expect_err(words);
        assert!(error.kind() == kind && error.to_string().contains(words), "{error:?}");
    };
    let denied = ErrorKind::PermissionDenied;
    check("localhost.pem", "other.pem", "localhost", denied, "--cacert FILE names who did");
    check("localhost.pem", "localhost.pem", "127.0.0.1", denied, "certificate is not good");
    check("authority.pem", "authority.pem", "localhost", denied, "CA:FALSE");
    let unsupported = ErrorKind::Unsupported;
    check("localhost.pem", "localhost.pem", "a b", unsupported, "no name of TLS");
}

#[test]
fn a_server_without_tls_is_called_that() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let tcp = TcpStream::connect(listener.local_addr().expect("one")).expect("connected");
    let mut plain = listener.accept().expect("a connection").0;
    plain.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("said");
    let trust = Trust::new(Some(&file("localhost.pem"))).expect("certificates");
    let error = trust.connect("localhost", tcp).expect_err("no TLS");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("speaks no TLS"), "{error}");
}

#[test]
fn a_file_without_certificates_is_refused() {
    for (name, words) in [("localhost.key", "has no certificates"), ("none.pem", "none.pem")] {
        let error = format!("{:#}", Trust::new(Some(&file(name))).expect_err(name));
        assert!(error.contains("--cacert") && error.contains(words), "{error}");
    }
}
