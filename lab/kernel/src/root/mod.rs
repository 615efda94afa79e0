//! The root file system of the user's programs. It consists of this machine's files, of a directory or of an
//! archive, and is cached as an image by the digest of its contents.
//!
//! `tree` is the content, `dependencies` finds the files that a program of this machine needs, with
//! `packages` if it belongs to a package, `archive` reads archives, `image` writes the image.

mod archive;
mod dependencies;
mod image;
mod packages;
mod tree;

use std::sync::{Mutex, PoisonError};

use hol_base::Seed;
use hol_scenario::{Content, Program, Root as Origin, Scenario};
use tempfile::TempDir;

use crate::KernelError;
pub use dependencies::local_file_names;
pub(crate) use image::RootImage;
use tree::Tree;
pub(crate) use tree::{NODES_DIRECTORY, SHARED_DIRECTORY};

/// A cached image, with the origin and the programs for which it was made.
type CachedRoot = (Origin, Vec<Program>, RootImage);

impl RootImage {
    /// Returns the image for the programs of `scenario`; `None` if it has none. A process creates the image only
    /// once, and later processes reuse it.
    pub(crate) fn of(scenario: &Scenario) -> Result<Option<Self>, KernelError> {
        static CACHE: Mutex<Vec<CachedRoot>> = Mutex::new(Vec::new());
        let Scenario { programs, root: origin, .. } = scenario;
        if programs.is_empty() {
            return Ok(None);
        }
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., root)) =
            cache.iter().find(|(of, with, _)| of == origin && need_same_files(with, programs))
        {
            return Ok(Some(root.clone()));
        }
        let mut tree = Tree::default();
        // Keeps unpacked files until the image is written.
        let _unpacked = fill(&mut tree, origin, programs)?;
        let root = image::find_or_make(&tree)?;
        cache.push((origin.clone(), programs.clone(), root.clone()));
        Ok(Some(root))
    }
}

/// Returns whether programs need the same image; the environment of a program is not part of the image.
fn need_same_files(one: &[Program], other: &[Program]) -> bool {
    fn needs(Program { node, command, directory, files, .. }: &Program) -> impl PartialEq + '_ {
        (node, command, directory, files)
    }
    one.iter().map(needs).eq(other.iter().map(needs))
}

/// Adds everything that the programs need to the tree. The tree refers to files in the returned directories, into which archives were
/// unpacked.
fn fill(tree: &mut Tree, origin: &Origin, programs: &[Program]) -> Result<Vec<TempDir>, KernelError> {
    let mut unpacked = Vec::new();
    match origin {
        Origin::Host => dependencies::add_dependencies(tree, programs)?,
        Origin::Path(path) if path.parent().is_none() => {
            let problem =
                "/ is the whole machine; use root = \"host\", which copies only the files that programs need";
            return Err(KernelError::image(path, problem));
        }
        Origin::Path(path) if path.is_dir() => tree.copy_from_host(path, SHARED_DIRECTORY)?,
        Origin::Path(path) => unpacked = archive::add_archive(tree, path)?,
    }
    for Program { node, files, .. } in programs {
        for (place, content) in files {
            let place = format!("{NODES_DIRECTORY}/{node}{place}");
            match content {
                Content::Text(text) => tree.write(&place, text.clone().into_bytes()),
                Content::From(path) => tree.copy_from_host(path, &place)?,
                Content::Tar(path) => {
                    let archive = archive::unpack(path)?;
                    tree.copy_from_host(archive.path(), &place)?;
                    unpacked.push(archive);
                }
                Content::Size(size) => tree.write(&place, octets(size.0)),
            }
        }
    }
    Ok(unpacked)
}

/// Returns pseudo-random octets, which cannot be compressed. The octets of a shorter file are the beginning of
/// those of a longer file.
fn octets(number: u64) -> Vec<u8> {
    let mut rng = Seed(0).derive("file").rng();
    let mut octets: Vec<u8> = (0..number.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    octets.truncate(number as usize);
    octets
}
