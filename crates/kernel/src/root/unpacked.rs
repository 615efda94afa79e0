//! Archives: a file system as one, or a container's image of several, the upper ones over the lower.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::SHARED;
use super::tree::Tree;
use crate::image::cache;
use crate::{KernelError, scratch};

/// What tells that an archive is a container's image. Docker Image Specification 1.2, "Combined Image JSON + Filesystem
/// Changeset Format".
const MANIFEST: &str = "manifest.json";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Manifest {
    layers: Vec<PathBuf>,
}

/// Brings what the archive at `path` holds. It is unpacked in the cache, for the tree tells where its files are.
pub(super) fn bring(tree: &mut Tree, path: &Path) -> Result<(), KernelError> {
    let place = cache().join("unpacked");
    // Kept until the process ends: the image is written from it.
    let kept = scratch::directory(&place, "archive")?.keep();
    unpack(path, &kept)?;
    let Ok(manifest) = fs::read(kept.join(MANIFEST)) else { return tree.take(&kept, SHARED) };
    let said = |problem: serde_json::Error| KernelError::image(path, format!("{MANIFEST}: {problem}"));
    let images: Vec<Manifest> = serde_json::from_slice(&manifest).map_err(said)?;
    let layers = images.into_iter().next().map(|image| image.layers).unwrap_or_default();
    for (number, layer) in layers.iter().enumerate() {
        let unpacked = kept.join(format!("layer-{number}"));
        fs::create_dir_all(&unpacked).map_err(|e| KernelError::file("create", &unpacked, e))?;
        unpack(&kept.join(layer), &unpacked)?;
        tree.take(&unpacked, SHARED)?;
        apply_whiteouts(tree);
    }
    Ok(())
}

/// What an upper layer has under `.wh.NAME` hides NAME of the lower ones. OCI Image Layer Filesystem Changeset, "Whiteouts".
fn apply_whiteouts(tree: &mut Tree) {
    let hidden = |path: &Path| Some(path.file_name()?.to_str()?.strip_prefix(".wh.")?.to_owned());
    let marks: Vec<(PathBuf, String)> =
        tree.entries().filter_map(|(path, _)| Some((path.to_owned(), hidden(path)?))).collect();
    for (mark, name) in marks {
        tree.remove(&mark.with_file_name(name));
        tree.remove(&mark);
    }
}

fn unpack(archive: &Path, into: &Path) -> Result<(), KernelError> {
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(into).args(["--no-same-owner", "--exclude=dev/*"]);
    let missing = |_| KernelError::ProgramMissing { program: "tar".to_owned(), package: "tar" };
    let done = tar.env("LC_ALL", "C").output().map_err(missing)?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(KernelError::image(archive, format!("not a directory, nor an archive that tar reads: {said}")))
}
