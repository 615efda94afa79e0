//! Limits of time and memory for texts, files, and large numbers of requests.

use axum::http::{Method, StatusCode};
use serde_json::json;

use super::hostile::lab;
use super::{Lab, TEXT};
use crate::server::Access;

/// Texts that would take seconds or hundreds of megabytes if their size were not checked first.
#[tokio::test]
async fn texts_that_take_long_to_parse_are_refused() {
    let (lab, ann, _) = lab().await;
    let list = |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(",");
    let network = |nodes: usize, links: String| {
        let nodes = list(nodes, &|n| format!("'n{n}'"));
        format!(
            "transports=['tcp']\nworkload={{kind='oneway',from='n0',to='n1'}}\nnetwork={{nodes=[{nodes}],{links}}}\n"
        )
    };
    let chain = |nodes: usize| {
        network(
            nodes,
            format!("links=[{}]", list(nodes - 1, &|n| format!("{{from='n{n}',to='n{}'}}", n + 1))),
        )
    };
    let star = format!("lans=[{{nodes=[{}]}}]", list(250, &|n| format!("'n{n}'")));
    let lans =
        format!("lans=[{}]", list(20, &|_| format!("{{nodes=[{}]}}", list(250, &|n| format!("'n{n}'")))));
    let seeds = format!("[sweep]\nseed=[{}]\n", list(40, &|n| n.to_string()));
    let texts = [
        ("a chain", chain(3_000), "nodes, but at most 300 are allowed"),
        (
            "parallel links",
            network(2, format!("links=[{}]", list(3_000, &|_| "{from='n0',to='n1'}".to_owned()))),
            "at most 600 links and LANs",
        ),
        (
            "paths",
            format!("{TEXT}network.paths=[{}]\n", list(3_000, &|_| "{}".to_owned())),
            "at most 600 links and LANs",
        ),
        ("many LANs", network(250, lans), "at most 600 links and LANs"),
        ("a chain of all nodes in a sweep", format!("{}{seeds}", chain(300)), "more than 250000 routes"),
        (
            "a LAN over many transports",
            network(250, star).replace("['tcp']", &format!("[{}]", list(30, &|_| "'tcp'".to_owned()))),
            "more than 250000 routes",
        ),
        (
            "twins",
            format!("repetitions=1\ntransports=[{}]\n", list(50_000, &|_| "'tcp'".to_owned())),
            "50000 points",
        ),
        (
            "own workloads",
            format!(
                "transports=[{}]\n",
                list(5_000, &|n| format!("{{spec='tcp',label='a{n}',workload={{sources=2}}}}"))
            ),
            "5000 points",
        ),
        (
            "points",
            format!(
                "transports=['tcp']\nrepetitions=1\n[sweep]\nseed=[{}]\nmessages=[{}]\n",
                list(110, &|n| n.to_string()),
                list(110, &|n| (n + 1).to_string())
            ),
            "more than 10000 points",
        ),
    ];
    for (what, text, problem) in texts {
        for path in ["/api/experiments", "/api/read", "/api/write"] {
            let answer = lab.post(path).by(&ann).json(&json!({ "text": text })).send().await;
            let is_said = answer.text.contains(problem) || path == "/api/write";
            assert!(
                is_said && !answer.status.is_server_error(),
                "{what}, {path}: {}",
                &answer.text[..answer.text.len().min(300)]
            );
        }
    }
    let script = |nodes: usize| {
        format!(
            "set ns [new Simulator]\nfor {{set i 0}} {{$i < {nodes}}} {{incr i}} {{\nset n($i) [$ns node]\n}}\n\
             for {{set i 1}} {{$i < {nodes}}} {{incr i}} {{\n\
             $ns duplex-link $n([expr $i-1]) $n($i) 1Mb 1ms DropTail\n}}\n"
        )
    };
    // Its routes would occupy gigabytes.
    let body = json!({ "text": script(10_000), "format": "ns" });
    let answer = lab.post("/api/read").by(&ann).json(&body).send().await.json();
    assert!(answer["graph"].is_null() && answer["mapping"] == json!([]));
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("10000 nodes, but at most 300 are allowed"), "{message}");
}

/// The download of a file of any size occupies the memory of one part.
#[tokio::test]
async fn a_file_is_sent_in_parts() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let results = lab.server.runner_command(id).unwrap().results();
    std::fs::create_dir_all(&results).unwrap();
    let huge = 1_u64 << 40;
    std::fs::File::create(results.join("huge.bin")).unwrap().set_len(huge).unwrap();
    let response = lab.get(&format!("/api/experiments/{id}/files/huge.bin")).open().await;
    assert_eq!(
        (response.status(), &response.headers()["content-length"]),
        (StatusCode::OK, &huge.to_string().parse().unwrap())
    );
    let mut parts = response.into_body().into_data_stream();
    for _ in 0..3 {
        let part = futures_util::StreamExt::next(&mut parts).await.unwrap().unwrap();
        assert_eq!(part.len(), crate::download::PART_SIZE);
    }
    std::fs::write(results.join("small.csv"), "1,2\n").unwrap();
    assert_eq!(lab.get(&format!("/api/experiments/{id}/files/small.csv")).send().await.text, "1,2\n");
}

/// After an interrupted download a client requests the rest of the same file.
#[tokio::test]
async fn download_continues_after_a_break() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let results = lab.server.runner_command(id).unwrap().results();
    std::fs::create_dir_all(&results).unwrap();
    std::fs::write(results.join("a.csv"), "0123456789").unwrap();
    let path = format!("/api/experiments/{id}/files/a.csv");
    let whole = lab.get(&path).send().await;
    let version = whole.headers["etag"].to_str().unwrap();
    let part = async |range: &str, version: &str| {
        let answer = lab.get(&path).header("range", range).header("if-range", version).send().await;
        let place = answer.headers.get("content-range").map(|place| place.to_str().unwrap().to_owned());
        (answer.status.as_u16(), answer.text, place.unwrap_or_default())
    };
    let of = |status: u16, text: &str, place: &str| (status, text.to_owned(), place.to_owned());
    assert_eq!(part("bytes=4-", version).await, of(206, "456789", "bytes 4-9/10"));
    assert_eq!(part("bytes=0-0", version).await, of(206, "0", "bytes 0-0/10"));
    assert_eq!(part("bytes=8-99", version).await, of(206, "89", "bytes 8-9/10"));
    assert_eq!(part("bytes=4-", "\"other\"").await, of(200, "0123456789", ""));
    assert_eq!(part("bytes=1-2,4-5", version).await, of(200, "0123456789", ""));
    let (status, text, _) = part("bytes=10-", version).await;
    assert_eq!(status, 416);
    assert!(text.contains("which has 10 octets"), "{text}");
    std::fs::write(results.join("a.csv"), "abcdefghijk").unwrap();
    assert_eq!(part("bytes=4-", version).await, of(200, "abcdefghijk", ""));
}

/// The bodies of all errors have the same form.
#[tokio::test]
async fn every_refusal_is_json() {
    let lab = Lab::open(Access::Open);
    let large = || axum::body::Body::from("x".repeat(30_000_000));
    let long = "x".repeat(20_000);
    let requests = [
        (413, lab.ask(Method::PUT, "/api/me/files/a").body(large())),
        (413, lab.post("/api/experiments").header("content-type", "application/json").body(large())),
        (404, lab.get("/api/nothing")),
        (404, lab.get("/web/nothing.css")),
        (404, lab.get("/api/me/files/nothing")),
        (405, lab.ask(Method::PUT, "/api/experiments")),
        (405, lab.ask(Method::DELETE, "/web/page.css")),
        (415, lab.post("/api/experiments").body("{}")),
        (431, lab.get("/api/me").header("x-long", &long)),
        (431, lab.get(&format!("/api/me/files/{long}"))),
    ];
    for (status, request) in requests {
        let answer = request.send().await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
        assert_eq!(answer.headers["content-type"], "application/json", "{status}");
        let error = &answer.json()["errors"][0];
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{status}: {error}");
    }
}

#[tokio::test]
async fn requests_that_are_too_large_are_refused() {
    let lab = Lab::open(Access::Open);
    let submit =
        async |text: String| lab.post("/api/experiments").json(&json!({ "text": text })).send().await.status;
    let comment = |octets: usize| format!("{TEXT}{}", format!("#{}\n", "x".repeat(98)).repeat(octets / 100));
    assert_eq!(submit(comment(1_000_000)).await, StatusCode::CREATED);
    assert_eq!(submit(comment(1_100_000)).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(submit("x".repeat(30_000_000)).await, StatusCode::PAYLOAD_TOO_LARGE);
    let deep = format!("{TEXT}x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(submit(deep).await, StatusCode::UNPROCESSABLE_ENTITY);
    let objects = format!("{}{}", r#"{"text":"#.repeat(100_000), "}".repeat(100_000));
    let nested =
        lab.post("/api/experiments").header("content-type", "application/json").body(objects).send().await;
    assert!(nested.status.is_client_error(), "{}", nested.status);
    let many = (0..2_000).map(|n| format!("'{n}ms'")).collect::<Vec<_>>().join(",");
    let sweep = format!("{TEXT}[sweep]\n'network.delay' = [{many}]\n'network.rate' = [{many}]\n");
    assert_eq!(submit(sweep).await, StatusCode::PAYLOAD_TOO_LARGE, "4,000,000 points");
    let braces = format!("set ns [new Simulator]\n{}", "proc a {} {".repeat(80_000));
    let script = json!({ "text": braces, "format": "ns" });
    assert_eq!(
        lab.post("/api/experiments").json(&script).send().await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

#[tokio::test]
async fn excess_requests_are_refused_at_once() {
    let lab = Lab::open(Access::Open);
    let limits: Vec<_> = std::iter::from_fn(|| lab.server.limits.admit_expensive(None).ok()).collect();
    assert_eq!(limits.len(), 16);
    let answer = lab.post("/api/experiments").json(&json!({ "text": TEXT })).send().await;
    assert_eq!(
        (answer.status, answer.headers["retry-after"].to_str().unwrap()),
        (StatusCode::SERVICE_UNAVAILABLE, "1")
    );
    // Cheap requests are still served.
    assert_eq!(lab.get("/api/me").send().await.status, StatusCode::OK);
    drop(limits);
    lab.submitted().await;
    let requests: Vec<_> = std::iter::from_fn(|| lab.server.limits.admit_request().ok()).collect();
    assert_eq!(lab.get("/api/me").send().await.status, StatusCode::SERVICE_UNAVAILABLE);
    drop(requests);
}
