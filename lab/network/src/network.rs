//! The running network: takes packets from nodes, delivers packets to nodes, and reports when it acts next.

use std::sync::Arc;

use hol_base::{Seed, Time};
use hol_wire::Packet;

use crate::channel::Channel;
use crate::delay_line::changes_after_propagation;
use crate::event_queue::EventQueue;
use crate::identifier::{InterfaceId, NodeId};
use crate::link::Link;
use crate::observer::TapReporter;
use crate::tap::{Drops, Tap, TapEvent};
use crate::topology::{Interface, Route, RouteChange, ScheduledChange, Topology};
use crate::transit::PacketInTransit;

/// All links of a topology, with the packets on them.
///
/// Sans-IO: [`send`](Self::send) a packet, [`poll`](Self::poll) at [`next_action`](Self::next_action). At the
/// same instant links act first, in the order of the table, then scheduled changes, then changes of routes. A link
/// that becomes free starts to send the next packet after all packets of that instant have arrived.
pub struct Network<'t> {
    interfaces: Vec<Interface>,
    /// Routes of each node, ascending by destination.
    routes: Arc<Vec<Vec<Route>>>,
    links: Vec<Link>,
    channels: Vec<Channel>,
    /// The channel of each link, if it shares one.
    channel_of: Vec<Option<usize>>,
    /// Scheduled changes of links, the latest first.
    changes: Vec<ScheduledChange>,
    /// Scheduled changes of routes, the latest first.
    route_changes: Vec<RouteChange>,
    /// When each link acts, by index; the last two entries are the next change of a link and of a route.
    event_queue: EventQueue,
    observer: TapReporter<'t>,
    /// The sending interfaces of each link.
    senders: Vec<Vec<InterfaceId>>,
    packets: u64,
}

/// The number of packets and octets that wait at a link, and the packets that it dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Packets queued and in transmission.
    pub packets: u64,
    /// IP octets of the packets queued and in transmission.
    pub octets: u64,
    /// Packets dropped on the link so far.
    pub drops: Drops,
}

/// A packet that reached its destination node.
#[derive(Debug)]
pub struct Arrival {
    /// The destination node.
    pub node: NodeId,
    /// The packet that arrived.
    pub packet: Packet,
}

impl<'t> Network<'t> {
    /// Creates an idle network. Each link derives its random streams from `seed` and its own name.
    pub fn new(topology: &Topology, seed: Seed, tap: Option<&'t mut dyn Tap>) -> Self {
        let delays = topology.changing_delays();
        let links = topology
            .links
            .iter()
            .zip(&delays)
            .map(|(link, delay)| Link::new(&link.settings, seed.derive(&link.name), delay.is_some()));
        let links = links.collect();
        let changes = changes_after_propagation(topology.changes_of_run(seed), delays);
        let changes: Vec<_> = changes.into_iter().rev().collect();
        let channels = Channel::from_links(&topology.links);
        let mut channel_of = vec![None; topology.links.len()];
        for (place, channel) in channels.iter().enumerate() {
            channel.members.iter().for_each(|link| channel_of[*link] = Some(place));
        }
        let route_changes: Vec<_> = topology.route_changes.iter().rev().copied().collect();
        let mut event_queue = EventQueue::new(topology.links.len() + 2);
        event_queue.set(topology.links.len(), changes.last().map_or(Time::MAX, |change| change.at));
        event_queue.set(topology.links.len() + 1, route_changes.last().map_or(Time::MAX, |change| change.at));
        Self {
            interfaces: topology.interfaces.clone(),
            routes: Arc::clone(&topology.routes),
            links,
            channels,
            channel_of,
            changes,
            route_changes,
            event_queue,
            observer: TapReporter::new(topology.interface_names(), tap),
            senders: topology.senders(),
            packets: 0,
        }
    }

    /// Returns when the network acts next; [`Time::MAX`] if no packet is under way and no change is scheduled.
    pub fn next_action(&self) -> Time {
        self.event_queue.first().0
    }

    /// Returns the number of packets that nodes have sent; forwarding a packet does not count.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of packets that did not arrive, by reason.
    pub fn drops(&self) -> Drops {
        self.observer.drops()
    }

    /// Returns how often a queue marked a packet with congestion instead of dropping it. RFC 3168 section 5.
    pub fn marked_packets(&self) -> u64 {
        self.links.iter().map(Link::marked_packets).sum()
    }

    /// Returns the backlog of each link, in the order of [`Topology::queues`].
    pub fn backlogs(&self, now: Time) -> impl Iterator<Item = Backlog> {
        self.links.iter().zip(&self.senders).map(move |(link, senders)| {
            let (packets, octets) = link.backlog(now);
            Backlog { packets, octets, drops: self.observer.drops_from(senders) }
        })
    }

    /// Sends a packet from `node`.
    #[inline]
    pub fn send(&mut self, now: Time, node: NodeId, packet: Packet) {
        let number = self.packets as u32;
        self.packets += 1;
        self.forward(now, node, number, packet);
    }

    /// Runs until `now`, or until a packet reaches its destination, and returns this packet; `None` if none arrives
    /// by `now`.
    pub fn poll(&mut self, now: Time) -> Option<Arrival> {
        loop {
            let (at, component) = self.event_queue.first();
            if at > now {
                return None;
            }
            if component >= self.links.len() {
                if component == self.links.len() {
                    self.change(now);
                } else {
                    self.change_route();
                }
                continue;
            }
            self.advance(now, component);
            let transit = self.links[component].take_arrival(now, &mut self.observer);
            self.schedule(component);
            if let Some(arrival) = transit.and_then(|transit| self.arrive(now, transit)) {
                return Some(arrival);
            }
        }
    }

    #[inline]
    fn arrive(&mut self, now: Time, transit: PacketInTransit) -> Option<Arrival> {
        let Interface { node, address, .. } = self.interfaces[usize::from(transit.to.0)];
        // In the common case, one hop, the node's other interfaces need no check.
        let here = transit.packet.destination == address || self.owns(node, &transit.packet);
        if here && transit.packet.corrupted {
            self.observer.report_corrupted(now, &transit);
            return None;
        }
        self.observer.report(now, transit.to, &transit, TapEvent::Received);
        if here {
            return Some(Arrival { node, packet: transit.packet });
        }
        self.forward(now, node, transit.number, transit.packet);
        None
    }

    #[inline]
    fn forward(&mut self, now: Time, node: NodeId, number: u32, packet: Packet) {
        let routes = &self.routes[usize::from(node.0)];
        let Ok(route) = routes.binary_search_by_key(&packet.destination, |route| route.destination) else {
            panic!("{node:?} sends to {}, which is not in the network", packet.destination);
        };
        let Route { link, from, to, .. } = routes[route];
        let transit = PacketInTransit::new(from, to, number, packet);
        self.observer.report(now, from, &transit, TapEvent::Sent);
        let link = usize::from(link.0);
        self.advance(now, link);
        self.links[link].offer(now, transit, &mut self.observer);
        if let Some(channel) = self.channel_of[link] {
            self.channels[channel].occupy(link, &mut self.links);
        }
        self.schedule(link);
    }

    /// Starts the due transmissions of a link, in turns on a shared channel.
    #[inline]
    fn advance(&mut self, now: Time, link: usize) {
        let Self { links, channels, observer, .. } = self;
        match self.channel_of[link] {
            Some(channel) => channels[channel].advance(now, links, observer),
            None => links[link].advance(now, observer),
        }
    }

    /// Schedules the next action of a link and of the links that share its channel.
    #[inline]
    fn schedule(&mut self, link: usize) {
        let Self { links, channels, event_queue, .. } = self;
        match self.channel_of[link] {
            Some(channel) => {
                channels[channel]
                    .members
                    .iter()
                    .for_each(|one| event_queue.set(*one, links[*one].next_action()));
            }
            None => event_queue.set(link, links[link].next_action()),
        }
    }

    fn change(&mut self, now: Time) {
        let scheduled =
            self.changes.pop().expect("the event queue has an entry only while a change is pending");
        let link = usize::from(scheduled.link.0);
        self.advance(now, link);
        let due = self.links[link].sends_until(now);
        self.links[link].change(now, &scheduled.change, &mut self.observer);
        if let (Some(channel), Some(due)) = (self.channel_of[link], due) {
            self.channels[channel].adjust_blocked(link, due, &mut self.links);
        }
        self.schedule(link);
        self.event_queue.set(self.links.len(), self.changes.last().map_or(Time::MAX, |change| change.at));
    }

    fn change_route(&mut self) {
        let RouteChange { node, route, .. } =
            self.route_changes.pop().expect("the event queue has an entry only while a change is pending");
        // Only networks of paths have route changes, so this copies a handful of routes.
        let routes = &mut Arc::make_mut(&mut self.routes)[usize::from(node.0)];
        let way = routes.iter_mut().find(|way| way.destination == route.destination);
        *way.expect("every node has a route to every address") = route;
        let next = self.route_changes.last().map_or(Time::MAX, |change| change.at);
        self.event_queue.set(self.links.len() + 1, next);
    }

    fn owns(&self, node: NodeId, packet: &Packet) -> bool {
        self.interfaces
            .iter()
            .any(|interface| interface.node == node && interface.address == packet.destination)
    }
}
