//! The REST API. Each handler carries its OpenAPI description, from which its route is made.

mod drafts;
mod events;
pub mod experiments;
mod files;
mod folders;
mod lab;
mod people;
mod shell;

use axum::Json;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use files::{file_of, report_of};

use crate::server::Shared;

#[derive(OpenApi)]
#[openapi(info(
    title = "headofline",
    description = "Experiments on transport protocols: submit, watch, get. Every refusal has a body `{errors: [{line, column, message, cure}]}`."
))]
struct Description;

/// Returns all routes of the API, and its description.
pub fn routes() -> (axum::Router<Shared>, utoipa::openapi::OpenApi) {
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
    Json(routes().1)
}
