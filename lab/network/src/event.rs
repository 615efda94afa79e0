//! The `[[network.events]]` tables: changes during a run.

use hol_base::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event_rate::EventRate;
use crate::loss::LossSpec;

/// A change during the run: the link goes down or up, or one of its settings changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// Time since the start of the run.
    pub at: Duration,
    /// Direction in which the link changes. Default both.
    #[serde(default)]
    pub direction: LinkDirection,
    /// Number of the path that changes, counted from 1. Default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<usize>,
    /// Name of the link or LAN that changes, in a network with `nodes`. Default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// `true`: the link goes down, and packets on it are lost; `false`: it works again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
    /// The new bit rate, from the next bit on. `0bit`: nothing is sent, and packets wait in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BitRate>")]
    pub rate: Option<EventRate>,
    /// The new loss, from the next packet on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSpec>,
    /// The new delay, from the next packet on; packets keep their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
}

impl EventSpec {
    /// Creates an event that changes nothing yet.
    pub(crate) const fn empty(at: Duration, direction: LinkDirection) -> Self {
        Self { at, direction, path: None, link: None, down: None, rate: None, loss: None, delay: None }
    }
}

/// The directions that an event changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkDirection {
    /// Both directions.
    #[default]
    Both,
    /// From client to server, or `from` → `to`.
    Up,
    /// From server to client, or `to` → `from`.
    Down,
}
