//! The kernel world: a Linux kernel under a virtual clock, either a distribution's kernel in a virtual
//! machine or a kernel built to run as a program of the host.
//!
//! QEMU runs a distribution's kernel without hardware virtualisation and counts instructions for a clock,
//! which jumps over idle time; so a run needs no privileges, takes less than the time it simulates, and is
//! exactly repeatable. If it is not, its [`Provenance`] states that. The guest runs this same program.
//! Each run starts from a snapshot of one boot. User-Mode Linux runs a kernel of its own ([`build()`]) at
//! lower cost, with a clock that stands still while anything computes, and boots for each run.
//! `local_kernel` is for the live world: the same network on this machine's own kernel, by the real clock.
//!
//! Host side: `image`, `modules`, `fetch`, `build` and `dualpi2_module` provide a kernel from a `package_source` (`atomic_replace` installs its
//! files), `program`, `archive` and `initial_files` make its initial file system, `engine` has the trait of engines and
//! its two implementations, `world` runs scenarios. `netem` and `check` refuse unsupported features. `cache_lock` keeps
//! cache entries in use from being removed. Guest side: `guest`. Between them: `job` goes in; `mailbox`,
//! `packed_records`, `packed_samples` and `captured_packet` come back; `packet_match` matches the captures of both
//! ends, `program_records` measures the connections of programs in them. `session` is an interactive guest,
//! `session_step` its protocol, `shared_memory` the channel of that protocol in QEMU.
//!
//! `docs/kernel.md` compares the two engines.

mod archive;
mod atomic_replace;
mod build;
mod build_tools;
mod cache;
mod cache_lock;
mod captured_packet;
mod check;
mod dualpi2_module;
mod engine;
mod error;
mod fetch;
pub mod guest;
mod hostfs;
mod image;
mod initial_files;
mod job;
pub mod local_kernel;
mod mailbox;
mod memory;
mod modules;
mod netem;
mod package_source;
mod packed_records;
mod packed_samples;
mod packet_match;
mod program;
mod program_records;
mod provenance;
mod root;
mod scratch;
mod session;
mod session_step;
mod shared_memory;
mod world;

pub use build::build;
pub use cache::cache_directory;
pub use dualpi2_module::add_dualpi2;
pub use engine::{landlock_version, provenance, provenance_of};
pub use error::{ConsoleOutput, KernelError, MachineFault};
pub use fetch::{DEFAULT_SERIES, fetch};
pub use image::Image;
pub use initial_files::initramfs;
pub use package_source::PackageSource;
pub use provenance::{Provenance, StepExactness};
pub use root::local_file_names;
pub use session::Session;
pub use session_step::{
    Action, CommandOutcome, GuestMessage, SessionObserver, ShellState, Step, StepControl, StepResult,
};
pub use world::Kernel;
