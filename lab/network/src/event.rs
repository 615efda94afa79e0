//! The `[[network.events]]` tables: changes during a run.

use hol_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event_rate::EventRate;
use crate::loss::LossSpec;

/// A change of a link during the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// Time since the start of the run.
    pub at: Duration,
    /// Direction that changes. Default both.
    #[serde(default)]
    pub direction: LinkDirection,
    /// Path that changes, counted from 1. Default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<usize>,
    /// Link or LAN that changes. Default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// `true`: the link fails and loses its packets; `false`: it works again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
    /// New bit rate, from the next bit on. `0bit`: packets wait in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<EventRate>,
    /// New loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSpec>,
    /// New delay of packets sent from then on; packets keep their order.
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
