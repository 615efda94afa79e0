//! `hol live`: this host for the live world of another.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use hol_live::{DEFAULT_PORT, Ports, SECRET_VARIABLE, Secret, Server};

use crate::failure::Failure;
use crate::terminal::{note, say};

/// Be the other host of a live world.
#[derive(Debug, Args)]
pub struct Live {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Have the servers here of experiments that another host runs with --world live --peer
    ///
    /// Whoever knows the secret may have this host send and receive messages of any workload, on ports that the kernel chooses or
    /// --ports names; nobody else is heard. One client is served at a time.
    Serve {
        /// Where to listen for the other host (TCP); [::]:7640 is for IPv6, and IPv4 too
        #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT)))]
        listen: SocketAddr,
        /// The ports that servers may have, as 7641 or 7641-7650, where a firewall is in the way: one for each flow of an experiment
        /// that has its server here [default: those that the kernel has free]
        #[arg(long, value_name = "FIRST-LAST")]
        ports: Option<Ports>,
        /// The secret that both hosts know, in a file [default: $HOL_LIVE_SECRET, or one that is made now and printed]
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
        /// End when the first client has gone
        #[arg(long)]
        once: bool,
    },
}

impl Live {
    /// Does it.
    pub fn run(&self) -> Result<(), Failure> {
        let What::Serve { listen, ports, secret_file, once } = &self.what;
        let given = match secret_file {
            Some(file) => Some(Secret::read(file).map_err(|problem| format!("--secret-file {problem}"))),
            None => Secret::of_environment().transpose(),
        };
        let given = given.transpose().map_err(Failure::Usage)?;
        let made = given.is_none().then(Secret::random).transpose().map_err(Failure::Failed)?;
        let (secret, text) = match (given, made) {
            (Some(secret), _) => (secret, None),
            (None, made) => made.map(|(secret, text)| (secret, Some(text))).expect("one was made"),
        };
        let server = Server::listen(*listen, secret, *ports).map_err(|problem| {
            Failure::Failed(format!(
                "--listen {listen}: {problem}; name an address of this host and a free port"
            ))
        })?;
        let address = server.address().map_err(Failure::failed)?;
        say(&greeting(&address.to_string(), *listen, address.port(), text.as_deref()));
        server.run(*once, &|what| note!("{what}")).map_err(Failure::failed)
    }
}

/// What to do on the other host.
fn greeting(address: &str, listen: SocketAddr, port: u16, secret: Option<&str>) -> String {
    let host = match listen.ip() {
        own if own.is_unspecified() => "THIS-HOST".to_owned(),
        IpAddr::V4(own) => own.to_string(),
        IpAddr::V6(own) => format!("[{own}]"),
    };
    let port = if port == DEFAULT_PORT { String::new() } else { format!(":{port}") };
    let secret = match secret {
        Some(secret) => format!("{SECRET_VARIABLE}={secret} "),
        None => String::new(),
    };
    format!(
        "listening on {address}; on the other host:\n  {secret}hol compare tcp udp --world live --peer {host}{port}\n"
    )
}
