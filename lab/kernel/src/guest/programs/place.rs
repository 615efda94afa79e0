//! What a program sees of its node: a file system that it may change and nobody else has, its network, its name.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::sethostname;

use super::first::Processes;
use crate::guest::Trouble;
use crate::root::{NODES, SHARED};

/// Where the root is mounted.
const LOWER: &str = "/lower";
/// What the nodes change is here.
pub(super) const PLACES: &str = "/places";

/// A network namespace, to be entered.
pub(super) type Network = File;

/// The namespaces of a node, and its file system in the first of them.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) network: Network,
    pub(super) mounts: File,
    pub(super) names: File,
    pub(super) messages: File,
    pub(super) processes: Processes,
    pub(super) root: PathBuf,
}

/// Mounts the root of all nodes, which is at `source`, and makes room for what they change.
pub(super) fn open_root(source: &str) -> Result<(), Trouble> {
    fs::create_dir_all(LOWER)?;
    put(Some(source), LOWER, "erofs", MsFlags::MS_RDONLY, None)?;
    fs::create_dir_all(PLACES)?;
    put(Some("places"), PLACES, "tmpfs", MsFlags::empty(), Some("size=60%"))
}

impl Place {
    /// That of a node, in its network, with `hosts` as its /etc/hosts.
    pub(super) fn make(node: &str, network: &Network, hosts: &str) -> Result<Self, Trouble> {
        // A thread that ends afterwards: it leaves the mounts of all others for new ones.
        thread::scope(|scope| {
            let made = scope.spawn(|| furnish(node, network, hosts).map_err(|problem| problem.to_string()));
            let ([mounts, names, messages], processes) =
                made.join().map_err(|_| "a place was not made")??;
            Ok(Self { network: network.try_clone()?, mounts, names, messages, processes, root: root(node) })
        })
    }

    /// Its file system, as seen from outside.
    pub(super) fn files(&self) -> PathBuf {
        self.processes.path(&self.root)
    }
}

fn root(node: &str) -> PathBuf {
    Path::new(PLACES).join(node).join("root")
}

/// Moves this thread to namespaces of the node's own, and mounts its file system there; returns the namespaces.
fn furnish(node: &str, network: &Network, hosts: &str) -> Result<([File; 3], Processes), Trouble> {
    setns(network, CloneFlags::CLONE_NEWNET)?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWIPC)?;
    sethostname(node)?;
    let own = |name: &str| {
        let path = Path::new(PLACES).join(node).join(name);
        fs::create_dir_all(&path).map(|()| path.display().to_string())
    };
    let (changes, work, root) = (own("changes")?, own("work")?, own("root")?);
    let mut layers = vec![format!("{LOWER}/{NODES}/{node}"), format!("{LOWER}/{SHARED}")];
    layers.retain(|layer| Path::new(layer).is_dir());
    let options = format!("lowerdir={},upperdir={changes},workdir={work}", layers.join(":"));
    put(Some("node"), &root, "overlay", MsFlags::empty(), Some(&options))?;
    for name in ["dev", "etc", "out", "proc", "run", "sys", "tmp"] {
        fs::create_dir_all(format!("{root}/{name}"))?;
    }
    put(Some("sys"), &format!("{root}/sys"), "sysfs", MsFlags::empty(), None)?;
    for (name, options) in [("dev", "mode=755"), ("dev/shm", "mode=1777"), ("run", "mode=755")] {
        let place = format!("{root}/{name}");
        fs::create_dir_all(&place)?;
        put(Some(name), &place, "tmpfs", MsFlags::empty(), Some(options))?;
    }
    devices(&format!("{root}/dev"))?;
    fs::create_dir_all(format!("{root}/run/lock"))?;
    // What the root has there may be a link to elsewhere.
    for (name, text) in [("hosts", hosts), ("hostname", node), ("resolv.conf", "")] {
        let path = format!("{root}/etc/{name}");
        let _ = fs::remove_file(&path);
        fs::write(&path, text)?;
    }
    // From here on nobody sees what the engine has for a door.
    for door in ["/host", "/lent"] {
        let _ = umount2(door, MntFlags::MNT_DETACH);
    }
    let namespaces = [open("mnt")?, open("uts")?, open("ipc")?];
    Ok((namespaces, Processes::begin(&format!("{root}/proc"))?))
}

/// The devices that harm nobody. Documentation/admin-guide/devices.txt
fn devices(place: &str) -> Result<(), Trouble> {
    for (name, major, minor) in
        [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)]
    {
        let path = format!("{place}/{name}");
        mknod(path.as_str(), SFlag::S_IFCHR, Mode::empty(), makedev(major, minor))?;
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, format!("{place}/{name}"))?;
    }
    fs::create_dir_all(format!("{place}/pts"))?;
    put(Some("pts"), &format!("{place}/pts"), "devpts", MsFlags::empty(), Some("newinstance,ptmxmode=666"))
}

fn open(namespace: &str) -> Result<File, Trouble> {
    Ok(OpenOptions::new().read(true).open(format!("/proc/thread-self/ns/{namespace}"))?)
}

/// Mounts something, and says what if it cannot.
pub(super) fn put(
    source: Option<&str>,
    target: &str,
    kind: &str,
    flags: MsFlags,
    options: Option<&str>,
) -> Result<(), Trouble> {
    mount(source, target, Some(kind), flags, options)
        .map_err(|e| format!("cannot mount {target} ({kind}): {e}").into())
}
