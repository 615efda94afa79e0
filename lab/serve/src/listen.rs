//! Serves until told to stop.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hol_lab::Permission;
use hyper_util::rt::TokioTimer;

use crate::jobs::{Note, run_scheduler};
use crate::mail::{Mailer, Post, PostError};
use crate::pacer::Pacer;
use crate::people::Registration;
use crate::quota::Quota;
use crate::reading::permission_for_users;
use crate::router::router;
use crate::server::{Access, Config, Server, StateError};

/// Maximum time for a request to arrive. RFC 9110, section 15.5.9
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum octets of headers over HTTP/2; `guard` allows fewer, and says so in words. RFC 9113, section 6.5.2
const LARGEST_HEAD: u32 = 64 << 10;
/// Time for open responses when the server stops.
const GRACE: Duration = Duration::from_secs(3);

/// How connections of browsers are encrypted.
#[derive(Debug, Clone)]
pub enum Tls {
    /// Not at all: on loopback.
    None,
    /// By a proxy in front.
    Proxy,
    /// Here: files of the certificates and of the key, PEM.
    Files(PathBuf, PathBuf),
}

/// The options of `hol serve`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; port 0 takes any.
    pub listen: SocketAddr,
    /// The state directory.
    pub state: PathBuf,
    /// The `hol` that runs experiments.
    pub program: PathBuf,
    /// Cores for experiments.
    pub cores: u32,
    /// Additional host names besides addresses and localhost.
    pub names: Vec<String>,
    /// How connections are encrypted.
    pub tls: Tls,
    /// Whether users other than the owner of this machine may submit experiments with programs.
    pub programs: bool,
    /// The worlds of the family `live` that those users may name.
    pub live: Vec<String>,
    /// What each project of those users may use.
    pub quota: Quota,
    /// Destination of mail.
    pub post: Post,
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not available.
    #[error("{0}: cannot listen: {1}; choose another with --listen")]
    Listen(SocketAddr, io::Error),
    /// Passwords could be read on the network.
    #[error(
        "{0}: others reach this address, so people log in, and passwords need TLS: give --tls CERTIFICATE KEY, or --proxy if \
         a proxy before the server does it, or listen on 127.0.0.1"
    )]
    Plain(SocketAddr),
    /// Nobody could log in.
    #[error(
        "nobody has an account yet; make the first with `hol serve --administrator NAME`, then start again"
    )]
    Nobody,
    /// Certificates or key.
    #[error("{0}: {1}; give files in PEM")]
    Tls(PathBuf, io::Error),
    /// The state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// Mail.
    #[error("mail: {0}")]
    Post(#[from] PostError),
    /// An account.
    #[error("{0}")]
    Account(String),
    /// The system gives no threads.
    #[error("cannot begin: {0}")]
    System(#[from] io::Error),
}

impl Options {
    /// Determines the access: no login on loopback, unless a proxy brings others there.
    fn access(&self) -> Result<Access, ServeError> {
        match (&self.tls, self.listen.ip().is_loopback()) {
            (Tls::None, true) => Ok(Access::Open),
            (Tls::None, false) => Err(ServeError::Plain(self.listen)),
            (Tls::Proxy | Tls::Files(..), _) => Ok(Access::Accounts),
        }
    }

    /// Everything for the owner of this machine; users who log in get what the options grant.
    fn permission(&self, access: Access) -> Permission {
        match access {
            Access::Open => Permission::default(),
            Access::Accounts => Permission { programs: self.programs, ..permission_for_users(&self.live) },
        }
    }

    /// Returns where browsers find a server that listens at `address`, without a `/` at its end.
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
            // The proxy has the port of its scheme.
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
            quota: if access == Access::Open { Quota::NONE } else { self.quota },
            names: self.names.clone(),
            is_secure: !matches!(self.tls, Tls::None),
            is_behind_proxy: matches!(self.tls, Tls::Proxy),
        })
    }
}

/// Creates an account that approves projects, in the state directory of a server that is not running.
pub fn add_administrator(options: &Options, registration: &Registration) -> Result<(), ServeError> {
    let config = Config { access: Access::Accounts, ..options.config()? };
    let server = Server::open(config, Mailer::open(&Post::None)?, channel().0)?;
    server.register(registration, true).map_err(|refusal| ServeError::Account(refusal.to_string()))
}

/// Serves until SIGINT or SIGTERM; `ready` gets the address once requests are accepted.
pub fn serve(options: &Options, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let config = options.config()?;
    let access = config.access;
    let mailer = Mailer::open(&options.post)?;
    let (notes, inbox) = channel();
    let server = Arc::new(Server::open(config, mailer, notes.clone())?);
    if access == Access::Accounts && !server.store.has_users().map_err(StateError::from)? {
        return Err(ServeError::Nobody);
    }
    let listener = TcpListener::bind(options.listen).map_err(|e| ServeError::Listen(options.listen, e))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    // Nobody else sets it.
    let _ = server.url.set(options.url(address));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Processes end with the thread that started them, so this thread does it instead of the runtime's.
    let scheduler = {
        let (server, notes) = (server.clone(), notes.clone());
        std::thread::Builder::new()
            .name("scheduler".to_owned())
            .spawn(move || run_scheduler(server, notes, &inbox))?
    };
    ready(address);
    let served = runtime.block_on(answer(listener, &options.tls, &server));
    let _ = notes.send(Note::Stop);
    let _ = scheduler.join();
    served
}

async fn answer(listener: TcpListener, tls: &Tls, server: &Arc<Server>) -> Result<(), ServeError> {
    let handle = Handle::new();
    tokio::spawn(stop(handle.clone(), server.clone()));
    let service = router(server.clone()).into_make_service_with_connect_info::<SocketAddr>();
    match tls {
        Tls::Files(certificates, key) => {
            let mut listening = axum_server::from_tcp_rustls(listener, rustls(certificates, key).await?)?
                .map(|tls| tls.acceptor(Pacer::default()))
                .handle(handle);
            listening.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            listening.http_builder().http2().max_header_list_size(LARGEST_HEAD);
            listening.serve(service).await?;
        }
        Tls::None | Tls::Proxy => {
            let mut listening = axum_server::from_tcp(listener)?.acceptor(Pacer::default()).handle(handle);
            listening.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            listening.http_builder().http2().max_header_list_size(LARGEST_HEAD);
            listening.serve(service).await?;
        }
    }
    Ok(())
}

async fn rustls(certificates: &PathBuf, key: &PathBuf) -> Result<RustlsConfig, ServeError> {
    // Another part of the process may have installed one; either works.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = RustlsConfig::from_pem_file(certificates, key).await;
    config.map_err(|e| ServeError::Tls(certificates.clone(), e))
}

/// Waits for a signal, then ends streams and accepts no more requests.
async fn stop(handle: Handle<SocketAddr>, server: Arc<Server>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        _ = terminate.recv() => (),
    }
    server.hub.stop();
    handle.graceful_shutdown(Some(GRACE));
}
