//! Reads certificates and keys, and configures TLS.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::secrets::{SecretFileError, read_secrets};

/// Why TLS cannot use the given files.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{}: {source}", .path.display())]
    Unreadable {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not PEM, or contains no certificate.
    #[error("{}: contains no certificate ({problem}); use PEM, which starts with -----BEGIN CERTIFICATE-----", .path.display())]
    NoCertificate {
        /// The file without a certificate.
        path: PathBuf,
        /// Why no certificate could be parsed.
        problem: pem::Error,
    },
    /// The file is not PEM, or contains no private key.
    #[error("{}: contains no private key ({problem}); use PEM, which starts with -----BEGIN PRIVATE KEY-----", .path.display())]
    NoKey {
        /// The file without a key.
        path: PathBuf,
        /// Why no key could be parsed.
        problem: pem::Error,
    },
    /// The file of the key cannot be read, or other users can access it.
    #[error(transparent)]
    Key(#[from] SecretFileError),
    /// The certificate and the key do not match, or are of an unsupported kind.
    #[error("{}: {problem}; check that the key belongs to the first certificate", .path.display())]
    Unusable {
        /// The file of the certificates.
        path: PathBuf,
        /// Why certificate and key cannot be used.
        problem: rustls::Error,
    },
    /// The file contains no usable certificate of a certification authority.
    #[error("{}: {problem}; use a file with the certificates of certification authorities", .path.display())]
    NoAuthority {
        /// The file of certification authorities.
        path: PathBuf,
        /// Why the certificates cannot be used.
        problem: rustls::Error,
    },
}

/// Returns the provider of cryptography for TLS 1.3 (RFC 8446): `ring`.
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Reads certificates from a PEM file. The first certificate must be that of the owner.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let text =
        fs::read(path).map_err(|source| CertificateError::Unreadable { path: path.to_owned(), source })?;
    let none = |problem| CertificateError::NoCertificate { path: path.to_owned(), problem };
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(none)?;
    if certificates.is_empty() { Err(none(pem::Error::NoItemsFound)) } else { Ok(certificates) }
}

/// Reads a private key from a PEM file, which must be accessible only to its owner.
pub fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let text = read_secrets(path)?;
    PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|problem| CertificateError::NoKey { path: path.to_owned(), problem })
}

/// Reads the certificates of certification authorities from a PEM file.
pub fn read_authorities(path: &Path) -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots
            .add(certificate)
            .map_err(|problem| CertificateError::NoAuthority { path: path.to_owned(), problem })?;
    }
    Ok(roots)
}

/// The TLS configuration of an agent.
#[derive(Debug, Clone)]
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Reads the files of a TLS configuration that accepts middleboxes certified by these authorities. `identity` names
    /// the files of the certificate chain and of the key that the agent presents if a middlebox requests them.
    pub fn read(authorities: &Path, identity: Option<(&Path, &Path)>) -> Result<Self, CertificateError> {
        let builder = ClientConfig::builder_with_provider(crypto_provider());
        let builder = builder.with_protocol_versions(&[&TLS13]).expect("ring has TLS 1.3");
        let builder = builder.with_root_certificates(read_authorities(authorities)?);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificates, key)) => builder
                .with_client_auth_cert(read_certificates(certificates)?, read_key(key)?)
                .map_err(|problem| CertificateError::Unusable { path: certificates.to_owned(), problem })?,
        };
        Ok(Self(Arc::new(config)))
    }
}

impl Tls {
    /// Returns the client's end of a TLS session with the host `host`, before the handshake.
    pub fn client(&self, host: &str) -> io::Result<ClientConnection> {
        // Certificates contain the address without its zone (`%eth0`).
        let host = host.split('%').next().unwrap_or_default().to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        ClientConnection::new(self.0.clone(), name)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl PartialEq for Tls {
    /// Returns whether both are clones of the same configuration; configurations that were read separately count as
    /// different.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Tls {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_certificate_and_key_files_are_refused_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nothing.pem");
        let unreadable = read_authorities(&path).unwrap_err().to_string();
        assert!(unreadable.contains("nothing.pem: "), "{unreadable}");
        fs::write(&path, "nothing\n").unwrap();
        let certificate = read_authorities(&path).unwrap_err().to_string();
        assert!(certificate.contains("BEGIN CERTIFICATE"), "{certificate}");
        let key = read_key(&path).unwrap_err().to_string();
        assert!(key.contains("chmod 600"), "{key}");
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let key = read_key(&path).unwrap_err().to_string();
        assert!(key.contains("BEGIN PRIVATE KEY"), "{key}");
    }
}
