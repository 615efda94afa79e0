//! Properties of the API that clients rely on.

use axum::http::{Method, StatusCode};
use serde_json::json;

use super::{Lab, TEXT};
use crate::lifecycle::Event;
use crate::server::Access;

/// The paths and methods of the API, on which the pages and `hol` rely.
const PROMISED: &[(&str, &[&str])] = &[
    ("/api/events", &["get"]),
    ("/api/experiments", &["get", "post"]),
    ("/api/experiments/{id}", &["delete", "get", "patch"]),
    ("/api/experiments/{id}/again", &["post"]),
    ("/api/experiments/{id}/events", &["get"]),
    ("/api/experiments/{id}/files/", &["get"]),
    ("/api/experiments/{id}/files/{path}", &["get"]),
    ("/api/experiments/{id}/log", &["get"]),
    ("/api/experiments/{id}/movie", &["get"]),
    ("/api/experiments/{id}/plan", &["get"]),
    ("/api/experiments/{id}/points", &["get"]),
    ("/api/experiments/{id}/report", &["get"]),
    ("/api/experiments/{id}/report/", &["get"]),
    ("/api/experiments/{id}/report/{path}", &["get"]),
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
    ("/api/me/password", &["put"]),
    ("/api/me/files/{path}", &["delete", "get", "put"]),
    ("/api/openapi.json", &["get"]),
    ("/api/projects", &["get", "post"]),
    ("/api/projects/{name}/approve", &["post"]),
    ("/api/projects/{name}/files/", &["get"]),
    ("/api/projects/{name}/files/{path}", &["delete", "get", "put"]),
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
async fn api_description_has_exactly_the_existing_paths() {
    let lab = Lab::open(Access::Open);
    let description = lab.get("/api/openapi.json").send().await.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut described = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let methods: Vec<&str> = item.as_object().unwrap().keys().map(String::as_str).collect();
        for method in &methods {
            let real = path
                .replace("{id}", "1")
                .replace("{path}", "a")
                .replace("{name}", "x")
                .replace("{user}", "y");
            let answer = lab.ask(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), &real);
            // A stream does not end, so the test only checks that it begins.
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

/// The description contains how to authenticate, and the target of each reference.
#[tokio::test]
async fn api_description_has_authentication_and_no_dangling_references() {
    let lab = Lab::open(Access::Open);
    let description = lab.get("/api/openapi.json").send().await.json();
    let schemes = &description["components"]["securitySchemes"];
    assert_eq!(
        (&schemes["token"]["scheme"], &schemes["session"]["in"]),
        (&json!("bearer"), &json!("cookie"))
    );
    assert_eq!(description["security"], json!([{ "token": [] }, { "session": [] }]));
    for path in ["/api/login", "/api/users"] {
        assert_eq!(description["paths"][path]["post"]["security"], json!([{}]), "{path} is for everybody");
    }
    let text = description.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(description.pointer(reference).is_some(), "{reference}");
    }
    let mut operations = std::collections::BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(operations.insert(id.to_owned()), "{method} {path}: {id} is there twice");
            for response in operation["responses"].as_object().unwrap().values() {
                assert!(response["description"].is_string(), "{method} {path}: {response}");
            }
            let wanted = path.matches('{').count();
            let parameters = operation["parameters"]
                .as_array()
                .map_or(0, |list| list.iter().filter(|parameter| parameter["in"] == "path").count());
            assert_eq!(parameters, wanted, "{method} {path}");
        }
    }
}

/// The fields of responses have the names in the description.
#[tokio::test]
async fn experiment_has_the_described_fields() {
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
async fn actions_move_an_experiment_through_its_states() {
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
    lab.server.apply_event(id, Event::Launch, "");
    lab.server.apply_event(id, Event::Report, "");
    let refused = lab.ask(Method::PUT, &path("text")).json(&new).send().await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("swap the experiment out first"), "{}", refused.text);
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
async fn errors_of_a_text_have_positions() {
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
async fn running_experiments_are_queued_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let config = crate::server::Config {
            state: dir.path().to_owned(),
            program: "/nonexistent/hol".into(),
            cores: 1,
            access: Access::Open,
            permission: hol_lab::Permission::default(),
            quota: crate::Quota::UNLIMITED,
            names: Vec::new(),
            is_secure: false,
            is_behind_proxy: false,
            has_children: false,
        };
        let mailer = crate::mail::Mailer::open(&crate::mail::MailDestination::None).unwrap();
        crate::server::Server::open(config, mailer, std::sync::mpsc::channel().0)
    };
    let server = open().unwrap();
    let requester = server.local.clone().unwrap();
    let submission = crate::submission::Submission { text: TEXT.to_owned(), ..Default::default() };
    let id = server.submit(&requester, submission).unwrap().id;
    server.apply_event(id, Event::Launch, "");
    assert!(open().unwrap_err().to_string().contains("another hol serve uses this directory"));
    drop(server);
    let server = open().unwrap();
    let experiment = server.experiment(&requester, id).unwrap();
    assert_eq!(experiment.state, crate::State::Queued);
    assert!(experiment.why.contains("the server was stopped"), "{}", experiment.why);
}

/// Every link of a report works, at each path of the report.
#[tokio::test]
async fn all_links_of_a_report_lead_to_its_files() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let results = lab.server.runner_command(id).unwrap().results();
    std::fs::create_dir_all(results.join("figures")).unwrap();
    let links = ["manifest.json", "points.csv", "figures/a-1.svg", "figures/a-1.csv", "figures/a-1.py"];
    let page: String = links.map(|link| format!("<a href=\"{link}\">")).concat();
    std::fs::write(results.join("report.html"), &page).unwrap();
    for link in links {
        std::fs::write(results.join(link), link).unwrap();
    }
    let shared = lab.post(&format!("/api/experiments/{id}/share")).send().await.json();
    let shared = format!("{}/report", shared["link"].as_str().unwrap());
    for path in [format!("/api/experiments/{id}/report"), shared] {
        let page_of = async |path: &str| lab.get(path).header("accept", "text/html,*/*;q=0.8").send().await;
        let sent = page_of(&path).await;
        assert!(sent.status.is_redirection(), "{path}: {}", sent.status);
        let to = sent.headers["location"].to_str().unwrap().to_owned();
        assert_eq!(to, format!("{path}/"));
        assert_eq!(page_of(&to).await.text, page);
        for link in links {
            let answer = page_of(&format!("{to}{link}")).await;
            assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, link), "{to}{link}");
        }
        assert_eq!(page_of(&format!("{to}../../lab.db")).await.status, StatusCode::NOT_FOUND);
        // A program gets the report without a redirect.
        assert_eq!(lab.get(&path).send().await.text, page);
    }
}

#[tokio::test]
async fn rerun_refuses_unknown_keys() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let again = async |set: serde_json::Value| {
        lab.post(&format!("/api/experiments/{id}/again")).json(&json!({ "set": set })).send().await
    };
    for wrong in [
        json!({ "nonsense": "1" }),
        json!({ "network.nonsense": "1" }),
        json!({ "a b": "1" }),
        json!({ "": "1" }),
        json!({ "messages": "many" }),
    ] {
        let answer = again(wrong.clone()).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}: {}", answer.text);
    }
    assert_eq!(again(json!({ "network.delay": "40ms" })).await.status, StatusCode::CREATED);
    let study = lab.post("/api/studies/ikr53/run").send().await.json()["id"].as_i64().unwrap();
    let answer = lab
        .post(&format!("/api/experiments/{study}/again"))
        .json(&json!({ "set": { "messages": "7" } }))
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
}

/// Browsers get an error as a page, programs as JSON.
#[tokio::test]
async fn an_error_is_a_page_in_a_browser() {
    let lab = Lab::open(Access::Accounts);
    for (path, status) in [("/nothing", 404), ("/api/experiments/7", 401), ("/shared/nothing", 404)] {
        let page = lab.get(path).header("accept", "text/html,application/xhtml+xml").send().await;
        assert_eq!(page.status.as_u16(), status, "{path}");
        assert!(
            page.text.starts_with("<!DOCTYPE html>") && page.text.contains("<h1>"),
            "{path}: {}",
            page.text
        );
        let program = lab.get(path).send().await;
        assert_eq!(program.status.as_u16(), status);
        assert!(program.json()["errors"][0]["message"].is_string());
    }
}

/// Scripts and styles are compressed, and sent only once.
#[tokio::test]
async fn the_bundle_is_compressed_and_has_a_version() {
    let lab = Lab::open(Access::Open);
    let plain = lab.get("/web/new.js").send().await;
    let small = lab.get("/web/new.js").header("accept-encoding", "br, gzip").send().await;
    assert!(plain.headers.get("content-encoding").is_none());
    assert_eq!(small.headers["content-encoding"], "gzip");
    assert_ne!(plain.headers["etag"], small.headers["etag"]);
    let version = small.headers["etag"].to_str().unwrap();
    let same = lab
        .get("/web/new.js")
        .header("accept-encoding", "gzip")
        .header("if-none-match", version)
        .send()
        .await;
    assert_eq!((same.status, same.text.len()), (StatusCode::NOT_MODIFIED, 0));
    for path in ["/new", "/api/openapi.json"] {
        let get = || lab.get(path).header("accept-encoding", "gzip");
        let [plain, small] = [lab.get(path).send().await, get().send().await];
        assert_eq!(small.headers["content-encoding"], "gzip", "{path}");
        assert_eq!(small.headers["cache-control"], "private, no-cache", "{path}");
        assert!(
            plain.headers.get("content-encoding").is_none() && plain.headers["etag"] != small.headers["etag"]
        );
        let same = get().header("if-none-match", small.headers["etag"].to_str().unwrap()).send().await;
        assert_eq!((same.status, same.text.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
    }
    assert_eq!(lab.get("/web/new.js.gz").send().await.status, StatusCode::NOT_FOUND);
    let octets = async |path: &str| {
        let response = lab.get(path).header("accept-encoding", "gzip").open().await;
        axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap().len()
    };
    for id in 0..40 {
        lab.post("/api/experiments")
            .json(&json!({ "text": TEXT, "name": format!("number-{id}") }))
            .send()
            .await;
    }
    let page = async |path: &str| {
        let text = lab.get(path).send().await.text;
        let linked =
            text.match_indices("\"/web/").map(|(at, _)| text[at + 1..].split('"').next().unwrap().to_owned());
        let mut whole = text.len();
        for file in linked {
            whole += octets(&file).await;
        }
        whole
    };
    // Ignores the modules that these scripts import, of 10 and 30 kB.
    let (home, editor) = (page("/").await, page("/new").await);
    assert!(home < 40_000 && editor < 170_000, "{home} and {editor} octets");
}

#[tokio::test]
async fn network_without_traffic_can_be_submitted() {
    let lab = Lab::open(Access::Open);
    let script = "set ns [new Simulator]\nsource tb_compat.tcl\nset a [$ns node]\nset b [$ns node]\n\
        set l [$ns duplex-link $a $b 0.4Mb 25ms DropTail]\n$ns rtproto Static\n$ns run\n";
    let answer = lab.post("/api/experiments").json(&json!({ "text": script, "format": "ns" })).send().await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let text = lab.get(&format!("/api/experiments/{}/text", answer.json()["id"])).send().await.json();
    assert_eq!(text["text"], script, "word for word");
}

/// An experiment can name files of its project and no others.
#[tokio::test]
async fn experiment_can_name_files_of_its_project() {
    let lab = Lab::open(Access::Open);
    let trace = "0 1000\n1000 2000\n";
    let stored = lab.ask(Method::PUT, "/api/projects/local/files/traces/lte.csv").body(trace).send().await;
    assert_eq!(stored.status, StatusCode::NO_CONTENT, "{}", stored.text);
    let submit = async |name: &str| {
        let text = format!("transports = ['tcp']\nmessages = 10\n[network]\ntrace = '{name}'\n");
        lab.post("/api/experiments").json(&json!({ "text": text })).send().await
    };
    let taken = submit("project:traces/lte.csv").await;
    assert!(!taken.text.contains("not found"), "{}", taken.text);
    for other in [
        "project:nothing.csv",
        "project:../../lab.db",
        "project:/etc/passwd",
        "project:",
        "traces/lte.csv",
        "/etc/passwd",
    ] {
        let refused = submit(other).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{other}: {}", refused.text);
        assert!(
            !refused.text.contains("root:")
                && !refused.text.contains(&lab.server.config.state.display().to_string()),
            "{}",
            refused.text
        );
    }
}

const SWEEP: &str = "transports = ['tcp', 'sctp']\nmessages = 20\nrepetitions = 2\n[network]\nrate = '2Mbit'\n\
    [sweep]\n'network.rtt' = ['10ms', '80ms']\n'network.loss' = ['0%', '3%', '5%']\n";

async fn submitted(lab: &Lab, text: &str) -> i64 {
    let answer = lab.post("/api/experiments").json(&json!({ "text": text })).send().await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.json()["id"].as_i64().unwrap()
}

/// The index of a point in the plan selects the same point of an animation.
#[tokio::test]
async fn the_plan_has_the_axes_and_the_point_of_each_combination() {
    let lab = Lab::open(Access::Open);
    let id = submitted(&lab, SWEEP).await;
    let plan = lab.get(&format!("/api/experiments/{id}/plan")).send().await.json();
    let loss = json!({
        "keys": ["network.loss"], "name": "loss", "unit": "%",
        "values": [{ "text": "0%", "number": 0.0 }, { "text": "3%", "number": 3.0 }, { "text": "5%", "number": 5.0 }],
    });
    assert_eq!(plan["axes"][2], loss);
    let axes: Vec<_> = plan["axes"].as_array().unwrap().iter().map(|axis| &axis["name"]).collect();
    assert_eq!(axes, ["transport", "RTT", "loss"]);
    assert_eq!(plan["points"].as_array().unwrap().len(), 12);
    assert_eq!(plan["points"][10], json!({ "index": 10, "values": [1, 1, 1], "repetitions": 2 }));
    let movie = lab.get(&format!("/api/experiments/{id}/movie?point=10")).send().await.json();
    assert_eq!(movie["title"], "experiment: sctp network.rtt=80ms network.loss=3%, repetition 0");
    let line = &movie["graph"]["links"][0]["line"];
    assert_eq!((&line["delay"], &line["loss"]), (&json!("40ms"), &json!("3%")));
}

#[tokio::test]
async fn absent_plans_and_animations_are_refused() {
    let lab = Lab::open(Access::Open);
    let id = submitted(&lab, SWEEP).await;
    let refused = async |path: &str| {
        let answer = lab.get(path).send().await;
        (answer.status.as_u16(), answer.json()["errors"][0]["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(refused("/api/experiments/99/plan").await.0, 404);
    assert_eq!(refused("/api/experiments/x/plan").await.0, 404);
    let (status, message) = refused(&format!("/api/experiments/{id}/movie?point=12")).await;
    assert!(
        status == 400 && message.contains("no point 12: the experiment has 12 points"),
        "{status} {message}"
    );
    assert_eq!(refused(&format!("/api/experiments/{id}/movie?repetition=2")).await.0, 400);
    assert_eq!(refused(&format!("/api/experiments/{id}/movie?pont=2")).await.0, 400);
    let study = lab.post("/api/studies/ikr53/run").send().await.json()["id"].as_i64().unwrap();
    for path in ["plan", "movie"] {
        let (status, message) = refused(&format!("/api/experiments/{study}/{path}")).await;
        assert!(status == 409 && message.contains("is a study"), "{status} {message}");
    }
    let idle = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
        set l [$ns duplex-link $a $b 0.4Mb 25ms DropTail]\n$ns run\n";
    let idle = lab.post("/api/experiments").json(&json!({ "text": idle, "format": "ns" })).send().await;
    let idle = idle.json()["id"].as_i64().unwrap();
    let (status, message) = refused(&format!("/api/experiments/{idle}/movie")).await;
    assert!(status == 400 && message.contains("no traffic"), "{status} {message}");
    let plan = lab.get(&format!("/api/experiments/{idle}/plan")).send().await.json();
    assert_eq!((&plan["axes"], plan["points"].as_array().unwrap().len()), (&json!([]), 1));
}

/// A plan requires the same rights as the text of an experiment.
#[tokio::test]
async fn plan_is_visible_only_to_readers_of_the_experiment() {
    let (lab, ann, mallory) = super::hostile::lab().await;
    let path = "/api/experiments/1/plan";
    assert_eq!(lab.get(path).by(&ann).send().await.status, StatusCode::OK);
    for (key, status) in [(&mallory, 404), (&String::new(), 401)] {
        for path in [path, "/api/experiments/1"] {
            assert_eq!(lab.get(path).by(key).send().await.status.as_u16(), status, "{path}");
        }
    }
}
