//! The kernel world: a Linux kernel under a virtual clock, a distribution's in a virtual machine or one that was built to be
//! a program of the host.
//!
//! QEMU runs a distribution's kernel without help of the processor and counts instructions for a clock, which jumps over idle
//! time; so a run needs no rights, takes less than the time it simulates, and repeats itself exactly. Where it does not,
//! its [`Provenance`] says so. The program inside is this program again. Each run goes on from a
//! snapshot of one boot. User-Mode Linux runs a kernel of its own ([`build()`]) for less, with a clock that stands still
//! while anything computes, and boots for each run. `here` is for the live world: the same network on this machine's own kernel, by
//! the real clock.
//!
//! Host side: `image`, `modules`, `fetch`, `build` get a kernel (`replace` puts it in its place), `program`, `archive` and
//! `beginning` make what it begins with, `engine` is the contract of what runs it and both engines behind it, `world` runs. `netem`
//! and `check` say what cannot be done.
//! Guest side: `guest`. Between them: `job` there, `mailbox`, `packed` and `captured` back; `journey` joins what both
//! ends saw. `session` is a guest that stays, `dialogue` what is said with it, by way of `exchange` in QEMU.
//!
//! What a transaction costs, where, and what would make it cheaper: `docs/kernel-cost.md`; the other engine: `docs/kernel-uml.md`.

mod archive;
mod beginning;
mod build;
mod cache;
mod captured;
mod check;
mod dialogue;
mod engine;
mod error;
mod exchange;
mod fetch;
pub mod guest;
pub mod here;
mod hostfs;
mod image;
mod job;
mod journey;
mod kept;
mod mailbox;
mod memory;
mod modules;
mod netem;
mod observed;
mod packed;
mod packed_samples;
mod program;
mod provenance;
mod replace;
mod root;
mod scratch;
mod session;
mod world;

pub use beginning::initramfs;
pub use build::build;
pub use cache::cache;
pub use dialogue::{Ended, Letter, Listener, Order, Reply, Step, Surroundings, Wish};
pub use engine::{confinement, provenance, provenance_of};
pub use error::{Console, KernelError, MachineFault};
pub use fetch::{DEFAULT_SERIES, fetch};
pub use image::Image;
pub use provenance::{Provenance, Stepping};
pub use root::names_of_this_machine;
pub use session::Session;
pub use world::Kernel;
