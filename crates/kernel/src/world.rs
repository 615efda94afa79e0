//! The kernel world: scenarios in, records out, as in the model world.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hol_base::{Digest, Digester, Seed};
use hol_measure::Record;
use hol_model::Scenario;
use serde_json::{Value, json};

use crate::guest::JOB;
use crate::image::Image;
use crate::job::{Answer, Facts, Job};
use crate::machine::Machine;
use crate::mailbox::{ADDRESS, HEAD, Head};
use crate::snapshot::Snapshot;
use crate::{KernelError, check, packed, scratch};

/// What a machine may take of the wall clock: this, and so much a message.
const LIMIT: Duration = Duration::from_secs(120);
const LIMIT_PER_MESSAGE: Duration = Duration::from_millis(50);

/// A booted kernel, from which any number of runs may start, on any number of threads.
#[derive(Debug, Clone)]
pub struct World {
    image: Image,
    snapshot: Snapshot,
}

/// What one run measured.
#[derive(Debug, Clone)]
pub struct KernelRun {
    /// One record for each message that came due. Sockets do not tell when a message left or arrived: all the time from
    /// `written` to `delivered` is between `last_sent` and `arrived`.
    pub records: Vec<Record>,
    /// Over all records: same kernel, scenario and seed, same digest.
    pub digest: Digest,
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
        let snapshot = Snapshot::of(&image, &program)?;
        Ok(Self { image, snapshot })
    }

    /// The kernel.
    pub const fn image(&self) -> &Image {
        &self.image
    }

    /// Runs `scenario`; the same scenario and seed give the same run.
    pub fn run(&self, scenario: &Scenario, seed: Seed) -> Result<KernelRun, KernelError> {
        check::possible(scenario)?;
        let Scenario { network, transport, workload, messages } = scenario.clone();
        let job = Job { network, transport: transport.to_string(), workload, messages, seed: seed.0 };
        let work = scratch::directory(&std::env::temp_dir(), "hol-run")?;
        let file = work.path().join("job.json");
        let text = serde_json::to_vec(&job).expect("a job is plain data");
        fs::write(&file, text).map_err(|e| KernelError::file("write", &file, e))?;

        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        let mut machine = self.restore(&file, work.path(), LIMIT + LIMIT_PER_MESSAGE * messages)?;
        machine.run_until_paused("running")?;
        let head = Head::parse(&machine.memory(ADDRESS, HEAD as u64)?);
        let head = head.map_err(|problem| KernelError::Guest(problem.to_string()))?;
        let octets = machine.memory(ADDRESS, head.whole())?;
        let processor_s = machine.processor_seconds();
        drop(machine);
        let mail = head.open(&octets).map_err(|problem| KernelError::Guest(problem.to_string()))?;
        let facts = match serde_json::from_slice(&mail.text) {
            Ok(Answer::Done(facts)) => *facts,
            Ok(Answer::Failed(problem)) => return Err(KernelError::Guest(problem)),
            Err(problem) => return Err(KernelError::Guest(problem.to_string())),
        };
        let records = packed::unpack(&mail.records);
        let records = records.ok_or_else(|| KernelError::Guest("its records make no sense".to_owned()))?;
        check::valid(scenario, &facts)?;
        let mut digester = Digester::new();
        records.iter().for_each(|record| record.digest(&mut digester));
        Ok(KernelRun { digest: digester.finish(), records, facts, processor_s })
    }

    /// A machine at the point of the snapshot, with the job at `file`.
    fn restore<'d>(
        &self,
        file: &Path,
        directory: &'d Path,
        limit: Duration,
    ) -> Result<Machine<'d>, KernelError> {
        let job = format!("name={JOB},file={}", file.display());
        let arguments = ["-fw_cfg", &job, "-incoming", "defer"];
        let mut machine = Machine::start(&arguments.map(str::to_owned), directory, limit)?;
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
            Ok(machine)
        } else {
            Err(KernelError::image(&self.snapshot.state, "the snapshot is damaged; remove it"))
        }
    }
}
