//! The program that made results, and the files that it read, so that others can check whether theirs are the same.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The program that produced results, and the files that determined its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The commit that was checked out when the program was built; empty if unknown, as in builds for tests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// The SHA-256 of the program's file, in hexadecimal digits; empty if it could not be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The SHA-256 of each file of the study, or of the experiment and of the files that it names, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Origin {
    /// Returns the origin of results that this program produces from `files`.
    pub(crate) fn of_this_program(files: BTreeMap<String, String>) -> Self {
        let program = std::env::current_exe().and_then(|path| sha256_of_file(&path));
        Self {
            commit: env!("HOL_COMMIT").to_owned(),
            program: program.map_or_else(|_| String::new(), |(hash, _)| hash),
            files,
        }
    }

    /// Returns whether neither the program nor the files are known.
    pub(crate) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the SHA-256 of `octets` in hexadecimal digits, as `sha256sum` prints it.
pub fn sha256(octets: &[u8]) -> String {
    hexadecimal(&Sha256::digest(octets))
}

/// Returns the SHA-256 of a file in hexadecimal digits, and its length in octets.
pub fn sha256_of_file(path: &Path) -> io::Result<(String, u64)> {
    let (mut file, mut hash, mut octets) = (File::open(path)?, Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((hexadecimal(&hash.finalize()), octets)),
            count => {
                hash.update(&buffer[..count]);
                octets += count as u64;
            }
        }
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example "abc" of FIPS 180-4.
    #[test]
    fn the_hash_is_what_sha256sum_prints() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_program_knows_its_own_hash() {
        let program = std::env::current_exe().unwrap();
        let (hash, length) = sha256_of_file(&program).unwrap();
        assert_eq!(Origin::of_this_program(BTreeMap::new()).program, hash);
        assert_eq!(length, program.metadata().unwrap().len());
    }
}
