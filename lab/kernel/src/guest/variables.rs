//! Environment variables that give this program its role.

/// The variable that makes this program the first process of a guest. Its value is the engine: [`QEMU`] or
/// [`UML`], or [`LOCAL_KERNEL`] for this machine's own kernel.
pub(crate) const ENGINE_VARIABLE: &str = "hol_guest";
pub(crate) const QEMU: &str = "qemu";
pub(crate) const UML: &str = "uml";
pub(crate) const LOCAL_KERNEL: &str = "here";

/// Value of [`ENGINE_VARIABLE`] for the first process of a node.
pub(crate) const INIT_PROCESS: &str = "first";

/// The variable that is set if the machine has a root image for the user's programs.
pub(crate) const ROOT_VARIABLE: &str = "hol_root";

/// Returns whether this process has the role of a guest: as the first process of a guest or of a node, or on
/// this machine's own kernel. If so, it must only call [`main`](super::main).
pub fn is_guest() -> bool {
    is_local_kernel() || std::process::id() == 1 && std::env::var_os(ENGINE_VARIABLE).is_some()
}

/// Returns whether the kernel is the user's own. If so, only the process's own namespaces may be changed.
pub(super) fn is_local_kernel() -> bool {
    std::env::var_os(ENGINE_VARIABLE).is_some_and(|mark| mark == LOCAL_KERNEL)
}
