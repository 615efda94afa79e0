//! Read access by a shared link: the report and the files of one experiment.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use crate::accounts::key;
use crate::api::{file_response, report_response};
use crate::blocking::run_blocking;
use crate::download::ByteRange;
use crate::extract::{AcceptHeader, PathParameter};
use crate::refusal::Refusal;
use crate::server::{Server, SharedServer};

/// Returns the routes of `/shared/KEY` and below.
pub fn routes() -> Router<SharedServer> {
    Router::new()
        .route("/shared/{key}", get(redirect_to_report))
        .route("/shared/{key}/report", get(report_or_page))
        .route("/shared/{key}/report/", get(report))
        .route("/shared/{key}/report/{*path}", get(file))
        .route("/shared/{key}/files/{*path}", get(file))
}

impl Server {
    fn shared_experiment(&self, key: &str) -> Result<i64, Refusal> {
        let entry = self.store.experiment_of_key(&key::digest(key))?.ok_or_else(Refusal::not_found)?;
        Ok(entry.experiment.id)
    }
}

async fn redirect_to_report(
    State(server): State<SharedServer>,
    PathParameter(key): PathParameter<String>,
) -> Result<Response, Refusal> {
    let path = format!("/shared/{key}/report/");
    run_blocking(server, move |server| server.shared_experiment(&key)).await?;
    Ok(Redirect::to(&path).into_response())
}

/// Returns the report like the API, but redirects a browser to `report/`, to which the links in the report are relative.
async fn report_or_page(
    server: State<SharedServer>,
    key: PathParameter<String>,
    accept: AcceptHeader,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    if accept.is_browser { redirect_to_report(server, key).await } else { report(server, key, wanted).await }
}

async fn report(
    State(server): State<SharedServer>,
    PathParameter(key): PathParameter<String>,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    run_blocking(server, move |server| report_response(server, server.shared_experiment(&key)?, &wanted))
        .await
}

async fn file(
    State(server): State<SharedServer>,
    PathParameter((key, path)): PathParameter<(String, String)>,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    let read = move |server: &Server| {
        file_response(&server.runner_command(server.shared_experiment(&key)?)?.results(), &path, &wanted)
    };
    run_blocking(server, read).await
}
