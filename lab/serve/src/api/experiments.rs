//! Endpoints that list, submit and change experiments.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::accounts::key;
use crate::blocking::{run_blocking, run_expensive};
use crate::clock::now;
use crate::encoding::LongAnswer;
use crate::experiment::{Experiment, Filter, State};
use crate::extract::{JsonBody, PathParameter, QueryParameters, Uploader, allow_large_body};
use crate::lifecycle::Event;
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, SharedServer};
use crate::store::Text;
use crate::submission::{Change, NewText, Rerun, Submission};

/// The list of a text's versions ends with the version at which their total length reaches this number of octets.
const MAX_VERSIONS_SIZE: usize = 2 << 20;
/// Maximum length of a list.
const MAX_LIST_LENGTH: usize = 1000;

pub fn routes() -> OpenApiRouter<SharedServer> {
    OpenApiRouter::new()
        .routes(routes!(list, submit).layer(allow_large_body()))
        .routes(routes!(get_experiment, change, remove))
        .routes(routes!(text, replace_text).layer(allow_large_body()))
        .routes(routes!(versions))
        .routes(routes!(start))
        .routes(routes!(swap_out))
        .routes(routes!(swap_in))
        .routes(routes!(terminate))
        .routes(routes!(rerun))
        .routes(routes!(share, unshare))
}

/// Selects experiments.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Selection {
    /// Only experiments in this state.
    state: Option<State>,
    /// Only experiments of this project.
    project: Option<String>,
    /// Only experiments of this user.
    owner: Option<String>,
    /// Only experiments whose title or name contains this text.
    search: Option<String>,
    /// Maximum number of experiments: 100 by default, at most 1000.
    limit: Option<usize>,
    /// Only experiments with a smaller number than this, which is the last number of the previous list.
    before: Option<i64>,
}

/// Lists the experiments visible to the user, the newest first.
#[utoipa::path(get, path = "/api/experiments", params(Selection), responses(
    (status = 200, body = Vec<Experiment>), (status = 400, body = Problems)))]
async fn list(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    QueryParameters(selection): QueryParameters<Selection>,
) -> Result<Json<Vec<Experiment>>, Refusal> {
    let Selection { state, project, owner, search, limit, before } = selection;
    let limit = limit.unwrap_or(100).min(MAX_LIST_LENGTH);
    let filter = Filter { state, project, owner, search, limit, before };
    run_blocking(server, move |server| server.experiments(&requester, &filter)).await.map(Json)
}

/// Submits a new experiment, which is queued until enough cores are free.
#[utoipa::path(post, path = "/api/experiments", request_body = Submission, responses(
    (status = 201, body = Experiment),
    (status = 403, description = "The user is in no project, or may not set this priority", body = Problems),
    (status = 404, description = "The user has no such project", body = Problems),
    (status = 422, description = "The text has errors", body = Problems),
    (status = 429, description = "Too many unfinished experiments", body = Problems)))]
async fn submit(
    Extract(server): Extract<SharedServer>,
    Uploader { requester, permit: _permit }: Uploader,
    JsonBody(submission): JsonBody<Submission>,
) -> Result<(StatusCode, Json<Experiment>), Refusal> {
    let user = requester.clone();
    let submitted = run_expensive(server, &user, move |server| server.submit(&requester, submission)).await?;
    Ok((StatusCode::CREATED, Json(submitted)))
}

/// Returns an experiment.
#[utoipa::path(get, path = "/api/experiments/{id}", params(("id" = i64, Path)), responses(
    (status = 200, body = Experiment), (status = 404, body = Problems)))]
async fn get_experiment(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Json<Experiment>, Refusal> {
    run_blocking(server, move |server| server.experiment(&requester, id)).await.map(Json)
}

/// Changes the name, the title, or the scheduling of an experiment.
#[utoipa::path(patch, path = "/api/experiments/{id}", params(("id" = i64, Path)), request_body = Change, responses(
    (status = 200, body = Experiment), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "The experiment is starting or running, so its cores cannot change", body = Problems)))]
async fn change(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    JsonBody(change): JsonBody<Change>,
) -> Result<Json<Experiment>, Refusal> {
    run_blocking(server, move |server| server.change(&requester, id, change)).await.map(Json)
}

/// Deletes an experiment that is not running, and its results.
#[utoipa::path(delete, path = "/api/experiments/{id}", params(("id" = i64, Path)), responses(
    (status = 204), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "The experiment is starting or running", body = Problems)))]
async fn remove(
    Extract(server): Extract<SharedServer>,
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
    /// Number of the version, from 1; the last version by default.
    version: Option<u32>,
}

/// Returns the text of an experiment.
#[utoipa::path(get, path = "/api/experiments/{id}/text", params(("id" = i64, Path), Version), responses(
    (status = 200, body = Text), (status = 404, body = Problems)))]
async fn text(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    QueryParameters(Version { version }): QueryParameters<Version>,
) -> Result<LongAnswer<Text>, Refusal> {
    let read = move |server: &Server| {
        server.entry(&requester, id)?;
        server.store.text(id, version)?.ok_or_else(Refusal::not_found)
    };
    let permit = server.limits.admit_long_answer().await?;
    Ok(LongAnswer(run_blocking(server, read).await?, permit))
}

/// Replaces the text of an experiment that is not running. Completed runs that are part of the new text, too, are kept.
#[utoipa::path(put, path = "/api/experiments/{id}/text", params(("id" = i64, Path)), request_body = NewText, responses(
    (status = 200, body = Experiment), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "The experiment is running or terminated, or is a study", body = Problems),
    (status = 422, description = "The text has errors", body = Problems)))]
async fn replace_text(
    Extract(server): Extract<SharedServer>,
    Uploader { requester, permit: _permit }: Uploader,
    PathParameter(id): PathParameter<i64>,
    JsonBody(text): JsonBody<NewText>,
) -> Result<Json<Experiment>, Refusal> {
    let user = requester.clone();
    run_expensive(server, &user, move |server| server.replace_text(&requester, id, &text)).await.map(Json)
}

/// Returns the newest versions of the text of an experiment, the newest first, until their total length reaches 2 MiB.
/// `text?version=N` returns older ones.
#[utoipa::path(get, path = "/api/experiments/{id}/versions", params(("id" = i64, Path)), responses(
    (status = 200, body = Vec<Text>), (status = 404, body = Problems)))]
async fn versions(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<LongAnswer<Vec<Text>>, Refusal> {
    let read = move |server: &Server| {
        server.entry(&requester, id)?;
        Ok(server.store.texts(id, MAX_VERSIONS_SIZE)?)
    };
    let permit = server.limits.admit_long_answer().await?;
    Ok(LongAnswer(run_blocking(server, read).await?, permit))
}

/// Defines a handler for an action on an experiment.
macro_rules! action {
    ($name:ident, $path:literal, $event:expr, $about:literal) => {
        #[doc = $about]
        #[utoipa::path(post, path = $path, params(("id" = i64, Path)), responses(
            (status = 200, body = Experiment), (status = 403, body = Problems), (status = 404, body = Problems),
            (status = 409, description = "The state of the experiment does not allow this action", body = Problems)))]
        async fn $name(
            Extract(server): Extract<SharedServer>,
            requester: Requester,
            PathParameter(id): PathParameter<i64>,
        ) -> Result<Json<Experiment>, Refusal> {
            run_blocking(server, move |server| server.apply_action(&requester, id, $event)).await.map(Json)
        }
    };
}

action!(
    start,
    "/api/experiments/{id}/start",
    Event::Start,
    "Queues a new or failed experiment until enough cores are free."
);
action!(
    swap_out,
    "/api/experiments/{id}/swap-out",
    Event::SwapOut,
    "Swaps out an experiment: ends its process, which frees its cores, and keeps its results."
);
action!(
    swap_in,
    "/api/experiments/{id}/swap-in",
    Event::SwapIn,
    "Queues an experiment that is swapped out until enough cores are free."
);
action!(
    terminate,
    "/api/experiments/{id}/terminate",
    Event::Terminate,
    "Terminates an experiment, which cannot be continued; its results are kept."
);

/// Submits an experiment again as a new one, optionally with other values.
#[utoipa::path(post, path = "/api/experiments/{id}/again", params(("id" = i64, Path)), request_body = Option<Rerun>,
    responses((status = 201, body = Experiment), (status = 404, body = Problems),
    (status = 422, description = "With these values the text of the experiment has errors", body = Problems),
    (status = 429, description = "Too many unfinished experiments", body = Problems)))]
async fn rerun(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    options: Option<JsonBody<Rerun>>,
) -> Result<(StatusCode, Json<Experiment>), Refusal> {
    let options = options.map_or_else(Rerun::default, |JsonBody(options)| options);
    let user = requester.clone();
    let submitted = run_expensive(server, &user, move |server| server.rerun(&requester, id, options)).await?;
    Ok((StatusCode::CREATED, Json(submitted)))
}

/// Maximum number of shared links of an experiment.
const MAX_LINKS: u64 = 100;

/// A link that gives read access.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SharedLink)]
struct Link {
    /// Path of the link on this server. The server returns it only once.
    link: String,
}

/// Creates a link that gives anyone who has it read access to the report and the files. Earlier links remain valid.
#[utoipa::path(post, path = "/api/experiments/{id}/share", params(("id" = i64, Path)), responses(
    (status = 201, body = Link), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "The experiment has the maximum number of shared links", body = Problems)))]
async fn share(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<(StatusCode, Json<Link>), Refusal> {
    let made = move |server: &Server| {
        server.entry_to_change(&requester, id)?;
        if server.store.count_shares(id)? >= MAX_LINKS {
            return Err(Refusal::conflict(
                format!("the experiment has {MAX_LINKS} shared links, which is the maximum"),
                "end them first",
            ));
        }
        let key = key::generate()?;
        server.store.share(id, &key::digest(&key), now())?;
        Ok(Link { link: format!("/shared/{key}") })
    };
    Ok((StatusCode::CREATED, Json(run_blocking(server, made).await?)))
}

/// Ends all shared links of an experiment.
#[utoipa::path(delete, path = "/api/experiments/{id}/share", params(("id" = i64, Path)), responses(
    (status = 204), (status = 403, body = Problems), (status = 404, body = Problems)))]
async fn unshare(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<StatusCode, Refusal> {
    let ended = move |server: &Server| {
        server.entry_to_change(&requester, id)?;
        Ok(server.store.unshare(id)?)
    };
    run_blocking(server, ended).await.map(|()| StatusCode::NO_CONTENT)
}
