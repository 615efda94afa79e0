//! Transfers bulk data over usrsctp, the SCTP of FreeBSD, in a separate program. The benchmark omits usrsctp if the
//! program cannot be compiled.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::Bulk;

pub struct Program {
    directory: TempDir,
}

impl Program {
    const NAME: &str = "usrsctp";

    pub fn compile() -> Option<Self> {
        let program = Self { directory: tempfile::tempdir().unwrap() };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/bulk/usrsctp.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-o"]).args([&program.directory.path().join(Self::NAME), &source]);
        compiler.args(["-lusrsctp", "-lpthread"]);
        if compiler.status().is_ok_and(|status| status.success()) {
            return Some(program);
        }
        eprintln!("usrsctp is left out: apt-get install libusrsctp-dev gcc");
        None
    }

    /// Runs the transfer in the usrsctp program; returns the processor time of that program in ns.
    pub fn transfer(&self, bulk: Bulk) -> u64 {
        let Bulk { messages, octets } = bulk;
        let words =
            [messages, octets as u64, Bulk::MTU as u64, Bulk::DELAY.as_nanos() / 1000, Bulk::BUFFER as u64];
        let program = self.directory.path().join(Self::NAME);
        let said = Command::new(program).args(words.map(|word| word.to_string())).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().trim().parse().unwrap()
    }
}
