//! Flows that have something to do because another on one of their hosts has done something.

use std::sync::{Arc, Mutex};

use hol_workloads::Bell;

/// The bells of all flows, and which of them have rung.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bells(Arc<Mutex<Vec<usize>>>);

impl Bells {
    /// The bell of a flow.
    pub(crate) fn of(&self, dialogue: usize) -> Bell {
        let Self(rung) = self.clone();
        Box::new(move || rung.lock().expect("nobody panics with it").push(dialogue))
    }

    /// Which have rung since the last time.
    pub(crate) fn rung(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().expect("nobody panics with it"))
    }
}
