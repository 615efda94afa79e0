//! The guest: this program as the first process of the virtual machine.
//!
//! It loads the modules. If the host takes snapshots, the guest then pauses the machine, and a restored machine receives a job. The guest
//! builds the network, measures the baseline delay, runs the workload, and sends the records. `host_channel` hides the differences between
//! engines.

mod attachment;
mod bpf;
mod bpf_assembler;
mod capture;
mod clock;
mod entropy;
mod error;
mod flow;
mod handle;
mod host_channel;
mod link_baseline;
mod module;
mod namespace;
mod netlink;
mod offload;
mod packet_ring;
mod path_manager;
mod programs;
mod qdisc_chain;
mod queue_sampler;
mod reroute;
mod route;
mod schedule;
mod tc_bpf;
mod timer_wheel;
mod topology;
pub(crate) mod variables;
mod waker;
mod work;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hol_base::Seed;
use nix::mount::{MsFlags, mount};
use nix::time::{ClockId, clock_getres};

pub(crate) use error::GuestError;
use host_channel::HostChannel;
use module::load;
pub use variables::is_guest;
use variables::{ENGINE_VARIABLE, INIT_PROCESS, ROOT_VARIABLE, is_local_kernel};

use crate::job::{Job, JobResult};
use crate::modules;

/// Runs the guest. In a virtual machine, returns only after an error, because otherwise the host ends the machine.
pub fn main() -> ExitCode {
    if std::env::var_os(ENGINE_VARIABLE).is_some_and(|mark| mark == INIT_PROCESS) {
        return programs::init_process::main();
    }
    let channel = host_channel::current();
    let booted = if is_local_kernel() { Ok(()) } else { boot() };
    if let Err(problem) = booted.and_then(|()| channel.report_boot()) {
        eprintln!("hol: {problem}");
        return ExitCode::FAILURE;
    }
    let mail = receive_job(channel)
        .and_then(|job| work::run(&job))
        .unwrap_or_else(|problem| JobResult::failure(&problem));
    match channel.send_result(&mail).and_then(|()| channel.shut_down()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("hol: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn boot() -> Result<(), GuestError> {
    for (source, target, kind) in
        [("proc", "/proc", "proc"), ("sys", "/sys", "sysfs"), ("dev", "/dev", "devtmpfs")]
    {
        mount(Some(source), target, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(|e| format!("cannot mount {target}: {e}"))?;
    }
    modules::boot_modules().try_for_each(|file| load(&file))?;
    allow_large_buffers()?;
    stop_counting_pages()?;
    allow_every_controller()?;
    await_exact_timers()?;
    if std::env::var_os(ROOT_VARIABLE).is_some() {
        modules::root_modules().try_for_each(|file| load(&file))?;
        host_channel::await_root()?;
    }
    Ok(())
}

/// Raises the limits of socket buffers to the largest sizes that experiments may set. `rmem_max` also affects TCP's
/// window scale, but only if it exceeds the 6 MiB of `tcp_rmem`.
fn allow_large_buffers() -> Result<(), GuestError> {
    namespace::set_sysctl("net/core/wmem_max", "1073741824")?;
    namespace::set_sysctl("net/core/rmem_max", "6291456")
}

/// Makes Linux sum up the memory statistics of its processors once a day instead of once a second. The sum takes
/// virtual time, and would delay packets that are sent meanwhile by 0.1 ms. A kernel for one processor has no such
/// statistics.
fn stop_counting_pages() -> Result<(), GuestError> {
    const STAT_INTERVAL: &str = "vm/stat_interval";
    let counts = Path::new("/proc/sys").join(STAT_INTERVAL).exists();
    if counts { namespace::set_sysctl(STAT_INTERVAL, "86400") } else { Ok(()) }
}

/// Allows every available congestion control on all nodes. Linux permits DCTCP only in the first namespace, because
/// it starves other flows.
fn allow_every_controller() -> Result<(), GuestError> {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    namespace::set_sysctl("net/ipv4/tcp_allowed_congestion_control", available.trim())
}

/// Waits until Linux trusts a clock source; before that, timers expire only at ticks. Linux 6.1 needs more time for
/// this than 6.12.
fn await_exact_timers() -> Result<(), GuestError> {
    const POLL_INTERVAL: Duration = Duration::from_millis(100);
    let exact =
        || clock_getres(ClockId::CLOCK_MONOTONIC).map(|tick| tick.tv_sec() == 0 && tick.tv_nsec() == 1);
    for _ in 0..100 {
        if exact()? {
            return Ok(());
        }
        std::thread::park_timeout(POLL_INTERVAL);
    }
    Err("the kernel has no high-resolution timers, because it accepted no clock source; use another kernel"
        .into())
}

/// Receives the job, and loads the modules that it needs.
fn receive_job(channel: &dyn HostChannel) -> Result<Job, GuestError> {
    let job: Job = serde_json::from_slice(&channel.receive_job()?)?;
    if !is_local_kernel() {
        if job.scenario.filtered_node().is_some() {
            modules::nftables_modules().try_for_each(|file| load(&file))?;
        }
        entropy::inject(Seed(job.seed))?;
    }
    Ok(job)
}
