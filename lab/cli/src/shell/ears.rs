//! Hears what a guest says during a step, and Ctrl-C.

use std::sync::atomic::{AtomicU32, Ordering};

use hol_base::{Digest, Digester};
use hol_kernel::{Letter, Listener, Wish};

use super::voice::Voice;
use crate::failure::Failure;

/// How often Ctrl-C was pressed.
static PRESSED: AtomicU32 = AtomicU32::new(0);
/// A line that takes so many interrupts and goes on is ended with its guest.
const ENOUGH: u32 = 3;

/// Has Ctrl-C interrupt what runs in the network.
pub fn mind_interrupts() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        PRESSED.fetch_add(1, Ordering::Relaxed);
    })
    .map_err(Failure::failed)
}

/// Hears one step.
pub struct Ears {
    /// Who is told what programs print.
    voice: Option<Voice>,
    digester: Digester,
    /// The packets, if they were asked for.
    pub packets: Vec<u8>,
    pressed: u32,
    interrupts: u32,
}

impl Ears {
    /// For what happens the first time.
    pub fn loud(voice: Voice) -> Self {
        Self { voice: Some(voice), ..Self::quiet() }
    }

    /// For what is done again.
    pub fn quiet() -> Self {
        let pressed = PRESSED.load(Ordering::Relaxed);
        Self { voice: None, digester: Digester::new(), packets: Vec::new(), pressed, interrupts: 0 }
    }

    /// Stands for all that programs printed.
    pub fn digest(&self) -> Digest {
        self.digester.finish()
    }
}

impl Listener for Ears {
    fn hear(&mut self, letter: &Letter) {
        match letter {
            Letter::Out(text) | Letter::Err(text) => {
                self.digester.add_octets(text);
                match (self.voice, letter) {
                    (None, _) => {}
                    (Some(voice), Letter::Out(_)) => voice.out(text),
                    (Some(voice), _) => voice.err(text),
                }
            }
            Letter::Packets(packets) => self.packets.clone_from(packets),
            Letter::Reply(_) => {}
        }
    }

    /// What is done again is not interrupted but ended.
    fn wish(&mut self) -> Wish {
        let pressed = PRESSED.load(Ordering::Relaxed);
        if pressed == self.pressed {
            return Wish::GoOn;
        }
        (self.pressed, self.interrupts) = (pressed, self.interrupts + 1);
        if self.voice.is_some() && self.interrupts < ENOUGH { Wish::Interrupt } else { Wish::End }
    }
}
