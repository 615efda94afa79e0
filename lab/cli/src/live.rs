//! `hol live`: lets this host run a part of another host's live experiments, or emulate the path between two hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, Subcommand};
use hol_live::{DEFAULT_PORT, Ports, Router, SECRET_VARIABLE, Secret, Server, Service, guard};

use crate::failure::Failure;
use crate::terminal::{note, print};

/// Run endpoints of another host's live experiments, or emulate the path between two hosts.
#[derive(Debug, Args)]
pub struct Live {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run this host's endpoints of experiments that another host starts with --world live --peer
    ///
    /// Anyone who knows the secret can make this host send and receive messages of any workload, on ports that the kernel chooses or that
    /// --ports lists; all other connections are rejected. One client is served at a time.
    Serve {
        #[command(flatten)]
        listen_args: ListenArgs,
        /// Ports for servers, such as 7641 or 7641-7650: one for each flow whose server is on this host. A firewall must let
        /// them pass [default: free ports]
        #[arg(long, value_name = "FIRST-LAST")]
        ports: Option<Ports>,
    },
    /// Emulate the path between two other hosts whose packets pass through this host
    ///
    /// Start the experiment on one of these hosts, with --peer OTHER-HOST --router THIS-HOST. During a run, netem on
    /// this host's interfaces delays, drops and queues the packets between the two. The previous queueing disciplines
    /// are restored after each run, and when this command ends for any reason. Needs CAP_NET_ADMIN and sch_netem.
    Route {
        #[command(flatten)]
        listen_args: ListenArgs,
    },
    /// Wait for the end of `hol live route`, and restore the interfaces
    #[command(hide = true)]
    Guard,
}

/// How other hosts connect to this one.
#[derive(Debug, Args)]
struct ListenArgs {
    /// Address and TCP port on which to listen for the host with the experiment; [::]:7640 is for IPv6 and
    /// IPv4
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT)))]
    listen: SocketAddr,
    /// File with the secret that all hosts share [default: $HOL_LIVE_SECRET, or a new secret, which is
    /// printed]
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Stop after the first client
    #[arg(long)]
    once: bool,
}

impl Live {
    /// Runs as a peer, a router or a guardian until it is stopped.
    pub fn run(&self) -> Result<(), Failure> {
        match &self.action {
            Action::Serve { listen_args, ports } => listen_args.serve("peer", || Ok(Service::Ends(*ports))),
            Action::Route { listen_args } => listen_args.serve("router", || {
                let mut guardian = Command::new("/proc/self/exe");
                guardian.args(["live", "guard"]);
                Router::begin(guardian).map(Service::Router)
            }),
            Action::Guard => guard().map_err(Failure::failed),
        }
    }
}

impl ListenArgs {
    /// Serves hosts that know the secret. `flag` is the flag in which those hosts give the address of this host:
    /// `peer` or `router`.
    fn serve(&self, flag: &str, service: impl FnOnce() -> Result<Service, String>) -> Result<(), Failure> {
        let Self { listen, secret_file, once } = self;
        let given = match secret_file {
            Some(file) => Some(Secret::read(file).map_err(|problem| format!("--secret-file {problem}"))),
            None => Secret::of_environment().transpose(),
        };
        let given = given.transpose().map_err(Failure::Usage)?;
        let made = given.is_none().then(Secret::random).transpose().map_err(Failure::Failed)?;
        let (secret, text) = match (given, made) {
            (Some(secret), _) => (secret, None),
            (None, made) => made
                .map(|(secret, text)| (secret, Some(text)))
                .expect("a secret was created if none was given"),
        };
        let service = service().map_err(Failure::Failed)?;
        let server = Server::listen(*listen, secret, service).map_err(|problem| {
            Failure::Failed(format!(
                "--listen {listen}: {problem}; name an address of this host and a free port"
            ))
        })?;
        let address = server.address().map_err(Failure::failed)?;
        let secret = text.map_or(String::new(), |text| format!("{SECRET_VARIABLE}={text} "));
        let others = if flag == "router" { "--peer OTHER-HOST " } else { "" };
        let place = own_address(*listen, address.port());
        print(&format!(
            "listening on {address}; on the other host:\n  \
             {secret}hol compare tcp udp --world live {others}--{flag} {place}\n"
        ));
        server.run(*once, &|what| note!("{what}")).map_err(Failure::failed)
    }
}

/// Returns the address under which the other host reaches this one.
fn own_address(listen: SocketAddr, port: u16) -> String {
    let host = match listen.ip() {
        own if own.is_unspecified() => "THIS-HOST".to_owned(),
        IpAddr::V4(own) => own.to_string(),
        IpAddr::V6(own) => format!("[{own}]"),
    };
    if port == DEFAULT_PORT { host } else { format!("{host}:{port}") }
}
