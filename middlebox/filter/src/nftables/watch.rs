//! Detects others' changes to the table.

use std::cell::Cell;

use hol_netlink::{Received, Socket};

use super::kernel::is_about;
use super::transaction::NFTABLES;
use crate::FilterError;

/// A socket that receives all changes, including ours.
#[derive(Debug)]
pub(super) struct Watch {
    socket: Socket,
    table: String,
    /// The port of our own changes.
    own_port: u32,
    is_touched: Cell<bool>,
}

impl Watch {
    /// `NFNLGRP_NFTABLES` is 7.
    const GROUPS: u32 = 1 << 6;
    /// Maximum pending octets: more than one transaction causes.
    const WAITING: usize = 32 << 20;

    pub fn open(table: &str, own_port: u32) -> Result<Self, FilterError> {
        let socket = Socket::netfilter_events(Self::GROUPS)?;
        socket.set_buffers(0, Self::WAITING)?;
        Ok(Self { socket, table: table.into(), own_port, is_touched: Cell::new(false) })
    }

    /// Reads pending events before they exceed the room.
    pub fn listen(&self) {
        let is_strange = |event: &Received<'_>| {
            event.port != self.own_port && event.kind >> 8 == NFTABLES && is_about(event.body, &self.table)
        };
        let mut is_touched = self.is_touched.get();
        let heard = self.socket.answers(|event| is_touched |= is_strange(&event));
        // Lost events may have been about our table.
        self.is_touched.set(is_touched || heard.is_err());
    }

    /// Returns true if somebody else has changed the table since the last call.
    pub fn is_touched(&self) -> bool {
        self.listen();
        self.is_touched.take()
    }
}
