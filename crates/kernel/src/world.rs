//! The kernel world: scenarios in, records out, as in the model world.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hol_base::{Digest, Digester, ParseUnitError, Seed};
use hol_measure::Record;
use hol_model::Scenario;
use serde_json::{Value, json};

use crate::error::{self, Trouble};
use crate::guest::JOB;
use crate::image::Image;
use crate::job::{Answer, Facts, Job};
use crate::machine::Machine;
use crate::mailbox::{ADDRESS, HEAD, Head};
use crate::snapshot::Snapshot;
use crate::{KernelError, Sighting, check, journey, packed, scratch, sighting};

/// What a run may take of the wall clock unless the user says otherwise: this, and so much a message.
const LIMIT: Duration = Duration::from_secs(120);
const LIMIT_PER_MESSAGE: Duration = Duration::from_millis(50);

/// A booted kernel, from which any number of runs may start, on any number of threads.
#[derive(Debug, Clone)]
pub struct World {
    image: Image,
    program: PathBuf,
    snapshot: Snapshot,
    limit: Option<Duration>,
}

/// What one run measured.
#[derive(Debug, Clone)]
pub struct KernelRun {
    /// One record for each message that came due; times count from the start of the run. Sockets do not tell when a message left or arrived: all the time from
    /// `written` to `delivered` is between `last_sent` and `arrived`.
    pub records: Vec<Record>,
    /// The same for each flow of the background, in the order of the scenario.
    pub background: Vec<Vec<Record>>,
    /// Over all records that are measured: same kernel, scenario and seed, same digest.
    pub digest: Digest,
    /// The packets that passed the interfaces of the ends, in order of time; none unless they were wanted.
    pub sightings: Vec<Sighting>,
    /// What the guest tells beside them.
    pub facts: Facts,
    /// Processor time that the machine took, in seconds.
    pub processor_s: f64,
}

impl World {
    /// The world of `image`; `program` is the program that runs inside: this one, or one that does as it does. Boots if
    /// it has not been booted before, which takes some seconds.
    pub fn open(image: Image, program: Option<&Path>) -> Result<Self, KernelError> {
        let own =
            || std::env::current_exe().map_err(|e| KernelError::file("find", Path::new("this program"), e));
        let program = program.map_or_else(own, |path| Ok(PathBuf::from(path)))?;
        let limit = limit()?;
        let snapshot = Snapshot::of(&image, &program)?;
        Ok(Self { image, program, snapshot, limit })
    }

    /// The kernel.
    pub const fn image(&self) -> &Image {
        &self.image
    }

    /// Runs `scenario`; the same scenario and seed give the same run.
    pub fn run(&self, scenario: &Scenario, seed: Seed) -> Result<KernelRun, KernelError> {
        self.perform(scenario, seed, false)
    }

    /// As [`run`](Self::run), and captures the packets. That takes the kernel a microsecond a packet, so the digest is
    /// another one and, rarely, a timer that was close decides otherwise.
    pub fn trace(&self, scenario: &Scenario, seed: Seed) -> Result<KernelRun, KernelError> {
        self.perform(scenario, seed, true)
    }

    fn perform(&self, scenario: &Scenario, seed: Seed, capture: bool) -> Result<KernelRun, KernelError> {
        check::possible(scenario, &self.image)?;
        let work = scratch::directory(&std::env::temp_dir(), "hol-run")?;
        let file = work.path().join("job.json");
        let (job, messages) = (Job::new(scenario, seed, capture), scenario.messages);
        let text = serde_json::to_vec(&job).expect("a job is plain data");
        fs::write(&file, text).map_err(|e| KernelError::file("write", &file, e))?;
        let mut machine = self.restore(&file, work.path(), messages)?;
        to_the_end(&mut machine, scenario).map_err(|problem| problem.with_console(machine.console()))
    }

    /// A machine at the point of the snapshot, with the job at `file`. A snapshot that does not restore is made again.
    fn restore<'d>(
        &self,
        file: &Path,
        directory: &'d Path,
        messages: u64,
    ) -> Result<Machine<'d>, KernelError> {
        let edition = self.snapshot.edition();
        match self.try_restore(file, directory, messages) {
            Err(KernelError::Machine { trouble: Trouble::Ended(_) | Trouble::Refused { .. }, .. }) => {
                self.snapshot.discard(edition)?;
                Snapshot::of(&self.image, &self.program)?;
                self.try_restore(file, directory, messages)
            }
            other => other,
        }
    }

    fn try_restore<'d>(
        &self,
        file: &Path,
        directory: &'d Path,
        messages: u64,
    ) -> Result<Machine<'d>, KernelError> {
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        let limit = self.limit.unwrap_or(LIMIT + LIMIT_PER_MESSAGE * messages);
        let job = format!("name={JOB},file={}", file.display());
        let arguments = ["-fw_cfg", &job, "-incoming", "defer"];
        let mut machine = Machine::start(&arguments.map(str::to_owned), directory, limit)?;
        let state = &self.snapshot.state;
        // Without a single octet QEMU would wait for ever.
        if fs::metadata(state).map_or(0, |file| file.len()) == 0 {
            return Err(refused(&format!("{} is gone", state.display())));
        }
        let events = json!({ "capabilities": [{ "capability": "events", "state": true }] });
        machine.execute("migrate-set-capabilities", &events)?;
        machine.execute("migrate-incoming", &json!({ "uri": self.snapshot.source()? }))?;
        let mut ended = Value::Null;
        machine.wait_for("restoring", |event, data| {
            let over =
                event == "MIGRATION" && matches!(data["status"].as_str(), Some("completed" | "failed"));
            if over {
                ended = data["status"].clone();
            }
            over
        })?;
        if ended == "completed" {
            return Ok(machine);
        }
        Err(refused(&format!("it cannot restore {}", state.display())))
    }
}

fn refused(said: &str) -> KernelError {
    Trouble::Refused { command: "migrate-incoming".to_owned(), said: said.to_owned() }.into()
}

/// Lets the guest do its job, and takes what it hands over.
fn to_the_end(machine: &mut Machine<'_>, scenario: &Scenario) -> Result<KernelRun, KernelError> {
    let guest = |problem: String| KernelError::from(Trouble::Guest(problem));
    machine.run_until_paused("running")?;
    let head = Head::parse(&machine.memory(ADDRESS, HEAD as u64)?).map_err(|e| guest(e.to_string()))?;
    let octets = machine.memory(ADDRESS, head.whole())?;
    let mail = head.open(&octets).map_err(|e| guest(e.to_string()))?;
    let facts = match serde_json::from_slice(&mail.text) {
        Ok(Answer::Done(facts)) => *facts,
        Ok(Answer::Failed(problem)) => return Err(guest(problem)),
        Err(problem) => return Err(guest(problem.to_string())),
    };
    let flows = packed::unpack(&mail.records, 1 + facts.background.len());
    let mut flows = flows.ok_or_else(|| guest("its records make no sense".to_owned()))?;
    let background = flows.split_off(1);
    let records = flows.remove(0);
    let sightings = sighting::unpack(&mail.packets);
    let sightings = sightings.ok_or_else(|| guest("its packets make no sense".to_owned()))?;
    let sightings = journey::judged(sightings);
    check::valid(scenario, &facts)?;
    let mut digester = Digester::new();
    records.iter().for_each(|record| record.digest(&mut digester));
    Ok(KernelRun {
        digest: digester.finish(),
        records,
        background,
        sightings,
        facts,
        processor_s: machine.processor_seconds(),
    })
}

/// The limit that the user sets for every run, if he does.
fn limit() -> Result<Option<Duration>, KernelError> {
    let Some(text) = std::env::var_os(error::LIMIT) else { return Ok(None) };
    let text = text.to_string_lossy();
    let wrong = |problem: ParseUnitError| KernelError::Unsupported {
        what: format!("{}={text}", error::LIMIT),
        why: problem.to_string(),
    };
    let limit: hol_base::Duration = text.parse().map_err(wrong)?;
    Ok(Some(Duration::from_nanos(limit.as_nanos())))
}
