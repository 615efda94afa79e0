//! Conversions between texts, drawings and forms; and the animation of a run.

use axum::Json;
use axum::extract::State as Extract;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::draft::{self, Ask, Change, Movie, Reading, Written};
use crate::extract::{Sent, Wanted, Which};
use crate::leisure::at_cost;
use crate::reading::check_size;
use crate::refusal::{Problems, Refusal};
use crate::server::{Server, Shared};
use crate::viewer::Viewer;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(read)).routes(routes!(write)).routes(routes!(movie))
}

/// Reads a text: its errors, its translation, drawing and form, and the cost of running it.
#[utoipa::path(post, path = "/api/read", request_body = Ask, responses(
    (status = 200, body = Reading), (status = 413, body = Problems), (status = 422, body = Problems)))]
async fn read(
    Extract(server): Extract<Shared>,
    _viewer: Viewer,
    Sent(ask): Sent<Ask>,
) -> Result<Json<Reading>, Refusal> {
    let read = move |server: &Server| {
        check_size(&ask.text, ask.format, &server.config.permission)?;
        Ok(draft::read(&ask, server.config.cores as usize, &server.config.permission))
    };
    at_cost(server, read).await.map(Json)
}

/// Puts a changed drawing or form into a text, in both languages.
#[utoipa::path(post, path = "/api/write", request_body = Change, responses(
    (status = 200, body = Written), (status = 413, body = Problems), (status = 422, body = Problems)))]
async fn write(
    Extract(server): Extract<Shared>,
    _viewer: Viewer,
    Sent(change): Sent<Change>,
) -> Result<Json<Written>, Refusal> {
    let written = move |server: &Server| {
        check_size(&change.text, change.format, &server.config.permission)?;
        draft::write(&change, &server.config.permission)
            .map_err(|problem| Refusal::bad(problem, "mend the text, then draw on it"))
    };
    at_cost(server, written).await.map(Json)
}

/// Selects a run.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
struct Run {
    /// Index of the point, from 0.
    point: usize,
    /// Index of the repetition, from 0.
    repetition: u32,
}

/// Returns a run of an experiment, packet by packet and message by message; the run is repeated for that.
#[utoipa::path(get, path = "/api/experiments/{id}/movie", params(("id" = i64, Path), Run), responses(
    (status = 200, body = Movie), (status = 404, body = Problems),
    (status = 422, description = "It cannot be shown", body = Problems)))]
async fn movie(
    Extract(server): Extract<Shared>,
    viewer: Viewer,
    Which(id): Which<i64>,
    Wanted(Run { point, repetition }): Wanted<Run>,
) -> Result<Json<Movie>, Refusal> {
    let shown = move |server: &Server| {
        let name = server.entry(&viewer, id)?.experiment.name;
        let text = server.store.text(id, None)?.ok_or_else(Refusal::not_found)?;
        check_size(&text.text, text.format, &server.config.permission)?;
        let unfit = |problem: String| Refusal::bad(problem, "choose another run");
        let experiment = draft::experiment(&name, &text.text, text.format, &server.config.permission);
        let experiment = experiment.map_err(|e| unfit(e.to_string()))?;
        draft::movie(&experiment, point, repetition).map_err(unfit)
    };
    at_cost(server, shown).await.map(Json)
}
