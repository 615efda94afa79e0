//! The channel in User-Mode Linux: files of the run's directory on the host, by hostfs, and the end of the process.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

use super::contract::{HostChannel, encode};
use crate::guest::GuestError;
use crate::hostfs::{
    INTERRUPT_COUNT_FILE, JOB_FILE, MAIL_FILE, MESSAGE_COUNT_FILE, MESSAGE_FILE, READ_ONLY_LINK, STEP_FILE,
    TURN_COUNT_FILE,
};
use crate::mailbox::MailboxContent;

/// The mount point of the run's directory.
const RUN_DIRECTORY: &str = "/host";
/// The mount point of the directory with the root image, which is read-only.
const READ_ONLY_DIRECTORY: &str = "/lent";
/// The path of the root image, which contains the user's programs.
const ROOT_IMAGE_PATH: &str = "/lent/root";

/// Number of times that the guest has had its turn.
static TURNS: AtomicU64 = AtomicU64::new(0);
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
/// The channel of a guest in User-Mode Linux.
pub(super) struct Uml;

impl HostChannel for Uml {
    /// Mounts the run's directory. There is no snapshot to take, because the kernel boots anew for each job.
    fn report_boot(&self) -> Result<(), GuestError> {
        mount_hostfs(RUN_DIRECTORY, None)
    }

    fn receive_job(&self) -> Result<Vec<u8>, GuestError> {
        let path = Path::new(RUN_DIRECTORY).join(JOB_FILE);
        fs::read(&path).map_err(|e| format!("cannot read the job from {}: {e}", path.display()).into())
    }

    fn root_device(&self) -> Result<&'static str, GuestError> {
        fs::create_dir_all(READ_ONLY_DIRECTORY)?;
        mount_hostfs(READ_ONLY_DIRECTORY, Some(READ_ONLY_LINK))?;
        Ok(ROOT_IMAGE_PATH)
    }

    fn send(&self, message: &[u8]) -> Result<(), GuestError> {
        let written = fs::write(path_of(MESSAGE_FILE), message).and_then(|()| {
            let counter = File::options().write(true).open(path_of(MESSAGE_COUNT_FILE))?;
            counter.set_len(counter.metadata()?.len() + 1)
        });
        written.map_err(|e| format!("cannot write to {RUN_DIRECTORY}: {e}"))?;
        wait_for_turn()
    }

    fn next_step(&self) -> Result<Option<Vec<u8>>, GuestError> {
        wait_for_turn()?;
        // An interrupt that arrived after the previous step had ended is dropped.
        INTERRUPTS.store(fs::metadata(path_of(INTERRUPT_COUNT_FILE))?.len(), Ordering::Relaxed);
        Ok(Some(fs::read(path_of(STEP_FILE))?))
    }

    fn is_interrupted(&self) -> bool {
        let interrupts = fs::metadata(path_of(INTERRUPT_COUNT_FILE)).map_or(0, |file| file.len());
        INTERRUPTS.swap(interrupts, Ordering::Relaxed) < interrupts
    }

    fn send_result(&self, mail: &MailboxContent) -> Result<(), GuestError> {
        let (octets, path) = (encode(mail)?, Path::new(RUN_DIRECTORY).join(MAIL_FILE));
        // The end of the process leaves no time to write what is still in memory.
        let written =
            File::create(&path).and_then(|mut file| file.write_all(&octets).and_then(|()| file.sync_all()));
        written.map_err(|e| format!("cannot write to {}: {e}", path.display()).into())
    }

    fn shut_down(&self) -> Result<(), GuestError> {
        match reboot(RebootMode::RB_POWER_OFF)? {}
    }
}

/// Mounts the run's directory at `place`. If `link` names a link in that directory, mounts the link's target
/// instead.
fn mount_hostfs(place: &str, link: Option<&str>) -> Result<(), GuestError> {
    mount(Some("host"), place, Some("hostfs"), MsFlags::empty(), link)
        .map_err(|e| format!("cannot mount {place}: {e}").into())
}

fn path_of(name: &str) -> PathBuf {
    Path::new(RUN_DIRECTORY).join(name)
}

/// Polls a file of the host until it is the guest's turn. As long as the file exists, this takes no virtual time, and
/// no other thread of the guest runs. The host pauses the process meanwhile.
fn wait_for_turn() -> Result<(), GuestError> {
    let turn = TURNS.fetch_add(1, Ordering::Relaxed) + 1;
    while fs::metadata(path_of(TURN_COUNT_FILE))?.len() < turn {
        std::hint::spin_loop();
    }
    Ok(())
}
