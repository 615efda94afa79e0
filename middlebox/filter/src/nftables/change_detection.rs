//! Detects changes of the table by other programs.

use std::cell::Cell;

use hol_netlink::{KernelMessage, Socket};

use super::kernel::is_about;
use super::transaction::NFTABLES;
use crate::FilterError;

/// A socket that receives notifications of all changes in nftables, including those by this process.
#[derive(Debug)]
pub(super) struct Watch {
    socket: Socket,
    table: String,
    /// The netlink port of the socket with which this process makes its changes.
    own_port: u32,
    has_foreign_change: Cell<bool>,
}

impl Watch {
    /// The netlink group `NFNLGRP_NFTABLES` (number 7), as a bit mask.
    const MULTICAST_GROUPS: u32 = 1 << 6;
    /// Size of the receive buffer in octets; it exceeds the size of all notifications about one transaction.
    const RECEIVE_BUFFER: usize = 32 << 20;

    pub fn open(table: &str, own_port: u32) -> Result<Self, FilterError> {
        let socket = Socket::netfilter_events(Self::MULTICAST_GROUPS)?;
        socket.set_buffers(0, Self::RECEIVE_BUFFER)?;
        Ok(Self { socket, table: table.into(), own_port, has_foreign_change: Cell::new(false) })
    }

    /// Reads the pending notifications before they exceed the buffer.
    pub fn read_events(&self) {
        let is_foreign = |event: &KernelMessage<'_>| {
            event.port != self.own_port && event.kind >> 8 == NFTABLES && is_about(event.body, &self.table)
        };
        let mut has_foreign_change = self.has_foreign_change.get();
        let received = self.socket.read_answers(|event| has_foreign_change |= is_foreign(&event));
        // Lost events may have been about our table.
        self.has_foreign_change.set(has_foreign_change || received.is_err());
    }

    /// Returns true if another program has changed the table since the last call.
    pub fn has_foreign_change(&self) -> bool {
        self.read_events();
        self.has_foreign_change.take()
    }
}
