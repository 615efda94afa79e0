//! The container of a node: its own writable file system and its namespaces. namespaces(7)

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::sethostname;

use super::init_process::PidNamespace;
use crate::guest::GuestError;
use crate::root::{NODES_DIRECTORY, SHARED_DIRECTORY};

/// The mount point of the read-only root file system that all nodes share.
const ROOT_DIRECTORY: &str = "/lower";
/// The mount point of the file system that contains the changes that nodes make to their files.
pub(super) const CONTAINER_DIRECTORY: &str = "/places";

/// A network namespace, as an open file for setns(2).
pub(super) type NetworkNamespace = File;

/// The namespaces of a node, and the path of its root file system in its mount namespace.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) network_namespace: NetworkNamespace,
    pub(super) mount_namespace: File,
    pub(super) uts_namespace: File,
    pub(super) ipc_namespace: File,
    pub(super) pid_namespace: PidNamespace,
    pub(super) root: PathBuf,
}

/// Mounts the root file system of all nodes from `source`, and a writable file system for their changes.
pub(super) fn mount_root(source: &str) -> Result<(), GuestError> {
    fs::create_dir_all(ROOT_DIRECTORY)?;
    mount_at(Some(source), ROOT_DIRECTORY, "erofs", MsFlags::MS_RDONLY, None)?;
    fs::create_dir_all(CONTAINER_DIRECTORY)?;
    mount_at(Some("places"), CONTAINER_DIRECTORY, "tmpfs", MsFlags::empty(), Some("size=60%"))
}

impl Container {
    /// Creates the container of a node in its network, with `hosts` as its /etc/hosts.
    pub(super) fn make(node: &str, network: &NetworkNamespace, hosts: &str) -> Result<Self, GuestError> {
        // The work is done in a thread that ends afterwards, so that the other threads keep their mount namespace.
        thread::scope(|scope| {
            let made = scope.spawn(|| set_up(node, network, hosts).map_err(|problem| problem.to_string()));
            let ([mount_namespace, uts_namespace, ipc_namespace], pid_namespace) =
                made.join().map_err(|_| "the thread that creates a container panicked")??;
            Ok(Self {
                network_namespace: network.try_clone()?,
                mount_namespace,
                uts_namespace,
                ipc_namespace,
                pid_namespace,
                root: root(node),
            })
        })
    }

    /// Returns the path of the container's file system, as seen from outside.
    pub(super) fn root_path(&self) -> PathBuf {
        self.pid_namespace.path(&self.root)
    }
}

fn root(node: &str) -> PathBuf {
    Path::new(CONTAINER_DIRECTORY).join(node).join("root")
}

/// Moves this thread to new namespaces for the node, and mounts the node's file system there. Returns the namespaces.
fn set_up(
    node: &str,
    network: &NetworkNamespace,
    hosts: &str,
) -> Result<([File; 3], PidNamespace), GuestError> {
    setns(network, CloneFlags::CLONE_NEWNET)?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWIPC)?;
    sethostname(node)?;
    let own = |name: &str| {
        let path = Path::new(CONTAINER_DIRECTORY).join(node).join(name);
        fs::create_dir_all(&path).map(|()| path.display().to_string())
    };
    let (changes, work, root) = (own("changes")?, own("work")?, own("root")?);
    let mut layers = vec![
        format!("{ROOT_DIRECTORY}/{NODES_DIRECTORY}/{node}"),
        format!("{ROOT_DIRECTORY}/{SHARED_DIRECTORY}"),
    ];
    layers.retain(|layer| Path::new(layer).is_dir());
    let options = format!("lowerdir={},upperdir={changes},workdir={work}", layers.join(":"));
    mount_at(Some("node"), &root, "overlay", MsFlags::empty(), Some(&options))?;
    for name in ["dev", "etc", "out", "proc", "run", "sys", "tmp"] {
        fs::create_dir_all(format!("{root}/{name}"))?;
    }
    mount_at(Some("sys"), &format!("{root}/sys"), "sysfs", MsFlags::empty(), None)?;
    for (name, options) in [("dev", "mode=755"), ("dev/shm", "mode=1777"), ("run", "mode=755")] {
        let path = format!("{root}/{name}");
        fs::create_dir_all(&path)?;
        mount_at(Some(name), &path, "tmpfs", MsFlags::empty(), Some(options))?;
    }
    create_devices(&format!("{root}/dev"))?;
    fs::create_dir_all(format!("{root}/run/lock"))?;
    // In the root, this path may be a link to another directory.
    for (name, text) in [("hosts", hosts), ("hostname", node), ("resolv.conf", "")] {
        let path = format!("{root}/etc/{name}");
        let _ = fs::remove_file(&path);
        fs::write(&path, text)?;
    }
    // Unmounted, so that no program sees the engine's channel to the host.
    for mount_point in ["/host", "/lent"] {
        let _ = umount2(mount_point, MntFlags::MNT_DETACH);
    }
    let namespaces = [open("mnt")?, open("uts")?, open("ipc")?];
    Ok((namespaces, PidNamespace::start(&format!("{root}/proc"))?))
}

/// Creates the devices that any program may use. Documentation/admin-guide/devices.txt
fn create_devices(directory: &str) -> Result<(), GuestError> {
    fs::create_dir_all(format!("{directory}/net"))?;
    for (name, major, minor) in [
        ("null", 1, 3),
        ("zero", 1, 5),
        ("full", 1, 7),
        ("random", 1, 8),
        ("urandom", 1, 9),
        ("tty", 5, 0),
        ("net/tun", 10, 200),
    ] {
        let path = format!("{directory}/{name}");
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
        symlink(target, format!("{directory}/{name}"))?;
    }
    fs::create_dir_all(format!("{directory}/pts"))?;
    mount_at(
        Some("pts"),
        &format!("{directory}/pts"),
        "devpts",
        MsFlags::empty(),
        Some("newinstance,ptmxmode=666"),
    )
}

fn open(namespace: &str) -> Result<File, GuestError> {
    Ok(OpenOptions::new().read(true).open(format!("/proc/thread-self/ns/{namespace}"))?)
}

/// Mounts a file system; an error contains the mount point.
pub(super) fn mount_at(
    source: Option<&str>,
    target: &str,
    kind: &str,
    flags: MsFlags,
    options: Option<&str>,
) -> Result<(), GuestError> {
    mount(source, target, Some(kind), flags, options)
        .map_err(|e| format!("cannot mount {target} ({kind}): {e}").into())
}
