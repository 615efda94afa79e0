//! Environment variables that give this program its role.

/// The environment variable that makes this program the first process of a guest. Its value is the engine:
/// [`QEMU`] or [`UML`], or [`LOCAL_KERNEL`] for this machine's own kernel.
pub(crate) const ENGINE_VARIABLE: &str = "hol_guest";
pub(crate) const QEMU: &str = "qemu";
pub(crate) const UML: &str = "uml";
pub(crate) const LOCAL_KERNEL: &str = "here";

/// Value of [`ENGINE_VARIABLE`] that makes this program the init process of a node.
pub(crate) const INIT_PROCESS: &str = "first";

/// The environment variable that is set if the machine has a root image for the user's programs.
pub(crate) const ROOT_VARIABLE: &str = "hol_root";

/// Returns whether this process is part of a guest: the first process of a guest or of a node, or a guest's
/// process on this machine's own kernel. If so, it must only call [`main`](super::main).
pub fn is_guest() -> bool {
    is_local_kernel() || std::process::id() == 1 && std::env::var_os(ENGINE_VARIABLE).is_some()
}

/// Returns whether the guest runs on the user's own kernel. If so, only the process's own namespaces may be
/// changed.
pub(super) fn is_local_kernel() -> bool {
    std::env::var_os(ENGINE_VARIABLE).is_some_and(|mark| mark == LOCAL_KERNEL)
}
