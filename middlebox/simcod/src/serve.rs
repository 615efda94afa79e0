//! `simcod serve`: the middlebox.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hol_base::Duration;
use hol_daemon::{
    Daemon, DaemonError, FilterKind, Log, Settings, SetupError, Signals, TlsSettings, drop_privileges,
    socket_address,
};
use hol_simco::Lifetime;

use crate::failure::Failure;
use crate::lifetime_text;
use hol_terminal::print;

const AFTER_HELP: &str = "\
The program prints `listening on tcp ADDRESS` on standard output once agents can connect, and logs to standard error, one line per event.
SIGTERM ends the sessions and the program; rules stay in force until their lifetimes end. SIGHUP makes it read --config, --policy,
--secrets and certificates again.

Without --config and flags it listens on the loopback interface, port 7626, and filters nothing.
docs/simco-service.md describes all settings of --config, docs/simco.md describes --policy.";

/// Run the middlebox: agents open and close the packet filter of this host.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Serve {
    /// Settings file; flags override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// TCP address to listen on; may be repeated; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    listen: Vec<SocketAddr>,
    /// SCTP address to listen on, if the kernel supports SCTP
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    listen_sctp: Vec<SocketAddr>,
    /// UDP address to listen on for SCTP in UDP datagrams (RFC 6951), which needs no SCTP in the kernel; usually
    /// port 9899
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    listen_sctp_udp: Vec<SocketAddr>,
    /// TLS address to listen on; needs --certificate and --key, or `[tls]` of --config
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    listen_tls: Vec<SocketAddr>,
    /// The middlebox's certificate (PEM), for TLS
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, accessible only to its owner
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Authorities that certify agents (PEM): over TLS each agent needs a certificate with its name
    #[arg(long, value_name = "FILE")]
    agents: Option<PathBuf>,
    /// Packet filter that enforces the rules
    #[arg(long, value_enum)]
    filter: Option<Filter>,
    /// Interface to internal hosts, for --filter nftables; needs --outside
    #[arg(long, value_name = "INTERFACE")]
    inside: Option<String>,
    /// Interface to external hosts; only packets between the two interfaces are filtered
    #[arg(long, value_name = "INTERFACE")]
    outside: Option<String>,
    /// Directory in which rules are recorded; without it they are lost on exit
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Policy file, which lists what each agent may do; without it, agents with a secret may do everything
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The agents' secrets, one line each: name = "secret"; agents must authenticate
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    /// Maximum lifetime of a rule, such as 24h
    #[arg(long, value_name = "TIME", value_parser = lifetime_text::parse)]
    max_lifetime: Option<Lifetime>,
    /// Check the settings and exit
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Filter {
    /// Do not filter; for measurements
    None,
    /// Use nftables, with a separate table
    Nftables,
}

impl Serve {
    /// Serves until SIGTERM or SIGINT arrives.
    pub fn run(&self) -> Result<(), Failure> {
        let settings = self.settings().map_err(DaemonError::from)?;
        if self.check {
            let middlebox = settings.middlebox().map_err(DaemonError::from)?;
            let warnings = settings.warnings(middlebox.policy());
            warnings.iter().for_each(|warning| print(&format!("warning: {warning}\n")));
            let restarts = settings.settings_needing_restart(&Settings::default()).join(", ");
            if !restarts.is_empty() {
                print(&format!(
                    "a reload applies all settings except these, which need a restart: {restarts}\n"
                ));
            }
            print("the settings are valid\n");
            return Ok(());
        }
        let stop = Signals::for_stop().map_err(Failure::failed)?;
        let reload = Signals::for_reload().map_err(Failure::failed)?;
        let mut daemon = settings.open(Log::new(settings.log, Box::new(std::io::stderr())))?;
        let this = self.clone();
        daemon.reload_on(reload, &settings, move || this.settings()).map_err(Failure::failed)?;
        drop_privileges(settings.filter != FilterKind::None).map_err(Failure::failed)?;
        let tell = |daemon: &Daemon| daemon.addresses().for_each(|at| print(&format!("listening on {at}\n")));
        Ok(daemon.run(stop, tell)?)
    }

    fn settings(&self) -> Result<Settings, SetupError> {
        let mut settings = self.config.as_deref().map_or_else(|| Ok(Settings::default()), Settings::read)?;
        if !self.listen.is_empty() {
            settings.listen.clone_from(&self.listen);
        }
        if !self.listen_sctp.is_empty() {
            settings.listen_sctp.clone_from(&self.listen_sctp);
        }
        if !self.listen_sctp_udp.is_empty() {
            settings.listen_sctp_udp.clone_from(&self.listen_sctp_udp);
        }
        if !self.listen_tls.is_empty() {
            settings.listen_tls.clone_from(&self.listen_tls);
        }
        let TlsSettings { certificate, key, agents } = settings.tls;
        settings.tls = TlsSettings {
            certificate: self.certificate.clone().or(certificate),
            key: self.key.clone().or(key),
            agents: self.agents.clone().or(agents),
        };
        match self.filter {
            Some(Filter::None) => settings.filter = FilterKind::None,
            Some(Filter::Nftables) => settings.filter = FilterKind::Nftables,
            None => {}
        }
        settings.nftables.inside = self.inside.clone().or(settings.nftables.inside);
        settings.nftables.outside = self.outside.clone().or(settings.nftables.outside);
        settings.state = self.state.clone().or(settings.state);
        settings.policy = self.policy.clone().or(settings.policy);
        settings.secrets = self.secrets.clone().or(settings.secrets);
        if let Some(Lifetime(seconds)) = self.max_lifetime {
            settings.max_lifetime = Duration::from_secs(seconds.into());
        }
        Ok(settings)
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Setup(error) => Self::Usage(error.to_string()),
            error => Self::failed(error),
        }
    }
}
