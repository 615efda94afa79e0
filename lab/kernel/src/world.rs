//! The kernel world.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hol_base::{ParseUnitError, Seed, Time};
use hol_measure::{Record, RecordKind, Transfer};
use hol_scenario::{
    BackgroundRun, Cost, Observer, PacketObserver, Run, RunError, RunSummary, Scenario, World,
};
use hol_stack::TransportSpec;
use serde_json::{Value, json};

use crate::captured_packet::PacketCapture;
use crate::engine::{KernelInstance, Task, TaskResult};
use crate::error::{self, MachineFault};
use crate::image::Image;
use crate::job::{FlowReport, Job, JobResult, Report};
use crate::mailbox::MailboxContent;
use crate::memory::check_free_memory;
use crate::root::RootImage;
use crate::{
    KernelError, captured_packet, check, engine, packed_records, packed_samples, packet_match,
    program_records,
};

/// The default wall-clock limit of a run without messages; [`LIMIT_PER_MESSAGE`] is added for each message.
pub(crate) const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(120);
const LIMIT_PER_MESSAGE: Duration = Duration::from_millis(50);

/// A Linux kernel as a world. The first run boots it; then any number of runs may start, in any number of threads.
#[derive(Debug)]
pub struct Kernel {
    image: Image,
    /// The program that runs in the guest; `None` for the running program itself.
    program: Option<PathBuf>,
    instance: Mutex<Option<Arc<dyn KernelInstance>>>,
}

impl Kernel {
    /// Creates the world of `image`. The guest runs `program` or, if that is `None`, the running program itself.
    pub const fn new(image: Image, program: Option<PathBuf>) -> Self {
        Self { image, program, instance: Mutex::new(None) }
    }

    /// Returns the kernel whose release begins with `release`, or the default kernel if `release` is empty.
    pub fn find(release: &str) -> Result<Self, KernelError> {
        Image::find(Some(release).filter(|release| !release.is_empty())).map(|image| Self::new(image, None))
    }

    /// Returns a warning if virtual time is not exact on this host, with advice on how to avoid this.
    pub fn warning(&self) -> Result<Option<String>, KernelError> {
        Ok(engine::engine_for(&self.image).provenance(&self.image, true)?.warning())
    }

    /// Returns whether computing takes time in a guest.
    pub fn computing_takes_time(&self) -> bool {
        !self.image.is_user_mode()
    }

    /// Returns the image of the kernel in the cache.
    pub(crate) const fn image(&self) -> &Image {
        &self.image
    }

    /// Returns the kernel instance, which the first call starts.
    pub(crate) fn instance(&self) -> Result<Arc<dyn KernelInstance>, KernelError> {
        let mut instance = self.instance.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(instance) = &*instance {
            return Ok(Arc::clone(instance));
        }
        let own =
            || std::env::current_exe().map_err(|e| KernelError::file("find", Path::new("this program"), e));
        let program = self.program.clone().map_or_else(own, Ok)?;
        Ok(Arc::clone(instance.insert(engine::engine_for(&self.image).start(&self.image, &program)?)))
    }

    /// Runs a scenario. With `capture`, also returns the packets. Capturing takes the kernel a microsecond per packet
    /// and, in rare cases, changes the order of timers that expire at almost the same time.
    fn perform(
        &self,
        scenario: &Scenario,
        seed: Seed,
        capture: bool,
        interval: Option<hol_base::Duration>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Run, PacketCapture), KernelError> {
        check::check_supported(scenario, &self.image)?;
        let series_ns = interval.map(hol_base::Duration::as_nanos);
        let job = Job { scenario: scenario.clone(), seed: seed.0, capture, series_ns, shell: false };
        let job = serde_json::to_vec(&job).expect("a job can be serialised");
        let messages = u32::try_from(scenario.messages).unwrap_or(u32::MAX);
        let limit = user_time_limit()?.unwrap_or(DEFAULT_TIME_LIMIT + LIMIT_PER_MESSAGE * messages);
        let root = RootImage::of(scenario)?;
        let task = Task { job: &job, root: root.as_ref(), is_interactive: false, limit };
        let TaskResult { mail, console, provenance, .. } = self.instance()?.run(&task, goes_on)?;
        let measured = read_mail(&mail, scenario).and_then(|(run, packets_seen)| {
            run.summary
                .world_report
                .as_deref()
                .map_or(Ok(()), |world_report| check::check_valid(scenario, world_report))?;
            Ok((run, packets_seen))
        });
        let (mut run, packets_seen) = measured.map_err(|problem| problem.with_console(console))?;
        if let Some(world_report) = &mut run.summary.world_report {
            world_report.provenance = provenance.to_string();
            world_report.add_caution(provenance.warning());
        }
        Ok((run, packets_seen))
    }
}

impl World for Kernel {
    fn name(&self) -> String {
        format!("kernel:{}", self.image.release)
    }

    fn provenance(&self) -> Result<String, RunError> {
        Ok(engine::provenance_of(&self.image)?.to_string())
    }

    /// Returns the settings that affect a kernel. The other keys of a stack file affect only the model.
    fn recorded_settings(&self, scenario: &Scenario) -> Value {
        let [transport, settings] = transport_settings(&scenario.transport, self.image.version());
        // The digest changes with the programs' files.
        let root = RootImage::of(scenario).ok().flatten().map(|root| root.digest().to_string());
        let Some(root) = root else { return json!([transport, settings]) };
        // The speed of the processor affects programs, too.
        let there = engine::engine_for(&self.image).provenance(&self.image, true).ok();
        match there.and_then(|there| there.instructions_per_ns) {
            Some(pace) => json!([transport, settings, root, pace]),
            None => json!([transport, settings, root]),
        }
    }

    fn check(&self, scenario: &Scenario) -> Result<(), RunError> {
        Ok(check::check_supported(scenario, &self.image)?)
    }

    fn make_room(&self, runs: usize) -> Result<(), RunError> {
        Ok(check_free_memory(&self.image, runs)?)
    }

    fn cost(&self) -> Cost {
        engine::engine_for(&self.image).cost()
    }

    /// Runs the scenario, and passes its records to the observer only at the end, because a guest reports nothing
    /// earlier.
    fn follow(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn Observer,
    ) -> Result<RunSummary, RunError> {
        let (run, _) =
            self.perform(scenario, seed, false, observer.interval(), &mut || observer.goes_on())?;
        Ok(run.replay_to(observer))
    }

    fn trace(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn PacketObserver,
    ) -> Result<Run, RunError> {
        let names = scenario.interfaces().map_err(|problem| RunError::Refused(problem.to_string()))?;
        let (run, packets_seen) = self.perform(scenario, seed, true, None, &mut || true)?;
        captured_packet::pass_to_observer(packets_seen, &names, observer);
        Ok(run)
    }
}

/// Returns a transport with the settings that take effect: those that the kernel of release `kernel`, or hol's own
/// endpoint, applies.
pub(crate) fn transport_settings(transport: &TransportSpec, kernel: &str) -> [Value; 2] {
    let settings = hol_sockets::sysctls(transport, kernel).unwrap_or_default();
    let settings = if transport.is_userspace() {
        // This project's own endpoint applies every setting.
        json!(transport.option_values())
    } else {
        json!(settings.iter().map(|set| [set.name, &set.value]).collect::<Vec<_>>())
    };
    [json!(transport.to_string()), settings]
}

/// Reads the measurements from the mailbox content (`mail`) that a guest sent.
pub(crate) fn read_mail(
    mail: &MailboxContent,
    scenario: &Scenario,
) -> Result<(Run, PacketCapture), KernelError> {
    let guest = |problem: String| KernelError::from(MachineFault::Guest(problem));
    let Report { mut world_report, flows, packets, secrets } = match serde_json::from_slice(&mail.result_json)
    {
        Ok(JobResult::Done(report)) => *report,
        Ok(JobResult::Failed(problem)) => return Err(guest(problem)),
        Ok(JobResult::ShellEnded) => return Err(guest("the guest did not report a run".to_owned())),
        Err(problem) => return Err(guest(problem.to_string())),
    };
    let records = packed_records::unpack(&mail.records, flows.len());
    let records = records.ok_or_else(|| guest("the records of the guest cannot be parsed".to_owned()))?;
    let captured = captured_packet::unpack(&mail.packets);
    let captured = captured.ok_or_else(|| guest("the packets of the guest cannot be parsed".to_owned()))?;
    let samples = packed_samples::unpack(&mail.samples);
    let samples = samples.ok_or_else(|| guest("the time series of the guest cannot be parsed".to_owned()))?;
    let mut flows = flows.into_iter().zip(records);
    let Some((measured, mut records)) = flows.next() else {
        return Err(guest("the guest reported no flow".to_owned()));
    };
    let captured = packet_match::mark_losses(captured);
    if scenario.runs_programs() {
        (records, world_report.retransmissions) = program_records::add_captured(records, &captured);
    }
    let transfer = Transfer::of(&records);
    let beside = flows.map(|(flow, own)| (flow.into_background_run(transfer, &own), own));
    let (mut background, background_records): (Vec<_>, _) = beside.unzip();
    let onward = background.split_off(background.len() - scenario.onward.len());
    let summary = RunSummary {
        // Sockets report when a message was written and when it was delivered; only packets show when it was on the link.
        has_delivery_times: scenario.runs_programs()
            && scenario.workload.record_kind() == RecordKind::Transaction,
        packets,
        drops: None,
        marked: None,
        endpoints: None,
        connect_time: measured.connect_time(),
        ended: Time::from_nanos(measured.ended),
        closed: None,
        run_end: scenario.measured_flow_end(measured.run_end, onward.into_iter().map(|flow| flow.run_end)),
        background,
        world_report: Some(Box::new(world_report)),
        files: mail.files.clone(),
    };
    Ok((Run { summary, records, background_records, samples }, PacketCapture { packets: captured, secrets }))
}

impl FlowReport {
    fn connect_time(&self) -> Option<hol_base::Duration> {
        self.connected.map(hol_base::Duration::from_nanos)
    }

    /// Returns the result of a background flow with these `records`. Its octets count if they were delivered during
    /// `transfer`, the transfer of the measured flow.
    fn into_background_run(self, transfer: Option<Transfer>, records: &[Record]) -> BackgroundRun {
        let connect_time = self.connect_time();
        BackgroundRun::from_records(
            transfer,
            records,
            connect_time,
            (!self.was_stopped).then_some(self.run_end),
        )
    }
}

impl From<KernelError> for RunError {
    fn from(error: KernelError) -> Self {
        let problem = error.to_string();
        match error {
            // Only this run was interrupted; others may succeed.
            KernelError::Interrupted => Self::Interrupted,
            KernelError::Machine { console, .. } => {
                Self::Failed { problem, log: console.full_text().to_owned() }
            }
            error if error.is_usage_error() => Self::Refused(problem),
            _ => Self::Unusable(problem),
        }
    }
}

/// Returns the wall-clock limit that the user has set for every run.
fn user_time_limit() -> Result<Option<Duration>, KernelError> {
    let Some(text) = std::env::var_os(error::LIMIT_VARIABLE) else { return Ok(None) };
    let text = text.to_string_lossy();
    let wrong = |problem: ParseUnitError| KernelError::Unsupported {
        what: format!("{}={text}", error::LIMIT_VARIABLE),
        why: problem.to_string(),
    };
    let limit: hol_base::Duration = text.parse().map_err(wrong)?;
    Ok(Some(Duration::from_nanos(limit.as_nanos())))
}
