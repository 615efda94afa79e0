//! Secrets from files accessible only to their owner, and nonces from the operating system.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hol_simco::Nonces;
use rustix::rand::{GetRandomFlags, getrandom};

/// Why a file of secrets is rejected.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The file cannot be read.
    #[error("{}: {source}", .path.display())]
    Unreadable {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Users other than the owner can access the file.
    #[error("{path}: other users may access it (mode {mode:03o}); `chmod 600 {path}`, and change its secrets", path = .path.display())]
    Exposed {
        /// The file that others can access.
        path: PathBuf,
        /// The permissions of the file.
        mode: u32,
    },
    /// The file belongs to another user, who could change it.
    #[error("{path}: owned by another user (uid {owner}); `chown` it to the user that runs this program", path = .path.display())]
    Foreign {
        /// The file that belongs to another user.
        path: PathBuf,
        /// The user ID of the file's owner.
        owner: u32,
    },
}

/// Reads a file, which must belong to this user or to root, and be inaccessible to all others.
pub fn read_secrets(path: &Path) -> Result<String, SecretFileError> {
    let path = path.to_owned();
    let read = || {
        let mut file = File::open(&path)?;
        // The open file is checked, because its name may be replaced meanwhile.
        let metadata = file.metadata()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok((metadata, text))
    };
    match read() {
        Err(source) => Err(SecretFileError::Unreadable { path, source }),
        Ok((metadata, _)) if is_exposed(metadata.mode(), metadata.uid(), metadata.gid()) => {
            Err(SecretFileError::Exposed { path, mode: metadata.mode() & 0o777 })
        }
        Ok((metadata, _)) if ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid()) => {
            Err(SecretFileError::Foreign { path, owner: metadata.uid() })
        }
        Ok((_, text)) => Ok(text),
    }
}

/// Returns whether users other than the owner and root may access the file. systemd grants a service access to its
/// credentials with an access control list, which appears as read permission for root's group on a file of root; such a
/// file is accepted.
fn is_exposed(mode: u32, owner: u32, group: u32) -> bool {
    let roots_group_reads = if (owner, group) == (0, 0) { 0o040 } else { 0 };
    mode & 0o077 & !roots_group_reads != 0
}

/// Returns a generator of nonces, which uses the kernel's random number generator.
pub fn nonces() -> Nonces {
    Box::new(|| {
        let mut nonce = [0; 32];
        let length = getrandom(&mut nonce, GetRandomFlags::empty());
        assert_eq!(length, Ok(nonce.len()), "getrandom returns up to 256 octets completely");
        nonce
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_others_may_access_is_refused_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.toml");
        fs::write(&path, "a = 'b'").unwrap();
        for (mode, is_safe) in [(0o600, true), (0o400, true), (0o620, false), (0o604, false), (0o610, false)]
        {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = read_secrets(&path).err().map(|error| error.to_string());
            assert_eq!(error.is_none(), is_safe, "{mode:o} {error:?}");
            assert!(error.is_none_or(|error| error.contains("chmod 600")), "{mode:o}");
        }
        assert!(read_secrets(&dir.path().join("none")).unwrap_err().to_string().contains("none: "));
    }

    #[test]
    fn systemd_credentials_are_accepted_and_group_files_are_not() {
        assert!(!is_exposed(0o440, 0, 0));
        for (mode, owner, group) in [(0o460, 0, 0), (0o444, 0, 0), (0o440, 0, 100), (0o440, 1000, 0)] {
            assert!(is_exposed(mode, owner, group), "{mode:o} {owner} {group}");
        }
    }

    #[test]
    fn nonces_are_unique() {
        let mut nonces = nonces();
        assert_ne!(nonces(), nonces());
    }
}
