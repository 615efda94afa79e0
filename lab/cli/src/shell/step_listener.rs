//! Receives the messages of a guest during a step, and Ctrl-C.

use std::sync::atomic::{AtomicU32, Ordering};

use hol_base::{Digest, Digester};
use hol_kernel::{GuestMessage, SessionObserver, StepControl};

use super::output::OutputFormat;
use crate::failure::Failure;

/// Number of times that the user has pressed Ctrl-C.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
/// Number of times the user presses Ctrl-C before the guest is ended, if the line still runs.
const MAX_INTERRUPTS: u32 = 3;

/// Makes Ctrl-C interrupt the running line instead of this program.
pub fn handle_interrupts() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        INTERRUPTS.fetch_add(1, Ordering::Relaxed);
    })
    .map_err(Failure::failed)
}

/// Receives what the guest sends during one step.
pub struct StepListener {
    /// Where to print the output of programs; `None` during a replay.
    output: Option<OutputFormat>,
    digester: Digester,
    /// The captured packets, if the step requests them; otherwise empty.
    pub packets: Vec<u8>,
    interrupts_seen: u32,
    interrupts: u32,
}

impl StepListener {
    /// Creates a listener that prints the output of programs.
    pub fn forwarding(output: OutputFormat) -> Self {
        Self { output: Some(output), ..Self::silent() }
    }

    /// Creates a listener for a replay, which prints nothing.
    pub fn silent() -> Self {
        let interrupts_seen = INTERRUPTS.load(Ordering::Relaxed);
        Self { output: None, digester: Digester::new(), packets: Vec::new(), interrupts_seen, interrupts: 0 }
    }

    /// Returns the digest of the output of all programs during the step.
    pub fn output_digest(&self) -> Digest {
        self.digester.finish()
    }
}

impl SessionObserver for StepListener {
    fn receive(&mut self, message: &GuestMessage) {
        match message {
            GuestMessage::Stdout(text) | GuestMessage::Stderr(text) => {
                self.digester.add_octets(text);
                match (self.output, message) {
                    (None, _) => {}
                    (Some(output), GuestMessage::Stdout(_)) => output.write_stdout(text),
                    (Some(output), _) => output.write_stderr(text),
                }
            }
            GuestMessage::Packets(packets) => self.packets.clone_from(packets),
            GuestMessage::Reply(_) => {}
        }
    }

    /// Returns what Ctrl-C causes: it interrupts the running line, or ends a replay.
    fn next_control(&mut self) -> StepControl {
        let interrupts_seen = INTERRUPTS.load(Ordering::Relaxed);
        if interrupts_seen == self.interrupts_seen {
            return StepControl::Continue;
        }
        (self.interrupts_seen, self.interrupts) = (interrupts_seen, self.interrupts + 1);
        if self.output.is_some() && self.interrupts < MAX_INTERRUPTS {
            StepControl::Interrupt
        } else {
            StepControl::End
        }
    }
}
