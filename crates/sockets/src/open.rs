//! Makes the sockets and the applications of a run.

use hol_base::Duration;
use hol_stack::{Kind, Protocol};
use hol_system::{Interest, Poller};
use hol_transport::Reliability;
use hol_workloads::{Client, Face, Server};

use crate::clock::{Alarm, Clock};
use crate::filter::Filter;
use crate::mptcp::Mptcp;
use crate::plan::{End, Plan, Site, SocketsError};
use crate::progress::Progress;
use crate::sctp::Sctp;
use crate::side::Side;
use crate::tcp::Tcp;
use crate::token::Token;
use crate::transceiver::{self, Opener, own_port, refused};
use crate::udp::Udp;
use crate::world::World;

/// Without a delivery for so many times the longest retransmission timeout, a run has stalled.
const STALLED_TIMEOUTS: u64 = 3;
/// Without a delivery for so long, a run over UDP has stalled.
const STALLED_DATAGRAMS: Duration = Duration::from_secs(60);

/// The world of `plan` with its sockets, connecting.
pub(crate) fn world<'p>(
    plan: &'p Plan,
    enter: &mut dyn FnMut(End) -> std::io::Result<()>,
) -> Result<World<'p>, SocketsError> {
    let Plan { transport, workload, messages, seed, .. } = plan;
    let connections = transport.connections();
    let patience = match transport.protocol() {
        Protocol::Tcp { config, .. } | Protocol::Mptcp { config, .. } => config.rto_max * STALLED_TIMEOUTS,
        Protocol::Sctp { config, .. } => config.rto_max * STALLED_TIMEOUTS,
        Protocol::Udp { .. } => STALLED_DATAGRAMS,
    };
    let face = Face { streams: transport.streams(), sessions: connections };
    let client = Client::new(workload, face, *messages, *seed);
    let server = Server::new(workload, face, *messages);
    let lossy = transport.kind() == Kind::Udp || gives_up(plan);
    let mut world = World {
        plan,
        clock: Clock::start(),
        alarm: Alarm::new().map_err(refused("make a timer"))?,
        poller: Poller::new().map_err(refused("make an epoll"))?,
        opener: opener(plan),
        listener: None,
        client_ports: Vec::new(),
        client: Side::new(End::Client, client, connections),
        server: Side::new(End::Server, server, connections),
        filter: None,
        progress: Progress::new(workload, *messages, lossy, patience),
        paths: Vec::new(),
        buffer: vec![0; World::BUFFER].into_boxed_slice(),
    };
    world.poller.add(&world.alarm, Token::Alarm, Interest::Read).map_err(refused("watch the timer"))?;
    world.open(connections, enter)?;
    Ok(world)
}

/// Whether the transport may give messages up.
pub(crate) fn gives_up(plan: &Plan) -> bool {
    matches!(plan.transport.protocol(), Protocol::Sctp { reliability, .. } if *reliability != Reliability::Full)
}

fn opener(plan: &Plan) -> Box<dyn Opener> {
    let length_of = plan.workload.length_of();
    match plan.transport.protocol() {
        Protocol::Tcp { config, .. } => {
            Box::new(Tcp { family: Tcp::FAMILY, config: config.clone(), length_of })
        }
        Protocol::Mptcp { config, .. } => {
            Box::new(Mptcp(Tcp { family: Mptcp::FAMILY, config: config.clone(), length_of }))
        }
        Protocol::Sctp { config, associations, single_homed, unordered, reliability } => Box::new(Sctp {
            config: config.clone(),
            associations: *associations,
            single_homed: *single_homed,
            unordered: *unordered,
            reliability: *reliability,
        }),
        Protocol::Udp { .. } => Box::new(Udp),
    }
}

impl World<'_> {
    /// Makes the sockets of both ends, each in its network, and begins to connect.
    fn open(
        &mut self,
        connections: u16,
        enter: &mut dyn FnMut(End) -> std::io::Result<()>,
    ) -> Result<(), SocketsError> {
        let Plan { client, server, transport, workload, .. } = self.plan;
        enter(End::Server).map_err(refused("enter the server's network"))?;
        if workload.filter == hol_workloads::Filter::Nftables {
            let filter = self.filter.insert(Filter::new()?);
            self.server.application.enforce(filter.enforce());
        }
        let listener = self.opener.listen(server)?;
        let server = Site { port: own_port(&listener)?, ..server.clone() };

        enter(End::Client).map_err(refused("enter the client's network"))?;
        for number in 0..connections {
            let port = if client.port == 0 { 0 } else { client.port.checked_add(number).unwrap_or(0) };
            let from = Site { port, ..client.clone() };
            let socket = self.opener.connect(&from, &server)?;
            self.client_ports.push(own_port(&socket)?);
            let client = self.opener.transceiver(socket, number, &server);
            self.client.add(&self.poller, number, client).map_err(refused("watch a socket"))?;
        }

        if transport.kind() == Kind::Udp {
            // Nobody is accepted: the one socket of the server is for the one client.
            let peer = Site { port: self.client_ports[0], ..client.clone() };
            transceiver::begin(listener.connect(&transceiver::address(&peer)), &peer)?;
            let server = self.opener.transceiver(listener, 0, &peer);
            return self.server.add(&self.poller, 0, server).map_err(refused("watch a socket"));
        }
        self.poller.add(&listener, Token::Listener, Interest::Read).map_err(refused("watch the listener"))?;
        self.listener = Some(listener);
        Ok(())
    }
}
