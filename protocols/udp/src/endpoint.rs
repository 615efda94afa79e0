//! A UDP endpoint: datagrams, and the transactions that retransmit them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Command, DeliveryTimes, Event, Input, Message, Output, ReceivedData, Statistics};
use hol_wire::udp::Datagram;
use hol_wire::{Address, Packet, SendTimes, Transport};

use crate::recent_messages::RecentMessages;
use crate::transaction::Transaction;
use crate::{Config, SipTransaction};

/// The first octets of a message. They identify it in every workload; real SIP uses the branch parameter for this.
/// RFC 3261 section 17.1.3.
pub(crate) type MessageId = [u8; 8];

/// The start of a response, which is followed by the name of its request. No request starts like this. RFC 3261
/// section 7.2.
const RESPONSE_PREFIX: &[u8; 8] = b"SIP/2.0 ";

/// An address and a port.
type SocketAddress = (Address, u16);

/// One end of a flow of UDP datagrams.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    local: SocketAddress,
    /// The peer's address and port; a server learns them from the first datagram.
    peer: Option<SocketAddress>,
    /// Outputs that are due now, in order.
    ready_outputs: VecDeque<Output>,
    /// SIP requests that have not been answered.
    open_transactions: BTreeMap<MessageId, Transaction>,
    /// The next deadline of each request that has not been answered.
    timers: BTreeSet<(Time, MessageId)>,
    /// Identifiers of the latest messages received, because the network or a SIP transaction may deliver a message
    /// twice.
    recent: RecentMessages,
    /// Whether the endpoint closes when all SIP transactions are done.
    closing: bool,
    statistics: Statistics,
}

impl Endpoint {
    /// Creates the end that sends first.
    ///
    /// ```
    /// use hol_udp::base::Time;
    /// use hol_udp::transport::{Command, Endpoint as _, Event, Input, Message, Output, drain};
    /// use hol_udp::{Config, Endpoint, wire::ipv4};
    ///
    /// let (client, server) = ((ipv4(10, 0, 0, 1), 5060), (ipv4(10, 0, 0, 2), 5060));
    /// let mut sender = Endpoint::connect(Config::rfc768(), client, server);
    /// let mut receiver = Endpoint::listen(Config::rfc768(), server);
    /// sender.handle(Time::ZERO, Input::Command(Command::Send(Message::new("the message"))));
    /// drain(&mut sender, Time::ZERO, |_, output| match output {
    ///     Output::Transmit(packet) => receiver.handle(Time::ZERO, Input::Packet(packet)),
    ///     other => panic!("{other:?}"),
    /// });
    /// let Output::Event(Event::Received(message)) = receiver.poll(Time::ZERO) else { panic!("nothing arrived") };
    /// assert_eq!(message.payload, "the message");
    /// ```
    pub fn connect(config: Config, local: SocketAddress, peer: SocketAddress) -> Self {
        Self::new(config, local, Some(peer))
    }

    /// Creates the server's end, which replies to the first sender.
    pub fn listen(config: Config, local: SocketAddress) -> Self {
        Self::new(config, local, None)
    }

    fn new(config: Config, local: SocketAddress, peer: Option<SocketAddress>) -> Self {
        Self {
            config,
            local,
            peer,
            ready_outputs: VecDeque::new(),
            open_transactions: BTreeMap::new(),
            timers: BTreeSet::new(),
            recent: RecentMessages::default(),
            closing: false,
            statistics: Statistics::default(),
        }
    }

    fn command(&mut self, now: Time, command: Command) {
        match command {
            // UDP has no handshake.
            Command::Connect => self.report(Event::Connected),
            Command::Send(message) => self.send(now, message),
            Command::Close => {
                self.closing = true;
                self.close_when_done();
            }
            // UDP has no flow control.
            Command::Read(_) => {}
            Command::Reconfigure(what) => self.report(Event::Reconfigured { what, done: false }),
            Command::Abort => {
                self.open_transactions.clear();
                self.timers.clear();
                self.ready_outputs.clear();
            }
        }
    }

    fn send(&mut self, now: Time, Message { payload, stream, .. }: Message) {
        self.statistics.data_sent += 1;
        self.transmit(payload.clone(), SendTimes { first_sent: now, sent: now, cut: false });
        if self.config.sip == SipTransaction::Off {
            return;
        }
        let Some(name) = payload.first_chunk().copied() else { return };
        let transaction = Transaction::begin(&self.config, now, payload, stream);
        self.timers.insert((transaction.due(now), name));
        self.open_transactions.insert(name, transaction);
    }

    fn receive(&mut self, now: Time, packet: Packet) {
        let Packet { source, transport: Transport::Udp(datagram), corrupted: false, .. } = packet else {
            return;
        };
        self.statistics.packets_received += 1;
        let Datagram { source_port, payload, stamp, .. } = *datagram;
        self.peer.get_or_insert((source, source_port));
        let response = payload.strip_prefix(RESPONSE_PREFIX).and_then(|rest| rest.first_chunk().copied());
        match response.filter(|_| self.config.sip != SipTransaction::Off) {
            Some(name) => self.end(name),
            None => self.deliver(now, payload, stamp),
        }
    }

    fn deliver(&mut self, now: Time, payload: Bytes, stamp: SendTimes) {
        let Some(name) = payload.first_chunk().copied() else { return };
        if self.config.sip != SipTransaction::Off {
            // A server transaction answers every copy. RFC 3261 section 17.2.2.
            let mut response = [RESPONSE_PREFIX.as_slice(), &name].concat();
            response.resize(self.config.response.0 as usize, b' ');
            self.transmit(response.into(), SendTimes { first_sent: now, sent: now, cut: false });
        }
        if !self.recent.insert(name) {
            self.statistics.duplicates_received += 1;
            return;
        }
        let delivery_times = DeliveryTimes::new(stamp, now);
        self.report(Event::Received(ReceivedData {
            stream: 0,
            unordered: true,
            ppid: 0,
            payload,
            delivery_times,
        }));
    }

    /// Retransmits the requests whose timer has expired, or lets them fail.
    fn on_timers(&mut self, now: Time) {
        while let Some(&(due, name)) = self.timers.first().filter(|(due, _)| *due <= now) {
            self.timers.remove(&(due, name));
            // A completed transaction does not remove its timer.
            let Some(transaction) = self.open_transactions.get_mut(&name) else { continue };
            if transaction.is_over(now) {
                let stream = transaction.stream;
                self.end(name);
                self.report(Event::Abandoned { stream });
                continue;
            }
            transaction.back_off(&self.config);
            let (request, first_sent) = (transaction.request.clone(), transaction.first_sent);
            self.timers.insert((transaction.due(now), name));
            self.statistics.timeouts += 1;
            self.statistics.timeout_retransmissions += 1;
            self.transmit(request, SendTimes { first_sent, sent: now, cut: false });
        }
    }

    fn end(&mut self, name: MessageId) {
        self.open_transactions.remove(&name);
        self.close_when_done();
    }

    fn close_when_done(&mut self) {
        if self.closing && self.open_transactions.is_empty() {
            self.closing = false;
            self.report(Event::Closed);
        }
    }

    fn transmit(&mut self, payload: Bytes, stamp: SendTimes) {
        let (source, source_port) = self.local;
        let (destination, destination_port) =
            self.peer.expect("a server sends nothing before its first request");
        let datagram = Datagram { source_port, destination_port, payload, stamp };
        self.statistics.packets_sent += 1;
        self.ready_outputs.push_back(Output::Transmit(Packet::new(source, destination, datagram)));
    }

    fn report(&mut self, event: Event) {
        self.ready_outputs.push_back(Output::Event(event));
    }
}

impl hol_transport::Endpoint for Endpoint {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Packet(packet) => self.receive(now, packet),
            Input::Command(command) => self.command(now, command),
            Input::AddressAdded(_) | Input::AddressRemoved(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        self.on_timers(now);
        let next = || Output::Wait(self.timers.first().map(|(due, _)| *due));
        self.ready_outputs.pop_front().unwrap_or_else(next)
    }

    /// Returns true, because UDP accepts every message. The network drops what it cannot carry.
    fn can_send(&self, _length: usize) -> bool {
        true
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}
