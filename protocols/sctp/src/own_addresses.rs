//! Changes of our addresses: the sender of ASCONF. RFC 5061 sections 5.1, 5.3 and 5.4.

use hol_base::Time;
use hol_congestion::sctp::Window;
use hol_transport::{Event, Failure, PathStatus, Violation};
use hol_wire::Address;
use hol_wire::sctp::{AddressOperation, Asconf, AsconfAck, AsconfSerial, Cause, Chunk, Request, Response};

use crate::Endpoint;
use crate::path::are_in_same_network;
use crate::state::State;

/// Maximum number of requests in one ASCONF, which must fit into the smallest MTU. RFC 5061 section 5.1.1 C5.
const MAX_REQUESTS: usize = 16;

/// Changes of our addresses that the peer has not confirmed. The endpoint's `local` contains the addresses that
/// both endpoints know.
#[derive(Debug)]
pub(crate) struct OwnAddresses {
    /// New addresses that the peer has not accepted yet. Only ASCONF may be sent from them. RFC 5061 section 5.3
    /// F1.
    adding: Vec<Address>,
    /// New addresses that the peer has accepted, but only ASCONF may be sent from them because it refused another
    /// request.
    withheld: Vec<Address>,
    /// Addresses that the host has lost and whose deletion the peer has not acknowledged. RFC 5061 section 5.3 F4.
    lost_addresses: Vec<Address>,
    /// Changes that wait for the next ASCONF.
    waiting_operations: Vec<AddressOperation>,
    /// The ASCONF that has not been acknowledged (RFC 5061 section 5.1.1 C1), and the path on which it was sent.
    outstanding: Option<(Asconf, usize)>,
    /// The serial number of the next ASCONF.
    serial: AsconfSerial,
}

impl OwnAddresses {
    pub(crate) fn new(serial: AsconfSerial) -> Self {
        let (adding, withheld, lost) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            adding,
            withheld,
            lost_addresses: lost,
            waiting_operations: Vec::new(),
            outstanding: None,
            serial,
        }
    }

    /// Sets the first serial number, which equals the first TSN (RFC 5061 section 5.1 A2). Address changes during
    /// the handshake are requested after the handshake.
    pub(crate) fn set_first_serial(&mut self, serial: AsconfSerial) {
        (self.serial, self.outstanding) = (serial, None);
    }

    /// Returns whether the host has lost an address that the peer may still use.
    pub(crate) fn is_lost(&self, address: Address) -> bool {
        self.lost_addresses.contains(&address)
    }

    /// Returns a new address from which to send ASCONF; `None` if other chunks can be sent from another address.
    fn next_asconf_source(&self) -> Option<Address> {
        self.withheld.first().or(self.adding.first()).copied()
    }

    /// Returns the next requests: additions, then changes of the primary address, then deletions. A new primary
    /// address follows its addition (RFC 5061 section 5.4), and the last address is not deleted before another one
    /// is added (RFC 5061 section 5.3 F5). With `apart` only one request is returned; but if the
    /// host has no other address (`moves`), an addition is returned together with the first waiting deletion.
    fn next_requests(&mut self, apart: bool, moves: bool) -> Vec<Request> {
        self.waiting_operations.sort_by_key(|change| match change {
            AddressOperation::Add(_) => 0,
            AddressOperation::SetPrimary(_) => 1,
            AddressOperation::Delete(_) | AddressOperation::Unknown { .. } => 2,
        });
        let count = self.waiting_operations.len().min(if apart { 1 } else { MAX_REQUESTS });
        let mut changes: Vec<AddressOperation> = self.waiting_operations.drain(..count).collect();
        if apart && moves && matches!(changes[..], [AddressOperation::Add(_)]) {
            let delete = self
                .waiting_operations
                .iter()
                .position(|change| matches!(change, AddressOperation::Delete(_)));
            changes.extend(delete.map(|delete| self.waiting_operations.remove(delete)));
        }
        changes.into_iter().zip(1..).map(|(change, correlation)| Request { correlation, change }).collect()
    }
}

impl Endpoint {
    /// Returns whether we may request changes of our addresses, now or after the handshake. If not, the endpoint
    /// keeps its first addresses.
    fn may_move(&self) -> bool {
        !self.ended
            && if self.state.is_established_or_shutting_down() { self.addip } else { self.config.addip }
    }

    /// Handles an address that the host has gained.
    pub(crate) fn on_address_added(&mut self, now: Time, address: Address) {
        let OwnAddresses { adding, withheld, .. } = &self.own_addresses;
        let is_known = [&self.local, adding, withheld].into_iter().any(|known| known.contains(&address));
        if !self.may_move() || is_known {
            return;
        }
        let own = &mut self.own_addresses;
        let deletion =
            own.waiting_operations.iter().position(|change| *change == AddressOperation::Delete(address));
        if let Some(deletion) = deletion {
            // The address came back before the peer received the deletion.
            own.waiting_operations.remove(deletion);
            own.lost_addresses.retain(|gone| *gone != address);
            self.local.push(address);
            return self.repair_paths(now);
        }
        own.adding.push(address);
        own.waiting_operations
            .extend([AddressOperation::Add(address), AddressOperation::SetPrimary(address)]);
        self.send_next_asconf(now);
    }

    /// Handles the loss of one of the host's addresses. If it was the last one, the association waits indefinitely
    /// for a new address.
    pub(crate) fn on_address_removed(&mut self, now: Time, address: Address) {
        if !self.may_move() {
            return;
        }
        let own = &mut self.own_addresses;
        let about = |change: &AddressOperation| matches!(change, AddressOperation::Add(of) | AddressOperation::SetPrimary(of) if *of == address);
        if own.adding.contains(&address) && own.waiting_operations.iter().any(about) {
            // The peer has not received the addition.
            own.adding.retain(|adding| *adding != address);
            own.waiting_operations.retain(|change| !about(change));
            return;
        }
        let is_new = own.adding.contains(&address) || own.withheld.contains(&address);
        if !is_new && !self.local.contains(&address) {
            return;
        }
        own.adding.retain(|adding| *adding != address);
        own.withheld.retain(|withheld| *withheld != address);
        self.local.retain(|local| *local != address);
        if !self.state.is_established_or_shutting_down()
            && self.state != State::Closed
            && self.local.is_empty()
        {
            // Section 5.1.1 C4: no ASCONF before the association is established, so this association cannot move.
            return self.end(Event::Failed { reason: Failure::AddressRemoved });
        }
        self.own_addresses.lost_addresses.push(address);
        self.own_addresses.waiting_operations.push(AddressOperation::Delete(address));
        self.repair_paths(now);
        self.send_next_asconf(now);
    }

    /// Sends the next ASCONF, if there is a change to request and an address to send it from. RFC 5061 section 5.1
    /// A1 to A4.
    pub(crate) fn send_next_asconf(&mut self, now: Time) {
        // Section 5.1.1 C4.
        let may_ask = self.addip
            && self.state.is_established_or_shutting_down()
            && self.state != State::ShutdownAckSent;
        let own = &mut self.own_addresses;
        let has_no_address = self.local.is_empty() && own.next_asconf_source().is_none();
        if !may_ask || own.outstanding.is_some() || own.waiting_operations.is_empty() || has_no_address {
            return;
        }
        // Section 5.3.2: the lookup address is one that the peer knows, even if the host has lost it.
        let Some(lookup) = self.local.first().or(own.lost_addresses.first()).copied() else { return };
        let requests = own.next_requests(self.config.asconf_apart, self.local.is_empty());
        let asconf = Asconf { serial: own.serial, lookup, requests };
        own.serial = own.serial.next();
        let path = self.paths.active;
        self.own_addresses.outstanding = Some((asconf, path));
        self.send_asconf(now, path);
    }

    /// Sends the ASCONF that has not been acknowledged to `path`, or to another path if `path` has become
    /// unreachable.
    fn send_asconf(&mut self, now: Time, path: usize) {
        let path = self.path_for_asconf(path);
        let Some((asconf, took)) = &mut self.own_addresses.outstanding else { return };
        *took = path;
        self.control.push_back((Some(path), Chunk::Asconf(Box::new(asconf.clone()))));
        self.timers.t4 = Some(self.clock.expiry(now, self.paths.list[path].rto()));
    }

    /// Returns the path on which to send an ASCONF. If the host has no address that the peer knows, this path gets
    /// the new address as its source (RFC 5061 section 5.3 F1), and leads to an address in the same network.
    fn path_for_asconf(&mut self, path: usize) -> usize {
        if !self.local.is_empty() {
            return if self.paths.list[path].stranded { self.paths.active } else { path };
        }
        let Some(new) = self.own_addresses.next_asconf_source() else { return path };
        let near = self.paths.list.iter().position(|path| are_in_same_network(path.address, new));
        let path = near.unwrap_or(path);
        (self.paths.list[path].source, self.paths.list[path].stranded) = (new, false);
        self.paths.select();
        path
    }

    /// Handles the expiry of T-4: retransmits the ASCONF, on another path if possible. RFC 5061 section 5.1 B1 to
    /// B5.
    pub(crate) fn on_t4_expired(&mut self, now: Time) {
        let Some((_, path)) = self.own_addresses.outstanding else { return };
        if self.error_count >= self.config.association_max_retrans {
            return self.on_association_max_retrans();
        }
        self.count_timeout(now, path);
        let other = self.paths.next_active(path).unwrap_or(path);
        self.send_asconf(now, other);
    }

    /// Processes an ASCONF-ACK. RFC 5061 section 5.1 A5 to A8.
    pub(crate) fn on_asconf_ack(&mut self, now: Time, ack: &AsconfAck) {
        let own = &mut self.own_addresses;
        let Some((asconf, path)) = own.outstanding.take_if(|(asconf, _)| asconf.serial == ack.serial) else {
            if own.outstanding.is_none() && ack.serial.at_or_after(own.serial) {
                // Section 5.3 F0.
                self.abort(Cause::IllegalAsconfAck, Failure::Violation(Violation::AsconfAck));
            }
            return;
        };
        self.timers.t4 = None;
        (self.error_count, self.paths.list[path].error_count) = (0, 0);
        let outcomes = outcomes(&asconf, ack);
        let withholds = self.config.asconf_apart && self.local.is_empty() && outcomes.contains(&false);
        for (request, done) in asconf.requests.iter().zip(outcomes) {
            self.on_response(&request.change, done, withholds);
        }
        if !withholds {
            self.use_accepted_addresses();
        }
        // Section 5.3 F3a: no further ASCONF to a peer that does not support it.
        let unknown = |cause: &Cause| matches!(cause, Cause::UnrecognizedParameters(_));
        self.addip &= !ack.responses.iter().any(|response| match response {
            Response::Error { causes, .. } => causes.iter().any(unknown),
            Response::Success { .. } => false,
        });
        self.repair_paths(now);
        self.send_next_asconf(now);
    }

    /// Handles the peer's answer to a request. If `withholds` is true, still only ASCONF may be sent from a new
    /// address, because the peer refused a request. RFC 5061 section 5.3 F2, F10.
    fn on_response(&mut self, change: &AddressOperation, done: bool, withholds: bool) {
        let own = &mut self.own_addresses;
        match change {
            AddressOperation::Add(address) if own.adding.contains(address) => {
                own.adding.retain(|adding| adding != address);
                own.withheld.extend(done.then_some(*address));
            }
            AddressOperation::Delete(_) if withholds && !done => own.waiting_operations.push(change.clone()),
            AddressOperation::Delete(address) => own.lost_addresses.retain(|gone| gone != address),
            AddressOperation::Add(_) | AddressOperation::SetPrimary(_) | AddressOperation::Unknown { .. } => {
            }
        }
    }

    /// Starts to use the new addresses that the peer has accepted.
    fn use_accepted_addresses(&mut self) {
        for address in std::mem::take(&mut self.own_addresses.withheld) {
            self.local.push(address);
            // We also send to the network to which we ask the peer to send.
            let near = self.paths.list.iter().position(|path| are_in_same_network(path.address, address));
            self.paths.primary = near.unwrap_or(self.paths.primary);
        }
    }

    /// Stops sending ASCONF, because the peer does not support it. RFC 5061 section 5.1 A9.
    pub(crate) fn disable_asconf(&mut self) {
        (self.addip, self.timers.t4) = (false, None);
        self.own_addresses.outstanding = None;
    }

    /// Gives each path a source address of ours in its network. If we have none, a path that never had one gets
    /// any of our addresses, and all other paths are stranded.
    fn repair_paths(&mut self, now: Time) {
        for index in 0..self.paths.list.len() {
            let Self { paths, local, .. } = self;
            let path = &paths.list[index];
            let near = local.iter().find(|local| are_in_same_network(**local, path.address));
            let kept = local.contains(&path.source).then_some(path.source);
            let any = local.first().filter(|_| !are_in_same_network(path.source, path.address));
            match near.copied().or(kept).or(any.copied()) {
                Some(source) if source != path.source || path.stranded => {
                    self.change_source(now, index, source);
                }
                Some(_) => {}
                None => self.strand(now, index),
            }
        }
        self.paths.select();
        let stranded = |path: usize| self.paths.list[path].stranded;
        if self.own_addresses.outstanding.as_ref().is_some_and(|(_, took)| stranded(*took)) {
            // The outstanding ASCONF was sent on a dead path: do not wait for T-4.
            self.send_asconf(now, self.paths.active);
        }
    }

    /// Changes the source address of a path, resets its measurements (RFC 9260 section 7.2.5.2) and sends a
    /// HEARTBEAT on it.
    fn change_source(&mut self, now: Time, index: usize, source: Address) {
        let path = &mut self.paths.list[index];
        (path.source, path.stranded, path.error_count) = (source, false, 0);
        path.rtt = crate::rtt::RttEstimator::new(&self.config, self.clock);
        path.window = Window::new(self.config.cwnd_parameters(), self.peer_rwnd);
        self.probe(now, index);
    }

    /// Marks a path as stranded, because the host has no source address for it. The data in flight on it are lost.
    fn strand(&mut self, now: Time, index: usize) {
        if std::mem::replace(&mut self.paths.list[index].stranded, true) {
            return;
        }
        self.set_path_status(index, PathStatus::Inactive);
        self.paths.list[index].stop_timers();
        self.mark_path_lost(now, index);
        self.queue_forward_tsn();
    }
}

/// Returns whether each request of the ASCONF succeeded, according to the ASCONF-ACK. RFC 5061 section 5.1 A7 and
/// A8.
fn outcomes(asconf: &Asconf, ack: &AsconfAck) -> Vec<bool> {
    let mut failed = false;
    let said = |correlation: u32| {
        ack.responses.iter().find_map(|response| match response {
            Response::Success { correlation: of } if *of == correlation => Some(true),
            Response::Error { correlation: of, .. } if *of == correlation => Some(false),
            Response::Success { .. } | Response::Error { .. } => None,
        })
    };
    let outcome = |request: &Request| {
        let done = said(request.correlation).unwrap_or(!failed);
        failed |= !done;
        done
    };
    asconf.requests.iter().map(outcome).collect()
}
