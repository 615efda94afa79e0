//! User-Mode Linux's: files of the run's own directory on the host, by hostfs, and the end of the process.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

use super::Door;
use crate::engine::uml::{JOB, MAIL};
use crate::guest::Trouble;
use crate::mailbox::Mail;

/// Where the directory is in here.
const HOST: &str = "/host";
/// The image for the user's programs in it.
const ROOT: &str = "/host/root";

#[derive(Debug)]
pub(super) struct Uml;

impl Door for Uml {
    /// It boots for each job anew, and all that is left to do is to open the door.
    fn booted(&self) -> Result<(), Trouble> {
        mount(Some("host"), HOST, Some("hostfs"), MsFlags::empty(), None::<&str>)
            .map_err(|e| format!("cannot mount {HOST}: {e}").into())
    }

    fn job(&self) -> Result<Vec<u8>, Trouble> {
        let path = Path::new(HOST).join(JOB);
        fs::read(&path).map_err(|e| format!("cannot read the job from {}: {e}", path.display()).into())
    }

    fn root(&self) -> Result<&'static str, Trouble> {
        Ok(ROOT)
    }

    fn hand_over(&self, mail: &Mail) -> Result<(), Trouble> {
        let (octets, path) = (super::octets(mail)?, Path::new(HOST).join(MAIL));
        // The end of the process leaves no time for what is still in memory.
        let written =
            File::create(&path).and_then(|mut file| file.write_all(&octets).and_then(|()| file.sync_all()));
        written.map_err(|e| format!("cannot write to {}: {e}", path.display()).into())
    }

    fn leave(&self) -> Result<(), Trouble> {
        match reboot(RebootMode::RB_POWER_OFF)? {}
    }
}
