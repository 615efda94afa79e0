//! Conversions between texts, drawings and forms; and the animation of a run.

use axum::Json;
use axum::extract::State as Extract;
use hol_lab::Permission;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::blocking::run_expensive;
use crate::draft::{self, Change, Movie, ReadRequest, Reading, Translation};
use crate::extract::{JsonBody, PathParameter, QueryOf};
use crate::reading::check_size;
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, Shared};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(read)).routes(routes!(write)).routes(routes!(movie))
}

/// Reads a text: its errors, its translation, drawing and form, and the cost of running it.
#[utoipa::path(post, path = "/api/read", request_body = ReadRequest, responses(
    (status = 200, body = Reading), (status = 413, body = Problems), (status = 422, body = Problems)))]
async fn read(
    Extract(server): Extract<Shared>,
    requester: Requester,
    JsonBody(ask): JsonBody<ReadRequest>,
) -> Result<Json<Reading>, Refusal> {
    let read = move |server: &Server| {
        let permission = permission(server, &requester, ask.project.as_deref())?;
        check_size(&ask.text, ask.format, &permission)?;
        Ok(draft::read(&ask, server.config.cores as usize, &permission))
    };
    run_expensive(server, read).await.map(Json)
}

/// Puts a changed drawing or form into a text, in both languages.
#[utoipa::path(post, path = "/api/write", request_body = Change, responses(
    (status = 200, body = Translation), (status = 413, body = Problems), (status = 422, body = Problems)))]
async fn write(
    Extract(server): Extract<Shared>,
    requester: Requester,
    JsonBody(change): JsonBody<Change>,
) -> Result<Json<Translation>, Refusal> {
    let written = move |server: &Server| {
        let permission = permission(server, &requester, change.project.as_deref())?;
        check_size(&change.text, change.format, &permission)?;
        draft::write(&change, &permission)
            .map_err(|problem| Refusal::bad(problem, "mend the text, then draw on it"))
    };
    run_expensive(server, written).await.map(Json)
}

/// Returns what a draft in `project` may use. Who is in no project can try the editor all the same.
fn permission(server: &Server, requester: &Requester, project: Option<&str>) -> Result<Permission, Refusal> {
    match server.project_of(requester, project) {
        Ok((project, _)) => Ok(server.permission(project)?),
        Err(_) if project.is_none() => Ok(server.config.permission.clone()),
        Err(refusal) => Err(refusal),
    }
}

/// Selects a run.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
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
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    QueryOf(Run { point, repetition }): QueryOf<Run>,
) -> Result<Json<Movie>, Refusal> {
    let shown = move |server: &Server| {
        let entry = server.entry(&requester, id)?;
        let (name, permission) = (entry.experiment.name, server.permission(entry.project)?);
        let text = server.store.text(id, None)?.ok_or_else(Refusal::not_found)?;
        check_size(&text.text, text.format, &permission)?;
        let unfit = |problem: String| Refusal::bad(problem, "choose another run");
        let experiment = draft::experiment(&name, &text.text, text.format, &permission);
        let experiment = experiment.map_err(|e| unfit(e.to_string()))?;
        draft::movie(&experiment, point, repetition).map_err(unfit)
    };
    run_expensive(server, shown).await.map(Json)
}
