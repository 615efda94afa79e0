//! Read access by a shared link: the report and the files of one experiment.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use crate::accounts::key;
use crate::api::{file_of, report_of};
use crate::download::Ranged;
use crate::extract::Which;
use crate::leisure::at_leisure;
use crate::refusal::Refusal;
use crate::server::{Server, Shared};

/// Returns the routes of `/shared/KEY` and below.
pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/shared/{key}", get(enter))
        .route("/shared/{key}/report", get(report))
        .route("/shared/{key}/files/{*path}", get(file))
}

impl Server {
    fn shared(&self, key: &str) -> Result<i64, Refusal> {
        let entry = self.store.shared(&key::digest(key))?.ok_or_else(Refusal::not_found)?;
        Ok(entry.experiment.id)
    }
}

async fn enter(State(server): State<Shared>, Which(key): Which<String>) -> Result<Response, Refusal> {
    let path = format!("/shared/{key}/report");
    at_leisure(server, move |server| server.shared(&key)).await?;
    Ok(Redirect::to(&path).into_response())
}

async fn report(
    State(server): State<Shared>,
    Which(key): Which<String>,
    wanted: Ranged,
) -> Result<Response, Refusal> {
    at_leisure(server, move |server| report_of(server, server.shared(&key)?, &wanted)).await
}

async fn file(
    State(server): State<Shared>,
    Which((key, path)): Which<(String, String)>,
    wanted: Ranged,
) -> Result<Response, Refusal> {
    let read =
        move |server: &Server| file_of(&server.command(server.shared(&key)?)?.results(), &path, &wanted);
    at_leisure(server, read).await
}
