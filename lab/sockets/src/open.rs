//! Creates the listener and the applications of a flow.

use std::collections::BTreeMap;
use std::rc::Rc;

use hol_base::Time;
use hol_scenario::{Flow, FlowLimits, Side, stream_layout};
use hol_stack::{Kind, Protocol, SocketStyle};
use hol_system::{Interest, Poller};
use hol_workloads::{Application, Filter as FilterKind, Host, Processor, RuleEnforcer};
use socket2::Socket;

use crate::assignment::{Assignment, EndAddresses};
use crate::clock::{Alarm, Clock};
use crate::error::SocketsError;
use crate::event_loop::{Enter, EventLoop};
use crate::filter::Filter;
use crate::flow_side::FlowSide;
use crate::host_addresses::HostAddresses;
use crate::mptcp::Mptcp;
use crate::one_to_many::OneToMany;
use crate::over_udp::OverUdp;
use crate::own_sctp::OwnSctp;
use crate::peer_report::{RemoteApplication, ReportCallback, ReportReceiver};
use crate::quic::Quic;
use crate::read_delays::ReadDelayRecorder;
use crate::referee::{Referee, Reporter};
use crate::run_links::RunLinks;
use crate::sctp::Sctp;
use crate::tcp::Tcp;
use crate::ticks::Ticks;
use crate::token::Token;
use crate::transceiver::{Opener, own_port, refused};
use crate::turns::{BUFFER, reads};
use crate::udp::Udp;
use crate::unix::Unix;

/// Which ends of a flow are local.
pub(crate) enum LocalEnd<'p> {
    Both,
    /// The client's; the server listens on another host and sends news; both hosts know the secret.
    Client(ReportReceiver, &'p [u8; 32]),
    /// The server's, which reports to the client's host.
    Server(ReportCallback<'p>, &'p [u8; 32]),
}

impl LocalEnd<'_> {
    /// Returns the secret of both hosts.
    fn shared(&self) -> Option<&[u8; 32]> {
        match self {
            Self::Both => None,
            Self::Client(_, secret) | Self::Server(_, secret) => Some(secret),
        }
    }
}

/// Creates the event loop of an assignment with its listening server; the thread is left in the client's
/// network.
pub(crate) fn event_loop<'p>(
    assignment: &'p Assignment,
    here: LocalEnd<'p>,
    ties: RunLinks<'_>,
    enter: Enter<'p>,
) -> Result<EventLoop<'p>, SocketsError> {
    let Assignment { transport, workload, messages, seed, server, server_host, .. } = assignment;
    let stream_layout = stream_layout(transport);
    let opener = opener(assignment, &here);
    let poller = Poller::new().map_err(refused("make an epoll"))?;
    let alarm = Alarm::new().map_err(refused("make a timer"))?;
    poller.add(&alarm, Token::Alarm, Interest::Read).map_err(refused("watch the timer"))?;

    enter(Side::Server).map_err(refused("enter the server's network"))?;
    let filter = match server_host.filter {
        FilterKind::Nftables => Some(Filter::new()?),
        FilterKind::None => None,
    };
    let lent = filter.clone().map(|filter| Box::new(filter) as Box<dyn RuleEnforcer>);
    let (server_site, listener) = match here {
        LocalEnd::Client(..) => (server.clone(), None),
        LocalEnd::Both | LocalEnd::Server(..) => listen(&*opener, transport.kind(), server)?,
    };
    // A server that does not listen only reserves the port.
    let listener = listener.filter(|_| workload.listens);
    // If both ends are local, the client's datagrams have their own socket before they arrive.
    let is_watched = opener.accepts() || matches!(here, LocalEnd::Server(..));
    if let Some(listener) = listener.as_ref().filter(|_| is_watched) {
        poller.add(listener, Token::Listener, Interest::Read).map_err(refused("watch the listener"))?;
    }
    enter(Side::Client).map_err(refused("enter the client's network"))?;

    let presence = assignment.client_moves.then(HostAddresses::watch).transpose();
    let presence = presence.map_err(refused("listen to the kernel's routing"))?;
    let heard =
        presence.as_ref().map_or(Ok(()), |events| poller.add(events, Token::Presence, Interest::Read));
    heard.map_err(refused("watch the kernel's routing"))?;
    let RunLinks { stop, asker, desk, bell, beginning, interval } = ties;
    stop.map_or(Ok(()), |stop| poller.add(stop, Token::Stop, Interest::Read))
        .map_err(refused("watch for the end"))?;
    let heard = bell.as_ref().map_or(Ok(()), |bell| poller.add(bell, Token::Bell, Interest::Read));
    heard.map_err(refused("watch for others"))?;
    let ticks = interval.map(|interval| Ticks::new(interval, workload.start)).transpose();
    let ticks = ticks.map_err(refused("make a timer"))?;
    let heard = ticks.as_ref().map_or(Ok(()), |ticks| poller.add(&ticks.alarm, Token::Tick, Interest::Read));
    heard.map_err(refused("watch the timer"))?;
    let far = RemoteApplication::default();
    let far_standing = Rc::clone(&far.standing);
    let mut far = Some(far);
    let mut absent = || Box::new(far.take().expect("one end is here")) as Box<dyn Application>;
    let mut client = match asker {
        _ if matches!(here, LocalEnd::Server(..)) => absent(),
        Some(asker) => workload.asking(stream_layout, asker, *seed),
        None => workload.client(stream_layout, *messages, *seed),
    };
    let mut server = match here {
        LocalEnd::Client(..) => absent(),
        LocalEnd::Both | LocalEnd::Server(..) => {
            workload.server(stream_layout, *messages, Host { filter: lent, desk })
        }
    };
    client.ledger().make_room(*messages, 0);
    server.ledger().make_room(0, *messages);
    let clock = Clock::start();
    if let Some(beginning) = beginning {
        beginning.note(&clock, workload.start);
    }
    let [client, server] = [(client, 0), (server, 1)]
        .map(|(application, end)| on_its_host(application, assignment.processors[end].clone(), &clock));
    let held = (opener.has_timers(), assignment.gathers);
    let waits = || assignment.stamps.then(|| ReadDelayRecorder::since(clock.origin()));
    let rules = || Referee::Rules(Flow::new(FlowLimits::of(workload, transport, Time::ZERO)));
    let (is_alone, referee, mail) = match here {
        LocalEnd::Both => (false, rules(), None),
        LocalEnd::Client(mail, _) => (true, rules(), Some(mail)),
        LocalEnd::Server(tell, _) => (true, Referee::Host(Reporter::new(tell)), None),
    };
    let heard = mail.as_ref().map_or(Ok(()), |mail| poller.add(&mail.bell, Token::Far, Interest::Read));
    heard.map_err(refused("watch for the other host"))?;
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
        client: FlowSide::new(Side::Client, client, held, waits()),
        server: FlowSide::new(Side::Server, server, held, waits()),
        bell,
        filter,
        flow: referee,
        is_alone,
        mail,
        far_standing,
        met: BTreeMap::new(),
        was_stopped: false,
        paths: Vec::new(),
        ticks,
        buffer: vec![0; BUFFER].into_boxed_slice(),
        clock,
    })
}

/// Returns the server's address with the port it got, and its socket.
fn listen(
    opener: &dyn Opener,
    kind: Kind,
    server: &EndAddresses,
) -> Result<(EndAddresses, Option<Socket>), SocketsError> {
    let server = opener.place(server);
    let listener = opener.listen(&server)?;
    let site = match kind {
        // Named by the port that it was given.
        Kind::Unix => server,
        _ => EndAddresses { port: own_port(&listener)?, ..server },
    };
    Ok((site, Some(listener)))
}

/// Listens briefly on a port of the kernel's choice.
pub(crate) fn probe(assignment: &Assignment) -> Result<(), SocketsError> {
    let anywhere = EndAddresses { port: 0, ..assignment.server.clone() };
    let opener = opener(assignment, &LocalEnd::Both);
    opener.listen(&opener.place(&anywhere)).map(drop)
}

/// Wraps an application in its host's processor, if it has one.
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

fn opener(assignment: &Assignment, here: &LocalEnd<'_>) -> Box<dyn Opener> {
    let length_of = assignment.workload.length_of(stream_layout(&assignment.transport));
    let (gathers, stamps) = (assignment.gathers, assignment.stamps);
    match assignment.transport.protocol() {
        Protocol::Tcp { config, .. } => {
            Box::new(Tcp { family: Tcp::FAMILY, config: config.clone(), length_of, gathers, stamps })
        }
        Protocol::Mptcp { config, .. } => {
            Box::new(Mptcp(Tcp { family: Mptcp::FAMILY, config: config.clone(), length_of, gathers, stamps }))
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
                SocketStyle::Own => {
                    Box::new(OverUdp(OwnSctp::new(config, *unordered, *reliability, gathers)))
                }
            }
        }
        Protocol::Udp { .. } => Box::new(Udp { reads: reads(gathers), stamps }),
        Protocol::Quic { config, carriage, .. } => {
            // Each host counts its endpoints from the first.
            let seed = match here {
                LocalEnd::Server(..) => assignment.seed.derive("server"),
                LocalEnd::Both | LocalEnd::Client(..) => assignment.seed,
            };
            Box::new(OverUdp(Quic::new(config, *carriage, length_of, seed, here.shared(), gathers)))
        }
        Protocol::Unix { .. } => Box::new(Unix { length_of, gathers }),
    }
}
