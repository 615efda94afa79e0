//! What runs a kernel: two engines, which fulfil one `contract`, and which of them runs which image.

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
pub use sandbox::confinement;

/// The engine that runs `image`.
pub(crate) fn of(image: &Image) -> &'static dyn Engine {
    if image.is_user_mode() { &uml::Uml } else { &qemu::Qemu }
}

/// What runs a distribution's kernels on this host, and in which mode. Needs no kernel and no boot.
pub fn provenance() -> Result<Provenance, KernelError> {
    qemu::provenance(false)
}

/// What will run `image`, and in which mode.
pub fn provenance_of(image: &Image) -> Result<Provenance, KernelError> {
    of(image).provenance(image, false)
}
