//! The kernel world: a distribution's Linux kernel in a virtual machine under a virtual clock.
//!
//! QEMU runs the kernel without help of the processor and counts instructions for a clock, which jumps over idle
//! time; so a run needs no rights, takes less than the time it simulates, and repeats itself exactly. The program
//! inside is this program again. A [`World`] boots once; each run goes on from a snapshot.
//!
//! Host side: `image`, `modules`, `fetch` get a kernel, `program` and `archive` make the initramfs, `machine`
//! drives QEMU, `snapshot` boots, `world` runs. `netem` and `check` say what cannot be done. Guest side: `guest`.
//! Between them: `job` there, `mailbox` and `packed` back.

mod archive;
mod check;
mod error;
mod fetch;
pub mod guest;
mod image;
mod job;
mod machine;
mod mailbox;
mod modules;
mod netem;
mod packed;
mod program;
mod qmp;
mod scratch;
mod snapshot;
mod world;

pub use check::possible as check;
pub use error::KernelError;
pub use fetch::{DEFAULT_SERIES, fetch};
pub use image::{Image, cache};
pub use job::{Facts, Floor, LineFacts};
pub use world::{KernelRun, World};
