//! Endpoints for the stored files of users and projects.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use axum::response::Response;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use super::files::file_response;
use crate::blocking::run_blocking;
use crate::directory::{FileEntry, list_files};
use crate::download::ByteRange;
use crate::extract::{PathParameter, Uploader, allow_large_body};
use crate::folders::Folder;
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, SharedServer};

pub fn routes() -> OpenApiRouter<SharedServer> {
    OpenApiRouter::new()
        .routes(routes!(my_files))
        .routes(routes!(get_my_file, put_my_file, delete_my_file).layer(allow_large_body()))
        .routes(routes!(project_files))
        .routes(routes!(get_project_file, put_project_file, delete_project_file).layer(allow_large_body()))
}

/// Lists the user's own files.
#[utoipa::path(get, path = "/api/me/files/", responses((status = 200, body = Vec<FileEntry>)))]
async fn my_files(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
) -> Result<Json<Vec<FileEntry>>, Refusal> {
    list(server, requester, Folder::Mine).await
}

/// Returns one of the user's own files.
#[utoipa::path(get, path = "/api/me/files/{*path}", params(("path" = String, Path)), responses(
    (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 206, body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = Problems),
    (status = 416, description = "The range starts beyond the end of the file", body = Problems)))]
async fn get_my_file(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(path): PathParameter<String>,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    get_file(server, requester, Folder::Mine, path, wanted).await
}

/// Stores one of the user's own files.
#[utoipa::path(put, path = "/api/me/files/{*path}", params(("path" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 204), (status = 400, description = "Not a valid file path", body = Problems),
    (status = 409, description = "The folder is full, or a directory has the name", body = Problems),
    (status = 413, body = Problems)))]
async fn put_my_file(
    Extract(server): Extract<SharedServer>,
    Uploader { requester, permit: _permit }: Uploader,
    PathParameter(path): PathParameter<String>,
    content: Bytes,
) -> Result<StatusCode, Refusal> {
    put_file(server, requester, Folder::Mine, path, content).await
}

/// Removes one of the user's own files.
#[utoipa::path(delete, path = "/api/me/files/{*path}", params(("path" = String, Path)), responses(
    (status = 204), (status = 404, body = Problems)))]
async fn delete_my_file(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(path): PathParameter<String>,
) -> Result<StatusCode, Refusal> {
    delete_file(server, requester, Folder::Mine, path).await
}

/// Lists the files of a project.
#[utoipa::path(get, path = "/api/projects/{name}/files/", params(("name" = String, Path)), responses(
    (status = 200, body = Vec<FileEntry>), (status = 404, body = Problems)))]
async fn project_files(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(name): PathParameter<String>,
) -> Result<Json<Vec<FileEntry>>, Refusal> {
    list(server, requester, Folder::Project(name)).await
}

/// Returns a file of a project.
#[utoipa::path(get, path = "/api/projects/{name}/files/{*path}", params(("name" = String, Path), ("path" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 206, body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = Problems),
    (status = 416, description = "The range starts beyond the end of the file", body = Problems)))]
async fn get_project_file(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter((name, path)): PathParameter<(String, String)>,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    get_file(server, requester, Folder::Project(name), path, wanted).await
}

/// Stores a file of a project.
#[utoipa::path(put, path = "/api/projects/{name}/files/{*path}", params(("name" = String, Path), ("path" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 204), (status = 400, description = "Not a valid file path", body = Problems),
    (status = 404, body = Problems),
    (status = 409, description = "The folder is full, or a directory has the name", body = Problems),
    (status = 413, body = Problems)))]
async fn put_project_file(
    Extract(server): Extract<SharedServer>,
    Uploader { requester, permit: _permit }: Uploader,
    PathParameter((name, path)): PathParameter<(String, String)>,
    content: Bytes,
) -> Result<StatusCode, Refusal> {
    put_file(server, requester, Folder::Project(name), path, content).await
}

/// Removes a file of a project.
#[utoipa::path(delete, path = "/api/projects/{name}/files/{*path}", params(("name" = String, Path), ("path" = String, Path)),
    responses((status = 204), (status = 404, body = Problems)))]
async fn delete_project_file(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter((name, path)): PathParameter<(String, String)>,
) -> Result<StatusCode, Refusal> {
    delete_file(server, requester, Folder::Project(name), path).await
}

async fn list(
    server: SharedServer,
    requester: Requester,
    folder: Folder,
) -> Result<Json<Vec<FileEntry>>, Refusal> {
    let listed = move |server: &Server| Ok(list_files(&server.folder(&requester, &folder)?)?);
    run_blocking(server, listed).await.map(Json)
}

async fn get_file(
    server: SharedServer,
    requester: Requester,
    folder: Folder,
    path: String,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    run_blocking(server, move |server| file_response(&server.folder(&requester, &folder)?, &path, &wanted))
        .await
}

async fn put_file(
    server: SharedServer,
    requester: Requester,
    folder: Folder,
    path: String,
    content: Bytes,
) -> Result<StatusCode, Refusal> {
    let kept = move |server: &Server| server.store_file(&requester, &folder, &path, &content);
    run_blocking(server, kept).await.map(|()| StatusCode::NO_CONTENT)
}

async fn delete_file(
    server: SharedServer,
    requester: Requester,
    folder: Folder,
    path: String,
) -> Result<StatusCode, Refusal> {
    let discarded = move |server: &Server| server.delete_file(&requester, &folder, &path);
    run_blocking(server, discarded).await.map(|()| StatusCode::NO_CONTENT)
}
