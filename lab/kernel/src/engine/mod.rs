//! The engines that run kernels: a common trait (`contract`), its two implementations, and the choice between them for
//! an image.

pub(crate) mod child;
mod contract;
mod deadline;
mod interactive;
mod qemu;
mod sandbox;
mod self_test;
mod uml;

use crate::image::Image;
use crate::{KernelError, Provenance};
use contract::Engine;
pub(crate) use contract::{KernelInstance, Task, TaskResult};
pub(crate) use interactive::InteractiveGuest;
pub use sandbox::landlock_version;

/// Returns the engine that runs `image`.
pub(crate) fn engine_for(image: &Image) -> &'static dyn Engine {
    if image.is_user_mode() { &uml::Uml } else { &qemu::Qemu }
}

/// Returns the version and the mode of the engine that runs a distribution's kernels on this host. Needs no
/// kernel, and boots no guest.
pub fn provenance() -> Result<Provenance, KernelError> {
    qemu::provenance(false)
}

/// Returns the version and the mode of the engine that runs `image`.
pub fn provenance_of(image: &Image) -> Result<Provenance, KernelError> {
    engine_for(image).provenance(image, false)
}
