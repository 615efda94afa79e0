//! Creates the listener and the applications of a flow.

use std::collections::BTreeMap;
use std::rc::Rc;

use hol_base::Time;
use hol_scenario::{Flow, FlowLimits, Side, stream_layout};
use hol_stack::{Protocol, ProtocolKind, SocketStyle};
use hol_system::{Interest, Poller};
use hol_workloads::{Application, Filter as FilterKind, Host, Processor, RuleEnforcer};
use socket2::Socket;

use crate::clock::{Alarm, Clock};
use crate::error::SocketsError;
use crate::event_loop::{EnterNetwork, EventLoop};
use crate::event_source::Token;
use crate::filter::Filter;
use crate::flow_parameters::{EndAddresses, FlowParameters};
use crate::flow_side::FlowSide;
use crate::flow_supervisor::{FlowSupervisor, Reporter};
use crate::host_addresses::HostAddresses;
use crate::mptcp::Mptcp;
use crate::one_to_many::OneToMany;
use crate::over_udp::UserspaceOpener;
use crate::peer_report::{RemoteApplication, ReportCallback, ReportReceiver};
use crate::quic::Quic;
use crate::read_delays::ReadDelayRecorder;
use crate::run_links::RunLinks;
use crate::sample_timer::SampleTimer;
use crate::sctp::Sctp;
use crate::tcp::Tcp;
use crate::transceiver::{Opener, failed_to, own_port};
use crate::turns::{BUFFER_SIZE, reads_per_turn};
use crate::udp::Udp;
use crate::unix::Unix;
use crate::userspace_sctp::UserspaceSctp;

/// Which ends of a flow are local.
pub(crate) enum LocalEnd<'p> {
    Both,
    /// The client's end; the server listens on another host, which sends reports. Both hosts know the secret.
    Client(ReportReceiver, &'p [u8; 32]),
    /// The server's end, which reports to the client's host. Both hosts know the secret.
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

/// Creates the event loop of the flow with these `parameters`, and the server's listening socket if the server is
/// local. Afterwards the thread is in the client's network.
pub(crate) fn event_loop<'p>(
    parameters: &'p FlowParameters,
    here: LocalEnd<'p>,
    links: RunLinks<'_>,
    enter: EnterNetwork<'p>,
) -> Result<EventLoop<'p>, SocketsError> {
    let FlowParameters { transport, workload, messages, seed, server, server_host, .. } = parameters;
    let stream_layout = stream_layout(transport);
    let opener = opener(parameters, &here);
    let poller = Poller::new().map_err(failed_to("create an epoll instance"))?;
    let alarm = Alarm::new().map_err(failed_to("create a timer"))?;
    poller.add(&alarm, Token::Alarm, Interest::Read).map_err(failed_to("wait for the timer"))?;

    enter(Side::Server).map_err(failed_to("enter the server's network"))?;
    let filter = match server_host.filter {
        FilterKind::Nftables => Some(Filter::new()?),
        FilterKind::None => None,
    };
    let lent = filter.clone().map(|filter| Box::new(filter) as Box<dyn RuleEnforcer>);
    let (server_site, listener) = match here {
        LocalEnd::Client(..) => (server.clone(), None),
        LocalEnd::Both | LocalEnd::Server(..) => listen(&*opener, transport.kind(), server)?,
    };
    // If the server does not listen, only its port is needed.
    let listener = listener.filter(|_| workload.listens);
    // If both ends are local, the client's datagrams have their own socket before they arrive.
    let is_watched = opener.accepts() || matches!(here, LocalEnd::Server(..));
    if let Some(listener) = listener.as_ref().filter(|_| is_watched) {
        poller
            .add(listener, Token::Listener, Interest::Read)
            .map_err(failed_to("wait for the listening socket"))?;
    }
    enter(Side::Client).map_err(failed_to("enter the client's network"))?;

    let host_addresses = parameters.client_moves.then(HostAddresses::watch).transpose();
    let host_addresses = host_addresses.map_err(failed_to("subscribe to changes of the host's addresses"))?;
    let watched = host_addresses
        .as_ref()
        .map_or(Ok(()), |events| poller.add(events, Token::HostAddresses, Interest::Read));
    watched.map_err(failed_to("wait for changes of the host's addresses"))?;
    let RunLinks { stop, onward_client, pending_requests, wake_signal, beginning, interval } = links;
    stop.map_or(Ok(()), |stop| poller.add(stop, Token::Stop, Interest::Read))
        .map_err(failed_to("wait for the end of the run"))?;
    let watched = wake_signal
        .as_ref()
        .map_or(Ok(()), |wake_signal| poller.add(wake_signal, Token::WakeSignal, Interest::Read));
    watched.map_err(failed_to("wait for other runs"))?;
    let sample_timer = interval.map(|interval| SampleTimer::new(interval, workload.start)).transpose();
    let sample_timer = sample_timer.map_err(failed_to("create a timer"))?;
    let watched = sample_timer
        .as_ref()
        .map_or(Ok(()), |sample_timer| poller.add(&sample_timer.alarm, Token::Tick, Interest::Read));
    watched.map_err(failed_to("wait for the timer"))?;
    let remote = RemoteApplication::default();
    let remote_progress = Rc::clone(&remote.progress);
    let mut remote = Some(remote);
    let mut absent =
        || Box::new(remote.take().expect("only one end is on another host")) as Box<dyn Application>;
    let mut client = match onward_client {
        _ if matches!(here, LocalEnd::Server(..)) => absent(),
        Some(onward_client) => workload.onward_client(stream_layout, onward_client, *seed),
        None => workload.client(stream_layout, *messages, *seed),
    };
    let mut server = match here {
        LocalEnd::Client(..) => absent(),
        LocalEnd::Both | LocalEnd::Server(..) => {
            workload.server(stream_layout, *messages, Host { filter: lent, pending_requests })
        }
    };
    client.ledger().reserve(*messages, 0);
    server.ledger().reserve(0, *messages);
    let clock = Clock::start();
    if let Some(beginning) = beginning {
        beginning.note(&clock, workload.start);
    }
    let [client, server] = [(client, 0), (server, 1)]
        .map(|(application, end)| with_processor(application, parameters.processors[end].clone(), &clock));
    let held = (opener.has_timers(), parameters.is_batching);
    let waits = || parameters.reports_receive_time.then(|| ReadDelayRecorder::since(clock.origin()));
    let rules = || FlowSupervisor::Rules(Flow::new(FlowLimits::new(workload, transport, Time::ZERO)));
    let (is_single_ended, supervisor, peer_reports) = match here {
        LocalEnd::Both => (false, rules(), None),
        LocalEnd::Client(peer_reports, _) => (true, rules(), Some(peer_reports)),
        LocalEnd::Server(send_report, _) => (true, FlowSupervisor::Host(Reporter::new(send_report)), None),
    };
    let watched = peer_reports.as_ref().map_or(Ok(()), |peer_reports| {
        poller.add(&peer_reports.wake_signal, Token::PeerReport, Interest::Read)
    });
    watched.map_err(failed_to("wait for the other host"))?;
    Ok(EventLoop {
        parameters,
        enter,
        alarm,
        poller,
        opener,
        listener,
        server_site,
        client_ports: Vec::new(),
        host_addresses,
        awaiting_address: 0,
        client: FlowSide::new(Side::Client, client, held, waits()),
        server: FlowSide::new(Side::Server, server, held, waits()),
        wake_signal,
        filter,
        flow: supervisor,
        is_single_ended,
        peer_reports,
        remote_progress,
        remote_clients: BTreeMap::new(),
        was_stopped: false,
        path_changes: Vec::new(),
        sample_timer,
        buffer: vec![0; BUFFER_SIZE].into_boxed_slice(),
        clock,
    })
}

/// Opens the server's socket; returns it, and the server's address with its port.
fn listen(
    opener: &dyn Opener,
    kind: ProtocolKind,
    server: &EndAddresses,
) -> Result<(EndAddresses, Option<Socket>), SocketsError> {
    let server = opener.server_address(server);
    let listener = opener.listen(&server)?;
    let site = match kind {
        // The requested port is part of its name.
        ProtocolKind::Unix => server,
        _ => EndAddresses { port: own_port(&listener)?, ..server },
    };
    Ok((site, Some(listener)))
}

/// Listens briefly on a port of the kernel's choice, to check that the kernel has the protocol.
pub(crate) fn probe(parameters: &FlowParameters) -> Result<(), SocketsError> {
    let anywhere = EndAddresses { port: 0, ..parameters.server.clone() };
    let opener = opener(parameters, &LocalEnd::Both);
    opener.listen(&opener.server_address(&anywhere)).map(drop)
}

/// Runs an application on the processor of its host, if the host has one.
fn with_processor(
    application: Box<dyn Application>,
    processor: Option<Processor>,
    clock: &Clock,
) -> Box<dyn Application> {
    match processor {
        Some(processor) => processor.with_clock_zero(clock.epoch()).run(application),
        None => application,
    }
}

fn opener(parameters: &FlowParameters, here: &LocalEnd<'_>) -> Box<dyn Opener> {
    let framing_fn = parameters.workload.framing_fn(stream_layout(&parameters.transport));
    let (is_batching, reports_receive_time) = (parameters.is_batching, parameters.reports_receive_time);
    match parameters.transport.protocol() {
        Protocol::Tcp { config, .. } => Box::new(Tcp {
            family: Tcp::PROTOCOL,
            config: config.clone(),
            framing_fn,
            is_batching,
            reports_receive_time,
        }),
        Protocol::Mptcp { config, .. } => Box::new(Mptcp(Tcp {
            family: Mptcp::PROTOCOL,
            config: config.clone(),
            framing_fn,
            is_batching,
            reports_receive_time,
        })),
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
                SocketStyle::OneToOne => Box::new(sctp(Sctp::PROTOCOL)),
                SocketStyle::OneToMany => Box::new(OneToMany(sctp(OneToMany::PROTOCOL))),
                SocketStyle::Own => Box::new(UserspaceOpener(UserspaceSctp::new(
                    config,
                    *unordered,
                    *reliability,
                    is_batching,
                ))),
            }
        }
        Protocol::Udp { .. } => Box::new(Udp { reads: reads_per_turn(is_batching), reports_receive_time }),
        Protocol::Quic { config, mapping, .. } => {
            // Each host counts its endpoints from zero, so the seeds must differ.
            let seed = match here {
                LocalEnd::Server(..) => parameters.seed.derive("server"),
                LocalEnd::Both | LocalEnd::Client(..) => parameters.seed,
            };
            Box::new(UserspaceOpener(Quic::new(
                config,
                *mapping,
                framing_fn,
                seed,
                here.shared(),
                is_batching,
            )))
        }
        Protocol::Unix { .. } => Box::new(Unix { framing_fn, is_batching }),
    }
}
