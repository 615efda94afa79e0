//! Endpoints that convert between texts, drawings and forms, and return the points of an experiment and the animation of a run.

use axum::extract::State as Extract;
use hol_lab::Permission;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::blocking::run_expensive;
use crate::computation::{NamedText, Task};
use crate::download::JsonAnswer;
use crate::draft::{Change, Movie, ReadRequest, Reading, Translation};
use crate::extract::{JsonBody, PathParameter, QueryParameters, Uploader, allow_large_body};
use crate::plan::Plan;
use crate::reading::check_length;
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, SharedServer};
use crate::store::Text;

pub fn routes() -> OpenApiRouter<SharedServer> {
    OpenApiRouter::new()
        .routes(routes!(read).layer(allow_large_body()))
        .routes(routes!(write).layer(allow_large_body()))
        .routes(routes!(plan))
        .routes(routes!(movie))
}

/// Analyses a draft of an experiment: returns its errors, its translation, drawing and form, and the cost of running it.
#[utoipa::path(post, path = "/api/read", request_body = ReadRequest, responses(
    (status = 200, body = Reading), (status = 404, description = "The user has no such project", body = Problems),
    (status = 413, description = "The text is too long or has too many points", body = Problems)))]
async fn read(
    Extract(server): Extract<SharedServer>,
    Uploader { requester, permit: _permit }: Uploader,
    JsonBody(ask): JsonBody<ReadRequest>,
) -> Result<JsonAnswer, Refusal> {
    let user = requester.clone();
    let read = move |server: &Server| {
        check_length(&ask.text)?;
        let permission = permission(server, &requester, ask.project.as_deref())?;
        let jobs = server.config.cores as usize;
        server.compute(&requester, Task::Read(ask, jobs), permission)
    };
    run_expensive(server, &user, read).await.map(JsonAnswer)
}

/// Applies a changed drawing or form to a text, and returns the text in both languages.
#[utoipa::path(post, path = "/api/write", request_body = Change, responses(
    (status = 200, body = Translation), (status = 400, description = "The text has errors, or does not allow the change", body = Problems),
    (status = 404, description = "The user has no such project", body = Problems),
    (status = 413, description = "The text is too long or has too many points", body = Problems)))]
async fn write(
    Extract(server): Extract<SharedServer>,
    Uploader { requester, permit: _permit }: Uploader,
    JsonBody(change): JsonBody<Change>,
) -> Result<JsonAnswer, Refusal> {
    let user = requester.clone();
    let written = move |server: &Server| {
        check_length(&change.text)?;
        let permission = permission(server, &requester, change.project.as_deref())?;
        server.compute(&requester, Task::Write(change), permission)
    };
    run_expensive(server, &user, written).await.map(JsonAnswer)
}

/// Returns the resources that a draft in `project` may use. Users who are in no project can use the editor, too.
fn permission(server: &Server, requester: &Requester, project: Option<&str>) -> Result<Permission, Refusal> {
    match server.project_of(requester, project) {
        Ok((project, _)) => Ok(server.permission(project)?),
        Err(_) if project.is_none() => Ok(server.config.permission.clone()),
        Err(refusal) => Err(refusal),
    }
}

impl Server {
    /// Returns the last text of an experiment that `requester` may see, and the permission of its project.
    fn submitted_text(&self, requester: &Requester, id: i64) -> Result<(NamedText, Permission), Refusal> {
        let entry = self.entry(requester, id)?;
        entry.experiment.check_is_no_study()?;
        let Text { text, format, .. } = self.store.text(id, None)?.ok_or_else(Refusal::not_found)?;
        let permission = self.permission(entry.project)?;
        Ok((NamedText { name: entry.experiment.name, text, format }, permission))
    }
}

/// Returns the axes of an experiment with their values, and its points.
#[utoipa::path(get, path = "/api/experiments/{id}/plan", params(("id" = i64, Path)), responses(
    (status = 200, body = Plan), (status = 400, description = "The text of the experiment has errors", body = Problems),
    (status = 404, body = Problems), (status = 409, description = "The experiment is a study", body = Problems),
    (status = 413, body = Problems), (status = 422, description = "The text exceeds a limit of memory or time", body = Problems)))]
async fn plan(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<JsonAnswer, Refusal> {
    let user = requester.clone();
    let planned = move |server: &Server| {
        let (text, permission) = server.submitted_text(&requester, id)?;
        server.compute(&requester, Task::Plan(text), permission)
    };
    run_expensive(server, &user, planned).await.map(JsonAnswer)
}

/// Selects a run.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct RunQuery {
    /// Index of the point, from 0.
    point: usize,
    /// Index of the repetition, from 0.
    repetition: u32,
}

/// Returns all packets and messages of a run, for an animation. The server repeats the run to record them.
#[utoipa::path(get, path = "/api/experiments/{id}/movie", params(("id" = i64, Path), RunQuery), responses(
    (status = 200, body = Movie), (status = 400, description = "There is no such run, or it cannot be animated", body = Problems),
    (status = 404, body = Problems), (status = 409, description = "The experiment is a study", body = Problems),
    (status = 413, body = Problems), (status = 422, description = "The run exceeds a limit of memory or time", body = Problems)))]
async fn movie(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    QueryParameters(RunQuery { point, repetition }): QueryParameters<RunQuery>,
) -> Result<JsonAnswer, Refusal> {
    let user = requester.clone();
    let shown = move |server: &Server| {
        let (text, permission) = server.submitted_text(&requester, id)?;
        server.compute(&requester, Task::Movie(text, point, repetition), permission)
    };
    run_expensive(server, &user, shown).await.map(JsonAnswer)
}
