//! The Landlock sandbox of an engine's process, which also confines a guest that escapes. The process may run
//! the programs of the system, read the files that [`AccessRules`] names, and write to its own directories.
//! It cannot reach other processes. landlock(7)

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, RestrictSelf, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags, path_beneath_rules,
};
use nix::errno::Errno;

/// The version of Landlock whose access rights are all denied by default. An older kernel ignores the rights that it
/// does not know.
const LANDLOCK_ABI: ABI = ABI::V10;

/// The directories of programs and their libraries.
const SYSTEM_DIRECTORIES: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/nix/store", "/gnu/store"];

/// A device that every process may use.
const NULL_DEVICE: &str = "/dev/null";

/// The files that a confined process may access, in addition to the programs of the system.
#[derive(Debug, Default)]
pub(super) struct AccessRules {
    /// Files that the process may execute.
    pub(super) programs: Vec<PathBuf>,
    /// Files that the process may read, and directories that it may read with all of their contents.
    pub(super) reads: Vec<PathBuf>,
    /// Directories in which the process may write.
    pub(super) writable: Vec<PathBuf>,
}

/// Confines the process of `command`, and every process that it starts, by the access rules.
#[expect(
    unsafe_code,
    reason = "between fork and exec only system calls are made, which are async-signal-safe"
)]
pub(super) fn confine(command: &mut Command, rules: &AccessRules) -> io::Result<()> {
    let mut rules = Some(build_ruleset(rules).map_err(io::Error::other)?);
    let restrict = move || {
        let rules = rules.take().ok_or(Errno::EPERM)?;
        rules.restrict_self().map(drop).map_err(|_| Errno::last().into())
    };
    // SAFETY: the closure allocates nothing and calls nothing but prctl(2), landlock_restrict_self(2) and close(2).
    unsafe {
        command.pre_exec(restrict);
    }
    Ok(())
}

fn build_ruleset(rules: &AccessRules) -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM_DIRECTORIES, AccessFs::from_read(LANDLOCK_ABI)))?
        .add_rules(path_beneath_rules(&rules.programs, AccessFs::from_read(LANDLOCK_ABI)))?
        .add_rules(path_beneath_rules(&rules.reads, AccessFs::ReadFile | AccessFs::ReadDir))?
        .add_rules(path_beneath_rules([NULL_DEVICE], AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(&rules.writable, own_directory_access()))
}

/// Returns the access rights of a process in its own directories. The process may not create links or pipes there: hol
/// also accesses these directories, and a link could lead it elsewhere.
fn own_directory_access() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{
        ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | MakeSock | RemoveFile | RemoveDir
    })
}

/// Returns the version of Landlock, which confines engines on this host; `None` if the host has no Landlock.
pub fn landlock_version() -> Option<i32> {
    // This call restricts nothing; its result contains the version that the kernel supports.
    let asked = RestrictSelf::default().no_new_privs(false).apply();
    match asked.ok()?.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Some(kernel_abi.unwrap_or(effective_abi as i32))
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;

    use tempfile::TempDir;

    use super::*;

    /// Shell commands that an escaped guest may try. `$other` is a directory of another user with a `secret` in it, `$shared` a file in
    /// memory, `$port` a port on which this process listens.
    const ATTEMPTS: [&str; 16] = [
        "cat $other/secret",
        "ls $other",
        "cat /etc/passwd",
        "cat /proc/$PPID/environ",
        "echo more >>$other/secret",
        "echo new >$other/new",
        "mkdir $other/directory",
        "rm $other/secret",
        "mv $other/secret stolen",
        "ln $other/secret link",
        "ln -s $other/secret link",
        "mkfifo pipe",
        "cat $shared",
        "readlink -v /proc/$PPID/exe",
        "kill -0 $PPID",
        "exec 3<>/dev/tcp/127.0.0.1/$port",
    ];

    /// Shell commands that must succeed in the sandbox.
    const PERMITTED: [&str; 4] = [
        "echo mine >file && cat file",
        "mkdir a && echo >file && mv file other && rm -r other a",
        "cat $given/data",
        "ls /usr",
    ];

    /// The files of an attempt: the sandboxed process's own directory, that of another user, and a readable one.
    struct Fixture {
        own: TempDir,
        other: TempDir,
        given: TempDir,
        shared: tempfile::NamedTempFile,
        listener: TcpListener,
    }

    impl Fixture {
        fn new() -> Self {
            let [own, other, given] = [(); 3].map(|()| tempfile::tempdir().unwrap());
            fs::write(other.path().join("secret"), "secret").unwrap();
            fs::write(given.path().join("data"), "data").unwrap();
            Self {
                shared: tempfile::NamedTempFile::new_in("/dev/shm").unwrap(),
                listener: TcpListener::bind("127.0.0.1:0").unwrap(),
                own,
                other,
                given,
            }
        }

        /// Returns the shell's message if a script fails in the sandbox (or outside, unless `is_confined`); `None` if it succeeds.
        fn problem(&self, script: &str, is_confined: bool) -> Option<String> {
            let mut shell = Command::new("bash");
            shell.args(["-c", script]).current_dir(self.own.path()).env("LC_ALL", "C");
            shell.env("other", self.other.path()).env("given", self.given.path());
            shell.env("shared", self.shared.path());
            shell.env("port", self.listener.local_addr().unwrap().port().to_string());
            if is_confined {
                let own = |directory: &TempDir| vec![directory.path().to_owned()];
                let rules = AccessRules {
                    writable: own(&self.own),
                    reads: own(&self.given),
                    ..AccessRules::default()
                };
                confine(&mut shell, &rules).unwrap();
            }
            let output = shell.output().unwrap();
            let error_output = String::from_utf8_lossy(&output.stderr).into_owned();
            (!output.status.success()).then_some(error_output)
        }
    }

    #[test]
    #[ignore = "needs /dev/shm and Linux 6.12 with Landlock"]
    fn an_escaped_guest_is_confined_to_its_directory() {
        let version = landlock_version().unwrap_or(0);
        assert!(version >= 6, "version {version} of Landlock cannot restrict files, TCP and signals");
        for attempt in ATTEMPTS {
            assert_eq!(
                Fixture::new().problem(attempt, false),
                None,
                "this must succeed without the sandbox: {attempt}"
            );
            let message =
                Fixture::new().problem(attempt, true).unwrap_or_else(|| panic!("escaped: {attempt}"));
            // Creating a hard link in another directory may be refused for another reason: link(2), EXDEV.
            let refusals = ["Permission denied", "Operation not permitted", "Invalid cross-device link"];
            let is_refused = refusals.iter().any(|refusal| message.contains(refusal));
            assert!(is_refused, "{attempt}: {message}");
        }
        for need in PERMITTED {
            assert_eq!(Fixture::new().problem(need, true), None, "{need}");
        }
    }
}
