//! The client of the API of `hol serve`.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::{Response, StatusCode};
use ureq::tls::Certificate;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, TcpConnector};
use ureq::{Agent, Body};

use super::pinned_certificate::PinnedConnector;
use crate::failure::Failure;

/// Address of the server, and credentials.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Address of the server, such as http://127.0.0.1:4540
    #[arg(long = "to", visible_alias = "from", value_name = "URL", default_value = "http://127.0.0.1:4540")]
    url: String,
    #[command(flatten)]
    credentials: Credentials,
}

/// The credentials of the user, and the certificate of the server.
#[derive(Debug, Args, Default, PartialEq, Eq)]
pub struct Credentials {
    /// File with your token, for servers that require a login
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// Certificate (PEM) of the server, if it is not signed by a public authority
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
}

/// The body of an error response; docs/serve.md describes the API.
#[derive(Deserialize)]
struct ErrorResponse {
    errors: Vec<Problem>,
}

/// A problem that the server reports in an error response.
#[derive(Deserialize)]
struct Problem {
    line: Option<u32>,
    column: Option<u32>,
    message: String,
    cure: String,
}

/// A client that sends requests to one server.
pub struct ServerClient {
    agent: Agent,
    base: String,
    token: Option<String>,
}

impl ServerArgs {
    /// Returns the server without contacting it.
    pub fn server(&self) -> Result<ServerClient, Failure> {
        self.credentials.server(&self.url)
    }
}

impl Credentials {
    /// Returns the server at `url` without contacting it.
    pub fn server(&self, url: &str) -> Result<ServerClient, Failure> {
        let config = Agent::config_builder().http_status_as_error(false).build();
        let agent = match &self.certificate {
            Some(file) => {
                let invalid = |error: &dyn std::fmt::Display| {
                    Failure::Usage(format!("{}: {error}; give a certificate in PEM", file.display()))
                };
                let certificate = Certificate::from_pem(&read(file)?).map_err(|e| invalid(&e))?;
                let connector_to_pinned = PinnedConnector::new(certificate.der()).map_err(|e| invalid(&e))?;
                let connector = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default());
                Agent::with_parts(config, connector.chain(connector_to_pinned), DefaultResolver::default())
            }
            None => config.into(),
        };
        let token = match &self.token {
            Some(file) => Some(String::from_utf8_lossy(&read(file)?).trim().to_owned()),
            None => None,
        };
        Ok(ServerClient { agent, base: url.trim_end_matches('/').to_owned(), token })
    }
}

impl ServerClient {
    /// Returns the response to a GET request for `path`.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response<Body>, Failure> {
        self.check_status(self.call(path, headers))
    }

    /// Returns the response to a GET request; `None` if `path` does not exist.
    pub fn get_if_exists(&self, path: &str) -> Result<Option<Response<Body>>, Failure> {
        let answer = self.call(path, &[]);
        let is_missing = answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::NOT_FOUND);
        if is_missing { Ok(None) } else { self.check_status(answer).map(Some) }
    }

    fn call(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response<Body>, ureq::Error> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.call()
    }

    /// Returns the response to a GET request as JSON.
    pub fn get_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.parse(self.get(path, &[])?)
    }

    /// Sends `body` to `path` in a POST request.
    pub fn post(&self, path: &str, body: &serde_json::Value) -> Result<serde_json::Value, Failure> {
        let mut request = self.agent.post(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        self.parse(self.check_status(request.send_json(body))?)
    }

    fn parse<T: DeserializeOwned>(&self, mut response: Response<Body>) -> Result<T, Failure> {
        let unexpected = |e| {
            Failure::Failed(format!("{}: {e}; use the same version of hol here and on the server", self.base))
        };
        response.body_mut().with_config().limit(1 << 30).read_json().map_err(unexpected)
    }

    /// Returns the response if its status is a success, otherwise an error with the server's explanation.
    fn check_status(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, Failure> {
        let mut response = answer.map_err(|e| {
            Failure::Failed(format!(
                "{}: {e}; start `hol serve` there, or give the address of a server with --to URL",
                self.base
            ))
        })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = match response.body_mut().read_json::<ErrorResponse>() {
            Ok(problems) => describe_problems(&problems),
            Err(_) => format!(
                "{}: the server replied {status}, which `hol serve` never does; check the address",
                self.base
            ),
        };
        Err(if status.as_u16() == 422 { Failure::Usage(text) } else { Failure::Failed(text) })
    }
}

/// Returns each problem as a line that starts with its line and column.
fn describe_problems(problems: &ErrorResponse) -> String {
    let lines = problems.errors.iter().map(|problem| {
        let place = match (problem.line, problem.column) {
            (Some(line), Some(column)) => format!("{line}:{column}: "),
            (Some(line), None) => format!("{line}: "),
            (None, _) => String::new(),
        };
        let cure = if problem.cure.is_empty() { String::new() } else { format!("; {}", problem.cure) };
        format!("{place}{}{cure}", problem.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn read(file: &PathBuf) -> Result<Vec<u8>, Failure> {
    std::fs::read(file)
        .map_err(|e| Failure::Usage(format!("{}: {e}; give the path of an existing file", file.display())))
}
