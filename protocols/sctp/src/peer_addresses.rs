//! Changes of the peer's addresses: the receiver of ASCONF. RFC 5061 sections 5.2, 5.3 and 5.4.

use hol_base::Time;
use hol_wire::Address;
use hol_wire::sctp::{AddressOperation, Asconf, AsconfAck, AsconfSerial, Cause, Chunk, Request, Response};

use crate::Endpoint;
use crate::receive::PacketAddresses;

/// What has been received and answered of the peer's ASCONF chunks.
#[derive(Debug)]
pub(crate) struct PeerAddresses {
    /// Peer-Sequence-Number: the serial number of the last ASCONF processed. RFC 5061 section 5.2 V5.
    serial: AsconfSerial,
    /// The answer to the last ASCONF, which is sent again if the ASCONF is repeated. RFC 5061 section 5.2 E4.
    answer: Option<AsconfAck>,
}

impl PeerAddresses {
    /// Creates the state before any ASCONF. The serial number of the first ASCONF equals the peer's first TSN.
    /// RFC 5061 section 5.1 A2.
    pub(crate) fn new(first: AsconfSerial) -> Self {
        Self { serial: first - 1, answer: None }
    }
}

impl Endpoint {
    /// Processes an ASCONF. RFC 5061 section 5.2 E1 to E6.
    pub(crate) fn on_asconf(&mut self, now: Time, origin: PacketAddresses, asconf: &Asconf) {
        let last = self.peer_addresses.serial;
        if asconf.serial == last.next() {
            let answer = self.reconfigure(now, origin.source, asconf);
            self.peer_addresses = PeerAddresses { serial: asconf.serial, answer: Some(answer) };
        }
        let answer = self.peer_addresses.answer.as_ref();
        if let Some(answer) = answer.filter(|answer| answer.serial == asconf.serial) {
            // Section 5.2 E6: the answer goes back to the source.
            let path = self.paths.index_of(origin.source);
            self.control.push_back((path, Chunk::AsconfAck(Box::new(answer.clone()))));
        }
    }

    /// Performs the requests of an ASCONF in order. RFC 5061 section 5.2 V1 to V3. Until the first error a
    /// successful request needs no response; from then on, each request gets one: section 5.1 A7.
    fn reconfigure(&mut self, now: Time, source: Address, asconf: &Asconf) -> AsconfAck {
        let mut responses = Vec::new();
        // If the source is unknown, the association was found by the lookup address.
        let lookup = self.paths.index_of(source).is_none().then_some(asconf.lookup);
        let protected = lookup.filter(|_| self.config.asconf_keeps_lookup_address);
        for request in &asconf.requests {
            let correlation = request.correlation;
            match self.change(now, source, protected, request) {
                Err(cause) => responses.push(Response::Error { correlation, causes: vec![cause] }),
                Ok(()) if !responses.is_empty() => responses.push(Response::Success { correlation }),
                Ok(()) => {}
            }
        }
        AsconfAck { serial: asconf.serial, responses }
    }

    /// Performs a request of the peer; fails if it would delete the address `protected`.
    fn change(
        &mut self,
        now: Time,
        source: Address,
        protected: Option<Address>,
        request: &Request,
    ) -> Result<(), Cause> {
        /// The error cause "Request Refused - No Authorization". RFC 5061 section 4.3.5.
        const REQUEST_REFUSED: u16 = 164;

        let meant = |address: Address| if address.is_unspecified() { source } else { address };
        match request.change {
            AddressOperation::Add(address) => self.add_peer_address(now, meant(address)),
            AddressOperation::SetPrimary(address) => {
                // Section 5.4: a request for an unknown address is not performed.
                if let Some(path) = self.paths.index_of(meant(address)) {
                    self.paths.primary = path;
                    self.paths.select();
                }
            }
            AddressOperation::Delete(address) if address.is_unspecified() => {
                let others = self.paths.list.iter().map(|path| path.address).filter(|other| *other != source);
                for other in others.collect::<Vec<_>>() {
                    self.delete_peer_address(now, other);
                }
            }
            AddressOperation::Delete(address) => {
                let is_last = self.paths.count() == 1 && self.paths.index_of(address).is_some();
                let copied = || request.to_bytes();
                match address {
                    // Section 5.3 F7 has precedence over F8.
                    _ if is_last => return Err(Cause::DeleteLastAddress(copied())),
                    _ if protected == Some(address) => {
                        return Err(Cause::Other { code: REQUEST_REFUSED, value: copied() });
                    }
                    _ if address == source => return Err(Cause::DeleteSourceAddress(copied())),
                    _ => self.delete_peer_address(now, address),
                }
            }
            AddressOperation::Unknown { .. } => {
                return Err(Cause::UnrecognizedParameters(request.to_bytes()));
            }
        }
        Ok(())
    }

    /// Adds an address of the peer. It is unconfirmed, and carries no data until the peer has answered from it.
    /// RFC 5061 section 5.3 F14.
    fn add_peer_address(&mut self, now: Time, address: Address) {
        if self.paths.index_of(address).is_some() {
            return;
        }
        self.add_path(address, self.peer_rwnd);
        let path = self.paths.list.len() - 1;
        self.paths.list[path].added = true;
        self.paths.select();
        self.probe(now, path);
    }

    /// Deletes an address of the peer. Its index is kept, because chunks in flight refer to it. RFC 5061 section
    /// 5.3 F13.
    fn delete_peer_address(&mut self, now: Time, address: Address) {
        let Some(path) = self.paths.index_of(address) else { return };
        self.paths.list[path].deleted = true;
        self.paths.list[path].stop_timers();
        if self.paths.primary == path {
            // Section 5.3 F12 permits any other address as primary.
            self.paths.primary = self.paths.list.iter().position(|path| !path.deleted).unwrap_or(path);
        }
        self.paths.select();
        if self.config.deleted_flight_moves {
            return self.move_flight(now, path, self.paths.active);
        }
        self.mark_path_lost(now, path);
        self.queue_forward_tsn();
    }
}
