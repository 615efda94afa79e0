//! Sends requests to a whole server, without sockets and processes.

mod accounts;
mod api;
mod bounds;
mod described;
mod hostile;
mod lists;
mod processes;
mod shell;

pub use processes::with_script;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::extract::connect_info::MockConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::middleware::from_fn;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::client::ClientNetwork;
use crate::mail::{MailDestination, Mailer};
use crate::people::Registration;
use crate::router::router;
use crate::server::{Access, Config, Server, SharedServer};

/// A valid experiment.
pub const TEXT: &str = "title = 'A small one'\ntransports = ['tcp']\nmessages = 100\nrepetitions = 2\n";

/// A server with its own state directory.
pub struct Lab {
    _dir: Option<tempfile::TempDir>,
    pub server: SharedServer,
    router: Router,
}

fn permission(access: Access) -> hol_lab::Permission {
    match access {
        Access::Open => hol_lab::Permission::default(),
        Access::Accounts => crate::reading::permission_for_users(&["live:granted.example:4547".to_owned()]),
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }
}

/// A builder of a request.
pub struct Ask<'l>(&'l Lab, axum::http::request::Builder, Body);

impl Lab {
    pub fn open(access: Access) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let lab = Self::open_in(access, dir.path());
        Self { _dir: Some(dir), ..lab }
    }

    /// Opens a server in a given state directory.
    pub fn open_in(access: Access, state: &Path) -> Self {
        let config = Config {
            state: state.to_owned(),
            program: "/nonexistent/hol".into(),
            cores: 4,
            access,
            permission: permission(access),
            quota: crate::Quota::UNLIMITED,
            names: vec!["lab.example.org".to_owned()],
            is_secure: access == Access::Accounts,
            is_behind_proxy: false,
            has_children: false,
        };
        let server =
            Server::open(config, Mailer::open(&MailDestination::None).unwrap(), channel().0).unwrap();
        let server = Arc::new(server);
        let router = router(server.clone()).layer(from_fn(described::check));
        let router = router.layer(MockConnectInfo(SocketAddr::from(([192, 0, 2, 1], 1))));
        Self { _dir: None, router, server }
    }

    pub fn ask(&self, method: Method, path: &str) -> Ask<'_> {
        let request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:4540");
        Ask(self, request, Body::empty())
    }

    pub fn get(&self, path: &str) -> Ask<'_> {
        self.ask(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> Ask<'_> {
        self.ask(Method::POST, path)
    }

    /// Submits [`TEXT`], and returns the number of the experiment.
    pub async fn submitted(&self) -> i64 {
        let answer = self.post("/api/experiments").json(&json!({ "text": TEXT })).send().await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        answer.json()["id"].as_i64().unwrap()
    }

    /// Creates an account, and returns one of its tokens.
    pub fn account(&self, name: &str, is_administrator: bool) -> String {
        let registration = Registration {
            name: name.to_owned(),
            mail: format!("{name}@example.org"),
            password: format!("password of {name}"),
            project: None,
        };
        self.server.register(&registration, is_administrator).unwrap();
        let login = crate::people::Login { name: name.to_owned(), password: registration.password };
        self.server.log_in(&ClientNetwork::from(IpAddr::from([192, 0, 2, 1])), &login).unwrap()
    }
}

impl Ask<'_> {
    pub fn header(self, name: &str, value: &str) -> Self {
        Self(self.0, self.1.header(name, value), self.2)
    }

    /// Adds the session cookie with this key.
    pub fn by(self, key: &str) -> Self {
        self.header("cookie", &format!("headofline={key}"))
    }

    pub fn json(self, body: &Value) -> Self {
        let body = body.to_string();
        let length = body.len().to_string();
        self.header("content-type", "application/json").header("content-length", &length).body(body)
    }

    pub fn body(self, body: impl Into<Body>) -> Self {
        Self(self.0, self.1, body.into())
    }

    /// Sets the address of the client.
    pub fn from(self, address: [u8; 4]) -> Self {
        let connection = ConnectInfo(SocketAddr::from((address, 1)));
        Self(self.0, self.1.extension(connection), self.2)
    }

    /// Sends the request, and returns the response before its body has been read.
    pub async fn open(self) -> axum::response::Response {
        let request = self.1.body(self.2).unwrap();
        self.0.router.clone().oneshot(request).await.unwrap()
    }

    pub async fn send(self) -> Answer {
        let response = self.open().await;
        let (status, headers) = (response.status(), response.headers().clone());
        let octets = to_bytes(response.into_body(), 1 << 28).await.unwrap();
        Answer { status, headers, text: String::from_utf8_lossy(&octets).into_owned() }
    }
}
