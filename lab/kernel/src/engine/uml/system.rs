//! The file system that guests begin with: a directory in the cache, by the digest of what is in it. A guest reads of it, by hostfs,
//! what it needs of our program, which is a quarter.

use std::fs::File;
use std::path::{Path, PathBuf};

use hol_base::Digester;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use crate::beginning::Beginning;
use crate::cache::cache;
use crate::kept::{hold, prune, turn};
use crate::{KernelError, replace, scratch};

/// So many stay in the cache.
const KEPT: usize = 6;

/// A directory that guests begin with.
#[derive(Debug)]
pub(super) struct System {
    pub(super) place: PathBuf,
    /// Nobody removes it meanwhile.
    pub(super) _held: File,
}

impl System {
    /// The one with `beginning`; lays it if it is not there.
    pub(super) fn of(beginning: &Beginning) -> Result<Self, KernelError> {
        let guests = cache().join("guests");
        let place = guests.join(digest(beginning));
        // One lays it, and the others wait for it: it is not to be exchanged where a guest begins.
        let _turn = turn(&guests)?;
        if !beginning.is_at(&place) {
            let work = scratch::directory(&guests, "fresh")?;
            let fresh = work.path().join("guest");
            beginning.lay(&fresh)?;
            replace::directory(&fresh, &place)?;
        }
        let held = hold(&place).map_err(|e| KernelError::file("read", &place, e))?;
        // It is the newest now; where that cannot be noted it is not.
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let _ = utimensat(
            CWD,
            &place,
            &Timestamps { last_access: now, last_modification: now },
            AtFlags::empty(),
        );
        prune(&guests, KEPT, is_one);
        Ok(Self { place, _held: held })
    }
}

fn digest(beginning: &Beginning) -> String {
    let mut digester = Digester::new();
    digester.add_octets(&beginning.archive());
    digester.finish().to_string()
}

/// Whether it has the name of one.
fn is_one(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_beginning_has_another_name() {
        let beginning = |octets: &[u8]| Beginning {
            directories: vec!["dev".to_owned()],
            files: vec![("lib/loader".to_owned(), octets.to_vec())],
        };
        let (one, other) = (digest(&beginning(b"12345")), digest(&beginning(b"54321")));
        assert_ne!(one, other);
        assert!(is_one(Path::new(&one)) && !is_one(Path::new("fresh-1-x")) && !is_one(Path::new("lock")));
    }
}
