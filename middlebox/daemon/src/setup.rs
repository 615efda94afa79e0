//! Creates a daemon from settings: reads the files, and rejects settings that cannot work.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hol_agent::{
    CertificateError, SecretFileError, crypto_provider, nonces, read_authorities, read_certificates,
    read_key, read_secrets,
};
use hol_base::{ByteCount, Duration, rewrite_parse_error};
use hol_filter::{
    DefaultPolicy, Filtering, Interfaces, MAX_SHAPES, Masquerade, Nftables, NullFilter, PacketFilter, Pool,
    footprint,
};
use hol_journal::{Durability, Journal, JournalError, RecordedRule, is_disk_full};
use hol_simco::{
    Authentication, Capabilities, Change, Config, ConfigError, IpVersion, Lifetime, Middlebox, Policy,
    PolicyError, Prefix, SecretError, SharedSecrets, Unauthenticated,
};

use hol_system::Poller;
use nix::net::if_::if_nametoindex;
use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::TLS13;

use crate::audit::{end_cause, write_end};
use crate::clock::Clock;
use crate::listeners::{Listeners, is_sctp_missing};
use crate::metrics_endpoint::Endpoint;
use crate::port_mapping::{PortMapper, public_address};
use crate::rule_store::RuleStore;
use crate::sctp_port::SctpPort;
use crate::standby::{ReplicationThread, Replicator};
use crate::{
    Daemon, DaemonError, FilterKind, Level, LimitSettings, Limits, Log, NatSettings, NftablesSettings,
    PcpSettings, ProtectedSettings, RuleStoreError, Settings, StandbySettings, TlsSettings, Transport,
};

/// Why the settings of a daemon are invalid.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file cannot be read.
    #[error("{}: {source}", .path.display())]
    Unreadable {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not TOML, or has unknown keys.
    #[error("{}: {problem}", .path.display())]
    Syntax {
        /// The file with invalid settings.
        path: PathBuf,
        /// The problem and its position in the file.
        problem: String,
    },
    /// The file is not a valid policy.
    #[error("{}: {source}", .path.display())]
    Policy {
        /// The file with the policy.
        path: PathBuf,
        /// What is wrong with the policy.
        source: PolicyError,
    },
    /// The file of agents' secrets is invalid.
    #[error("{}: {source}", .path.display())]
    Secrets {
        /// The file with the secrets.
        path: PathBuf,
        /// What is wrong with the secrets.
        source: SecretError,
    },
    /// The file of secrets cannot be read, or other users can access it.
    #[error(transparent)]
    SecretFile(#[from] SecretFileError),
    /// A certificate or key cannot be used.
    #[error("[tls]: {0}")]
    Certificate(#[from] CertificateError),
    /// TLS is used, but a certificate or a key is missing.
    #[error("[tls]: listen-tls needs `certificate` and `key`, two PEM files")]
    NoCertificate,
    /// The certificates of the authorities cannot be used to check those of agents.
    #[error("[tls] agents: {}: {problem}", .path.display())]
    Authorities {
        /// The file of the authorities.
        path: PathBuf,
        /// Why the certificates cannot be used.
        problem: VerifierBuilderError,
    },
    /// Agents have certificates, but without a policy no certificate gives any rights.
    #[error(
        "[tls] agents: without a policy no certificate has rights; set policy = FILE, with a table [agents.NAME] for each name in a certificate"
    )]
    NamesWithoutPolicy,
    /// Protected addresses are set without an interface, so all traffic would count as protected.
    #[error(
        "[protected]: set interface = \"NAME\", the WireGuard or IPsec interface that has these addresses"
    )]
    NoProtectedInterface,
    /// Port mapping is enabled, but no host may request a mapping.
    #[error(
        "[pcp]: no host may request a mapping, because no agent of the policy has `hosts`; add hosts = [\"192.168.1.0/24\"] to one"
    )]
    NoHosts,
    /// Port mapping is enabled together with twice NAT, which is not possible.
    #[error(
        "[pcp]: port mappings do not work with a twice NAT; remove `inside` from [nat], or `listen` from [pcp]"
    )]
    MappingsWithTwiceNat,
    /// The settings of the middlebox contradict each other.
    #[error("{0} (settings `firewall` and [nat])")]
    Middlebox(#[from] ConfigError),
    /// The settings of the packet filter are not valid.
    #[error("[nftables]: {0}")]
    Filter(#[from] hol_filter::ConfigError),
    /// Only one of the interfaces is set, or both are the same.
    #[error(
        "[nftables]: only one of `inside` and `outside` is set, or both name the same interface; set two interfaces, or neither to filter all forwarded packets"
    )]
    OneInterface,
    /// Masquerading is enabled without both interfaces.
    #[error("[nat] masquerade and hairpin need the two interfaces; set `inside` and `outside` in [nftables]")]
    MasqueradeWithoutInterfaces,
    /// Masquerading includes hosts of an IP version that no outside address has.
    #[error(
        "[nat] masquerade: no address of `outside` has the IP version of {0}; add one, or remove {0} from `masquerade`"
    )]
    MasqueradeWithoutAddress(IpAddr),
    /// The setting concerns masqueraded flows only.
    #[error("[nat] filtering concerns flows without a rule; set `masquerade`, or remove it")]
    FilteringWithoutMasquerade,
    /// The ports for masquerading overlap those of rules.
    #[error(
        "[nat] masquerade-ports: {} to {} is empty or overlaps `ports`, {} to {}, which are assigned to rules; set both to ranges \
         that do not overlap",
        .ports.start(), .ports.end(), .pool.start(), .pool.end()
    )]
    MasqueradePorts {
        /// The ports for masqueraded flows.
        ports: RangeInclusive<u16>,
        /// The ports for rules.
        pool: RangeInclusive<u16>,
    },
    /// A standby is configured, but it could not be authenticated, or there is no journal to copy.
    #[error(
        "[standby]: a standby needs a journal with sync, and TLS; set state = DIR, name in [standby] (the name in the standby's \
         certificate), and certificate, key and agents in [tls]"
    )]
    IncompleteStandby,
    /// Any host could change all rules: the socket is reachable from other hosts, and there are neither a policy nor
    /// secrets.
    #[error(
        "{0} is reachable from other hosts, and without policy and secrets any host could change all rules; set policy = FILE, secrets = FILE, or both"
    )]
    OpenToAll(SocketAddr),
    /// No agent could open a session, because all must authenticate but there are no secrets.
    #[error("{}: agents must authenticate, but there are no secrets; set secrets = FILE, or `anonymous` in the policy", .0.display())]
    NoAuthentication(PathBuf),
    /// No agent could open a session, because without a policy each agent needs a secret, and the file contains none.
    #[error("{}: the file contains no secret; add a line NAME = \"SECRET\" for each agent", .0.display())]
    NoSecrets(PathBuf),
    /// No agent could open a session, because no agent of the policy has a secret.
    #[error("{}: none of these agents has a secret in {}; add a line NAME = \"SECRET\" there, or set `anonymous`", .policy.display(), .secrets.display())]
    NoAgentHasSecret {
        /// The file of the policy, which names the agents.
        policy: PathBuf,
        /// The file with the secrets.
        secrets: PathBuf,
    },
    /// The clock of the recorded rules cannot be stored.
    #[error("{}: {source}; make the directory of rules writable", .path.display())]
    Clock {
        /// The file for the clock.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The configured number of connections exceeds the limit of open files.
    #[error(
        "[limits] connections = {connections} is too many, because this process may open only {files} files; raise the limit (systemd: \
         LimitNOFILE={needed}, a shell: ulimit -n {needed}), or set connections = {max}"
    )]
    TooFewFiles {
        /// The configured number of connections.
        connections: usize,
        /// The number of files that this process may open.
        files: u64,
        /// The number of files that the connections would need.
        needed: u64,
        /// The maximum number of connections with this limit of open files.
        max: u64,
    },
    /// A limit is too low for the daemon to work.
    #[error("{key} must be at least {min}")]
    BelowMinimum {
        /// The key of the setting.
        key: &'static str,
        /// The minimum of the setting, or the setting that determines it.
        min: &'static str,
    },
    /// A limit is too high to have an effect, because another limit is lower.
    #[error("{key} must be at most {max}")]
    AboveMaximum {
        /// The key of the setting.
        key: &'static str,
        /// The maximum of the setting, or the setting that determines it.
        max: &'static str,
    },
    /// No socket for agents is configured.
    #[error("listen: no addresses; add one, as in listen = [\"127.0.0.1:7626\"]")]
    NoListener,
}

impl SetupError {
    /// Returns true if the error can be resolved by freeing space on the disk.
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, Self::Clock { source, .. } if is_disk_full(source))
    }

    pub(crate) fn syntax_error(path: &Path, error: &toml::de::Error) -> Self {
        let problem =
            error.to_string().trim_end().replace(error.message(), &rewrite_parse_error(error.message()));
        Self::Syntax { path: path.to_owned(), problem }
    }
}

/// The rules restored from a directory, and what could not be written to the directory.
struct RestoredState {
    journal: Journal,
    /// Ends of rules that could not be recorded in the journal.
    unrecorded: Vec<Change>,
    /// The directory in which the clock could not be stored; `None` if it was stored.
    unsaved_clock: Option<PathBuf>,
}

fn open_endpoint(at: SocketAddr) -> Result<Endpoint, DaemonError> {
    Endpoint::open(at).map_err(|source| DaemonError::Metrics { at, source })
}

pub(crate) fn read(path: &Path) -> Result<String, SetupError> {
    std::fs::read_to_string(path).map_err(|source| SetupError::Unreadable { path: path.to_owned(), source })
}

impl Settings {
    /// Creates the middlebox without rules.
    pub fn middlebox(&self) -> Result<Middlebox, SetupError> {
        if self.sockets().is_empty() && self.pcp.listen.is_empty() {
            return Err(SetupError::NoListener);
        }
        self.check_limits()?;
        let filter = self.nftables()?;
        self.tls()?;
        self.check_protected()?;
        self.check_standby()?;
        let (policy, authentication) = self.read_policy_and_authentication()?;
        Ok(Middlebox::new(self.config(filter.masquerade()), policy, authentication)?)
    }

    /// Returns warnings about settings that are valid but probably not intended, or that do not work on this
    /// host.
    pub fn warnings(&self, policy: &Policy) -> Vec<String> {
        self.quota_warning(policy).into_iter().chain(self.sctp_warning()).collect()
    }

    fn sctp_warning(&self) -> Option<String> {
        let uses_sctp = self.sockets().iter().any(|listen| listen.transport == Transport::Sctp);
        (uses_sctp && is_sctp_missing()).then(|| {
            "listen-sctp: this kernel has no SCTP, without which the middlebox does not start; load the kernel's module \
             (modprobe sctp), or use SCTP over UDP, which needs none (listen-sctp-udp)"
                .to_owned()
        })
    }

    fn quota_warning(&self, policy: &Policy) -> Option<String> {
        let connections = self.limits.connections;
        let max = connections - connections / 4;
        let quota = |name: &&str| policy.agent(name).map_or(0, |agent| policy.quota(agent).sessions);
        let greedy: Vec<&str> = policy.names().filter(|name| quota(name) >= max).collect();
        // A single agent takes nothing from others.
        let [first, rest @ ..] = greedy.as_slice() else { return None };
        policy.names().nth(1)?;
        let others =
            if rest.is_empty() { String::new() } else { format!(" (and so may {} others)", rest.len()) };
        Some(format!(
            "[limits] connections = {connections}: the agent {first} alone may open {max} sessions{others}, which leaves a \
             quarter for all others; raise connections, or set quota = {{ sessions = N }} in the policy"
        ))
    }

    /// Reads the policy and the secrets from their files.
    pub(crate) fn read_policy_and_authentication(
        &self,
    ) -> Result<(Policy, Box<dyn Authentication>), SetupError> {
        let secrets = self.read_secrets()?;
        let policy = self.read_policy(secrets.as_ref())?;
        self.check_agents(&policy, secrets.as_ref())?;
        self.check_mappings(&policy)?;
        Ok(match secrets {
            Some(secrets) => (policy, Box::new(secrets)),
            None => (policy, Box::new(Unauthenticated)),
        })
    }

    /// Opens all files and sockets, and returns the daemon.
    pub fn open(&self, log: Log) -> Result<Daemon, DaemonError> {
        let mut log = log.with_format(self.format);
        let mut middlebox = self.middlebox()?;
        let clock = self.state.as_deref().map_or_else(Clock::start, Clock::stored_in);
        let poller = Poller::new()?;
        // Everything that may fail comes before the first change of the packet filter: a firewall that does
        // not start must not drop all packets.
        let (sockets, interface) = (self.sockets(), self.protected.interface.as_deref());
        let limits = self.limits().within_open_files(SctpPort::sockets_for(&sockets))?;
        let tls = self.tls()?;
        let listeners = Listeners::open(&sockets, interface, tls, &poller)?;
        let sctp_ports = SctpPort::open_all(&sockets, interface)?;
        let endpoint = self.metrics.map(open_endpoint).transpose()?;
        let mapper = self.open_mapper()?;
        let replicator = self.open_replicator(clock)?;
        let restore = |directory| self.restore(directory, &mut middlebox, clock, &mut log);
        let restored = self.state.as_deref().map(restore).transpose()?;
        let filter: Box<dyn PacketFilter> = match self.filter {
            FilterKind::None => {
                log.write(clock.now(), Level::Warn, "nothing-filtered", &[("filter", &"none")]);
                Box::new(NullFilter)
            }
            FilterKind::Nftables => {
                self.warn_of_missing_interfaces(clock, &mut log);
                let mut filter = Nftables::open(self.nftables()?).map_err(RuleStoreError::from)?;
                if !filter.is_protected() {
                    filter.watch().map_err(RuleStoreError::from)?;
                    let reason = "before Linux 6.9 other programs can change the table; simcod repairs such changes within 1 s";
                    log.write(clock.now(), Level::Warn, "table-unguarded", &[("reason", &reason)]);
                }
                for table in filter.other_tables().map_err(RuleStoreError::from)? {
                    let reason = "the table belongs to another middlebox: packets that both tables filter pass only if both accept them; \
                               `simcod clear` removes a table that is no longer used";
                    log.write(
                        clock.now(),
                        Level::Warn,
                        "another-table",
                        &[("table", &table), ("reason", &reason)],
                    );
                }
                Box::new(filter)
            }
        };
        for warning in self.warnings(middlebox.policy()) {
            log.write(clock.now(), Level::Warn, "settings", &[("warning", &warning)]);
        }
        let rule_store = match restored {
            None => RuleStore::new(clock, filter, None),
            Some(RestoredState { journal, unrecorded, unsaved_clock }) => {
                RuleStore::new(clock, filter, Some(journal))
                    .with_unrecorded_changes(unrecorded, unsaved_clock)
            }
        };
        let rule_store = rule_store.with_standby(replicator);
        let mut daemon = Daemon::new(clock, poller, listeners, endpoint, middlebox, rule_store, limits, log)?;
        daemon.enable_sctp_over_udp(sctp_ports)?;
        if self.audit {
            daemon.enable_audit(self.audit_rate);
        }
        if let Some(mapper) = mapper {
            daemon.enable_port_mapping(mapper)?;
        }
        Ok(daemon)
    }

    /// Removes the packet filter's table with all its rules, if the daemon will not run again. The journal keeps its
    /// rules.
    pub fn clear(&self) -> Result<(), DaemonError> {
        let filter = Nftables::open(self.nftables()?).map_err(RuleStoreError::from)?;
        Ok(filter.remove().map_err(RuleStoreError::from)?)
    }

    /// Returns the TLS configuration; `None` without TLS.
    pub(crate) fn tls(&self) -> Result<Option<Arc<ServerConfig>>, SetupError> {
        let TlsSettings { certificate, key, agents } = &self.tls;
        if self.listen_tls.is_empty() && certificate.is_none() && key.is_none() {
            return Ok(None);
        }
        let (Some(certificate), Some(key)) = (certificate, key) else {
            return Err(SetupError::NoCertificate);
        };
        let builder = ServerConfig::builder_with_provider(crypto_provider());
        let builder = builder.with_protocol_versions(&[&TLS13]).expect("ring has TLS 1.3");
        let builder = match agents {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(read_authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, crypto_provider()).build();
                builder.with_client_cert_verifier(
                    verifier.map_err(|problem| SetupError::Authorities { path: path.clone(), problem })?,
                )
            }
        };
        let mut config = builder
            .with_single_cert(read_certificates(certificate)?, read_key(key)?)
            .map_err(|problem| CertificateError::Unusable { path: certificate.clone(), problem })?;
        // Sessions last for days, so resumption is not needed.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Some(Arc::new(config)))
    }

    fn open_mapper(&self) -> Result<Option<PortMapper>, DaemonError> {
        let PcpSettings { listen, mappings } = &self.pcp;
        if listen.is_empty() {
            return Ok(None);
        }
        let address = public_address(&self.nat.outside);
        let mapper = PortMapper::open(listen, self.nftables.inside.as_deref(), address, *mappings);
        mapper.map(Some).map_err(|(at, source)| DaemonError::PortMapper { at, source })
    }

    fn check_mappings(&self, policy: &Policy) -> Result<(), SetupError> {
        if self.pcp.listen.is_empty() {
            Ok(())
        } else if !self.nat.inside.is_empty() {
            Err(SetupError::MappingsWithTwiceNat)
        } else if !policy.assigns_hosts() {
            Err(SetupError::NoHosts)
        } else {
            Ok(())
        }
    }

    fn check_standby(&self) -> Result<(), SetupError> {
        let TlsSettings { certificate, key, agents } = &self.tls;
        let is_possible = self.state.is_some() && self.sync && !self.standby.certificate_name.is_empty();
        let is_secure = certificate.is_some() && key.is_some() && agents.is_some();
        let is_unused = self.standby.listen.is_none();
        if is_unused || is_possible && is_secure { Ok(()) } else { Err(SetupError::IncompleteStandby) }
    }

    /// Opens the socket for the standby; `None` if no standby is configured.
    fn open_replicator(&self, clock: Clock) -> Result<Option<Replicator>, DaemonError> {
        let StandbySettings { listen: Some(at), certificate_name: name, patience, required } = &self.standby
        else {
            return Ok(None);
        };
        let (Some(state), Some(tls)) = (&self.state, self.tls()?) else {
            return Err(SetupError::IncompleteStandby.into());
        };
        let thread_part = ReplicationThread::open(*at, tls, name.clone(), state.clone(), clock)
            .map_err(|source| DaemonError::Standby { at: *at, source })?;
        let patience = std::time::Duration::from_nanos(patience.as_nanos());
        Ok(Some(Replicator::new(thread_part, patience, *required)))
    }

    fn check_protected(&self) -> Result<(), SetupError> {
        let ProtectedSettings { interface, listen, listen_sctp, listen_sctp_udp } = &self.protected;
        let is_open = [listen, listen_sctp, listen_sctp_udp].iter().any(|addresses| !addresses.is_empty());
        if is_open && interface.is_none() { Err(SetupError::NoProtectedInterface) } else { Ok(()) }
    }

    fn limits(&self) -> Limits {
        let connections = self.limits.connections;
        let octets = |count: ByteCount| usize::try_from(count.0).unwrap_or(usize::MAX);
        let (agent_backlog, backlog) = (octets(self.limits.agent_backlog), octets(self.limits.backlog));
        Limits { connections, agent_backlog, backlog, patience: self.limits.patience }
    }

    /// Restores the rules of the journal. Rules that the current settings do not permit end. The daemon starts even if
    /// the disk is full: changes that cannot be written now are written later.
    fn restore(
        &self,
        directory: &Path,
        middlebox: &mut Middlebox,
        clock: Clock,
        log: &mut Log,
    ) -> Result<RestoredState, DaemonError> {
        let (journal, recorded) = Journal::open(directory)?;
        let unsaved_clock = match clock.save(directory) {
            Ok(()) => None,
            Err(error) if error.is_disk_full() => {
                log.write(clock.now(), Level::Error, "disk-full", &[("reason", &error)]);
                Some(directory.to_owned())
            }
            Err(error) => return Err(error.into()),
        };
        let mut ends = Vec::new();
        let mut journal =
            journal.with_durability(if self.sync { Durability::Synced } else { Durability::Buffered });
        if let Err(error) = journal.sync_mark()
            && error.is_disk_full()
        {
            log.write(clock.now(), Level::Error, "disk-full", &[("reason", &error)]);
        }
        if let Some(truncated_tail) = journal.truncated_tail() {
            log.write(clock.now(), Level::Warn, "journal-torn", &[("what", truncated_tail)]);
        }
        let (now, rules) = (clock.now(), recorded.len());
        for RecordedRule { rule, owner } in recorded {
            if let Err(error) = middlebox.restore(now, rule, &owner) {
                log.write(clock.now(), Level::Warn, "not-restored", &[("reason", &error)]);
                if self.audit {
                    write_end(clock.now(), &rule, &owner, "not-restored", log);
                }
                ends.push(Change { before: Some(rule), after: None });
            }
        }
        journal.take_ended_pids().into_iter().for_each(|pid| middlebox.delay_pid_reuse(pid));
        let end = |rule| Change { before: Some(rule), after: None };
        let overruled: Vec<Change> = middlebox.end_overruled(now).into_iter().map(end).collect();
        for rule in overruled.iter().filter_map(|change| change.before.as_ref()).filter(|_| self.audit) {
            write_end(now, rule, middlebox.policy().agent_name(rule.owner), end_cause(now, rule), log);
        }
        ends.extend(overruled);
        log.write(clock.now(), Level::Info, "restored", &[("rules", &rules)]);
        let unrecorded = match journal.record(&ends, |agent| middlebox.policy().name(agent)) {
            Ok(()) => Vec::new(),
            Err(error @ JournalError::Broken { .. }) => return Err(error.into()),
            Err(error) => {
                log.write(clock.now(), Level::Error, "disk-full", &[("reason", &error)]);
                ends
            }
        };
        Ok(RestoredState { journal, unrecorded, unsaved_clock })
    }

    /// Logs a warning for each interface that does not exist. It may appear later, but if its name is misspelt, a
    /// firewall lets all packets pass.
    fn warn_of_missing_interfaces(&self, clock: Clock, log: &mut Log) {
        let NftablesSettings { inside, outside, .. } = &self.nftables;
        // /sys/class/net may be that of another network namespace.
        let missing = |name: &&String| if_nametoindex(name.as_str()).is_err();
        for name in [inside, outside].into_iter().flatten().filter(missing) {
            log.write(clock.now(), Level::Warn, "no-such-interface", &[("name", name)]);
        }
    }

    fn nftables(&self) -> Result<hol_filter::Config, SetupError> {
        let NftablesSettings { table, inside, outside } = &self.nftables;
        let default_policy = if self.firewall { DefaultPolicy::Drop } else { DefaultPolicy::Accept };
        let addresses = [&self.nat.outside[..], &self.nat.inside[..]].concat();
        let pool = Pool { addresses, ports: self.nat.pool_ports() };
        let config =
            hol_filter::Config::new().with_table(table)?.with_default_policy(default_policy).with_pool(pool);
        let config = config.with_masquerade(self.masquerade()?);
        match (inside.clone(), outside.clone()) {
            (None, None) => Ok(config),
            (Some(inside), Some(outside)) if inside != outside => {
                Ok(config.with_interfaces(Interfaces { inside, outside })?)
            }
            _ => Err(SetupError::OneInterface),
        }
    }

    fn masquerade(&self) -> Result<Masquerade, SetupError> {
        let NatSettings { outside, masquerade: hosts, masquerade_ports, hairpin, filtering, .. } = &self.nat;
        let (first, last) = masquerade_ports;
        let NftablesSettings { inside: from, outside: to, .. } = &self.nftables;
        if self.nat.masquerades() && (from.is_none() || to.is_none()) {
            return Err(SetupError::MasqueradeWithoutInterfaces);
        }
        if !self.nat.masquerades() && *filtering != Filtering::default() {
            return Err(SetupError::FilteringWithoutMasquerade);
        }
        let (ports, pool) = (*first..=*last, self.nat.pool_ports());
        let overlap = pool.start().max(first) <= pool.end().min(last);
        if self.nat.masquerades() && (overlap || ports.is_empty() || *first == 0) {
            return Err(SetupError::MasqueradePorts { ports, pool });
        }
        let is_represented = |hosts: &&Prefix| {
            let version = IpVersion::of(hosts.address());
            outside.iter().any(|address| IpVersion::of(*address) == version)
        };
        if let Some(lacking) = hosts.iter().find(|hosts| !is_represented(hosts)) {
            return Err(SetupError::MasqueradeWithoutAddress(lacking.address()));
        }
        let (hosts, addresses) = (hosts.clone(), outside.clone());
        Ok(Masquerade { hosts, hairpin: *hairpin, addresses, ports, filtering: *filtering })
    }

    fn config(&self, masquerade: &Masquerade) -> Config {
        let seconds = u32::try_from(self.max_lifetime.as_millis() / 1000).unwrap_or(u32::MAX);
        let mut capabilities = Capabilities::firewall(Lifetime(seconds));
        capabilities.middlebox_type |= Capabilities::PDR;
        if !self.firewall {
            capabilities.middlebox_type ^= Capabilities::PACKET_FILTER;
        }
        capabilities.flags |= Capabilities::IPV6;
        if !self.firewall {
            // A NAT without a firewall supports only the IP versions of its addresses.
            let lacks = |version| !self.nat.outside.iter().any(|address| IpVersion::of(*address) == version);
            for (version, flags) in [(IpVersion::V4, Capabilities::IPV4), (IpVersion::V6, Capabilities::IPV6)]
            {
                capabilities.flags &= if lacks(version) { !flags } else { u8::MAX };
            }
        }
        if self.state.is_some() {
            capabilities.flags |= Capabilities::PERSISTENT;
        }
        if !self.nat.outside.is_empty() {
            capabilities.middlebox_type |= Capabilities::NAT | Capabilities::PORT_TRANSLATION;
        }
        if !self.nat.inside.is_empty() {
            capabilities.middlebox_type |= Capabilities::TWICE_NAT;
        }
        Config {
            capabilities,
            outside: self.nat.outside.clone(),
            inside: self.nat.inside.clone(),
            ports: self.nat.pool_ports(),
            shared: masquerade.sources().filter(|_| masquerade.is_used()).collect(),
            max_rules: self.limits.rules,
            max_elements: self.limits.elements,
            max_shapes: MAX_SHAPES,
            footprint: (self.filter == FilterKind::Nftables).then_some(footprint),
            max_sessions: self.limits.connections,
            announces: true,
            audits: self.audit,
        }
    }

    /// Reads the policy. Without a policy file, every agent with a secret has all rights; if there are no secrets
    /// either, every agent has all rights.
    fn read_policy(&self, secrets: Option<&SharedSecrets>) -> Result<Policy, SetupError> {
        let (path, policy) = match (&self.policy, &self.secrets, secrets) {
            (Some(path), ..) => (path, Policy::parse(&read(path)?)),
            (None, None, None) if self.tls.agents.is_some() => return Err(SetupError::NamesWithoutPolicy),
            (None, Some(path), Some(secrets)) => (path, Policy::of_agents(secrets.names())),
            _ => {
                let stranger = self.sockets().into_iter().find(|at| !at.address.ip().is_loopback());
                return stranger
                    .map_or(Ok(Policy::permissive()), |at| Err(SetupError::OpenToAll(at.address)));
            }
        };
        policy.map_err(|source| SetupError::Policy { path: path.clone(), source })
    }

    fn read_secrets(&self) -> Result<Option<SharedSecrets>, SetupError> {
        let Some(path) = &self.secrets else { return Ok(None) };
        let secrets = SharedSecrets::parse(&read_secrets(path)?, nonces());
        secrets.map(Some).map_err(|source| SetupError::Secrets { path: path.clone(), source })
    }

    /// Returns an error for a policy under which no agent could open a session.
    fn check_agents(&self, policy: &Policy, secrets: Option<&SharedSecrets>) -> Result<(), SetupError> {
        let is_known = |name| secrets.is_some_and(|secrets| secrets.knows(name));
        // A certificate with the name of an agent authenticates it.
        let are_certified = self.tls.agents.is_some() && policy.names().next().is_some();
        // An agent identified by its address needs no session.
        let are_hosts = !self.pcp.listen.is_empty() && policy.assigns_hosts();
        if policy.anonymous().is_some() || are_certified || are_hosts || policy.names().any(is_known) {
            return Ok(());
        }
        Err(match (self.policy.clone(), self.secrets.clone()) {
            (Some(policy), Some(secrets)) => SetupError::NoAgentHasSecret { policy, secrets },
            (Some(policy), None) => SetupError::NoAuthentication(policy),
            (None, secrets) => SetupError::NoSecrets(secrets.unwrap_or_default()),
        })
    }

    fn check_limits(&self) -> Result<(), SetupError> {
        let LimitSettings { connections, rules, elements, agent_backlog, backlog, patience } = &self.limits;
        let second = Duration::from_secs(1);
        let too_little = [
            ("max-lifetime", "1s", self.max_lifetime < second),
            ("[limits] connections", "1", *connections == 0),
            ("[limits] rules", "1", *rules == 0),
            ("[limits] elements", "1", *elements == 0),
            ("[limits] backlog", "1MiB", backlog.0 < 1 << 20),
            ("[limits] agent-backlog", "128KiB", agent_backlog.0 < Limits::MIN_AGENT_BACKLOG),
            ("[limits] patience", "1s", *patience < second),
            ("[standby] patience", "1ms", self.standby.patience < Duration::from_millis(1)),
        ];
        let first = too_little.into_iter().find(|(_, _, is_too_little)| *is_too_little);
        match first {
            Some((key, min, _)) => Err(SetupError::BelowMinimum { key, min }),
            // After that time a silent connection ends anyway.
            None if self.standby.patience > Duration::from_secs(5) => {
                Err(SetupError::AboveMaximum { key: "[standby] patience", max: "5s" })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A NAT supports the IP versions of its addresses, as IIV and EIV show (RFC 4540 section 4.3.3).
    #[test]
    fn a_nat_without_firewall_serves_the_versions_of_its_addresses() {
        let flags = |firewall, outside: &[&str]| {
            let outside = outside.iter().map(|address| address.parse().unwrap()).collect();
            let nat = NatSettings { outside, ..NatSettings::default() };
            let settings = Settings { firewall, nat, ..Settings::default() };
            settings.middlebox().unwrap().capabilities().flags & 0b1111
        };
        assert_eq!(flags(false, &["192.0.2.1"]), Capabilities::IPV4);
        assert_eq!(flags(false, &["2001:db8::1"]), Capabilities::IPV6);
        let both = Capabilities::IPV4 | Capabilities::IPV6;
        assert_eq!(flags(false, &["192.0.2.1", "2001:db8::1"]), both);
        assert_eq!(flags(true, &["192.0.2.1"]), both, "a firewall passes IPv6 untranslated");
    }

    #[test]
    fn masquerading_needs_interfaces_and_an_address_of_the_hosts_version() {
        let settings = |nftables: &str, hosts: &str| {
            let text =
                format!("[nftables]\n{nftables}[nat]\noutside = ['192.0.2.1']\nmasquerade = ['{hosts}']\n");
            toml::from_str::<Settings>(&text)
                .unwrap()
                .middlebox()
                .map(drop)
                .map_err(|error| error.to_string())
        };
        let interfaces = "inside = 'in0'\noutside = 'out0'\n";
        assert_eq!(settings(interfaces, "10.0.0.0/8"), Ok(()));
        assert!(settings("", "10.0.0.0/8").unwrap_err().contains("set `inside` and `outside` in [nftables]"));
        assert!(settings(interfaces, "fd00::/8").unwrap_err().contains("has the IP version of fd00::"));
    }

    #[test]
    fn standby_patience_has_a_minimum_and_a_maximum() {
        let check = |patience| {
            let standby = StandbySettings { patience, ..StandbySettings::default() };
            Settings { standby, ..Settings::default() }
                .middlebox()
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(Duration::from_secs(5)), Ok(()));
        let error = check(Duration::from_secs(6)).unwrap_err();
        assert_eq!(error, "[standby] patience must be at most 5s");
        assert!(check(Duration::ZERO).unwrap_err().contains("at least 1ms"));
    }

    #[test]
    fn ports_of_masqueraded_flows_and_of_rules_must_not_overlap() {
        let settings = |nat: &str| {
            let text = format!(
                "[nftables]\ninside = 'in0'\noutside = 'out0'\n[nat]\noutside = ['192.0.2.1']\n{nat}\n"
            );
            let settings: Settings = toml::from_str(&text).unwrap();
            let middlebox = settings.middlebox().map_err(|error| error.to_string());
            middlebox.map(|_| settings.nat.pool_ports())
        };
        assert_eq!(settings(""), Ok(1024..=65_535));
        assert_eq!(settings("hairpin = true"), Ok(16_384..=65_535));
        let masquerade = |more: &str| settings(&format!("masquerade = ['10.0.0.0/8']\n{more}"));
        assert_eq!(masquerade(""), Ok(16_384..=65_535));
        assert_eq!(masquerade("masquerade-ports = [32768, 60999]"), Ok(61_000..=65_535));
        assert_eq!(masquerade("masquerade-ports = [32768, 65535]\nports = [1024, 32767]"), Ok(1024..=32_767));
        for wrong in [
            "ports = [1024, 65535]",
            "ports = [1024, 32768]\nmasquerade-ports = [32768, 60999]",
            "ports = [60999, 65535]\nmasquerade-ports = [32768, 60999]",
            "masquerade-ports = [32768, 65535]",
            "masquerade-ports = [2000, 1024]",
            "masquerade-ports = [0, 1024]",
        ] {
            let error = masquerade(wrong).unwrap_err();
            assert!(error.contains("ranges that do not overlap"), "{wrong}: {error}");
        }
        assert_eq!(settings("ports = [1024, 65535]"), Ok(1024..=65_535), "nothing is masqueraded");
    }

    #[test]
    fn the_filtering_policy_has_the_names_of_rfc_4787_and_needs_masqueraded_flows() {
        let filtering = |nat: &str| -> Result<Filtering, String> {
            let interfaces = "[nftables]\ninside = 'in0'\noutside = 'out0'\n";
            let text = format!("{interfaces}[nat]\noutside = ['192.0.2.1']\n{nat}\n");
            let settings: Settings = toml::from_str(&text).map_err(|error| error.to_string())?;
            Ok(settings.masquerade().map_err(|error| error.to_string())?.filtering)
        };
        let masquerade = |more: &str| filtering(&format!("masquerade = ['10.0.0.0/8']\n{more}"));
        assert_eq!(masquerade(""), Ok(Filtering::AddressAndPortDependent));
        assert_eq!(masquerade("filtering = 'endpoint-independent'"), Ok(Filtering::EndpointIndependent));
        assert!(masquerade("filtering = 'address-dependent'").unwrap_err().contains("endpoint-independent"));
        assert!(filtering("filtering = 'endpoint-independent'").unwrap_err().contains("set `masquerade`"));
    }

    #[test]
    fn a_session_quota_near_the_connection_limit_causes_a_warning() {
        let limits = LimitSettings { connections: 100, ..LimitSettings::default() };
        let settings = Settings { limits, ..Settings::default() };
        let policy =
            Policy::parse("[agents.call-server]\n[agents.nms]\nquota = { sessions = 75 }\n").unwrap();
        let warnings = settings.warnings(&policy);
        assert!(matches!(&warnings[..], [warning] if warning.contains("the agent nms")), "{warnings:?}");
    }
}
