//! A network that stays, and stands still between what is done in it.

use hol_base::{Digest, Seed};
use hol_scenario::{Scenario, Witness};

use crate::captured::Seen;
use crate::dialogue::{Listener, Reply, Step};
use crate::engine::{Staying, Task};
use crate::error::MachineFault;
use crate::job::Job;
use crate::root::Root;
use crate::world::LIMIT;
use crate::{Kernel, KernelError, captured, check, journey};

/// A guest whose network and services are ready. It ends when this is dropped.
#[derive(Debug)]
pub struct Session {
    guest: Box<dyn Staying>,
    /// The names of its interfaces.
    interfaces: Vec<String>,
    /// Of what its programs find.
    root: Option<Digest>,
}

impl Session {
    /// The network and the services of a `scenario`, whose other programs start in their time. The `listener` may end it.
    pub fn begin(
        kernel: &Kernel,
        scenario: &Scenario,
        seed: Seed,
        listener: &mut dyn Listener,
    ) -> Result<Self, KernelError> {
        check::possible(scenario, kernel.image())?;
        let interfaces = scenario.interfaces().map_err(|problem| KernelError::Unsupported {
            what: "network".to_owned(),
            why: problem.to_string(),
        })?;
        let job =
            Job { scenario: scenario.clone(), seed: seed.0, capture: true, series_ns: None, shell: true };
        let job = serde_json::to_vec(&job).expect("a job is plain data");
        let root = Root::of(scenario)?;
        let task = Task { job: &job, root: root.as_ref(), stays: true, limit: LIMIT };
        let mut guest = kernel.started()?.stay(&task)?;
        guest.take(None, listener)?;
        Ok(Self { guest, interfaces, root: root.map(|root| root.digest()) })
    }

    /// Whether programs find all that those of `scenario` need.
    pub fn has_all_of(&self, scenario: &Scenario) -> Result<bool, KernelError> {
        Ok(Root::of(scenario)?.map(|root| root.digest()) == self.root)
    }

    /// Takes a step.
    pub fn take(&mut self, step: &Step, listener: &mut dyn Listener) -> Result<Reply, KernelError> {
        self.guest.take(Some(step), listener)
    }

    /// Has the `witness` see the packets that an answer to [`Order::Packets`](crate::Order) holds.
    pub fn packets(&self, octets: &[u8], witness: &mut dyn Witness) -> Result<(), KernelError> {
        let nonsense = || KernelError::from(MachineFault::Guest("its packets make no sense".to_owned()));
        let packets = journey::judged(captured::unpack(octets).ok_or_else(nonsense)?);
        captured::show(Seen { packets, ..Seen::default() }, &self.interfaces, witness);
        Ok(())
    }
}
