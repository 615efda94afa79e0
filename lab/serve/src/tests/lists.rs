//! Long lists, and watchers.

use axum::http::StatusCode;
use futures_util::StreamExt;
use serde_json::json;

use super::{Lab, TEXT};
use crate::events::EventKind;
use crate::experiment::{Format, State};
use crate::lifecycle::Event;
use crate::server::Access;
use crate::store::NewExperiment;

/// The cost of a request does not depend on the length of a list: no SQL statement reads more rows than it returns.
#[tokio::test]
async fn long_list_continues_with_the_before_parameter() {
    let lab = Lab::open(Access::Open);
    let local = lab.server.local.clone().unwrap();
    let (project, _) = lab.server.store.project("local", local.id).unwrap().unwrap();
    for number in 0..250 {
        let fresh = NewExperiment {
            name: format!("number-{number}"),
            title: String::new(),
            project,
            owner: local.id,
            state: if number % 5 == 0 { State::New } else { State::Queued },
            priority: 0,
            batch: true,
            cores: 1,
            idle_swap: None,
            auto_swap: None,
            study: None,
            quick: false,
            text: TEXT.to_owned(),
            format: Format::Toml,
            now: number,
        };
        lab.server.store.add_experiment(&fresh).unwrap();
    }
    let ids = async |query: &str| -> Vec<i64> {
        let answer = lab.get(&format!("/api/experiments{query}")).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        answer.json().as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids("").await, (151..=250).rev().collect::<Vec<_>>());
    assert_eq!(ids("?limit=3&before=151").await, [150, 149, 148]);
    assert_eq!(ids("?limit=2&state=new").await, [246, 241]);
    assert_eq!(ids("?limit=2&search=Number-12").await, [130, 129]);
    assert_eq!(ids("?limit=2&project=local&owner=local").await, [250, 249]);
    assert_eq!(ids("?project=other").await.len() + ids("?owner=other").await.len(), 0);
    assert_eq!(ids("?limit=99999").await.len(), 250);
    assert_eq!(ids("?limit=0").await.len(), 0);
    assert_eq!(lab.server.counts(&local).unwrap(), [(State::New, 50), (State::Queued, 200)]);
}

/// Links lead from the first page to the next ones, up to the last one.
#[tokio::test]
async fn home_page_has_pages_and_a_filter() {
    let lab = Lab::open(Access::Open);
    for number in 0..70 {
        let text = TEXT.replace("A small one", &format!("Number {number}"));
        lab.post("/api/experiments").json(&json!({ "text": text })).send().await;
    }
    let (mut path, mut seen) = ("/".to_owned(), Vec::new());
    loop {
        let page = lab.get(&path).send().await.text;
        seen.push(page.matches("data-experiment=").count());
        let Some((_, rest)) = page.split_once("rel=\"next\" href=\"") else { break };
        path = rest.split('"').next().unwrap().replace("&amp;", "&");
    }
    assert_eq!(seen, [30, 30, 10]);
    let found = lab.get("/?search=number+69&state=queued").send().await.text;
    assert_eq!(found.matches("data-experiment=").count(), 1);
    assert!(lab.get("/?state=done").send().await.text.contains("No experiment matches"));
}

/// The page tells a user without a project what to do.
#[tokio::test]
async fn user_without_a_project_sees_instructions() {
    let lab = Lab::open(Access::Accounts);
    let key = lab.account("ann", false);
    let home = lab.get("/").by(&key).send().await.text;
    assert!(home.contains("You are in no project yet") && home.contains("href=\"/account\""), "{home}");
    assert!(!home.contains("New experiment"));
    let account = lab.get("/account").by(&key).send().await.text;
    for form in ["/api/projects/{name}/join", "/api/projects\"", "/api/tokens", "/api/me/password"] {
        assert!(account.contains(form), "{form}");
    }
}

#[tokio::test]
async fn watcher_gets_events_until_the_server_stops() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let response = lab.get(&format!("/api/experiments/{id}/events")).open().await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    let mut next =
        async || stream.next().await.map(|part| String::from_utf8(part.unwrap().to_vec()).unwrap());
    let first = next().await.unwrap();
    assert!(first.contains("event: state") && first.contains("\"state\":\"queued\""), "{first}");
    lab.post(&format!("/api/experiments/{id}/swap-out")).send().await;
    let second = next().await.unwrap();
    assert!(second.contains("event: state") && second.contains("swapped_out"), "{second}");
    lab.server.hub.publish(id + 1, 1, EventKind::Log, &"of another");
    lab.server.hub.publish(id, 1, EventKind::Point, &json!({ "mean_ms": 20.5 }));
    assert_eq!(next().await.unwrap(), "event: point\ndata: {\"mean_ms\":20.5}\n\n");
    lab.server.hub.stop();
    assert_eq!(next().await, None);
}

/// A watcher that does not read loses events, and gets the current state.
#[tokio::test]
async fn slow_watcher_gets_the_current_state() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let response = lab.get(&format!("/api/experiments/{id}/events")).open().await;
    for line in 0..5000 {
        lab.server.hub.publish(id, 1, EventKind::Log, &line);
    }
    lab.server.apply_action(&lab.server.local.clone().unwrap(), id, Event::Terminate).unwrap();
    lab.server.hub.publish(id, 1, EventKind::Log, &"the last");
    let mut stream = response.into_body().into_data_stream();
    let mut heard = Vec::new();
    while !heard.last().is_some_and(|part: &String| part.contains("the last")) {
        heard.push(String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap());
    }
    assert!(heard.len() < 1100, "{}", heard.len());
    assert!(heard[0].contains("queued") && heard[1].contains("terminated"), "{} {}", heard[0], heard[1]);
}

/// The streams of a user end when the user is removed from a project or logs out.
#[tokio::test]
async fn streams_end_when_rights_change() {
    let lab = Lab::open(Access::Open);
    lab.submitted().await;
    let response = lab.get("/api/events").open().await;
    let mut stream = response.into_body().into_data_stream();
    assert!(stream.next().await.is_some(), "the stream begins at once");
    lab.server.end_streams();
    assert!(stream.next().await.is_none());
}
