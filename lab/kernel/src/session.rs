//! An interactive session with a guest, whose virtual time stands still between steps.

use hol_base::{Digest, Seed};
use hol_scenario::{PacketObserver, Scenario};

use crate::captured_packet::PacketCapture;
use crate::engine::{InteractiveGuest, Task};
use crate::error::MachineFault;
use crate::job::Job;
use crate::root::RootImage;
use crate::session_step::{SessionObserver, Step, StepResult};
use crate::world::DEFAULT_TIME_LIMIT;
use crate::{Kernel, KernelError, captured_packet, check, packet_match};

/// An interactive guest whose network and services are ready. Dropping it ends the guest.
#[derive(Debug)]
pub struct Session {
    guest: Box<dyn InteractiveGuest>,
    /// The names of the interfaces of all nodes.
    interfaces: Vec<String>,
    /// The digest of the root file system of the guest's programs; `None` if there are none.
    root: Option<Digest>,
}

impl Session {
    /// Starts the network and the services of a `scenario`. The other programs start at their times in the
    /// scenario. The `observer` can abort the start.
    pub fn begin(
        kernel: &Kernel,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn SessionObserver,
    ) -> Result<Self, KernelError> {
        check::check_supported(scenario, kernel.image())?;
        let interfaces = scenario.interfaces().map_err(|problem| KernelError::Unsupported {
            what: "network".to_owned(),
            why: problem.to_string(),
        })?;
        let job =
            Job { scenario: scenario.clone(), seed: seed.0, capture: true, series_ns: None, shell: true };
        let job = serde_json::to_vec(&job).expect("a job can be serialised");
        let root = RootImage::of(scenario)?;
        let task = Task { job: &job, root: root.as_ref(), is_interactive: true, limit: DEFAULT_TIME_LIMIT };
        let mut guest = kernel.instance()?.start_interactive(&task)?;
        guest.perform(None, observer)?;
        Ok(Self { guest, interfaces, root: root.map(|root| root.digest()) })
    }

    /// Returns whether the guest's root file system is the one that the programs of `scenario` need.
    pub fn provides_programs_of(&self, scenario: &Scenario) -> Result<bool, KernelError> {
        Ok(RootImage::of(scenario)?.map(|root| root.digest()) == self.root)
    }

    /// Performs a step in the guest and returns its result.
    pub fn perform(
        &mut self,
        step: &Step,
        observer: &mut dyn SessionObserver,
    ) -> Result<StepResult, KernelError> {
        self.guest.perform(Some(step), observer)
    }

    /// Passes the packets that a [`GuestMessage::Packets`](crate::GuestMessage::Packets) contains to the
    /// `observer`.
    pub fn pass_packets(&self, octets: &[u8], observer: &mut dyn PacketObserver) -> Result<(), KernelError> {
        let malformed =
            || KernelError::from(MachineFault::Guest("the packets of the guest cannot be parsed".to_owned()));
        let packets = packet_match::mark_losses(captured_packet::unpack(octets).ok_or_else(malformed)?);
        captured_packet::pass_to_observer(
            PacketCapture { packets, ..PacketCapture::default() },
            &self.interfaces,
            observer,
        );
        Ok(())
    }
}
