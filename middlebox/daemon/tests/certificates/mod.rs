//! An authority, and the certificates that it issues.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// An authority that issues certificates.
pub struct Authority {
    directory: PathBuf,
    /// The file with its own certificate.
    #[allow(dead_code, reason = "not every test asks for it")]
    pub certificate: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(directory: &Path, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = directory.join(format!("{name}.pem"));
        fs::write(&certificate, params.self_signed(&key).unwrap().pem()).unwrap();
        Self { directory: directory.to_owned(), certificate, issuer: Issuer::new(params, key) }
    }

    /// Returns the files of a certificate for this name, and of its key.
    pub fn certify(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let certified =
            CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let [certificate, private] = ["pem", "key"].map(|kind| self.directory.join(format!("{name}.{kind}")));
        fs::write(&certificate, certified.pem()).unwrap();
        fs::write(&private, key.serialize_pem()).unwrap();
        fs::set_permissions(&private, Permissions::from_mode(0o600)).unwrap();
        (certificate, private)
    }
}
