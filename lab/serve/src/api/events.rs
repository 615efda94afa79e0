//! Endpoints for server-sent events. HTML standard, section 9.2

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State as Extract;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::blocking::run_blocking;
use crate::concurrency::KeyedPermit;
use crate::events::{EventKind, ServerEvent};
use crate::experiment::Experiment;
use crate::extract::PathParameter;
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, SharedServer};

/// Maximum number of concurrent streams.
const MAX_WATCHERS: usize = 4096;
/// Keepalive interval, because proxies close silent connections.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Time after which a browser reconnects when a stream has ended.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

pub fn routes() -> OpenApiRouter<SharedServer> {
    OpenApiRouter::new().routes(routes!(experiment_events)).routes(routes!(all_events))
}

/// An open event stream.
struct Watch {
    server: SharedServer,
    receiver: Receiver<Arc<ServerEvent>>,
    stopping: watch::Receiver<bool>,
    scope: Scope,
    /// Events to send first.
    first: VecDeque<Event>,
    _turn: Option<KeyedPermit<i64>>,
}

/// The events that a stream contains.
enum Scope {
    /// All events of one experiment.
    One(i64),
    /// State and progress of the experiments of these projects.
    Projects(BTreeSet<i64>),
}

/// Streams the events of an experiment: `state` (the experiment), `progress`, `point` (a row of points.json),
/// `log` (a line), `shell` (an entry of its shell).
#[utoipa::path(get, path = "/api/experiments/{id}/events", params(("id" = i64, Path)), responses(
    (status = 200, description = "An event stream that begins with the state of the experiment", body = String, content_type = "text/event-stream"),
    (status = 404, body = Problems), (status = 429, body = Problems)))]
async fn experiment_events(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    // Subscribes before reading the state, so that no event in between is missed.
    let (receiver, stopping, turn) = subscribe(&server, &requester)?;
    let experiment = run_blocking(server.clone(), move |server| server.experiment(&requester, id)).await?;
    let first = VecDeque::from([state(&experiment).retry(RECONNECT_DELAY)]);
    Ok(stream(Watch { server, receiver, stopping, scope: Scope::One(id), first, _turn: turn }))
}

/// Streams `state`, `progress` and `closed` (deleted) of all experiments visible to the user. The id of each event is
/// the number of the experiment.
#[utoipa::path(get, path = "/api/events", responses(
    (status = 200, description = "An event stream", body = String, content_type = "text/event-stream"),
    (status = 429, description = "Too many streams of the user", body = Problems)))]
async fn all_events(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let (receiver, stopping, turn) = subscribe(&server, &requester)?;
    let projects =
        run_blocking(server.clone(), move |server| Ok(server.store.projects_of(requester.id)?)).await?;
    let first = VecDeque::from([Event::default().comment("").retry(RECONNECT_DELAY)]);
    Ok(stream(Watch { server, receiver, stopping, scope: Scope::Projects(projects), first, _turn: turn }))
}

type Subscription = (Receiver<Arc<ServerEvent>>, watch::Receiver<bool>, Option<KeyedPermit<i64>>);

fn subscribe(server: &Server, requester: &Requester) -> Result<Subscription, Refusal> {
    if server.hub.watcher_count() >= MAX_WATCHERS {
        return Err(Refusal::busy(
            format!("the server has {MAX_WATCHERS} open event streams, which is the maximum"),
            10,
        ));
    }
    // Without login all streams belong to the owner of the machine, and need no limit for each user.
    let turn = if server.local.is_some() { None } else { Some(server.limits.admit_stream(requester.id)?) };
    Ok((server.hub.watch(), server.hub.stop_signal(), turn))
}

fn stream(watch: Watch) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = unfold(watch, async |mut watch| {
        let event = watch.next().await?;
        Some((Ok(event), watch))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEPALIVE_INTERVAL))
}

impl Watch {
    /// Returns the next event; `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.first.pop_front() {
                return Some(event);
            }
            let received = tokio::select! {
                biased;
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                received = self.receiver.recv() => received,
            };
            match received {
                Ok(published) if self.scope.ends_with(&published) => return None,
                Ok(published) => {
                    if let Some(event) = self.scope.event(&published) {
                        return Some(event);
                    }
                }
                Err(RecvError::Lagged(_)) => self.catch_up().await,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Sends the current state to a watcher that was too slow.
    async fn catch_up(&mut self) {
        let Scope::One(id) = self.scope else { return };
        let entry = run_blocking(self.server.clone(), move |server| Ok(server.store.entry(id)?)).await;
        if let Ok(Some(entry)) = entry {
            self.first.push_back(state(&entry.experiment));
        }
    }
}

impl Scope {
    fn ends_with(&self, published: &ServerEvent) -> bool {
        let is_mine = match self {
            Self::One(id) => published.experiment == *id,
            Self::Projects(_) => false,
        };
        published.kind == EventKind::Closed && (is_mine || published.experiment == 0)
    }

    fn event(&self, published: &ServerEvent) -> Option<Event> {
        let event = Event::default().event(published.kind.word()).data(&published.data);
        match self {
            Self::One(id) => (*id == published.experiment).then_some(event),
            Self::Projects(projects) => {
                let is_short =
                    matches!(published.kind, EventKind::State | EventKind::Progress | EventKind::Closed);
                let is_seen = is_short && projects.contains(&published.project);
                is_seen.then(|| event.id(published.experiment.to_string()))
            }
        }
    }
}

fn state(experiment: &Experiment) -> Event {
    let data = serde_json::to_string(experiment).expect("an experiment can be written as JSON");
    Event::default().event(EventKind::State.word()).data(data)
}
