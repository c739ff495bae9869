//! TLS under a byte stream: who is trusted, and a connection to a server that proved who it is.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, Connection, RootCertStore};

/// Who may say that a server is who it says.
#[derive(Clone, Debug)]
pub(crate) struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Those whom the system trusts, or in their stead those whose certificates, in PEM, are in the
    /// file `cacert`.
    pub(crate) fn new(cacert: Option<&Path>) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        match cacert {
            Some(path) => {
                let place = || format!("--cacert {}", path.display());
                for certificate in CertificateDer::pem_file_iter(path).with_context(place)? {
                    roots.add(certificate.with_context(place)?).with_context(place)?;
                }
                ensure!(!roots.is_empty(), "--cacert {} has no certificates", path.display());
            }
            None => {
                let system = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(system.certs);
                if roots.is_empty() {
                    let why: Vec<String> = system.errors.iter().map(ToString::to_string).collect();
                    let why = why.join("; ");
                    bail!("this system has no certificates to trust: --cacert FILE ({why})");
                }
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("no version of TLS")?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// Lets the server at the other end, a host or an address in a URL, prove that it is that.
    ///
    /// # Errors
    /// `PermissionDenied` for a certificate that is not trusted, `Unsupported` for a server that
    /// speaks no TLS, or none that we do.
    pub(crate) fn connect(&self, host: &str, tcp: TcpStream) -> io::Result<TlsStream> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::new(ErrorKind::Unsupported, format!("{host} is no name of TLS")))?;
        let tls = ClientConnection::new(Arc::clone(&self.0), name).map_err(refused)?;
        TlsStream::new(tls.into(), tcp)
    }
}

/// A connection whose other end has shown its certificate.
#[derive(Debug)]
pub(crate) struct TlsStream {
    tls: Connection,
    pub(crate) tcp: TcpStream,
}

impl TlsStream {
    /// Waits until both ends agree.
    fn new(mut tls: Connection, mut tcp: TcpStream) -> io::Result<Self> {
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp).map_err(|error| match error.downcast() {
                Ok(error) => refused(error),
                Err(error) => error,
            })?;
        }
        Ok(Self { tls, tcp })
    }

    /// Whether something was taken that the socket had no room for.
    pub(crate) fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }
}

/// What a fault of TLS means to whoever gave the address.
fn refused(error: rustls::Error) -> Error {
    use rustls::Error::{InvalidCertificate, InvalidMessage};
    let (kind, words) = match &error {
        InvalidCertificate(CertificateError::UnknownIssuer) => (
            ErrorKind::PermissionDenied,
            "nobody who is trusted signed the server's certificate: --cacert FILE names who did",
        ),
        InvalidCertificate(CertificateError::Other(_)) => (
            ErrorKind::PermissionDenied,
            "the server's certificate is not one of a server: made with openssl req -x509, it \
             needs -addext basicConstraints=critical,CA:FALSE",
        ),
        InvalidCertificate(_) => {
            (ErrorKind::PermissionDenied, "the server's certificate is not good")
        }
        InvalidMessage(_) => (ErrorKind::Unsupported, "the server speaks no TLS"),
        _ => (ErrorKind::Unsupported, "the server and we agree on no TLS"),
    };
    Error::new(kind, format!("{words} ({error})"))
}

impl Read for TlsStream {
    /// Reads what one record brought, or several: all of it where there is room for 128 KiB, so
    /// that whoever polls the socket misses nothing.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Most servers hang up without a word.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            self.tls.read_tls(&mut self.tcp)?;
            if let Err(error) = self.tls.process_new_packets() {
                // It is told why, as far as that goes.
                self.flush().ok();
                return Err(Error::new(ErrorKind::InvalidData, error));
            }
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.tls.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what was taken; a socket that does not wait may have no room for it yet.
    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.tcp) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
