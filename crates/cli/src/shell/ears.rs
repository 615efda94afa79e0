//! Hears what a guest says during a step, and Ctrl-C.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};

use hol_base::{Digest, Digester};
use hol_kernel::{Letter, Listener, Wish};

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
    /// Whether it passes on what programs print.
    is_loud: bool,
    digester: Digester,
    /// The packets, if they were asked for.
    pub packets: Vec<u8>,
    pressed: u32,
    interrupts: u32,
}

impl Ears {
    /// For what happens the first time.
    pub fn loud() -> Self {
        Self { is_loud: true, ..Self::quiet() }
    }

    /// For what is done again.
    pub fn quiet() -> Self {
        let pressed = PRESSED.load(Ordering::Relaxed);
        Self { is_loud: false, digester: Digester::new(), packets: Vec::new(), pressed, interrupts: 0 }
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
                match letter {
                    _ if !self.is_loud => {}
                    Letter::Out(_) => pass_on(io::stdout(), text),
                    _ => pass_on(io::stderr(), text),
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
        if self.is_loud && self.interrupts < ENOUGH { Wish::Interrupt } else { Wish::End }
    }
}

/// As it is; a reader that went away has had enough.
fn pass_on(mut to: impl Write, text: &[u8]) {
    if to.write_all(text).and_then(|()| to.flush()).is_err() {
        std::process::exit(0);
    }
}
