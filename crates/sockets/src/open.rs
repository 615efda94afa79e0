//! Makes the listener and the applications of a flow.

use hol_base::Time;
use hol_scenario::{Flow, Terms, lanes};
use hol_stack::{Kind, Protocol, SocketStyle};
use hol_system::{Interest, Poller};
use hol_workloads::{Application, Enforce, Filter as FilterKind, Host, Processor};

use crate::assignment::{Assignment, End, Site, SocketsError};
use crate::clock::{Alarm, Clock};
use crate::event_loop::{Enter, EventLoop};
use crate::filter::Filter;
use crate::mptcp::Mptcp;
use crate::one_to_many::OneToMany;
use crate::own_sctp::OwnSctp;
use crate::presence::Presence;
use crate::quic::Quic;
use crate::sctp::Sctp;
use crate::side::Side;
use crate::tcp::Tcp;
use crate::ticks::Ticks;
use crate::ties::Ties;
use crate::token::Token;
use crate::transceiver::{Opener, own_port, refused};
use crate::udp::Udp;
use crate::unix::Unix;

/// The loop of an assignment, whose server listens; the thread is left in the client's network.
pub(crate) fn event_loop<'p>(
    assignment: &'p Assignment,
    ties: Ties<'_>,
    enter: Enter<'p>,
) -> Result<EventLoop<'p>, SocketsError> {
    let Assignment { transport, workload, messages, seed, server, server_host, .. } = assignment;
    let lanes = lanes(transport);
    let opener = opener(assignment);
    let poller = Poller::new().map_err(refused("make an epoll"))?;
    let alarm = Alarm::new().map_err(refused("make a timer"))?;
    poller.add(&alarm, Token::Alarm, Interest::Read).map_err(refused("watch the timer"))?;

    enter(End::Server).map_err(refused("enter the server's network"))?;
    let filter = match server_host.filter {
        FilterKind::Nftables => Some(Filter::new()?),
        FilterKind::None => None,
    };
    let lent = filter.clone().map(|filter| Box::new(filter) as Box<dyn Enforce>);
    let server = opener.place(server);
    let listener = opener.listen(&server)?;
    let server_site = match transport.kind() {
        // Named by the port that it was given.
        Kind::Unix => server,
        _ => Site { port: own_port(&listener)?, ..server },
    };
    // Of who does not listen only the port is wanted.
    let listener = workload.listens.then_some(listener);
    if let Some(listener) = listener.as_ref().filter(|_| opener.accepts()) {
        poller.add(listener, Token::Listener, Interest::Read).map_err(refused("watch the listener"))?;
    }
    enter(End::Client).map_err(refused("enter the client's network"))?;

    let presence = assignment.client_moves.then(Presence::watch).transpose();
    let presence = presence.map_err(refused("listen to the kernel's routing"))?;
    let heard =
        presence.as_ref().map_or(Ok(()), |events| poller.add(events, Token::Presence, Interest::Read));
    heard.map_err(refused("watch the kernel's routing"))?;
    let Ties { stop, asker, desk, bell, beginning, interval } = ties;
    stop.map_or(Ok(()), |stop| poller.add(stop, Token::Stop, Interest::Read))
        .map_err(refused("watch for the end"))?;
    let heard = bell.as_ref().map_or(Ok(()), |bell| poller.add(bell, Token::Bell, Interest::Read));
    heard.map_err(refused("watch for others"))?;
    let ticks = interval.map(|interval| Ticks::new(interval, workload.start)).transpose();
    let ticks = ticks.map_err(refused("make a timer"))?;
    let heard = ticks.as_ref().map_or(Ok(()), |ticks| poller.add(&ticks.alarm, Token::Tick, Interest::Read));
    heard.map_err(refused("watch the timer"))?;
    let mut client = match asker {
        Some(asker) => workload.asking(lanes, asker, *seed),
        None => workload.client(lanes, *messages, *seed),
    };
    let mut server = workload.server(lanes, *messages, Host { filter: lent, desk });
    client.ledger().make_room(*messages, 0);
    server.ledger().make_room(0, *messages);
    let clock = Clock::start();
    if let Some(beginning) = beginning {
        beginning.note(&clock, workload.start);
    }
    let [client, server] = [(client, 0), (server, 1)]
        .map(|(application, end)| on_its_host(application, assignment.processors[end].clone(), &clock));
    let timed = opener.has_timers();
    Ok(EventLoop {
        assignment,
        enter,
        alarm,
        poller,
        opener,
        listener,
        server_site,
        client_ports: Vec::new(),
        presence,
        homeless: 0,
        client: Side::new(End::Client, client, timed),
        server: Side::new(End::Server, server, timed),
        bell,
        filter,
        flow: Flow::new(Terms::of(workload, transport, Time::ZERO)),
        was_stopped: false,
        paths: Vec::new(),
        ticks,
        buffer: vec![0; EventLoop::BUFFER].into_boxed_slice(),
        clock,
    })
}

/// Listens for a moment where the kernel finds a place.
pub(crate) fn probe(assignment: &Assignment) -> Result<(), SocketsError> {
    let anywhere = Site { port: 0, ..assignment.server.clone() };
    opener(assignment).listen(&anywhere).map(drop)
}

/// An application that takes time for its messages, if its host does.
fn on_its_host(
    application: Box<dyn Application>,
    processor: Option<Processor>,
    clock: &Clock,
) -> Box<dyn Application> {
    match processor {
        Some(processor) => processor.since(clock.epoch()).run(application),
        None => application,
    }
}

fn opener(assignment: &Assignment) -> Box<dyn Opener> {
    let length_of = assignment.workload.length_of();
    match assignment.transport.protocol() {
        Protocol::Tcp { config, .. } => {
            Box::new(Tcp { family: Tcp::FAMILY, config: config.clone(), length_of })
        }
        Protocol::Mptcp { config, .. } => {
            Box::new(Mptcp(Tcp { family: Mptcp::FAMILY, config: config.clone(), length_of }))
        }
        Protocol::Sctp { config, associations, single_homed, unordered, reliability, socket, .. } => {
            let sctp = |family| Sctp {
                family,
                config: config.clone(),
                associations: *associations,
                single_homed: *single_homed,
                unordered: *unordered,
                reliability: *reliability,
            };
            match socket {
                SocketStyle::OneToOne => Box::new(sctp(Sctp::FAMILY)),
                SocketStyle::OneToMany => Box::new(OneToMany(sctp(OneToMany::FAMILY))),
                SocketStyle::Own => Box::new(OwnSctp::new(config, *unordered, *reliability)),
            }
        }
        Protocol::Udp { .. } => Box::new(Udp),
        Protocol::Quic { config, carriage, .. } => {
            Box::new(Quic::new(config, *carriage, length_of, assignment.seed))
        }
        Protocol::Unix { .. } => Box::new(Unix { length_of }),
    }
}
