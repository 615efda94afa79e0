//! Endpoints for a terminal on the nodes of an experiment. Its output is also sent as `shell` events of the experiment.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::files::file_response;
use crate::blocking::{run_blocking, run_expensive};
use crate::directory::{FileEntry, list_files};
use crate::download::ByteRange;
use crate::extract::{JsonBody, PathParameter};
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::SharedServer;
use crate::shell::{Shell, ShellOptions, TypedLine};

pub fn routes() -> OpenApiRouter<SharedServer> {
    OpenApiRouter::new()
        .routes(routes!(shell, open, end))
        .routes(routes!(line))
        .routes(routes!(interrupt))
        .routes(routes!(files))
        .routes(routes!(file))
}

/// Returns the transcript of an experiment's shell.
#[utoipa::path(get, path = "/api/experiments/{id}/shell", params(("id" = i64, Path)), responses(
    (status = 200, body = Shell), (status = 404, body = Problems)))]
async fn shell(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Json<Shell>, Refusal> {
    run_blocking(server, move |server| server.shell(&requester, id)).await.map(Json)
}

/// Opens a shell on the network of an experiment, independent of its runs.
#[utoipa::path(post, path = "/api/experiments/{id}/shell", params(("id" = i64, Path)), request_body = Option<ShellOptions>, responses(
    (status = 201, body = Shell), (status = 400, description = "The experiment has no such point", body = Problems),
    (status = 403, description = "The user may not change the experiment, or the server does not allow programs", body = Problems),
    (status = 404, body = Problems), (status = 409, description = "The experiment has a shell, has no traffic, or is a study", body = Problems),
    (status = 413, body = Problems), (status = 422, description = "The text of the experiment has errors", body = Problems)))]
async fn open(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    begin: Option<JsonBody<ShellOptions>>,
) -> Result<(StatusCode, Json<Shell>), Refusal> {
    let begin = begin.map_or_else(ShellOptions::default, |JsonBody(begin)| begin);
    let (shared, user) = (server.clone(), requester.clone());
    let opened = run_expensive(server, &requester, move |_| shared.open_shell(&user, id, begin)).await?;
    Ok((StatusCode::CREATED, Json(opened)))
}

/// Ends the shell. Its commands are recorded in its file `recorded.toml`, unless one of them is still running.
#[utoipa::path(delete, path = "/api/experiments/{id}/shell", params(("id" = i64, Path)), responses(
    (status = 204), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "There is no shell", body = Problems)))]
async fn end(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<StatusCode, Refusal> {
    run_blocking(server, move |server| server.end_shell(&requester, id))
        .await
        .map(|()| StatusCode::NO_CONTENT)
}

/// Sends a line to the shell, which must be waiting for one.
#[utoipa::path(post, path = "/api/experiments/{id}/shell/line", params(("id" = i64, Path)), request_body = TypedLine, responses(
    (status = 204), (status = 400, description = "The text is not one line, or is too long", body = Problems),
    (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "A command is running, or there is no shell", body = Problems)))]
async fn line(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    JsonBody(TypedLine { line }): JsonBody<TypedLine>,
) -> Result<StatusCode, Refusal> {
    let typed = run_blocking(server, move |server| server.send_line(&requester, id, &line));
    typed.await.map(|()| StatusCode::NO_CONTENT)
}

/// Interrupts the running command, like Ctrl-C.
#[utoipa::path(post, path = "/api/experiments/{id}/shell/interrupt", params(("id" = i64, Path)), responses(
    (status = 204), (status = 403, body = Problems), (status = 404, body = Problems),
    (status = 409, description = "There is no shell", body = Problems)))]
async fn interrupt(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<StatusCode, Refusal> {
    let done = run_blocking(server, move |server| server.interrupt_shell(&requester, id));
    done.await.map(|()| StatusCode::NO_CONTENT)
}

/// Lists the files that the shell has written: captures, and the commands as an experiment.
#[utoipa::path(get, path = "/api/experiments/{id}/shell/files/", params(("id" = i64, Path)), responses(
    (status = 200, body = Vec<FileEntry>), (status = 404, body = Problems)))]
async fn files(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Json<Vec<FileEntry>>, Refusal> {
    let listed =
        run_blocking(server, move |server| Ok(list_files(&server.shell_directory(&requester, id)?)?));
    listed.await.map(Json)
}

/// Returns a file that the shell has written.
#[utoipa::path(get, path = "/api/experiments/{id}/shell/files/{*path}", params(("id" = i64, Path), ("path" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 206, body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = Problems),
    (status = 416, description = "The range starts beyond the end of the file", body = Problems)))]
async fn file(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter((id, path)): PathParameter<(i64, String)>,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    run_blocking(server, move |server| {
        file_response(&server.shell_directory(&requester, id)?, &path, &wanted)
    })
    .await
}
