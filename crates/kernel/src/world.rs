//! The kernel world: scenarios in, records out, as in the model world.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hol_base::{Digest, Digester, ParseUnitError, Seed};
use hol_measure::Record;
use hol_model::Scenario;

use crate::engine::{Finished, Started, engine};
use crate::error::{self, Trouble};
use crate::image::Image;
use crate::job::{Answer, Facts, Job};
use crate::mailbox::Mail;
use crate::{KernelError, Provenance, Sighting, check, journey, packed, sighting};

/// What a run may take of the wall clock unless the user says otherwise: this, and so much a message.
const LIMIT: Duration = Duration::from_secs(120);
const LIMIT_PER_MESSAGE: Duration = Duration::from_millis(50);

/// A booted kernel, from which any number of runs may start, on any number of threads.
#[derive(Debug, Clone)]
pub struct World {
    image: Image,
    kernel: Arc<dyn Started>,
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
        let kernel = engine().start(&image, &program)?;
        Ok(Self { image, kernel, limit })
    }

    /// The kernel.
    pub const fn image(&self) -> &Image {
        &self.image
    }

    /// What runs it, and in which mode.
    pub fn provenance(&self) -> Provenance {
        self.kernel.provenance()
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
        let job = Job::new(scenario, seed, capture);
        let job = serde_json::to_vec(&job).expect("a job is plain data");
        let messages = u32::try_from(scenario.messages).unwrap_or(u32::MAX);
        let limit = self.limit.unwrap_or(LIMIT + LIMIT_PER_MESSAGE * messages);
        let Finished { mail, console, processor_s, provenance } = self.kernel.run(&job, limit)?;
        let mut run = measured(&mail, scenario).map_err(|problem| problem.with_console(console))?;
        run.processor_s = processor_s;
        run.facts.provenance = Some(provenance);
        Ok(run)
    }
}

/// What the guest says in `mail` that it measured.
fn measured(mail: &Mail, scenario: &Scenario) -> Result<KernelRun, KernelError> {
    let guest = |problem: String| KernelError::from(Trouble::Guest(problem));
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
    Ok(KernelRun { digest: digester.finish(), records, background, sightings, facts, processor_s: 0.0 })
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
