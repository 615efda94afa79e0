//! Listens and answers until it is told to stop.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::TokioTimer;

use crate::jobs::{Note, conduct};
use crate::mail::{Mailer, Post, PostError};
use crate::people::Registration;
use crate::router::router;
use crate::server::{Access, Config, Server, StateError};

/// Who connects and sends nothing is not waited for. RFC 9110, section 15.5.9
const PATIENCE: Duration = Duration::from_secs(10);
/// What is being answered when the server stops may end.
const GRACE: Duration = Duration::from_secs(3);

/// How browsers' connections are encrypted.
#[derive(Debug, Clone)]
pub enum Tls {
    /// Not at all: on loopback.
    None,
    /// By a proxy before the server.
    Proxy,
    /// Here: files of the certificates and of the key, PEM.
    Files(PathBuf, PathBuf),
}

/// What `hol serve` was asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; port 0 takes any.
    pub listen: SocketAddr,
    /// Where everything is kept.
    pub state: PathBuf,
    /// The `hol` that runs experiments.
    pub program: PathBuf,
    /// Cores that experiments may have.
    pub cores: u32,
    /// Names by which it may be called, beside addresses and localhost.
    pub names: Vec<String>,
    /// How connections are encrypted.
    pub tls: Tls,
    /// Whether experiments may have programs even if others than the owner of this machine send them.
    pub programs: bool,
    /// Where mail goes.
    pub post: Post,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("{0}: cannot listen: {1}; choose another with --listen")]
    Listen(SocketAddr, io::Error),
    /// Passwords would be read by whoever is on the way.
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
    /// On loopback nobody logs in, unless a proxy brings others there.
    fn access(&self) -> Result<Access, ServeError> {
        match (&self.tls, self.listen.ip().is_loopback()) {
            (Tls::None, true) => Ok(Access::Open),
            (Tls::None, false) => Err(ServeError::Plain(self.listen)),
            (Tls::Proxy | Tls::Files(..), _) => Ok(Access::Accounts),
        }
    }

    fn config(&self) -> Result<Config, ServeError> {
        let access = self.access()?;
        Ok(Config {
            state: self.state.clone(),
            program: self.program.clone(),
            cores: self.cores,
            access,
            may_run_programs: self.programs || access == Access::Open,
            names: self.names.clone(),
            is_secure: !matches!(self.tls, Tls::None),
        })
    }
}

/// Makes an account that approves projects, in the state directory of a server that does not run.
pub fn add_administrator(options: &Options, registration: &Registration) -> Result<(), ServeError> {
    let config = Config { access: Access::Accounts, ..options.config()? };
    let server = Server::open(config, Mailer::open(&Post::None)?, channel().0)?;
    server.register(registration, true).map_err(|refusal| ServeError::Account(refusal.to_string()))
}

/// Serves until SIGINT or SIGTERM; `ready` hears the address once, when requests are taken.
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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // The processes end with the thread that started them, so it is this one and none of the runtime's.
    let conductor = {
        let (server, notes) = (server.clone(), notes.clone());
        std::thread::Builder::new()
            .name("conductor".to_owned())
            .spawn(move || conduct(server, notes, &inbox))?
    };
    ready(address);
    let served = runtime.block_on(answer(listener, &options.tls, &server));
    let _ = notes.send(Note::Stop);
    let _ = conductor.join();
    served
}

async fn answer(listener: TcpListener, tls: &Tls, server: &Arc<Server>) -> Result<(), ServeError> {
    let handle = Handle::new();
    tokio::spawn(stop(handle.clone(), server.clone()));
    let service = router(server.clone()).into_make_service();
    match tls {
        Tls::Files(certificates, key) => {
            let mut listening =
                axum_server::from_tcp_rustls(listener, rustls(certificates, key).await?)?.handle(handle);
            listening.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            listening.serve(service).await?;
        }
        Tls::None | Tls::Proxy => {
            let mut listening = axum_server::from_tcp(listener)?.handle(handle);
            listening.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            listening.serve(service).await?;
        }
    }
    Ok(())
}

async fn rustls(certificates: &PathBuf, key: &PathBuf) -> Result<RustlsConfig, ServeError> {
    // Another part of the process may have chosen one already; either will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = RustlsConfig::from_pem_file(certificates, key).await;
    config.map_err(|e| ServeError::Tls(certificates.clone(), e))
}

/// Waits for a signal, then ends streams and takes no more requests.
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
