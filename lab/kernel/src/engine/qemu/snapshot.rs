//! Snapshots: booted guests saved as files, from which every run starts.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hol_base::Digester;
use serde_json::{Value, json};

use super::hardware::MachineHardware;
use super::installed_qemu::InstalledQemu;
use super::machine::{Machine, command_line};
use super::processor_speed::ProcessorSpeed;
use super::snapshot_path::{digest_with_length, path_as_text, quote_path, snapshot_directory};
use super::{lockstep, restore, self_test_result};
use crate::cache_lock::{lock_exclusive, prune};
use crate::engine::contract::Task;
use crate::engine::self_test::{self, HostDisturbance};
use crate::image::Image;
use crate::initial_files::initramfs;
use crate::mailbox::MailboxContent;
use crate::{KernelError, StepExactness, scratch};

/// The longest permitted duration of a boot, in wall-clock time; usually a boot takes a few seconds.
const MAX_BOOT_TIME: Duration = Duration::from_secs(180);
/// The longest wait for a snapshot's file after QEMU has reported that the snapshot is complete.
const MAX_WRITING_TIME: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of snapshots in the cache.
const MAX_ENTRIES: usize = 6;

/// A snapshot: a saved guest that waits for a job.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) state: PathBuf,
}

impl Snapshot {
    /// Returns the snapshot of `image` with the program at `path`, on the hardware that the task `wanted` needs. If
    /// there is no such snapshot yet, boots a guest and saves it.
    pub(super) fn find_or_create(
        image: &Image,
        path: &Path,
        wanted: &Task<'_>,
        qemu: &InstalledQemu,
    ) -> Result<Self, KernelError> {
        let hardware = MachineHardware::of(wanted);
        let kernel = image.file();
        let octets = image.read_octets()?;
        let initramfs = initramfs(image, &[("init", path)])?;
        let settings = [
            hardware.identity(),
            command_line(hardware),
            qemu.file_version.clone(),
            ProcessorSpeed::ONE.clock_arguments().join(" "),
        ]
        .join("\n");
        // The library is part of the name, because it changes the time at which the boot ends.
        let library = if qemu.stepping == StepExactness::Exact { lockstep::LIBRARY } else { &[] };
        let mut digester = Digester::new();
        let parts = [&octets, &initramfs, settings.as_bytes(), library];
        parts.into_iter().for_each(|part| digest_with_length(&mut digester, part));
        let snapshot = Self { state: snapshot_directory().join(format!("{}.state", digester.finish())) };
        // One process boots, the others wait for it and use the same snapshot.
        let _lock = lock_exclusive(&snapshot_directory())?;
        if !snapshot.state.is_file() {
            snapshot.make(&kernel, &initramfs, wanted, qemu)?;
        }
        Ok(snapshot)
    }

    /// Boots the guest, lets it run until it pauses the machine, and saves the state of the machine.
    fn make(
        &self,
        kernel: &Path,
        initramfs: &[u8],
        wanted: &Task<'_>,
        qemu: &InstalledQemu,
    ) -> Result<(), KernelError> {
        let snapshot_directory = snapshot_directory();
        let work = scratch::create_directory(&snapshot_directory, "boot")?;
        let initrd = work.path().join("initramfs");
        fs::write(&initrd, initramfs).map_err(|e| KernelError::file("write", &initrd, e))?;
        let fresh = work.path().join("state");
        let line = command_line(MachineHardware::of(wanted));
        let arguments =
            ["-S", "-kernel", &path_as_text(kernel)?, "-initrd", &path_as_text(&initrd)?, "-append", &line];
        let task = Task { job: &[], limit: MAX_BOOT_TIME, ..*wanted };
        let mut machine = Machine::start(
            &arguments.map(str::to_owned),
            &[kernel],
            &task,
            work.path(),
            (qemu, ProcessorSpeed::ONE),
            HostDisturbance::None,
        )?;
        machine.run_until_paused("booting", &mut || true)?;
        restore::set_capabilities(&mut machine, &task)?;
        machine.execute("migrate-set-parameters", &json!({ "max-bandwidth": 1_u64 << 40 }))?;
        let part = work.path().join("part");
        let (part, whole) = (quote_path(&part)?, quote_path(&fresh)?);
        // The command renames the file when it is complete, which is after QEMU has finished.
        let uri = format!("exec:cat > {part} && mv {part} {whole}");
        machine.execute("migrate", &json!({ "uri": uri }))?;
        let mut patience = MAX_WRITING_TIME;
        while !fresh.exists() {
            let status = machine.execute("query-migrate", &Value::Null)?;
            match status["status"].as_str() {
                Some("completed") if !patience.is_zero() => patience = patience.saturating_sub(POLL_INTERVAL),
                Some(end @ ("completed" | "failed" | "cancelled")) => {
                    let cause = status["error-desc"].as_str().unwrap_or("the file is not complete");
                    let ended =
                        io::Error::other(format!("QEMU's migration {end}: {cause}; is the disk full?"));
                    return Err(KernelError::file(
                        "write a snapshot of 100 MB to",
                        &snapshot_directory,
                        ended,
                    ));
                }
                _ => {}
            }
            std::thread::park_timeout(POLL_INTERVAL);
        }
        drop(machine);
        if qemu.stepping == StepExactness::Exact {
            let answer = |job: &[u8], host| run_self_test(&fresh, &Task { job, ..task }, qemu, host);
            self_test_result::record(
                qemu,
                qemu.processor_speed(task.root.is_some()),
                self_test::runs_differ(answer)?,
            )?;
        }
        fs::rename(&fresh, &self.state).map_err(|e| KernelError::file("create", &self.state, e))?;
        prune(&snapshot_directory, MAX_ENTRIES, |path| path.extension().is_some_and(|end| end == "state"));
        Ok(())
    }

    /// Returns the version of the snapshot's file, which changes when another process replaces the file.
    pub(super) fn file_version(&self) -> Option<FileVersion> {
        let file = fs::metadata(&self.state).ok()?;
        Some((file.ino(), file.mtime(), file.mtime_nsec()))
    }

    /// Removes the snapshot, unless its file no longer has this version because another process has replaced it.
    pub(super) fn discard(&self, file_version: Option<FileVersion>) -> Result<(), KernelError> {
        let _lock = lock_exclusive(&snapshot_directory())?;
        if file_version.is_some() && self.file_version() == file_version {
            fs::remove_file(&self.state).map_err(|e| KernelError::file("remove", &self.state, e))?;
        }
        Ok(())
    }
}

/// Runs a task in a machine that is restored from `state`; returns the content of its mailbox.
fn run_self_test(
    state: &Path,
    task: &Task<'_>,
    qemu: &InstalledQemu,
    host: HostDisturbance,
) -> Result<MailboxContent, KernelError> {
    let work = scratch::create_directory(&std::env::temp_dir(), "hol-run")?;
    let mut machine = restore::restore_machine(state, task, work.path(), qemu, host)?;
    restore::run_to_end(&mut machine, &mut || true)
}

/// The version of a file: its inode and its modification time (s, ns), which distinguish it from a later file at
/// the same path.
pub(super) type FileVersion = (u64, i64, i64);
