//! Users, projects and permissions.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Lab, TEXT};
use crate::server::Access;

/// Ann leads alpha with an experiment in it, bob leads beta, and root has approved both.
struct World {
    lab: Lab,
    ann: String,
    bob: String,
    root: String,
    id: i64,
}

impl World {
    async fn new() -> Self {
        let lab = Lab::open(Access::Accounts);
        let [ann, bob, root] =
            [("ann", false), ("bob", false), ("root", true)].map(|(name, is)| lab.account(name, is));
        for (key, name) in [(&ann, "alpha"), (&bob, "beta")] {
            let founding = json!({ "name": name, "title": name });
            let made = lab.post("/api/projects").by(key).json(&founding).send().await;
            assert_eq!(made.status, StatusCode::CREATED);
            // Before a project is approved, it accepts no experiments.
            let early = lab
                .post("/api/experiments")
                .by(key)
                .json(&json!({ "text": TEXT, "project": name }))
                .send()
                .await;
            assert_eq!(early.status, StatusCode::NOT_FOUND);
            let approved = lab.post(&format!("/api/projects/{name}/approve")).by(&root).send().await;
            assert_eq!(approved.status, StatusCode::NO_CONTENT);
        }
        let made = lab.post("/api/experiments").by(&ann).json(&json!({ "text": TEXT })).send().await;
        let id = made.json()["id"].as_i64().unwrap();
        assert_eq!(made.json()["project"], "alpha");
        Self { lab, ann, bob, root, id }
    }

    async fn status(&self, method: Method, path: &str, key: &str, body: Option<Value>) -> u16 {
        let ask = self.lab.ask(method, path).by(key);
        let ask = match body {
            Some(body) => ask.json(&body),
            None => ask,
        };
        ask.send().await.status.as_u16()
    }
}

/// For users who are not in its project, including administrators, every path of an experiment returns 404, like one that does not exist.
#[tokio::test]
async fn experiments_of_a_project_are_invisible_to_others() {
    let world = World::new().await;
    let text = json!({ "text": TEXT });
    let requests = [
        (Method::GET, "", None),
        (Method::PATCH, "", Some(json!({ "priority": 5 }))),
        (Method::DELETE, "", None),
        (Method::GET, "/text", None),
        (Method::PUT, "/text", Some(text)),
        (Method::GET, "/versions", None),
        (Method::POST, "/start", None),
        (Method::POST, "/swap-out", None),
        (Method::POST, "/swap-in", None),
        (Method::POST, "/terminate", None),
        (Method::POST, "/again", None),
        (Method::POST, "/share", None),
        (Method::DELETE, "/share", None),
        (Method::GET, "/events", None),
        (Method::GET, "/points", None),
        (Method::GET, "/report", None),
        (Method::GET, "/files/", None),
        (Method::GET, "/files/points.csv", None),
        (Method::GET, "/log", None),
        (Method::GET, "/movie", None),
    ];
    for key in [&world.bob, &world.root] {
        for (method, rest, body) in &requests {
            let ask = |id: i64| {
                let ask = world.lab.ask(method.clone(), &format!("/api/experiments/{id}{rest}")).by(key);
                match body {
                    Some(body) => ask.json(body),
                    None => ask,
                }
            };
            let [hers, nobodys] = [ask(world.id).send().await, ask(999).send().await];
            assert_eq!(hers.status, StatusCode::NOT_FOUND, "{method} {rest}");
            assert_eq!((hers.status, hers.text), (nobodys.status, nobodys.text), "{method} {rest}");
        }
    }
    let list = world.lab.get("/api/experiments").by(&world.bob).send().await.json();
    assert_eq!(list, json!([]));
}

#[tokio::test]
async fn leader_admits_and_removes_members() {
    let world = World::new().await;
    let path = format!("/api/experiments/{}", world.id);
    let member = "/api/projects/alpha/members/bob";
    assert_eq!(world.status(Method::PUT, member, &world.ann, None).await, 404, "he has not asked");
    assert_eq!(world.status(Method::POST, "/api/projects/alpha/join", &world.bob, None).await, 202);
    assert_eq!(world.status(Method::POST, "/api/projects/none/join", &world.bob, None).await, 202);
    assert_eq!(world.status(Method::PUT, member, &world.bob, None).await, 404, "he does not lead it");
    assert_eq!(world.status(Method::GET, &path, &world.bob, None).await, 404);
    assert_eq!(world.status(Method::PUT, member, &world.ann, None).await, 204);
    assert_eq!(world.status(Method::GET, &path, &world.bob, None).await, 200);
    assert_eq!(world.status(Method::POST, &format!("{path}/terminate"), &world.bob, None).await, 403, "hers");
    assert_eq!(world.status(Method::POST, &format!("{path}/again"), &world.bob, None).await, 201);
    let hers = "/api/projects/alpha/members/ann";
    assert_eq!(world.status(Method::DELETE, hers, &world.bob, None).await, 403);
    assert_eq!(world.status(Method::DELETE, hers, &world.ann, None).await, 404, "a leader stays");
    assert_eq!(world.status(Method::DELETE, member, &world.ann, None).await, 204);
    assert_eq!(world.status(Method::GET, &path, &world.bob, None).await, 404);
}

#[tokio::test]
async fn sessions_and_tokens_end() {
    let world = World::new().await;
    let lab = &world.lab;
    let login = json!({ "name": "ann", "password": "password of ann" });
    let answer = lab.post("/api/login").json(&login).send().await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    for wanted in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/", "Max-Age="] {
        assert!(cookie.contains(wanted), "{cookie}");
    }
    let key = cookie.split(['=', ';']).nth(1).unwrap().to_owned();
    assert_eq!(world.status(Method::GET, "/api/me", &key, None).await, 200);
    assert_eq!(world.status(Method::POST, "/api/logout", &key, None).await, 204);
    assert_eq!(world.status(Method::GET, "/api/me", &key, None).await, 401, "the session has ended");

    let wish = json!({ "name": "ci", "days": 1 });
    let token = lab.post("/api/tokens").by(&world.ann).json(&wish).send().await.json()["token"].clone();
    let token = token.as_str().unwrap();
    let bearer = format!("Bearer {token}");
    let me = async || lab.get("/api/me").header("authorization", &bearer).send().await.status;
    assert_eq!(me().await, StatusCode::OK);
    assert_eq!(world.status(Method::GET, "/api/me", token, None).await, 401, "a token is not a session");
    let listed = lab.get("/api/tokens").by(&world.ann).send().await;
    assert!(!listed.text.contains(token), "a token is returned only once");
    let path = format!("/api/tokens/{}", listed.json()[0]["id"]);
    assert_eq!(world.status(Method::DELETE, &path, &world.bob, None).await, 404);
    assert_eq!(world.status(Method::DELETE, &path, &world.ann, None).await, 204);
    assert_eq!(me().await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn password_change_needs_the_current_password() {
    let world = World::new().await;
    let lab = &world.lab;
    let other =
        lab.post("/api/login").json(&json!({ "name": "ann", "password": "password of ann" })).send().await;
    let other = other.headers["set-cookie"].to_str().unwrap().split(['=', ';']).nth(1).unwrap().to_owned();
    let change = async |old: &str| {
        let body = json!({ "old": old, "password": "another password" });
        lab.ask(Method::PUT, "/api/me/password").by(&world.ann).json(&body).send().await.status.as_u16()
    };
    assert_eq!(change("not this one").await, 400);
    assert_eq!(change("password of ann").await, 204);
    assert_eq!(world.status(Method::GET, "/api/me", &world.ann, None).await, 200, "this session stays");
    assert_eq!(world.status(Method::GET, "/api/me", &other, None).await, 401, "others end");
    let login = async |password: &str| {
        let login = json!({ "name": "ann", "password": password });
        lab.post("/api/login").json(&login).send().await.status.as_u16()
    };
    assert_eq!((login("password of ann").await, login("another password").await), (401, 204));
}

/// A shared link gives access to the report and the files of one experiment and to nothing else, until all links are ended.
#[tokio::test]
async fn shared_link_gives_read_access_to_one_experiment() {
    let world = World::new().await;
    let path = format!("/api/experiments/{}/share", world.id);
    let share = async || {
        world.lab.post(&path).by(&world.ann).send().await.json()["link"].as_str().unwrap().to_owned()
    };
    let link = share().await;
    let results = world.lab.server.runner_command(world.id).unwrap().results();
    std::fs::create_dir_all(&results).unwrap();
    std::fs::write(results.join("report.html"), "<p>report").unwrap();
    let get = async |path: &str| world.lab.get(path).send().await.status.as_u16();
    assert_eq!(get(&link).await, 303);
    assert_eq!(get(&format!("{link}/report")).await, 200);
    assert_eq!(get(&format!("{link}/files/report.html")).await, 200);
    assert_eq!(get(&format!("{link}/files/..%2f..%2f..%2flab.db")).await, 404);
    assert_eq!(get(&format!("{link}x/report")).await, 404);
    assert_eq!(get(&format!("/api/experiments/{}", world.id)).await, 401);
    let second = share().await;
    assert_eq!((get(&format!("{link}/report")).await, get(&format!("{second}/report")).await), (200, 200));
    assert_eq!(world.status(Method::DELETE, &path, &world.ann, None).await, 204);
    assert_eq!((get(&format!("{link}/report")).await, get(&format!("{second}/report")).await), (404, 404));
}

#[tokio::test]
async fn files_belong_to_a_user_or_a_project() {
    let world = World::new().await;
    let put = async |path: &str, key: &str, content: &str| {
        world.lab.ask(Method::PUT, path).by(key).body(content.to_owned()).send().await.status.as_u16()
    };
    let get = async |path: &str, key: &str| {
        let answer = world.lab.get(path).by(key).send().await;
        (answer.status.as_u16(), answer.text)
    };
    assert_eq!(put("/api/me/files/notes/a.txt", &world.ann, "mine").await, 204);
    assert_eq!(get("/api/me/files/notes/a.txt", &world.ann).await, (200, "mine".to_owned()));
    assert_eq!(get("/api/me/files/notes/a.txt", &world.bob).await.0, 404);
    assert_eq!(put("/api/me/files/notes", &world.ann, "a directory has this name").await, 409);
    assert_eq!(put("/api/me/files/notes/a.txt/b", &world.ann, "a file has this name").await, 409);
    for path in ["..%2fx", "%2fetc%2fx", ".hidden", "a%00", "a%2f..%2fb"] {
        assert_eq!(put(&format!("/api/me/files/{path}"), &world.ann, "x").await, 400, "{path}");
    }
    let ours = "/api/projects/alpha/files/link.ns";
    assert_eq!(put(ours, &world.ann, "ours").await, 204);
    assert_eq!(get(ours, &world.ann).await, (200, "ours".to_owned()));
    assert_eq!(put(ours, &world.bob, "x").await, 404);
    assert_eq!(get("/api/projects/alpha/files/", &world.bob).await.0, 404);
    assert_eq!(get("/api/projects/alpha/files/", &world.ann).await.1, "[{\"path\":\"link.ns\",\"size\":4}]");
    assert_eq!(world.status(Method::DELETE, ours, &world.bob, None).await, 404);
    assert_eq!(world.status(Method::DELETE, ours, &world.ann, None).await, 204);
    assert_eq!(get(ours, &world.ann).await.0, 404);
}

/// A stolen token cannot be extended.
#[tokio::test]
async fn token_cannot_create_a_token_that_expires_later() {
    let world = World::new().await;
    let issue = async |header: &str, value: &str, days: u32| {
        let wish = json!({ "name": "ci", "days": days });
        world.lab.post("/api/tokens").header(header, value).json(&wish).send().await
    };
    let session = format!("headofline={}", world.ann);
    let first = issue("cookie", &session, 10).await.json()["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {first}");
    let longer = issue("authorization", &bearer, 11).await;
    assert_eq!(longer.status, StatusCode::BAD_REQUEST);
    assert!(longer.text.contains("expires later than itself"), "{}", longer.text);
    assert_eq!(issue("authorization", &bearer, 9).await.status, StatusCode::CREATED);
    assert_eq!(issue("cookie", &session, 366).await.status, StatusCode::CREATED);
}

/// Only leaders may set a priority above 0.
#[tokio::test]
async fn only_leaders_set_priorities_above_zero() {
    let world = World::new().await;
    assert_eq!(world.status(Method::POST, "/api/projects/alpha/join", &world.bob, None).await, 202);
    let admit = "/api/projects/alpha/members/bob";
    assert_eq!(world.status(Method::PUT, admit, &world.ann, None).await, 204);
    let submit = async |key: &str, priority: i64| {
        let body = json!({ "text": TEXT, "project": "alpha", "priority": priority });
        let answer = world.lab.post("/api/experiments").by(key).json(&body).send().await;
        (answer.status.as_u16(), answer.json()["id"].as_i64().unwrap_or(0))
    };
    assert_eq!(submit(&world.bob, 1).await.0, 403);
    assert_eq!(submit(&world.bob, i64::MIN).await.0, 400);
    let (_, own) = submit(&world.bob, -1).await;
    let path = format!("/api/experiments/{own}");
    let set = async |key: &str, to: i64| {
        world.status(Method::PATCH, &path, key, Some(json!({ "priority": to }))).await
    };
    assert_eq!((set(&world.bob, 0).await, set(&world.bob, 1).await), (200, 403));
    assert_eq!(set(&world.ann, 7).await, 200);
    assert_eq!(
        (set(&world.bob, 8).await, set(&world.bob, 7).await, set(&world.bob, 5).await),
        (403, 200, 200)
    );
    let again = async |key: &str| {
        let answer = world.lab.post(&format!("{path}/again")).by(key).json(&json!({})).send().await;
        answer.json()["priority"].as_i64()
    };
    assert_eq!((again(&world.bob).await, again(&world.ann).await), (Some(0), Some(5)));
    let study = json!({ "project": "alpha", "priority": 1 });
    assert_eq!(world.status(Method::POST, "/api/studies/eklund2004/run", &world.bob, Some(study)).await, 403);
}

/// One account cannot occupy all streams.
#[tokio::test]
async fn streams_are_limited_for_each_account() {
    let world = World::new().await;
    let open = async |key: &str| world.lab.get("/api/events").by(key).open().await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(open(&world.ann).await);
    }
    assert!(streams.iter().all(|stream| stream.status() == StatusCode::OK));
    assert_eq!(open(&world.ann).await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(open(&world.bob).await.status(), StatusCode::OK);
    streams.pop();
    assert_eq!(open(&world.ann).await.status(), StatusCode::OK);
}

/// One account cannot occupy all permits for expensive requests and large bodies.
#[tokio::test]
async fn expensive_requests_are_limited_for_each_account() {
    let World { lab, ann, bob, .. } = World::new().await;
    let id = lab.server.store.credentials("ann").unwrap().unwrap().id;
    let read = async |key: &str, text: &str| {
        lab.post("/api/read").by(key).json(&json!({ "text": text })).send().await.status.as_u16()
    };
    let permits: Vec<_> = (0..8).map(|_| lab.server.limits.admit_expensive(Some(id)).unwrap()).collect();
    assert_eq!((read(&ann, TEXT).await, read(&bob, TEXT).await), (429, 200));
    drop(permits);
    let long = "#".repeat(100_000);
    let mut permits = Vec::new();
    for _ in 0..4 {
        permits.push(lab.server.limits.admit_large_body(Some(id)).await.unwrap());
    }
    assert_eq!((read(&ann, &long).await, read(&ann, TEXT).await, read(&bob, &long).await), (429, 200, 200));
}

/// An empty or an older database reuses numbers whose files still exist.
#[tokio::test]
async fn reused_number_does_not_show_earlier_files() {
    let dir = tempfile::tempdir().unwrap();
    let fill = async |secret: &str| {
        let lab = Lab::open_in(Access::Accounts, dir.path());
        let ann = lab.account("ann", false);
        let founding = json!({ "name": "alpha", "title": "" });
        assert_eq!(
            lab.post("/api/projects").by(&ann).json(&founding).send().await.status,
            StatusCode::CREATED
        );
        assert!(lab.server.store.approve_project("alpha").unwrap());
        let made = lab.post("/api/experiments").by(&ann).json(&json!({ "text": TEXT })).send().await;
        let id = made.json()["id"].as_i64().unwrap();
        let results = lab.server.runner_command(id).unwrap().results();
        assert!(!results.exists(), "{}", results.display());
        let lists =
            ["/api/me/files/", "/api/projects/alpha/files/", &format!("/api/experiments/{id}/files/")];
        for list in lists {
            assert_eq!(lab.get(list).by(&ann).send().await.text, "[]", "{list}");
        }
        std::fs::create_dir_all(&results).unwrap();
        std::fs::write(results.join("points.csv"), secret).unwrap();
        for list in &lists[..2] {
            let put = lab.ask(Method::PUT, &format!("{list}secret")).by(&ann).body(secret.to_owned());
            assert_eq!(put.send().await.status, StatusCode::NO_CONTENT);
        }
        assert_eq!(lab.get(&format!("{}points.csv", lists[2])).by(&ann).send().await.text, secret);
        id
    };
    let first = fill("of the first").await;
    std::fs::remove_file(dir.path().join("lab.db")).unwrap();
    assert_eq!(fill("of the second").await, first);
}
