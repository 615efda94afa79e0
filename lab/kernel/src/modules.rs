//! The kernel modules of a guest, in loading order.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::KernelError;

/// A kernel module. If it is not required, it may be built into the kernel, or missing.
struct Module {
    name: &'static str,
    is_required: bool,
}

/// The modules that guests load. Each module comes after those that it depends on.
const MODULES: [Module; 19] = [
    Module { name: "crc32c_generic", is_required: false },
    Module { name: "libcrc32c", is_required: false },
    Module { name: "udp_tunnel", is_required: false },
    Module { name: "ip6_udp_tunnel", is_required: false },
    // Without this module there is no SCTP; everything else works.
    Module { name: SCTP, is_required: false },
    Module { name: "sch_netem", is_required: true },
    Module { name: "veth", is_required: true },
    // Needed for queues whose limit is in octets, losses by packet number, and duplicates.
    Module { name: "sch_prio", is_required: false },
    Module { name: "sch_ingress", is_required: false },
    Module { name: "cls_bpf", is_required: false },
    // Needed for queues that drop early.
    Module { name: "sch_cbs", is_required: false },
    Module { name: "sch_red", is_required: false },
    Module { name: "sch_codel", is_required: false },
    Module { name: "sch_fq_codel", is_required: false },
    Module { name: "sch_pie", is_required: false },
    Module { name: DUALPI2, is_required: false },
    // Needed for `tcp:cc=bbr` and `tcp:cc=dctcp`.
    Module { name: "tcp_bbr", is_required: false },
    Module { name: "tcp_dctcp", is_required: false },
    // Loaded last, after the job has been provided: the module reads the job only once.
    Module { name: FIRMWARE_CONFIG, is_required: true },
];

/// The modules of nftables. Each module comes after those that it depends on. They are loaded only for a job that needs
/// them, because they slow down each packet and the creation of namespaces.
const NFTABLES_MODULES: [&str; 9] = [
    "nfnetlink",
    "nf_defrag_ipv4",
    "nf_defrag_ipv6",
    "nf_conntrack",
    "nf_nat",
    "nf_tables",
    "nft_ct",
    "nft_nat",
    "nft_chain_nat",
];

/// The modules for the root file system of the user's programs: persistent memory and two file systems.
const ROOT_MODULES: [&str; 6] = ["libnvdimm", "nfit", "nd_btt", "nd_pmem", "erofs", "overlay"];

/// The module of TUN interfaces, which is loaded together with [`ROOT_MODULES`] if the kernel has it.
const TUN: &str = "tun";

/// The module of the discipline DualPI2.
pub(crate) const DUALPI2: &str = "sch_dualpi2";

/// The name of the kernel module of SCTP.
pub(crate) const SCTP: &str = "sctp";

/// The file in which a kernel lists its built-in modules.
pub(crate) const BUILT_IN: &str = "modules.builtin";

/// The name of the module through which the guest reads its job from QEMU.
pub(crate) const FIRMWARE_CONFIG: &str = "qemu_fw_cfg";

/// Returns the file names of all modules that guests may load.
pub(crate) fn module_files() -> impl Iterator<Item = String> {
    boot_modules().chain([file_name(FIRMWARE_CONFIG)]).chain(nftables_modules()).chain(root_modules())
}

/// Returns the file names of the modules that are loaded before a job arrives, in order.
pub(crate) fn boot_modules() -> impl Iterator<Item = String> {
    MODULES.iter().map(|wanted| wanted.name).filter(|name| *name != FIRMWARE_CONFIG).map(file_name)
}

/// Returns the file names of the modules of nftables, in loading order.
pub(crate) fn nftables_modules() -> impl Iterator<Item = String> {
    NFTABLES_MODULES.into_iter().map(file_name)
}

/// Returns the file names of the modules for a root file system, in order, and of those that the user's programs
/// may need.
pub(crate) fn root_modules() -> impl Iterator<Item = String> {
    ROOT_MODULES.into_iter().chain([TUN]).map(file_name)
}

/// Returns the first module of nftables that is missing from the kernel with files in `image` and `modules`.
pub(crate) fn missing_nftables_module(image: &Path, modules: &Path) -> Option<&'static str> {
    find_missing_module(&NFTABLES_MODULES, image, modules)
}

/// Returns the first module that is missing for mounting a guest's root file system.
pub(crate) fn missing_root_module(image: &Path, modules: &Path) -> Option<&'static str> {
    find_missing_module(&ROOT_MODULES, image, modules)
}

fn find_missing_module(wanted: &[&'static str], image: &Path, modules: &Path) -> Option<&'static str> {
    wanted.iter().copied().find(|name| !modules.join(file_name(name)).is_file() && !is_built_in(image, name))
}

/// Returns the file name of a module.
pub(crate) fn file_name(name: &str) -> String {
    format!("{name}.ko")
}

/// Returns the modules below `directory` that guests need, decompressed, each with its file name.
pub(crate) fn collect(directory: &Path) -> Result<Vec<(String, Vec<u8>)>, KernelError> {
    let found = walk(directory)?;
    let mut modules = Vec::new();
    let more = NFTABLES_MODULES.iter().chain(&ROOT_MODULES).chain(&[TUN]);
    let more: Vec<Module> = more.map(|name| Module { name, is_required: false }).collect();
    for Module { name, is_required } in MODULES.iter().chain(&more) {
        let here = found.iter().find(|path| module_name(path).is_some_and(|found| found == *name));
        match here {
            Some(path) => modules.push((file_name(name), read(path)?)),
            None if *is_required && !is_built_in(directory, name) => {
                return Err(KernelError::ModuleMissing {
                    directory: directory.to_owned(),
                    module: name,
                    cure: "use a distribution's standard kernel (not its cloud or minimal variant), or give another directory with --modules",
                });
            }
            None => {}
        }
    }
    Ok(modules)
}

/// Returns a module without the signature at its end (linux/module_signature.h). The kernel then does not verify
/// the signature, which would take as long as four hundred messages.
pub(crate) fn without_signature(module: &[u8]) -> &[u8] {
    const SIGNATURE_MAGIC: &[u8] = b"~Module signature appended~\n";
    /// Size of the trailer after the signature, in octets: algorithm, hash, type, length of the signer's name, length
    /// of the key's name, three octets of padding, length of the signature.
    const TRAILER_LENGTH: usize = 12;
    let signed = || {
        let (module, head) = module.strip_suffix(SIGNATURE_MAGIC)?.split_last_chunk::<TRAILER_LENGTH>()?;
        let [.., signer, key, _, _, _, a, b, c, d] = head;
        let signature = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        module.get(..module.len().checked_sub(usize::from(*signer) + usize::from(*key) + signature)?)
    };
    signed().unwrap_or(module)
}

/// Returns whether the kernel whose files are in `directory` has a module built in.
pub(crate) fn is_built_in(directory: &Path, name: &str) -> bool {
    let listed = fs::read_to_string(directory.join(BUILT_IN)).unwrap_or_default();
    listed.lines().any(|line| module_name(Path::new(line)).is_some_and(|found| found == name))
}

/// Returns the name of a module from its path: `crc32c_generic` for `…/crc32c-generic.ko.xz`.
fn module_name(path: &Path) -> Option<String> {
    let (stem, _) = path.file_name()?.to_str()?.split_once(".ko")?;
    Some(stem.replace('-', "_"))
}

/// Returns the paths of all files below `directory`, sorted.
fn walk(directory: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let mut files = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let entries = fs::read_dir(&directory).map_err(|e| KernelError::file("read", &directory, e))?;
        for entry in entries.flatten() {
            // Links (to the sources) lead out of the directory.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Reads the file of a module, and decompresses it.
fn read(path: &Path) -> Result<Vec<u8>, KernelError> {
    let (program, package) = match path.extension().and_then(|end| end.to_str()) {
        Some("xz") => ("xz", "xz-utils"),
        Some("zst") => ("zstd", "zstd"),
        Some("gz") => ("gzip", "gzip"),
        _ => return fs::read(path).map_err(|e| KernelError::file("read", path, e)),
    };
    let missing = |_| KernelError::ProgramMissing { program: program.to_owned(), package };
    let unpacked = Command::new(program).arg("-dc").arg(path).output().map_err(missing)?;
    if unpacked.status.success() {
        return Ok(unpacked.stdout);
    }
    let error_output = format!("{}: {}", path.display(), String::from_utf8_lossy(&unpacked.stderr).trim());
    Err(KernelError::Program { program: program.to_owned(), error_output })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_module_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("net")).unwrap();
        fs::write(directory.path().join("net/crc32c-generic.ko"), b"x").unwrap();
        let error = collect(directory.path()).unwrap_err().to_string();
        assert!(error.contains("no module sch_netem"), "{error}");
    }

    #[test]
    fn only_the_signature_is_removed() {
        let head = [0, 0, 2, 1, 2, 0, 0, 0, 0, 0, 0, 4];
        let signed = [b"module", &b"sNNdata"[..], &head, b"~Module signature appended~\n"].concat();
        assert_eq!(without_signature(&signed), b"module");
        for whole in [&signed[8..], &signed[..signed.len() - 1], b"module"] {
            assert_eq!(without_signature(whole), whole);
        }
    }

    #[test]
    fn built_in_modules_are_not_missed() {
        let directory = tempfile::tempdir().unwrap();
        let lines =
            ["sctp", "sch_netem", "veth", "qemu_fw_cfg"].map(|name| format!("kernel/net/{name}.ko\n"));
        fs::write(directory.path().join("modules.builtin"), lines.concat()).unwrap();
        assert_eq!(collect(directory.path()).unwrap(), []);
    }
}
