//! User-Mode Linux's: files of the run's own directory on the host, by hostfs, and the end of the process.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

use super::contract::{Door, octets};
use crate::guest::Trouble;
use crate::hostfs::{GIVEN, INTERRUPT, JOB, LETTER, MAIL, SAID, STEP, TURN};
use crate::mailbox::Mail;

/// Where the directory is in here.
const HOST: &str = "/host";
/// What we may only read.
const LENT: &str = "/lent";
/// The image for the user's programs in it.
const IMAGE: &str = "/lent/root";

/// How often it has been our turn, and how often the host has interrupted us.
static TURNS: AtomicU64 = AtomicU64::new(0);
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(super) struct Uml;

impl Door for Uml {
    /// It boots for each job anew, and all that is left to do is to open the door.
    fn booted(&self) -> Result<(), Trouble> {
        open(HOST, None)
    }

    fn job(&self) -> Result<Vec<u8>, Trouble> {
        let path = Path::new(HOST).join(JOB);
        fs::read(&path).map_err(|e| format!("cannot read the job from {}: {e}", path.display()).into())
    }

    fn root(&self) -> Result<&'static str, Trouble> {
        fs::create_dir_all(LENT)?;
        open(LENT, Some(GIVEN))?;
        Ok(IMAGE)
    }

    /// The host has heard it when this returns.
    fn tell(&self, letter: &[u8]) -> Result<(), Trouble> {
        let told = fs::write(at(LETTER), letter).and_then(|()| {
            let said = File::options().write(true).open(at(SAID))?;
            said.set_len(said.metadata()?.len() + 1)
        });
        told.map_err(|e| format!("cannot write to {HOST}: {e}"))?;
        stand_still()
    }

    fn next(&self) -> Result<Option<Vec<u8>>, Trouble> {
        stand_still()?;
        // What comes too late for a step is for none.
        INTERRUPTS.store(fs::metadata(at(INTERRUPT))?.len(), Ordering::Relaxed);
        Ok(Some(fs::read(at(STEP))?))
    }

    fn is_interrupted(&self) -> bool {
        let interrupts = fs::metadata(at(INTERRUPT)).map_or(0, |file| file.len());
        INTERRUPTS.swap(interrupts, Ordering::Relaxed) < interrupts
    }

    fn hand_over(&self, mail: &Mail) -> Result<(), Trouble> {
        let (octets, path) = (octets(mail)?, Path::new(HOST).join(MAIL));
        // The end of the process leaves no time for what is still in memory.
        let written =
            File::create(&path).and_then(|mut file| file.write_all(&octets).and_then(|()| file.sync_all()));
        written.map_err(|e| format!("cannot write to {}: {e}", path.display()).into())
    }

    fn leave(&self) -> Result<(), Trouble> {
        match reboot(RebootMode::RB_POWER_OFF)? {}
    }
}

/// Mounts the run's directory, or what a link in it leads to.
fn open(place: &str, link: Option<&str>) -> Result<(), Trouble> {
    mount(Some("host"), place, Some("hostfs"), MsFlags::empty(), link)
        .map_err(|e| format!("cannot mount {place}: {e}").into())
}

fn at(name: &str) -> PathBuf {
    Path::new(HOST).join(name)
}

/// Looks at the host again and again until it is our turn. That takes none of the kernel's time, as long as the file is there,
/// and keeps everybody else in here from having any; the host stops the whole process meanwhile.
fn stand_still() -> Result<(), Trouble> {
    let turn = TURNS.fetch_add(1, Ordering::Relaxed) + 1;
    while fs::metadata(at(TURN))?.len() < turn {
        std::hint::spin_loop();
    }
    Ok(())
}
