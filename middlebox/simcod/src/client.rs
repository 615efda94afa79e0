//! Connects a command to its middlebox, sends requests, and shows the answers.

use std::env;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hol_agent::{Answer, RuleEvent, Server, Session, SessionError, Tls, Transport, nonces, read_secrets};
use hol_base::{Duration, ParseUnitError};
use hol_simco::{Credentials, Lifetime, Pid, Reply, Request, SharedSecret, Unauthenticated};

use crate::RequestCommand;
use crate::advice::with_advice;
use crate::answer::{LabelledRequest, show};
use crate::failure::Failure;

/// The environment variable that names the middlebox if the command has no option `--server`.
const SERVER_VARIABLE: &str = "HOL_SIMCO";

/// The options to reach and authenticate with a middlebox.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Connection")]
pub struct Client {
    /// The middlebox: HOST or HOST:PORT, IPv6 in brackets [default: $HOL_SIMCO, else 127.0.0.1:7626]
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Transport of the session [default: tcp]
    #[arg(long, value_name = "PROTOCOL")]
    over: Option<TransportChoice>,
    /// File with a line NAME = "SECRET", accessible only to its owner
    #[arg(long, value_name = "FILE", requires = "name")]
    secret: Option<PathBuf>,
    /// Name of this agent: the NAME in the file of --secret
    #[arg(long, value_name = "AGENT", requires = "secret")]
    name: Option<String>,
    /// Use TLS, and accept middleboxes certified by an authority in this file (PEM)
    #[arg(long, value_name = "FILE")]
    tls: Option<PathBuf>,
    /// This agent's certificate (PEM), for --tls; the name in it identifies the agent
    #[arg(long, value_name = "FILE", requires = "key", requires = "tls")]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, accessible only to its owner
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Timeout for connecting, and for each answer [default: 10s]
    #[arg(long, value_name = "10s", value_parser = parse_timeout)]
    timeout: Option<Duration>,
    /// Print JSON objects, one per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum TransportChoice {
    /// TCP, with TLS if --tls is given
    Tcp,
    /// SCTP, if the kernel supports it
    Sctp,
    /// SCTP in UDP datagrams, which every kernel supports
    SctpUdp,
}

/// A command of which the requests are sent to a middlebox.
#[derive(Debug, Args)]
pub struct RemoteCommand<A: Args> {
    #[command(flatten)]
    command: A,
    #[command(flatten)]
    client: Client,
}

impl<A: Args + RequestCommand> RemoteCommand<A> {
    /// Returns the command, and the options that select the middlebox and authenticate the agent.
    pub fn parts(&self) -> (&dyn RequestCommand, &Client) {
        (&self.command, &self.client)
    }
}

impl Client {
    /// Opens a session with the middlebox.
    pub fn open(&self) -> Result<Session, Failure> {
        Ok(Session::open(&self.server()?, self.credentials()?)?)
    }

    /// Sends all requests at once, and shows the answers.
    pub fn request_and_show(&self, asked: Vec<LabelledRequest>) -> Result<(), Failure> {
        let mut session = self.open()?;
        let (answers, ended) = request_all(&mut session, asked.iter().map(|asked| asked.request.clone()));
        let overruled = receive_overruled(&mut session, &answers).unwrap_or_default();
        show(asked.into_iter().zip(answers), &overruled, self.json).and(ended.map_err(Failure::from))?;
        close(session);
        Ok(())
    }

    /// Returns the middlebox that the options or the environment variable select.
    pub fn server(&self) -> Result<Server, Failure> {
        let variable = env::var(SERVER_VARIABLE).ok().filter(|value| !value.is_empty());
        let (text, origin) = match (&self.server, &variable) {
            (Some(text), _) => (Some(text), "--server"),
            (None, variable) => (variable.as_ref(), SERVER_VARIABLE),
        };
        let server = text.map_or(Ok(Server::local()), |text| text.parse());
        let server = server.map_err(|error| Failure::Usage(format!("{origin}: {error}")))?;
        let transport = match self.over {
            None | Some(TransportChoice::Tcp) => Transport::Tcp,
            Some(TransportChoice::Sctp) => Transport::Sctp,
            Some(TransportChoice::SctpUdp) => Transport::SctpOverUdp,
        };
        if transport != Transport::Tcp && self.tls.is_some() {
            return Err(Failure::Usage(
                "--tls needs --over tcp; protect SCTP with WireGuard or IPsec".to_owned(),
            ));
        }
        let identity = self.certificate.as_deref().zip(self.key.as_deref());
        let read = |authorities: &PathBuf| Tls::read(authorities, identity);
        let tls = self.tls.as_ref().map(read).transpose();
        let tls = tls.map_err(|error| Failure::NoSession(error.to_string()))?;
        Ok(Server { transport, tls, timeout: self.timeout.unwrap_or(server.timeout), ..server })
    }

    fn credentials(&self) -> Result<Box<dyn Credentials>, Failure> {
        let (Some(path), Some(name)) = (&self.secret, &self.name) else {
            return Ok(Box::new(Unauthenticated));
        };
        let text = read_secrets(path).map_err(|error| Failure::NoSession(error.to_string()))?;
        let secret = SharedSecret::parse(name, &text, nonces());
        let secret = secret.map_err(|error| Failure::NoSession(format!("{}: {error}", path.display())))?;
        Ok(Box::new(secret))
    }
}

/// Parses a timeout, such as `10s`.
fn parse_timeout(text: &str) -> Result<Duration, String> {
    let timeout: Duration = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if timeout == Duration::ZERO {
        Err("the timeout must be longer than 0, such as 10s".to_owned())
    } else {
        Ok(timeout)
    }
}

/// Sends all requests before it waits for answers. Returns the answers that arrived, even if the session then
/// broke.
pub fn request_all(
    session: &mut Session,
    requests: impl Iterator<Item = Request>,
) -> (Vec<Answer>, Result<(), SessionError>) {
    let (mut tids, mut answers) = (Vec::new(), Vec::new());
    let mut requests = requests;
    let sent = requests.try_for_each(|request| {
        tids.push(session.send(request)?);
        Ok(())
    });
    let answered = tids.into_iter().try_for_each(|tid| {
        answers.push(session.answer(tid)?);
        Ok(())
    });
    (answers, sent.and(answered))
}

/// Returns the rules that the disable rules of these answers have ended. The middlebox notifies the requesting
/// session of them after the reply. RFC 4540 section 8.9.
fn receive_overruled(session: &mut Session, answers: &[Answer]) -> Result<Vec<Pid>, SessionError> {
    let blocks = |answer: &Answer| match answer {
        Ok(Reply::Pdr { pid, .. }) => Some(*pid),
        _ => None,
    };
    let Some(pid) = answers.iter().find_map(blocks) else { return Ok(Vec::new()) };
    // Earlier notifications have arrived once this request is answered, even by a refusal.
    let tid = session.send(Request::Prs { pid })?;
    drop(session.answer(tid)?);
    let mut ended = Vec::new();
    while let Some(RuleEvent { pid, lifetime }) = session.next_event(Some(Duration::ZERO))? {
        ended.extend((lifetime == Lifetime(0)).then_some(pid));
    }
    Ok(ended)
}

/// Closes a session that is no longer needed, and ignores errors.
pub fn close(session: Session) {
    drop(session.close());
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Refused(refusal) => {
                Self::Failed(with_advice("the middlebox refused the request", refusal))
            }
            SessionError::Protocol(hol_simco::AgentError::Refused(refusal)) => {
                Self::NoSession(with_advice("the middlebox refused the session", refusal))
            }
            error => Self::NoSession(error.to_string()),
        }
    }
}
