//! Conversions between texts, drawings and forms; the points of an experiment, and the animation of a run.

use axum::Json;
use axum::extract::State as Extract;
use hol_lab::{Experiment, Permission};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::blocking::run_expensive;
use crate::draft::{self, Change, Movie, ReadRequest, Reading, Translation};
use crate::extract::{JsonBody, PathParameter, QueryOf};
use crate::plan::Plan;
use crate::reading::check_size;
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, Shared};
use crate::store::Text;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(read))
        .routes(routes!(write))
        .routes(routes!(plan))
        .routes(routes!(movie))
}

/// Reads a text: its errors, its translation, drawing and form, and the cost of running it.
#[utoipa::path(post, path = "/api/read", request_body = ReadRequest, responses(
    (status = 200, body = Reading), (status = 404, description = "The user has no such project", body = Problems),
    (status = 413, description = "It takes too long to read", body = Problems)))]
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
    (status = 200, body = Translation), (status = 400, description = "The text has errors, or ns cannot express the change", body = Problems),
    (status = 404, description = "The user has no such project", body = Problems),
    (status = 413, description = "It takes too long to read", body = Problems)))]
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

/// A submitted experiment as its text defines it now.
struct Submitted {
    experiment: Experiment,
    /// The text, in its language.
    text: String,
    /// Whether it is a network without traffic, so that the traffic of `experiment` is a placeholder.
    is_idle: bool,
}

impl Server {
    /// Reads an experiment that `requester` may see.
    fn read_experiment(&self, requester: &Requester, id: i64) -> Result<Submitted, Refusal> {
        let entry = self.entry(requester, id)?;
        entry.experiment.check_is_no_study()?;
        let Text { text, format, .. } = self.store.text(id, None)?.ok_or_else(Refusal::not_found)?;
        let permission = self.permission(entry.project)?;
        check_size(&text, format, &permission)?;
        let whole = draft::with_placeholder_traffic(&text, format, &permission);
        let (is_idle, text) = (whole.is_some(), whole.unwrap_or(text));
        let experiment = draft::experiment(&entry.experiment.name, &text, format, &permission);
        let experiment = experiment.map_err(|e| Refusal::bad(e.to_string(), "change its text"))?;
        Ok(Submitted { experiment, text, is_idle })
    }
}

/// Returns the axes of an experiment with their values, and its points.
#[utoipa::path(get, path = "/api/experiments/{id}/plan", params(("id" = i64, Path)), responses(
    (status = 200, body = Plan), (status = 400, description = "Its text has errors", body = Problems),
    (status = 404, body = Problems), (status = 409, description = "It is a study", body = Problems),
    (status = 413, body = Problems)))]
async fn plan(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Json<Plan>, Refusal> {
    let planned = move |server: &Server| {
        let submitted = server.read_experiment(&requester, id)?;
        Ok(Plan::of(&submitted.experiment))
    };
    run_expensive(server, planned).await.map(Json)
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
    (status = 200, body = Movie), (status = 400, description = "It cannot be shown", body = Problems),
    (status = 404, body = Problems), (status = 409, description = "It is a study", body = Problems),
    (status = 413, body = Problems)))]
async fn movie(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    QueryOf(Run { point, repetition }): QueryOf<Run>,
) -> Result<Json<Movie>, Refusal> {
    let shown = move |server: &Server| {
        let Submitted { experiment, text, is_idle } = server.read_experiment(&requester, id)?;
        if is_idle {
            let problem = "it has no traffic, so there is no run to show";
            return Err(Refusal::bad(problem, "add traffic, or use the terminal on its nodes"));
        }
        draft::movie(&experiment, &text, point, repetition)
            .map_err(|problem| Refusal::bad(problem, "choose another run"))
    };
    run_expensive(server, shown).await.map(Json)
}
