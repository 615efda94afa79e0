//! What the API promises.

use axum::http::{Method, StatusCode};
use serde_json::json;

use super::{Lab, TEXT};
use crate::lifecycle::Event;
use crate::server::Access;

/// The contract between the server, the pages and `hol`: each path with its methods.
const PROMISED: &[(&str, &[&str])] = &[
    ("/api/events", &["get"]),
    ("/api/experiments", &["get", "post"]),
    ("/api/experiments/{id}", &["delete", "get", "patch"]),
    ("/api/experiments/{id}/again", &["post"]),
    ("/api/experiments/{id}/events", &["get"]),
    ("/api/experiments/{id}/files/", &["get"]),
    ("/api/experiments/{id}/files/{*path}", &["get"]),
    ("/api/experiments/{id}/log", &["get"]),
    ("/api/experiments/{id}/movie", &["get"]),
    ("/api/experiments/{id}/points", &["get"]),
    ("/api/experiments/{id}/report", &["get"]),
    ("/api/experiments/{id}/share", &["delete", "post"]),
    ("/api/experiments/{id}/start", &["post"]),
    ("/api/experiments/{id}/swap-in", &["post"]),
    ("/api/experiments/{id}/swap-out", &["post"]),
    ("/api/experiments/{id}/terminate", &["post"]),
    ("/api/experiments/{id}/text", &["get", "put"]),
    ("/api/experiments/{id}/versions", &["get"]),
    ("/api/login", &["post"]),
    ("/api/logout", &["post"]),
    ("/api/machine", &["get"]),
    ("/api/me", &["get"]),
    ("/api/me/files/", &["get"]),
    ("/api/me/files/{*path}", &["delete", "get", "put"]),
    ("/api/openapi.json", &["get"]),
    ("/api/projects", &["get", "post"]),
    ("/api/projects/{name}/approve", &["post"]),
    ("/api/projects/{name}/files/", &["get"]),
    ("/api/projects/{name}/files/{*path}", &["delete", "get", "put"]),
    ("/api/projects/{name}/join", &["post"]),
    ("/api/projects/{name}/members", &["get"]),
    ("/api/projects/{name}/members/{user}", &["delete", "put"]),
    ("/api/read", &["post"]),
    ("/api/studies", &["get"]),
    ("/api/studies/{name}/run", &["post"]),
    ("/api/tokens", &["get", "post"]),
    ("/api/tokens/{id}", &["delete"]),
    ("/api/users", &["post"]),
    ("/api/write", &["post"]),
];

#[tokio::test]
async fn the_description_has_every_path_and_every_path_is_there() {
    let lab = Lab::open(Access::Open);
    let description = lab.get("/api/openapi.json").send().await.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut described = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let methods: Vec<&str> = item.as_object().unwrap().keys().map(String::as_str).collect();
        for method in &methods {
            let real = path
                .replace("{id}", "1")
                .replace("{*path}", "a")
                .replace("{name}", "x")
                .replace("{user}", "y");
            let answer = lab.ask(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), &real);
            // A stream has no end; that it begins is enough.
            if !path.ends_with("events") {
                let status = answer.send().await.status;
                assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            }
        }
        described.push((path.as_str(), methods));
    }
    for (path, methods) in PROMISED {
        let found = described.iter().find(|(known, _)| known == path);
        assert_eq!(found.map(|(_, methods)| methods.as_slice()), Some(*methods), "{path}");
    }
}

/// What is answered has the names that the description gives it.
#[tokio::test]
async fn an_experiment_is_what_the_description_says() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let description = lab.get("/api/openapi.json").send().await.json();
    let schema = &description["components"]["schemas"]["Experiment"]["properties"];
    let described: Vec<&String> = schema.as_object().unwrap().keys().collect();
    let experiment = lab.get(&format!("/api/experiments/{id}")).send().await.json();
    let mut answered: Vec<&String> = experiment.as_object().unwrap().keys().collect();
    answered.sort();
    assert_eq!(
        answered,
        described.into_iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    );
    assert_eq!(experiment["state"], "queued");
    assert_eq!(experiment["links"]["self"], format!("/api/experiments/{id}"));
    assert_eq!((&experiment["title"], &experiment["name"]), (&json!("A small one"), &json!("a-small-one")));
}

#[tokio::test]
async fn a_life_by_hand() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let path = |rest: &str| format!("/api/experiments/{id}/{rest}");
    let state = async |action: &str| {
        let answer = lab.post(&path(action)).send().await;
        (answer.status.as_u16(), answer.json()["state"].as_str().unwrap_or("").to_owned())
    };
    assert_eq!(state("start").await.0, 409, "it is queued already");
    assert_eq!(state("swap-out").await, (200, "swapped_out".to_owned()));
    assert_eq!(state("swap-out").await.0, 409);
    let new = json!({ "text": TEXT.replace("100", "200") });
    assert_eq!(lab.ask(Method::PUT, &path("text")).json(&new).send().await.json()["version"], 2);
    assert_eq!(state("swap-in").await, (200, "queued".to_owned()));
    lab.server.happen(id, Event::Launch, "");
    lab.server.happen(id, Event::Tell, "");
    let refused = lab.ask(Method::PUT, &path("text")).json(&new).send().await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("swap it out first"), "{}", refused.text);
    let refused = lab.ask(Method::DELETE, &format!("/api/experiments/{id}")).send().await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(state("terminate").await, (200, "terminated".to_owned()));
    let again = lab.post(&path("again")).json(&json!({ "set": { "messages": "7" } })).send().await;
    assert_eq!(again.status, StatusCode::CREATED, "{}", again.text);
    let text = lab.get(&format!("/api/experiments/{}/text", again.json()["id"])).send().await.json();
    assert!(text["text"].as_str().unwrap().contains("messages = 7"), "{text}");
    let versions = lab.get(&path("versions")).send().await.json();
    assert_eq!(versions.as_array().unwrap().len(), 2);
    assert!(versions[1]["text"].as_str().unwrap().contains("100"));
    assert_eq!(
        lab.ask(Method::DELETE, &format!("/api/experiments/{id}")).send().await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(lab.get(&format!("/api/experiments/{id}")).send().await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_text_with_mistakes_is_answered_with_their_places() {
    let lab = Lab::open(Access::Open);
    let answer = lab
        .post("/api/experiments")
        .json(&json!({ "text": "transports = ['tcp']\nmesages = 1\n" }))
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let error = &answer.json()["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&json!(2), &json!(1)), "{error}");
}

#[tokio::test]
async fn what_had_cores_when_the_server_ended_is_queued_again() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let config = crate::server::Config {
            state: dir.path().to_owned(),
            program: "/nonexistent/hol".into(),
            cores: 1,
            access: Access::Open,
            permission: hol_lab::Permission::default(),
            quota: crate::Quota::NONE,
            names: Vec::new(),
            is_secure: false,
            is_behind_proxy: false,
        };
        let mailer = crate::mail::Mailer::open(&crate::mail::Post::None).unwrap();
        crate::server::Server::open(config, mailer, std::sync::mpsc::channel().0)
    };
    let server = open().unwrap();
    let viewer = server.local.clone().unwrap();
    let submission = crate::submission::Submission { text: TEXT.to_owned(), ..Default::default() };
    let id = server.submit(&viewer, submission).unwrap().id;
    server.happen(id, Event::Launch, "");
    assert!(open().unwrap_err().to_string().contains("another hol serve has it"));
    drop(server);
    let server = open().unwrap();
    let experiment = server.experiment(&viewer, id).unwrap();
    assert_eq!(experiment.state, crate::State::Queued);
    assert!(experiment.why.contains("the server was stopped"), "{}", experiment.why);
}
