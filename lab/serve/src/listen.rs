//! Listens for connections, and serves them until a signal.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hol_lab::Permission;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;

use crate::jobs::{SchedulerMessage, run_scheduler};
use crate::mail::{MailDestination, MailError, Mailer};
use crate::people::Registration;
use crate::quota::Quota;
use crate::reading::permission_for_users;
use crate::router::router;
use crate::server::{Access, Config, Server, StateError};
use crate::slow_clients::RateCheckingAcceptor;

/// Maximum time until the headers of a request have arrived. RFC 9110, section 15.5.9
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of octets of headers over HTTP/2; `guard` allows fewer, and explains the error. RFC 9113, section
/// 6.5.2
const MAX_HTTP2_HEAD: u32 = 64 << 10;
/// Maximum number of octets of a response that a connection buffers; over HTTP/2 this limit applies to each concurrent
/// response.
const MAX_BUFFER: usize = 64 << 10;
/// Maximum number of concurrent requests of a connection over HTTP/2, at least 100. RFC 9113, section 6.5.2
const MAX_STREAMS: u32 = 100;
/// Time for open responses when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// How connections of browsers are encrypted.
#[derive(Debug, Clone)]
pub enum Tls {
    /// Connections are not encrypted. Allowed only on loopback.
    None,
    /// A proxy in front of the server encrypts connections.
    Proxy,
    /// The server encrypts connections, with the certificates and the key in these PEM files.
    Files(PathBuf, PathBuf),
}

/// The options of `hol serve`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address and port to listen on; port 0 selects a free port.
    pub listen: SocketAddr,
    /// The state directory.
    pub state: PathBuf,
    /// Path of the `hol` that runs experiments.
    pub program: PathBuf,
    /// Number of cores for experiments.
    pub cores: u32,
    /// Host names of the server, in addition to addresses and localhost.
    pub names: Vec<String>,
    /// How connections are encrypted.
    pub tls: Tls,
    /// Whether users other than the owner of this machine may submit experiments with programs.
    pub programs: bool,
    /// The `live` worlds that users other than the owner of this machine may use.
    pub live: Vec<String>,
    /// Maximum usage of each project, unless only the owner of this machine has access.
    pub quota: Quota,
    /// Destination of mail.
    pub mail: MailDestination,
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not available.
    #[error("{0}: cannot listen: {1}; choose another address with --listen")]
    Listen(SocketAddr, io::Error),
    /// Passwords would be sent without encryption.
    #[error(
        "{0}: other machines can reach this address, so users must log in, and passwords must be encrypted; use --tls \
         CERTIFICATES KEY, or --proxy if a proxy in front of the server encrypts connections, or listen on 127.0.0.1"
    )]
    Plain(SocketAddr),
    /// There is no account.
    #[error(
        "there is no account yet; create the first one with `hol serve --administrator NAME`, then start the server again"
    )]
    Nobody,
    /// The certificates or the key cannot be read.
    #[error("{0}: {1}; use PEM files for the certificates and the key")]
    Tls(PathBuf, io::Error),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The options of mail are wrong.
    #[error("mail: {0}")]
    Mail(#[from] MailError),
    /// The account cannot be created.
    #[error("{0}")]
    Account(String),
    /// The operating system provides no socket or thread.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

impl Options {
    /// Returns who has access: everybody on loopback without TLS and proxy, otherwise only users who log in. Returns an
    /// error if other machines could connect without encryption.
    fn access(&self) -> Result<Access, ServeError> {
        match (&self.tls, self.listen.ip().is_loopback()) {
            (Tls::None, true) => Ok(Access::Open),
            (Tls::None, false) => Err(ServeError::Plain(self.listen)),
            (Tls::Proxy | Tls::Files(..), _) => Ok(Access::Accounts),
        }
    }

    /// Returns the resources that experiments may use: without login all, otherwise those that the options grant.
    fn permission(&self, access: Access) -> Permission {
        match access {
            Access::Open => Permission::default(),
            Access::Accounts => Permission { programs: self.programs, ..permission_for_users(&self.live) },
        }
    }

    /// Returns the URL of a server that listens at `address`, without a final `/`.
    fn url(&self, address: SocketAddr) -> String {
        let host = match (self.names.first(), address.ip()) {
            (Some(name), _) => name.clone(),
            (None, ip) if ip.is_unspecified() => "localhost".to_owned(),
            (None, IpAddr::V6(ip)) => format!("[{ip}]"),
            (None, IpAddr::V4(ip)) => ip.to_string(),
        };
        match self.tls {
            Tls::None => format!("http://{host}:{}", address.port()),
            Tls::Files(..) => format!("https://{host}:{}", address.port()),
            // The proxy listens on the default port of HTTPS.
            Tls::Proxy => format!("https://{host}"),
        }
    }

    fn config(&self) -> Result<Config, ServeError> {
        let access = self.access()?;
        Ok(Config {
            state: self.state.clone(),
            program: self.program.clone(),
            cores: self.cores,
            access,
            permission: self.permission(access),
            quota: if access == Access::Open { Quota::UNLIMITED } else { self.quota },
            names: self.names.clone(),
            is_secure: !matches!(self.tls, Tls::None),
            is_behind_proxy: matches!(self.tls, Tls::Proxy),
            has_children: true,
        })
    }
}

/// Creates the account of an administrator in a state directory that no running server uses.
pub fn add_administrator(options: &Options, registration: &Registration) -> Result<(), ServeError> {
    let config = Config { access: Access::Accounts, ..options.config()? };
    let server = Server::open(config, Mailer::open(&MailDestination::None)?, channel().0)?;
    server.register(registration, true).map_err(|refusal| ServeError::Account(refusal.to_string()))
}

/// Serves until SIGINT or SIGTERM; calls `ready` with the address when connections are accepted.
pub fn serve(options: &Options, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let config = options.config()?;
    let access = config.access;
    let mailer = Mailer::open(&options.mail)?;
    let (notes, inbox) = channel();
    let server = Arc::new(Server::open(config, mailer, notes.clone())?);
    if access == Access::Accounts && !server.store.has_users().map_err(StateError::from)? {
        return Err(ServeError::Nobody);
    }
    let listener = TcpListener::bind(options.listen).map_err(|e| ServeError::Listen(options.listen, e))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    // Only this line sets the URL.
    let _ = server.url.set(options.url(address));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // The kernel kills a process when the thread that started it ends (PR_SET_PDEATHSIG), so a separate thread starts
    // processes, because threads of the runtime may end earlier.
    let scheduler = {
        let (server, notes) = (server.clone(), notes.clone());
        std::thread::Builder::new()
            .name("scheduler".to_owned())
            .spawn(move || run_scheduler(server, notes, &inbox))?
    };
    ready(address);
    let served = runtime.block_on(serve_connections(listener, &options.tls, &server));
    let _ = notes.send(SchedulerMessage::Stop);
    let _ = scheduler.join();
    served
}

async fn serve_connections(listener: TcpListener, tls: &Tls, server: &Arc<Server>) -> Result<(), ServeError> {
    let handle = Handle::new();
    tokio::spawn(stop_on_signal(handle.clone(), server.clone()));
    let service = router(server.clone()).into_make_service_with_connect_info::<SocketAddr>();
    match tls {
        Tls::Files(certificates, key) => {
            let mut listening = axum_server::from_tcp_rustls(listener, tls_config(certificates, key).await?)?
                .map(|tls| tls.acceptor(RateCheckingAcceptor::default()))
                .handle(handle);
            set_limits(listening.http_builder());
            listening.serve(service).await?;
        }
        Tls::None | Tls::Proxy => {
            let mut listening =
                axum_server::from_tcp(listener)?.acceptor(RateCheckingAcceptor::default()).handle(handle);
            set_limits(listening.http_builder());
            listening.serve(service).await?;
        }
    }
    Ok(())
}

/// Limits the time and the memory of a connection.
fn set_limits(builder: &mut Builder<TokioExecutor>) {
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MAX_BUFFER);
    builder
        .http2()
        .max_header_list_size(MAX_HTTP2_HEAD)
        .max_send_buf_size(MAX_BUFFER)
        .max_concurrent_streams(MAX_STREAMS);
}

async fn tls_config(certificates: &PathBuf, key: &PathBuf) -> Result<RustlsConfig, ServeError> {
    // Fails if another part of the process has installed a provider, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = RustlsConfig::from_pem_file(certificates, key).await;
    config.map_err(|e| ServeError::Tls(certificates.clone(), e))
}

/// Waits for a signal, then ends event streams and accepts no more connections.
async fn stop_on_signal(handle: Handle<SocketAddr>, server: Arc<Server>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        _ = terminate.recv() => (),
    }
    server.hub.stop();
    handle.graceful_shutdown(Some(SHUTDOWN_TIMEOUT));
}
