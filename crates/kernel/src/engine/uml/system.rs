//! The file system that guests begin with: a directory in the cache, by the digest of what is in it. A guest reads of it, by hostfs,
//! what it needs of our program, which is less than a tenth.

use std::fs;
use std::path::{Path, PathBuf};

use hol_base::Digester;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use crate::beginning::Beginning;
use crate::image::cache;
use crate::prune::prune;
use crate::{KernelError, replace, scratch};

/// So many stay in the cache.
const KEPT: usize = 6;

/// Where `beginning` is on the host; lays it there if it is not.
pub(super) fn of(beginning: &Beginning) -> Result<PathBuf, KernelError> {
    let guests = cache().join("guests");
    let place = guests.join(digest(beginning));
    if !is_whole(beginning, &place) {
        let work = scratch::directory(&guests, "fresh")?;
        let fresh = work.path().join("guest");
        beginning.lay(&fresh)?;
        replace::directory(&fresh, &place)?;
        prune(&guests, KEPT, is_one);
    }
    // It is the newest now; where that cannot be noted it is not.
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let _ =
        utimensat(CWD, &place, &Timestamps { last_access: now, last_modification: now }, AtFlags::empty());
    Ok(place)
}

fn digest(beginning: &Beginning) -> String {
    let mut digester = Digester::new();
    let directories = beginning.directories.iter().map(|place| (place, &[][..]));
    let files = beginning.files.iter().map(|(place, octets)| (place, octets.as_slice()));
    for (place, octets) in directories.chain(files) {
        for part in [place.as_bytes(), octets] {
            digester.add(part.len() as u64);
            digester.add_octets(part);
        }
    }
    digester.finish().to_string()
}

/// Whether all is there: a host that lost its power may have kept names of files and not their ends.
fn is_whole(beginning: &Beginning, place: &Path) -> bool {
    let has = |(file, octets): &(String, Vec<u8>)| {
        fs::metadata(place.join(file)).is_ok_and(|found| found.len() == octets.len() as u64)
    };
    beginning.directories.iter().all(|directory| place.join(directory).is_dir())
        && beginning.files.iter().all(has)
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
    fn a_file_that_lost_its_end_is_missed_and_another_beginning_has_another_name() {
        let file = |octets: &[u8]| ("lib/loader".to_owned(), octets.to_vec());
        let beginning = |octets| Beginning { directories: vec!["dev".to_owned()], files: vec![file(octets)] };
        let (one, other) = (beginning(b"12345"), beginning(b"54321"));
        assert_ne!(digest(&one), digest(&other));
        assert!(is_one(Path::new(&digest(&one))) && !is_one(Path::new("fresh-1-x")));
        let place = tempfile::tempdir().unwrap();
        assert!(!is_whole(&one, place.path()));
        one.lay(place.path()).unwrap();
        assert!(is_whole(&one, place.path()));
        let path = place.path().join("lib/loader");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "123").unwrap();
        assert!(!is_whole(&one, place.path()));
    }
}
