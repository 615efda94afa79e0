//! Experiments: lists, new ones, and actions on them.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::accounts::key;
use crate::blocking::{run_blocking, run_expensive};
use crate::clock::now;
use crate::experiment::{Experiment, Filter, State};
use crate::extract::{JsonBody, PathParameter, QueryOf};
use crate::lifecycle::Event;
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, Shared};
use crate::store::Text;
use crate::submission::{Change, NewText, Rerun, Submission};

/// Maximum length of a list.
const LONGEST_LIST: usize = 1000;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, submit))
        .routes(routes!(one, change, remove))
        .routes(routes!(text, rewrite))
        .routes(routes!(versions))
        .routes(routes!(start))
        .routes(routes!(swap_out))
        .routes(routes!(swap_in))
        .routes(routes!(terminate))
        .routes(routes!(again))
        .routes(routes!(share, unshare))
}

/// Selects experiments.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Selection {
    /// Only those in this state.
    state: Option<State>,
    /// Only those of this project.
    project: Option<String>,
    /// Only those of this user.
    owner: Option<String>,
    /// Only those with this in their title or name.
    search: Option<String>,
    /// Maximum number: 100 by default, at most 1000.
    limit: Option<usize>,
    /// Only those before this one, the last of the previous list.
    before: Option<i64>,
}

/// Lists the experiments visible to the user, the newest first.
#[utoipa::path(get, path = "/api/experiments", params(Selection), responses(
    (status = 200, body = Vec<Experiment>), (status = 400, body = Problems)))]
async fn list(
    Extract(server): Extract<Shared>,
    requester: Requester,
    QueryOf(selection): QueryOf<Selection>,
) -> Result<Json<Vec<Experiment>>, Refusal> {
    let Selection { state, project, owner, search, limit, before } = selection;
    let limit = limit.unwrap_or(100).min(LONGEST_LIST);
    let filter = Filter { state, project, owner, search, limit, before };
    run_blocking(server, move |server| server.experiments(&requester, &filter)).await.map(Json)
}

/// Submits a new experiment, which waits for its cores.
#[utoipa::path(post, path = "/api/experiments", request_body = Submission, responses(
    (status = 201, body = Experiment),
    (status = 403, description = "The user is in no project, or may not give this priority", body = Problems),
    (status = 404, description = "The user has no such project", body = Problems),
    (status = 422, description = "The text has errors", body = Problems),
    (status = 429, description = "Too many unfinished experiments", body = Problems)))]
async fn submit(
    Extract(server): Extract<Shared>,
    requester: Requester,
    JsonBody(submission): JsonBody<Submission>,
) -> Result<(StatusCode, Json<Experiment>), Refusal> {
    let taken = run_expensive(server, move |server| server.submit(&requester, submission)).await?;
    Ok((StatusCode::CREATED, Json(taken)))
}

/// Returns an experiment.
#[utoipa::path(get, path = "/api/experiments/{id}", params(("id" = i64, Path)), responses(
    (status = 200, body = Experiment), (status = 404, body = Problems)))]
async fn one(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Json<Experiment>, Refusal> {
    run_blocking(server, move |server| server.experiment(&requester, id)).await.map(Json)
}

/// Changes its name, its title, or its scheduling.
#[utoipa::path(patch, path = "/api/experiments/{id}", params(("id" = i64, Path)), request_body = Change, responses(
    (status = 200, body = Experiment), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "It is starting or running", body = Problems)))]
async fn change(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    JsonBody(change): JsonBody<Change>,
) -> Result<Json<Experiment>, Refusal> {
    run_blocking(server, move |server| server.change(&requester, id, change)).await.map(Json)
}

/// Deletes it and its results. It must not be running.
#[utoipa::path(delete, path = "/api/experiments/{id}", params(("id" = i64, Path)), responses(
    (status = 204), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "It runs", body = Problems)))]
async fn remove(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<StatusCode, Refusal> {
    run_blocking(server, move |server| server.remove(&requester, id)).await.map(|()| StatusCode::NO_CONTENT)
}

/// Selects a version of a text.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Version {
    /// Version, from 1; the last by default.
    version: Option<u32>,
}

/// Returns its text.
#[utoipa::path(get, path = "/api/experiments/{id}/text", params(("id" = i64, Path), Version), responses(
    (status = 200, body = Text), (status = 404, body = Problems)))]
async fn text(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    QueryOf(Version { version }): QueryOf<Version>,
) -> Result<Json<Text>, Refusal> {
    let read = move |server: &Server| {
        server.entry(&requester, id)?;
        server.store.text(id, version)?.ok_or_else(Refusal::not_found)
    };
    run_blocking(server, read).await.map(Json)
}

/// Replaces its text, while it is not running. Earlier measurements that still apply count.
#[utoipa::path(put, path = "/api/experiments/{id}/text", params(("id" = i64, Path)), request_body = NewText, responses(
    (status = 200, body = Experiment), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "It runs, or is a study", body = Problems),
    (status = 422, description = "The text has errors", body = Problems)))]
async fn rewrite(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    JsonBody(text): JsonBody<NewText>,
) -> Result<Json<Experiment>, Refusal> {
    run_expensive(server, move |server| server.rewrite(&requester, id, &text)).await.map(Json)
}

/// Returns every version of its text, the newest first.
#[utoipa::path(get, path = "/api/experiments/{id}/versions", params(("id" = i64, Path)), responses(
    (status = 200, body = Vec<Text>), (status = 404, body = Problems)))]
async fn versions(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Json<Vec<Text>>, Refusal> {
    let read = move |server: &Server| {
        server.entry(&requester, id)?;
        Ok(server.store.texts(id)?)
    };
    run_blocking(server, read).await.map(Json)
}

/// Defines a handler for an action on an experiment.
macro_rules! action {
    ($name:ident, $path:literal, $event:expr, $about:literal) => {
        #[doc = $about]
        #[utoipa::path(post, path = $path, params(("id" = i64, Path)), responses(
            (status = 200, body = Experiment), (status = 403, body = Problems), (status = 404, body = Problems),
            (status = 409, description = "Its state does not allow it", body = Problems)))]
        async fn $name(
            Extract(server): Extract<Shared>,
            requester: Requester,
            PathParameter(id): PathParameter<i64>,
        ) -> Result<Json<Experiment>, Refusal> {
            run_blocking(server, move |server| server.act(&requester, id, $event)).await.map(Json)
        }
    };
}

action!(
    start,
    "/api/experiments/{id}/start",
    Event::Start,
    "Lets a new one, or one that failed, wait for its cores."
);
action!(
    swap_out,
    "/api/experiments/{id}/swap-out",
    Event::SwapOut,
    "Takes its cores away; it keeps all it has."
);
action!(
    swap_in,
    "/api/experiments/{id}/swap-in",
    Event::SwapIn,
    "Lets one that is swapped out wait for its cores."
);
action!(
    terminate,
    "/api/experiments/{id}/terminate",
    Event::Terminate,
    "Ends it for good; what was measured stays."
);

/// Submits the same experiment again, optionally with other values.
#[utoipa::path(post, path = "/api/experiments/{id}/again", params(("id" = i64, Path)), request_body = Option<Rerun>,
    responses((status = 201, body = Experiment), (status = 404, body = Problems),
    (status = 422, description = "The text with these values has errors", body = Problems),
    (status = 429, description = "Too many unfinished experiments", body = Problems)))]
async fn again(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    again: Option<JsonBody<Rerun>>,
) -> Result<(StatusCode, Json<Experiment>), Refusal> {
    let again = again.map_or_else(Rerun::default, |JsonBody(again)| again);
    let taken = run_expensive(server, move |server| server.again(&requester, id, again)).await?;
    Ok((StatusCode::CREATED, Json(taken)))
}

/// Maximum links of an experiment.
const MAX_LINKS: u64 = 100;

/// A link that gives read access.
#[derive(Debug, Serialize, ToSchema)]
struct Link {
    /// The path on this server. It is shown only once.
    link: String,
}

/// Creates a link that gives anybody read access to the report and the files. Earlier links stay.
#[utoipa::path(post, path = "/api/experiments/{id}/share", params(("id" = i64, Path)), responses(
    (status = 201, body = Link), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "It has too many", body = Problems)))]
async fn share(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<(StatusCode, Json<Link>), Refusal> {
    let made = move |server: &Server| {
        server.own(&requester, id)?;
        if server.store.shares(id)? >= MAX_LINKS {
            return Err(Refusal::conflict(format!("it has {MAX_LINKS} links"), "end them first"));
        }
        let key = key::fresh()?;
        server.store.share(id, &key::digest(&key), now())?;
        Ok(Link { link: format!("/shared/{key}") })
    };
    Ok((StatusCode::CREATED, Json(run_blocking(server, made).await?)))
}

/// Ends all links.
#[utoipa::path(delete, path = "/api/experiments/{id}/share", params(("id" = i64, Path)), responses(
    (status = 204), (status = 403, body = Problems), (status = 404, body = Problems)))]
async fn unshare(
    Extract(server): Extract<Shared>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<StatusCode, Refusal> {
    let ended = move |server: &Server| {
        server.own(&requester, id)?;
        Ok(server.store.unshare(id)?)
    };
    run_blocking(server, ended).await.map(|()| StatusCode::NO_CONTENT)
}
