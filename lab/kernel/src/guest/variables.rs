//! The environment variables by which an engine tells this program its role.

/// The variable that tells this program that it is the first process of a guest of ours, and which engine runs it: [`QEMU`]
/// or [`UML`]; or that it is to do the same on this machine's own kernel: [`HERE`].
pub(crate) const MARK: &str = "hol_guest";
pub(crate) const QEMU: &str = "qemu";
pub(crate) const UML: &str = "uml";
pub(crate) const HERE: &str = "here";

/// What [`MARK`] is for the first process of a node.
pub(crate) const FIRST: &str = "first";

/// The variable that tells it that the machine has a root image for the user's programs.
pub(crate) const ROOT: &str = "hol_root";

/// Whether this process is the first of a guest, or of a node in it, or does what a guest does on this machine's own kernel. If so,
/// [`main`](super::main) is all that it should do.
pub fn is_guest() -> bool {
    is_here() || std::process::id() == 1 && std::env::var_os(MARK).is_some()
}

/// Whether the kernel is the user's own, of which nothing is changed but what belongs to the namespaces.
pub(super) fn is_here() -> bool {
    std::env::var_os(MARK).is_some_and(|mark| mark == HERE)
}
