//! The REST API. An attribute of each handler contains its OpenAPI description, which also defines its route.

mod drafts;
mod events;
pub mod experiments;
mod files;
mod folders;
mod lab;
mod people;
mod shell;

use axum::Json;
use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use files::{file_response, report_response};

use crate::extract::COOKIE_NAME;
use crate::server::SharedServer;

#[derive(OpenApi)]
#[openapi(info(
    title = "headofline",
    description = "Runs experiments on transport protocols: submit an experiment, watch it run, and get its results. Every error has a body `{errors: [{line, column, message, cure}]}`.",
    version = env!("CARGO_PKG_VERSION"),
    license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
), modifiers(&Authentication), security(("token" = []), ("session" = [])))]
struct Description;

/// How requests are authenticated. A server without login, as on 127.0.0.1, does not require it.
struct Authentication;

impl Modify for Authentication {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let session =
            ApiKeyValue::with_description(COOKIE_NAME, "the session cookie that POST /api/login sets");
        let schemes = [
            ("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer))),
            ("session", SecurityScheme::ApiKey(ApiKey::Cookie(session))),
        ];
        let components = description.components.get_or_insert_default();
        components.security_schemes.extend(schemes.map(|(name, scheme)| (name.to_owned(), scheme.into())));
    }
}

const JSON_TYPE: &str = "application/json";
/// The described type of files; the actual type depends on the suffix of the file.
const FILE_TYPE: &str = "application/octet-stream";
/// A range of all types. OpenAPI 3.1, section 4.8.17; RFC 9110, section 12.5.1
const ANY_TYPE: &str = "*/*";
/// Errors that a request with a JSON body can get before its handler runs: see [`JsonBody`](crate::extract::JsonBody).
const JSON_BODY_ERRORS: [(&str, &str); 4] = [
    ("400", "The body is not JSON, or a value is out of range"),
    ("413", "The body is too long"),
    ("415", "The body is not application/json"),
    ("422", "The fields of the body differ from the description"),
];
/// Errors that every request can get: see [`guard`](crate::guard) and [`Refusal`](crate::refusal::Refusal).
const COMMON_ERRORS: &str = "An error that any operation can return: no Host header (400), not authenticated (401), a change \
     by a page of another site (403), unknown host name (421), headers too long (431), internal error \
     (500), too many requests (429, 503), disk full (507)";

const NOT_MODIFIED: &str = "The client already has this version: If-None-Match contains its entity tag";

/// Adapts the description to the OpenAPI standard: removes the star from the router's `{*path}`, gives each operation
/// a unique name and the errors that parsing a request can cause, and each response a description. OpenAPI 3.1,
/// sections 4.8.8, 4.8.10, 4.8.16 and 4.8.17
fn standardize(mut description: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let paths = std::mem::take(&mut description.paths.paths);
    for (path, mut item) in paths {
        let path = path.replace("{*", "{");
        let PathItem { get, put, post, delete, patch, .. } = &mut item;
        for (method, operation) in
            [("get", get), ("put", put), ("post", post), ("delete", delete), ("patch", patch)]
        {
            let Some(operation) = operation else { continue };
            let words =
                path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !["", "api"].contains(word));
            let slash = if path.ends_with('/') { "_list" } else { "" };
            operation.operation_id = Some(format!("{method}_{}{slash}", words.collect::<Vec<_>>().join("_")));
            if method == "get" {
                let response = ResponseBuilder::new().description(NOT_MODIFIED).build();
                operation.responses.responses.insert("304".to_owned(), RefOr::T(response));
            }
            add_common_errors(operation);
            for (status, response) in &mut operation.responses.responses {
                let RefOr::T(response) = response else { continue };
                if response.description.is_empty() {
                    response.description = reason_phrase(status).to_owned();
                }
                if response.content.swap_remove(FILE_TYPE).is_some() {
                    response.content.insert(ANY_TYPE.to_owned(), RefOr::T(Content::default()));
                }
            }
        }
        description.paths.paths.insert(path, item);
    }
    description
}

/// Adds the errors that follow from an operation's parameters and body, unless the operation describes them itself.
fn add_common_errors(operation: &mut Operation) {
    let of_parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(Parameter { parameter_in: ParameterIn::Path, .. }) => {
            Some(("404", "The resource does not exist, or the user may not see it"))
        }
        RefOr::T(Parameter { parameter_in: ParameterIn::Query, .. }) => {
            Some(("400", "The keys or values of the query differ from the description"))
        }
        _ => None,
    });
    let is_json =
        |body: &RefOr<RequestBody>| matches!(body, RefOr::T(body) if body.content.contains_key(JSON_TYPE));
    let of_body =
        JSON_BODY_ERRORS.into_iter().filter(|_| operation.request_body.as_ref().is_some_and(is_json));
    let common: Vec<_> = of_parameters.chain(of_body).chain([("default", COMMON_ERRORS)]).collect();
    for (status, description) in common {
        let body = Content::new(Some(Ref::from_schema_name("Problems")));
        let response = ResponseBuilder::new().description(description).content(JSON_TYPE, body).build();
        operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
    }
}

/// Returns the reason phrase of a status code. RFC 9110, section 15
fn reason_phrase(status: &str) -> &'static str {
    status.parse().ok().and_then(|status: StatusCode| status.canonical_reason()).unwrap_or("a response")
}

/// Returns all routes of the API, and its description.
pub fn routes() -> (axum::Router<SharedServer>, utoipa::openapi::OpenApi) {
    let router = OpenApiRouter::with_openapi(Description::openapi())
        .merge(experiments::routes())
        .merge(events::routes())
        .merge(files::routes())
        .merge(folders::routes())
        .merge(drafts::routes())
        .merge(lab::routes())
        .merge(people::routes())
        .merge(shell::routes())
        .routes(routes!(description));
    router.split_for_parts()
}

/// Returns the description of this API.
#[utoipa::path(get, path = "/api/openapi.json", responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
async fn description() -> Json<utoipa::openapi::OpenApi> {
    Json(openapi())
}

/// Returns the description of this API.
pub fn openapi() -> utoipa::openapi::OpenApi {
    standardize(routes().1)
}
