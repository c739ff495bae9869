//! TLS under the connections of `rpc`'s clients.

use std::io::{self, Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use rpc::{Dial, Dialing};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// Opens connections over TLS, for [`ConnectOptions::dial`](crate::ConnectOptions). The server has
/// to prove who it is.
#[derive(Debug)]
pub struct TlsDial {
    config: Arc<ClientConfig>,
    /// `host:port`.
    address: String,
    name: ServerName<'static>,
}

impl TlsDial {
    /// Connects to `address`, a `host:port`. Trusts the system's authorities, or in their stead
    /// those whose certificates, in PEM, are in the file `cacert`.
    ///
    /// # Errors
    /// `InvalidInput` if the host is no name that a certificate can have, or there are no
    /// certificates to trust.
    pub fn new(address: &str, cacert: Option<&Path>) -> io::Result<Self> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host.clone())
            .map_err(|_| unusable(format!("{host:?} is no name that a certificate can have")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let mut config = config.with_root_certificates(roots(cacert)?).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), address: address.into(), name })
    }
}

fn unusable(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::InvalidInput, why)
}

fn roots(cacert: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = cacert else {
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            let why: Vec<String> = system.errors.iter().map(ToString::to_string).collect();
            let why = why.join("; ");
            let fault = "this system has no certificates to trust: --cacert FILE";
            return Err(unusable(format!("{fault} ({why})")));
        }
        return Ok(roots);
    };
    let fault =
        |why: &dyn std::fmt::Display| unusable(format!("--cacert {}: {why}", path.display()));
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fault(&error))? {
        let certificate = certificate.map_err(|error| fault(&error))?;
        roots.add(certificate).map_err(|error| fault(&error))?;
    }
    if roots.is_empty() {
        return Err(fault(&"the file has no certificates"));
    }
    Ok(roots)
}

impl Dial for TlsDial {
    /// # Errors
    /// `PermissionDenied` for a certificate that is not trusted, `Unsupported` for a server that
    /// speaks no TLS, or none that we do.
    fn dial(&self) -> Dialing<'_> {
        Box::pin(async {
            let tcp = TcpStream::connect(&self.address).await?;
            tcp.set_nodelay(true)?;
            let connector = TlsConnector::from(Arc::clone(&self.config));
            let mut tls = connector.connect(self.name.clone(), tcp).await.map_err(refused)?;
            let (near, mut far) = UnixStream::pair()?;
            // An end of either side, said or not, is the other one's.
            tokio::spawn(async move { copy_bidirectional(&mut far, &mut tls).await.ok() });
            Ok(near)
        })
    }
}

/// The meaning of a fault of TLS for the address that was given.
fn refused(error: io::Error) -> io::Error {
    use rustls::Error::{InvalidCertificate, InvalidMessage};
    let error = match error.downcast::<rustls::Error>() {
        Ok(error) => error,
        Err(error) => return error,
    };
    let (kind, words) = match &error {
        InvalidCertificate(CertificateError::UnknownIssuer) => (
            ErrorKind::PermissionDenied,
            "no trusted authority signed the server's certificate: --cacert FILE names another",
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
