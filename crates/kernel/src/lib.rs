//! The kernel world: a distribution's Linux kernel in a virtual machine under a virtual clock.
//!
//! QEMU runs the kernel without help of the processor and counts instructions for a clock, which jumps over idle
//! time; so a run needs no rights, takes less than the time it simulates, and repeats itself exactly. Where it does not,
//! its [`Provenance`] says so. The program inside is this program again. A [`Kernel`] boots once; each run goes on from
//! a snapshot.
//!
//! Host side: `image`, `modules`, `fetch` get a kernel (`replace` puts it in its place), `program`, `archive` and `initramfs`
//! make what it begins with, `engine` is the contract of what runs it and QEMU behind it, `world` runs. `netem`, `stages`
//! and `check` say what cannot be done.
//! Guest side: `guest`. Between them: `job` there, `mailbox`, `packed` and `captured` back; `journey` joins what both
//! ends saw.
//!
//! What a transaction costs, where, and what would make it cheaper: `docs/kernel-cost.md`.

mod archive;
mod captured;
mod check;
mod early;
mod engine;
mod error;
mod fetch;
pub mod guest;
mod image;
mod initramfs;
mod job;
mod journey;
mod mailbox;
mod memory;
mod modules;
mod netem;
mod observed;
mod packed;
mod program;
mod provenance;
mod replace;
mod root;
mod scratch;
mod stages;
mod world;

pub use engine::provenance;
pub use error::{Console, KernelError, MachineFault};
pub use fetch::{DEFAULT_SERIES, fetch};
pub use image::{Image, cache};
pub use initramfs::initramfs;
pub use memory::memory_for;
pub use provenance::{Provenance, Stepping};
pub use world::Kernel;
