//! Reads archives: a file system, or a container image of several layers.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tempfile::TempDir;

use super::tree::{SHARED_DIRECTORY, Tree};
use crate::cache::cache_directory;
use crate::{KernelError, scratch};

/// The file by which a container image is recognised. Docker Image Specification 1.2, "Combined Image JSON + Filesystem Changeset Format".
const MANIFEST_FILE: &str = "manifest.json";
/// The prefix of whiteouts. A file with this prefix and NAME hides NAME in lower layers; an opaque whiteout hides
/// everything in its directory. OCI Image Layer Filesystem Changeset, "Whiteouts".
const WHITEOUT_PREFIX: &str = ".wh.";
const OPAQUE_WHITEOUT: &str = ".wh..wh..opq";

/// The manifest of a container image. It lists the layers, the lowest first.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Manifest {
    layers: Vec<PathBuf>,
}

/// Adds the contents of the archive at `path` to the tree. The tree refers to files in the returned directories,
/// which must therefore exist until the image is written.
pub(super) fn add_archive(tree: &mut Tree, path: &Path) -> Result<Vec<TempDir>, KernelError> {
    let whole = unpack(path)?;
    let Ok(manifest) = fs::read(whole.path().join(MANIFEST_FILE)) else {
        tree.copy_from_host(whole.path(), SHARED_DIRECTORY)?;
        return Ok(vec![whole]);
    };
    let manifest_error =
        |problem: serde_json::Error| KernelError::image(path, format!("{MANIFEST_FILE}: {problem}"));
    let images: Vec<Manifest> = serde_json::from_slice(&manifest).map_err(manifest_error)?;
    let layers = images.into_iter().next().map(|image| image.layers).unwrap_or_default();
    let mut unpacked = Vec::new();
    for layer in layers {
        let archive = path_within(whole.path(), &layer).ok_or_else(|| {
            KernelError::image(
                path,
                format!("{MANIFEST_FILE} names {}, which the archive does not contain", layer.display()),
            )
        })?;
        let layer = unpack(&archive)?;
        hide(tree, layer.path(), Path::new("")).map_err(|e| KernelError::file("read", path, e))?;
        tree.copy_from_host(layer.path(), SHARED_DIRECTORY)?;
        unpacked.push(layer);
    }
    Ok(unpacked)
}

/// Returns the path of `name` in `directory`. Returns `None` if it does not exist, or if it leads out of the
/// directory, for example through a symbolic link.
fn path_within(directory: &Path, name: &Path) -> Option<PathBuf> {
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    let path = fs::canonicalize(directory.join(name)).ok().filter(|_| is_plain)?;
    path.starts_with(fs::canonicalize(directory).ok()?).then_some(path)
}

/// Removes from the tree what the whiteouts of a layer hide, and removes the whiteouts from the layer.
fn hide(tree: &mut Tree, layer: &Path, below: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(layer.join(below))? {
        let entry = entry?;
        let (name, place) = (entry.file_name(), Path::new(SHARED_DIRECTORY).join(below));
        let Some(name) = name.to_str() else { continue };
        match name.strip_prefix(WHITEOUT_PREFIX) {
            Some(_) if name == OPAQUE_WHITEOUT => tree.clear(&place),
            Some(hidden) => tree.remove(&place.join(hidden)),
            None if entry.file_type()?.is_dir() => hide(tree, layer, &below.join(name))?,
            None => {}
        }
        if name.starts_with(WHITEOUT_PREFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Unpacks an archive into a temporary directory. Devices are left out, because each node has its own.
pub(super) fn unpack(archive: &Path) -> Result<TempDir, KernelError> {
    let into = scratch::create_directory(&cache_directory().join("unpacked"), "archive")?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(into.path()).arg("--no-same-owner");
    tar.args(["--anchored", "--exclude=dev/*", "--exclude=./dev/*"]);
    let missing = |_| KernelError::ProgramMissing { program: "tar".to_owned(), package: "tar" };
    let done = tar.env("LC_ALL", "C").output().map_err(missing)?;
    if done.status.success() {
        return Ok(into);
    }
    let error_output = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(KernelError::image(
        archive,
        format!("this is neither a directory nor an archive that tar can read: {error_output}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::Entry;

    fn write(directory: &Path, name: &str) {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }

    #[test]
    fn whiteouts_hide_lower_layers_but_not_their_own() {
        let [lower, upper] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        ["etc/old", "etc/kept", "srv/a", "srv/b/c"].iter().for_each(|name| write(lower.path(), name));
        ["etc/.wh.old", "srv/.wh..wh..opq", "srv/new"].iter().for_each(|name| write(upper.path(), name));
        let mut tree = Tree::default();
        tree.copy_from_host(lower.path(), SHARED_DIRECTORY).unwrap();
        hide(&mut tree, upper.path(), Path::new("")).unwrap();
        tree.copy_from_host(upper.path(), SHARED_DIRECTORY).unwrap();
        let files = tree.entries().filter(|(_, entry)| matches!(entry, Entry::Copy { .. }));
        let files: Vec<_> = files.map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(files, ["root/etc/kept", "root/srv/new"]);
    }

    #[test]
    fn a_layer_must_be_in_the_archive() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "layer/layer.tar");
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
        let within = |name: &str| path_within(directory.path(), Path::new(name)).is_some();
        assert!(within("layer/layer.tar"));
        assert!(!within("link") && !within("/etc/passwd") && !within("layer/../../x") && !within("none"));
    }
}
