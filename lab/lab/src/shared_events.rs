//! Events of a network that several points of a manifest share, such as those of a trace: the manifest lists them once.

use std::mem;

use hol_network::EventSpec;
use serde::{Deserialize, Serialize};

use crate::point::Point;

/// The smallest number of events in a list that is stored separately. For a shorter list the reference would be
/// longer than the list.
const MIN_EVENTS: usize = 16;

/// A list of events, and the points whose networks contain it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedEvents {
    /// Indices of the points that share the events.
    points: Vec<usize>,
    events: Vec<EventSpec>,
}

/// Moves long lists of events out of the points.
pub(crate) fn extract(points: &mut [Point]) -> Vec<SharedEvents> {
    let mut all: Vec<SharedEvents> = Vec::new();
    for (index, point) in points.iter_mut().enumerate() {
        let events = &mut point.network.events;
        if events.len() < MIN_EVENTS {
            continue;
        }
        let events = mem::take(events);
        // Points with the same trace usually follow each other.
        match all.iter_mut().rev().find(|shared| shared.events == events) {
            Some(shared) => shared.points.push(index),
            None => all.push(SharedEvents { points: vec![index], events }),
        }
    }
    all
}

/// Moves the shared lists back into their points.
pub(crate) fn restore(points: &mut [Point], all: Vec<SharedEvents>) {
    for SharedEvents { points: indices, events } in all {
        for index in indices {
            if let Some(point) = points.get_mut(index) {
                point.network.events.clone_from(&events);
            }
        }
    }
}
