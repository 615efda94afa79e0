//! What runs a kernel: two engines, which fulfil one `contract`, and which of them runs which image.

pub(crate) mod child;
mod confined;
mod contract;
mod patience;
mod qemu;
mod self_test;
mod staying;
mod uml;

use crate::image::Image;
use crate::{KernelError, Provenance};
pub use confined::confinement;
use contract::Engine;
pub(crate) use contract::{Finished, Started, Task};
pub(crate) use staying::Staying;

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
