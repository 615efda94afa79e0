//! Checks in all tests that the description contains every status code that the API returns, for its path and method.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use include_dir::{Dir, include_dir};
use serde_json::Value;
use tower::ServiceExt;

use crate::api::openapi;
use crate::refusal::Refusal;

static DESCRIPTION: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(openapi()).expect("a description can be written"));

/// Status codes that any request can get; the response `default` describes them.
const OF_ALL: [StatusCode; 8] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::INSUFFICIENT_STORAGE,
];
/// Messages of errors that any request can get, with status codes that other errors have, too.
const OF_THE_GUARD: [&str; 3] = [
    "the request has no valid Host header",
    "the request has several Host headers",
    "the request comes from a page of another site",
];

/// Forwards a request, and panics if the status code of the response is not described.
pub(super) async fn check(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().as_str().to_lowercase(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let status = response.status();
    let is_of_the_guard = response.extensions().get::<Refusal>().is_some_and(|refusal| {
        refusal.problems.iter().any(|problem| OF_THE_GUARD.contains(&problem.message.as_str()))
    });
    if let Some(responses) = responses(&method, &path)
        && !OF_ALL.contains(&status)
        && !is_of_the_guard
    {
        assert!(responses.get(status.as_str()).is_some(), "{method} {path}: {status} is not described");
    }
    response
}

/// Returns the described responses for a method and a path; of several templates that match, the one with the fewest parameters.
fn responses(method: &str, path: &str) -> Option<&'static Value> {
    let paths = DESCRIPTION["paths"].as_object().expect("paths are an object");
    let fitting = paths.iter().filter(|(template, item)| fits(template, path) && item.get(method).is_some());
    let (_, item) = fitting.min_by_key(|(template, _)| template.matches('{').count())?;
    Some(&item[method]["responses"])
}

/// Returns whether a path matches a template, in which `{path}` matches the rest.
fn fits(template: &str, path: &str) -> bool {
    let (mut known, mut asked) = (template.split('/'), path.split('/'));
    loop {
        match (known.next(), asked.next()) {
            (None, None) => return true,
            (Some("{path}"), Some(first)) => return !first.is_empty() || asked.next().is_some(),
            (Some(part), Some(own)) if part == own || (part.starts_with('{') && !own.is_empty()) => {}
            _ => return false,
        }
    }
}

#[test]
fn a_path_has_the_responses_of_its_template() {
    assert!(fits("/api/experiments/{id}/files/{path}", "/api/experiments/7/files/a/b"));
    assert!(fits("/api/experiments/{id}/files/", "/api/experiments/7/files/"));
    assert!(!fits("/api/experiments/{id}/files/{path}", "/api/experiments/7/files/"));
    assert!(!fits("/api/experiments/{id}", "/api/experiments/7/text"));
    assert!(responses("get", "/api/experiments/7/movie").is_some_and(|own| own["400"].is_object()));
    assert_eq!(responses("get", "/experiments/7"), None);
}

#[tokio::test]
#[should_panic(expected = "get /api/me: 418 I'm a teapot is not described")]
async fn undescribed_status_is_detected() {
    let router = axum::Router::new().fallback(async || StatusCode::IM_A_TEAPOT).layer(from_fn(check));
    let request = Request::builder().uri("/api/me").body(Body::empty()).unwrap();
    let _ = router.oneshot(request).await;
}

/// Two types of the same name would be one schema, because a schema replaces an earlier one of its name.
#[test]
fn schemas_of_different_types_have_different_names() {
    static SOURCES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src");
    let mut places = BTreeMap::new();
    let mut directories = vec![&SOURCES];
    while let Some(directory) = directories.pop() {
        directories.extend(directory.dirs());
        for file in directory.files() {
            for name in schema_names(file.contents_utf8().expect("Rust is UTF-8")) {
                let earlier = places.insert(name.clone(), file.path());
                assert_eq!(
                    earlier,
                    None,
                    "{name} is also in {}: write #[schema(as = NAME)]",
                    file.path().display()
                );
            }
        }
    }
    let described: BTreeSet<&String> =
        DESCRIPTION["components"]["schemas"].as_object().unwrap().keys().collect();
    let unknown: Vec<_> = described.iter().filter(|name| !places.contains_key(**name)).collect();
    assert!(unknown.is_empty() && described.contains(&"SharedLink".to_owned()), "{unknown:?}");
}

/// Returns the names of the schemas that are derived in a source file.
fn schema_names(source: &str) -> Vec<String> {
    let items = source.split("#[derive(").skip(1).filter_map(|item| {
        let (derived, rest) = item.split_once(")]")?;
        derived.contains("ToSchema").then_some(rest)
    });
    let name = |item: &str| {
        let head = item.split('{').next().unwrap_or(item);
        let renamed = head.split_once("#[schema(as = ").map(|(_, name)| name);
        let name = renamed.or_else(|| {
            head.split_once("struct ").or_else(|| head.split_once("enum ")).map(|(_, name)| name)
        });
        name.unwrap_or(head).split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
    };
    items.map(name).collect()
}
