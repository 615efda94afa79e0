//! Tests that an attacker who controls a guest's kernel, and so accesses the host's files by hostfs, reaches only the files of the run.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::Bootable;
use super::boot_directory::BootDirectory;
use crate::Image;
use crate::cache_lock::lock_shared;
use crate::engine::contract::Task;
use crate::engine::landlock_version;
use crate::initial_files::InitialFiles;
use crate::program::guest_files;

/// The script that runs as the first process: it mounts the whole host, and the run's directory.
const INIT_SCRIPT: &str = "#!/bin/sh
mount -t hostfs -o /../../../../../../../.. all /all && mount -t hostfs own /own || echo no mount
read secret </all/$OTHER/secret && echo stolen
echo $secret >>/all/$OTHER/secret && echo written
echo new >/all/$OTHER/new && echo created
echo mine >/own/mine && read mine </own/mine && echo own: $mine
";

/// Returns a bootable kernel whose guest boots from `place` and runs [`INIT_SCRIPT`]; `other` is a directory of another user.
fn bootable(image: &Image, place: &Path, other: &Path) -> Bootable {
    let init = INIT_SCRIPT.replace("$OTHER", &other.display().to_string());
    let mut initial_files = InitialFiles {
        directories: ["dev", "proc", "all", "own"].map(str::to_owned).to_vec(),
        files: vec![("init".to_owned(), init.into_bytes())],
    };
    for program in ["bin/sh", "bin/mount"] {
        initial_files.files.extend(guest_files(&Path::new("/").join(program), program).unwrap());
    }
    initial_files.write_to(place).unwrap();
    let boot_directory = BootDirectory { path: place.to_owned(), _lock: lock_shared(place).unwrap() };
    Bootable { image: image.clone(), boot_directory }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build) and a kernel with Landlock"]
fn a_guest_that_mounts_the_host_finds_its_own_directory_and_no_other() {
    let image = Image::find(Some("uml")).unwrap();
    assert!(landlock_version().is_some(), "this machine's kernel has no Landlock");
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("secret"), "secret\n").unwrap();
    let place = tempfile::tempdir().unwrap();
    let bootable = bootable(&image, place.path(), other.path());
    let task = Task { job: b"{}", root: None, is_interactive: false, limit: Duration::from_secs(60) };
    let work = bootable.make_run_directory(&task).unwrap();
    let mut process = bootable.boot(work.path(), &task).unwrap();
    process.wait(&mut || true).unwrap();
    let console = process.console();
    let output = console.full_text();
    assert!(output.contains("own: mine") && !output.contains("no mount"), "{output}");
    assert!(!["stolen", "written", "created"].iter().any(|word| output.contains(word)), "{output}");
    assert_eq!(output.matches("ermission denied").count(), 3, "{output}");
    assert!(!other.path().join("new").exists());
}
