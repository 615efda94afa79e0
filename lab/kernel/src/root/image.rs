//! Writes a tree as an image of the read-only file system erofs, cached by its digest.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use hol_base::Digest;
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

use super::tree::{DIRECTORY_MODE, Entry, Tree};
use crate::cache::cache_directory;
use crate::cache_lock::{lock_shared, prune};
use crate::{KernelError, scratch};

/// The program that writes the image, and its Debian package.
const MKFS: (&str, &str) = ("mkfs.erofs", "erofs-utils");
/// The smallest size of an image, in octets; larger sizes are powers of two.
const MIN_SIZE: u64 = 64 << 20;
/// The largest size of an image in octets; guests do not support larger images.
const MAX_SIZE: u64 = 16 << 30;
/// Maximum number of images in the cache.
const MAX_ENTRIES: usize = 8;

/// An image of a root file system.
#[derive(Debug, Clone)]
pub(crate) struct RootImage {
    image: PathBuf,
    /// Size of the image in octets.
    size: u64,
    digest: Digest,
    /// A lock on the image file, which prevents other processes from removing the image.
    _lock: Arc<File>,
}

impl RootImage {
    /// Returns the path of the image file.
    pub(crate) fn image(&self) -> &Path {
        &self.image
    }

    /// Returns the size of the image in octets. It is a power of two, so that there are few sizes, each of which
    /// needs its own snapshot.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Returns a digest that is the same for images with the same contents.
    pub(crate) const fn digest(&self) -> Digest {
        self.digest
    }
}

/// Returns the image of `tree`; creates it if it is missing.
pub(super) fn find_or_make(tree: &Tree) -> Result<RootImage, KernelError> {
    let digest = tree.digest()?;
    let images = cache_directory().join("roots");
    let image = images.join(format!("{digest}.erofs"));
    let lock = match lock_shared(&image) {
        Ok(lock) => lock,
        Err(_) => {
            make(tree, &images, &image)?;
            let lock = lock_shared(&image).map_err(|e| KernelError::file("read", &image, e))?;
            prune(&images, MAX_ENTRIES, |path| path.extension() == Some(OsStr::new("erofs")));
            lock
        }
    };
    let size = lock.metadata().map_err(|e| KernelError::file("read", &image, e))?.len();
    Ok(RootImage { image, size, digest, _lock: Arc::new(lock) })
}

fn make(tree: &Tree, images: &Path, image: &Path) -> Result<(), KernelError> {
    let work = scratch::create_directory(images, "fresh")?;
    let (stage, fresh) = (work.path().join("stage"), work.path().join("image"));
    lay_out(tree, &stage)?;
    let mut mkfs = Command::new(MKFS.0);
    // User names are not stored; the times of files are, because some programs compare them.
    mkfs.args(["--all-root", "-x-1", "-U", "00000000-0000-0000-0000-000000000000", "--quiet"]);
    let missing = |_| KernelError::ProgramMissing { program: MKFS.0.to_owned(), package: MKFS.1 };
    let done = mkfs.arg(&fresh).arg(&stage).env("LC_ALL", "C").output().map_err(missing)?;
    // Only root can remove files from a directory without write permission.
    for (path, _) in tree.entries().filter(|(_, entry)| matches!(entry, Entry::Directory(_))) {
        let _ = fs::set_permissions(stage.join(path), Permissions::from_mode(DIRECTORY_MODE));
    }
    if !done.status.success() {
        let error_output = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        return Err(KernelError::Program { program: MKFS.0.to_owned(), error_output });
    }
    let filled = File::options().write(true).open(&fresh).and_then(|file| extend_to_power_of_two(&file));
    let size = filled.map_err(|e| KernelError::file("write", &fresh, e))?;
    if size > MAX_SIZE {
        return Err(KernelError::image(
            image,
            "the root file system is larger than 16 GiB; use a smaller one",
        ));
    }
    fs::rename(&fresh, image).map_err(|e| KernelError::file("create", image, e))
}

/// Extends the file with a hole to the next power of two; returns this size.
fn extend_to_power_of_two(file: &File) -> io::Result<u64> {
    let size = file.metadata()?.len().next_power_of_two().max(MIN_SIZE);
    file.set_len(size)?;
    Ok(size)
}

/// Creates every entry of the tree below `stage`. In the order of paths, a directory comes before its contents.
fn lay_out(tree: &Tree, stage: &Path) -> Result<(), KernelError> {
    fs::create_dir_all(stage).map_err(|e| KernelError::file("create", stage, e))?;
    for (path, entry) in tree.entries() {
        if !tree.has_real_ancestors(path) {
            return Err(KernelError::image(
                path,
                "a directory of this path is a symbolic link; use its target instead",
            ));
        }
        let place = stage.join(path);
        create_entry(entry, &place).map_err(|e| KernelError::file("create", &place, e))?;
    }
    // Last, so that files could be created in directories that get no write permission; the innermost first, because each change affects
    // the directory around it.
    let entries: Vec<_> = tree.entries().collect();
    for (path, entry) in entries.into_iter().rev() {
        let place = stage.join(path);
        set_permissions(entry, &place).map_err(|e| KernelError::file("finish", &place, e))?;
    }
    set_permissions(&Entry::Directory(DIRECTORY_MODE), stage)
        .map_err(|e| KernelError::file("finish", stage, e))
}

/// Sets the permissions of a new entry, and a fixed modification time, so that equal trees give equal images.
fn set_permissions(entry: &Entry, place: &Path) -> io::Result<()> {
    if let Entry::Directory(mode) = entry {
        fs::set_permissions(place, Permissions::from_mode(*mode))?;
    }
    if !matches!(entry, Entry::Copy { .. }) {
        let never = TimeSpec::new(0, 0);
        utimensat(AT_FDCWD, place, &never, &never, UtimensatFlags::NoFollowSymlink)?;
    }
    Ok(())
}

fn create_entry(entry: &Entry, place: &Path) -> io::Result<()> {
    match entry {
        Entry::Directory(_) => fs::create_dir(place),
        Entry::Link(target) => symlink(target, place),
        Entry::Generated(octets) => fs::write(place, octets),
        // A hard link takes no space, but is not always possible.
        Entry::Copy { of, .. } => match fs::hard_link(of, place) {
            Err(problem) if problem.kind() != io::ErrorKind::AlreadyExists => copy(of, place),
            done => done,
        },
    }
}

fn copy(of: &Path, place: &Path) -> io::Result<()> {
    fs::copy(of, place)?;
    let times = fs::FileTimes::new().set_modified(fs::metadata(of)?.modified()?);
    File::open(place)?.set_times(times)
}
