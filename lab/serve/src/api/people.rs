//! Endpoints for accounts, projects and tokens.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State as Extract};
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::accounts::key;
use crate::blocking::{run_blocking, run_hashing, run_login};
use crate::client::ClientNetwork;
use crate::clock::now;
use crate::extract::{COOKIE_NAME, cookie};
use crate::extract::{JsonBody, PathParameter};
use crate::people::{Login, NewPassword, Registration};
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Access, Server, SharedServer};
use crate::store::{Key, Member, Project};
use crate::submission::check_name;

pub fn routes() -> OpenApiRouter<SharedServer> {
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(register))
        .routes(routes!(me))
        .routes(routes!(change_password))
        .routes(routes!(projects, create_project))
        .routes(routes!(approve))
        .routes(routes!(join))
        .routes(routes!(members))
        .routes(routes!(admit, remove_member))
        .routes(routes!(tokens, create_token))
        .routes(routes!(revoke))
        .layer(DefaultBodyLimit::max(MAX_BODY_SIZE))
}

/// Maximum number of octets of a body.
const MAX_BODY_SIZE: usize = 16 << 10;

/// The current user.
#[derive(Debug, Serialize, ToSchema)]
struct Me {
    /// Name of the user.
    name: String,
    /// Whether the user is an administrator, who approves projects.
    is_administrator: bool,
    /// Whether this server has accounts.
    has_accounts: bool,
}

/// A request for a project.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProjectRequest {
    /// Name of the project: letters, digits, `-`, `_` and `.`.
    name: String,
    /// Title of the project, one line.
    title: String,
}

/// A request for a token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TokenRequest {
    /// Purpose of the token: letters, digits, `-`, `_` and `.`.
    name: String,
    /// Lifetime in days, 1 to 366.
    days: u32,
}

/// A new token, shown only once.
#[derive(Debug, Serialize, ToSchema)]
struct IssuedToken {
    /// The token, for the header `Authorization: Bearer TOKEN`.
    token: String,
}

type WithCookie = ([(HeaderName, String); 1], StatusCode);

/// Logs in: starts a session, whose key is in a cookie.
#[utoipa::path(post, path = "/api/login", security(()), request_body = Login, responses(
    (status = 204), (status = 401, body = Problems), (status = 429, body = Problems)))]
async fn login(
    Extract(server): Extract<SharedServer>,
    network: ClientNetwork,
    JsonBody(login): JsonBody<Login>,
) -> Result<WithCookie, Refusal> {
    let is_secure = server.config.is_secure;
    let (name, from) = (login.name.clone(), network.clone());
    let key = run_login(server, (&from, &name), move |server| server.log_in(&network, &login)).await?;
    Ok((set_cookie(&key, is_secure, crate::people::SESSION_SECONDS), StatusCode::NO_CONTENT))
}

/// Logs out: ends the session.
#[utoipa::path(post, path = "/api/logout", responses((status = 204)))]
async fn logout(Extract(server): Extract<SharedServer>, parts: Parts) -> Result<WithCookie, Refusal> {
    if let Some(key) = cookie(&parts) {
        server.store.remove_key(&key::digest(key))?;
        server.end_streams();
    }
    Ok((set_cookie("", server.config.is_secure, 0), StatusCode::NO_CONTENT))
}

/// Returns the header that sets the session cookie. RFC 6265bis, sections 4.1.2 and 5.6.7. `SameSite` is `Lax` rather
/// than `Strict`, because links in mails and in reports, whose sandbox has an origin of its own, count as links from
/// other sites. They cause GET requests, which change nothing; `guard` rejects other requests from other sites.
fn set_cookie(key: &str, is_secure: bool, seconds: i64) -> [(HeaderName, String); 1] {
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!("{COOKIE_NAME}={key}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    [(SET_COOKIE, cookie)]
}

/// Registers an account, and optionally requests to join a project. The user sees no experiments until a project admits the user.
#[utoipa::path(post, path = "/api/users", security(()), request_body = Registration, responses(
    (status = 201), (status = 400, body = Problems), (status = 404, description = "The server has no accounts", body = Problems),
    (status = 409, description = "The name is taken", body = Problems), (status = 429, description = "Too many registrations from one address", body = Problems)))]
async fn register(
    Extract(server): Extract<SharedServer>,
    network: ClientNetwork,
    JsonBody(registration): JsonBody<Registration>,
) -> Result<StatusCode, Refusal> {
    if server.config.access == Access::Open {
        return Err(Refusal::not_found());
    }
    run_hashing(server, move |server| server.sign_up(&network, &registration)).await?;
    Ok(StatusCode::CREATED)
}

/// Returns the current user.
#[utoipa::path(get, path = "/api/me", responses((status = 200, body = Me), (status = 401, body = Problems)))]
async fn me(Extract(server): Extract<SharedServer>, requester: Requester) -> Json<Me> {
    let has_accounts = server.config.access == Access::Accounts;
    Json(Me { name: requester.name, is_administrator: requester.is_administrator, has_accounts })
}

/// Changes the password of the current user, and ends the user's other sessions.
#[utoipa::path(put, path = "/api/me/password", request_body = NewPassword, responses(
    (status = 204), (status = 400, body = Problems), (status = 403, description = "A token cannot change the password", body = Problems),
    (status = 404, description = "The server has no accounts", body = Problems), (status = 429, body = Problems)))]
async fn change_password(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    network: ClientNetwork,
    parts: Parts,
    JsonBody(new): JsonBody<NewPassword>,
) -> Result<StatusCode, Refusal> {
    if server.config.access == Access::Open {
        return Err(Refusal::not_found());
    }
    let kept = cookie(&parts).map(key::digest);
    let (name, from) = (requester.name.clone(), network.clone());
    let changed = move |server: &Server| {
        server.change_password(&network, &requester, &new, kept.as_ref().map(AsRef::as_ref))
    };
    run_login(server, (&from, &name), changed).await.map(|()| StatusCode::NO_CONTENT)
}

/// Lists the user's projects; for an administrator, all projects.
#[utoipa::path(get, path = "/api/projects", responses((status = 200, body = Vec<Project>)))]
async fn projects(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
) -> Result<Json<Vec<Project>>, Refusal> {
    let listed =
        move |server: &Server| Ok(server.store.projects(requester.id, requester.is_administrator)?);
    run_blocking(server, listed).await.map(Json)
}

/// Creates a project, which an administrator has to approve.
#[utoipa::path(post, path = "/api/projects", request_body = ProjectRequest, responses(
    (status = 201), (status = 400, description = "Not a valid name", body = Problems),
    (status = 409, description = "The name is taken", body = Problems)))]
async fn create_project(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    JsonBody(ProjectRequest { name, title }): JsonBody<ProjectRequest>,
) -> Result<StatusCode, Refusal> {
    check_name(&name)?;
    let title: String = title.chars().filter(|c| !c.is_control()).take(200).collect();
    let made = move |server: &Server| {
        let approved = requester.is_administrator;
        let added = server.store.add_project((&name, &title), requester.id, approved, now())?;
        added.ok_or_else(|| Refusal::conflict("a project with this name exists", "choose another name"))
    };
    run_blocking(server, made).await.map(|_| StatusCode::CREATED)
}

/// Approves a project. Only administrators may do this.
#[utoipa::path(post, path = "/api/projects/{name}/approve", params(("name" = String, Path)), responses(
    (status = 204), (status = 404, body = Problems)))]
async fn approve(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(name): PathParameter<String>,
) -> Result<StatusCode, Refusal> {
    let approved = move |server: &Server| {
        // For other users the response does not even reveal whether the project exists.
        if requester.is_administrator && server.store.approve_project(&name)? {
            Ok(())
        } else {
            Err(Refusal::not_found())
        }
    };
    run_blocking(server, approved).await.map(|()| StatusCode::NO_CONTENT)
}

/// Requests to join a project. The response does not reveal whether the project exists.
#[utoipa::path(post, path = "/api/projects/{name}/join", params(("name" = String, Path)), responses((status = 202)))]
async fn join(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(name): PathParameter<String>,
) -> Result<StatusCode, Refusal> {
    let asked = move |server: &Server| Ok(server.store.request_to_join(&name, requester.id)?);
    run_blocking(server, asked).await.map(|()| StatusCode::ACCEPTED)
}

/// Lists the members and applicants of one of the user's projects.
#[utoipa::path(get, path = "/api/projects/{name}/members", params(("name" = String, Path)), responses(
    (status = 200, body = Vec<Member>), (status = 404, body = Problems)))]
async fn members(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(name): PathParameter<String>,
) -> Result<Json<Vec<Member>>, Refusal> {
    let listed = move |server: &Server| {
        let (project, _) = server.store.project(&name, requester.id)?.ok_or_else(Refusal::not_found)?;
        Ok(server.store.members(project)?)
    };
    run_blocking(server, listed).await.map(Json)
}

/// Admits an applicant to a project. Only its leader may do this.
#[utoipa::path(put, path = "/api/projects/{name}/members/{user}", params(("name" = String, Path), ("user" = String, Path)),
    responses((status = 204), (status = 403, body = Problems), (status = 404, body = Problems)))]
async fn admit(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter((name, user)): PathParameter<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let admitted = move |server: &Server| {
        let project = server.project_led_by(&requester, &name)?;
        if server.store.admit_member(project, &user)? { Ok(()) } else { Err(Refusal::not_found()) }
    };
    run_blocking(server, admitted).await.map(|()| StatusCode::NO_CONTENT)
}

/// Removes a member or an applicant from a project. Only its leader may do this.
#[utoipa::path(delete, path = "/api/projects/{name}/members/{user}", params(("name" = String, Path), ("user" = String, Path)),
    responses((status = 204), (status = 403, body = Problems), (status = 404, body = Problems)))]
async fn remove_member(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter((name, user)): PathParameter<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let dismissed = move |server: &Server| {
        let project = server.project_led_by(&requester, &name)?;
        if !server.store.remove_member(project, &user)? {
            return Err(Refusal::not_found());
        }
        server.end_streams();
        Ok(())
    };
    run_blocking(server, dismissed).await.map(|()| StatusCode::NO_CONTENT)
}

/// Lists the user's tokens, without their secrets.
#[utoipa::path(get, path = "/api/tokens", responses((status = 200, body = Vec<Key>)))]
async fn tokens(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
) -> Result<Json<Vec<Key>>, Refusal> {
    run_blocking(server, move |server| Ok(server.store.tokens(requester.id)?)).await.map(Json)
}

/// Creates a token for a program. The server returns it only once.
#[utoipa::path(post, path = "/api/tokens", request_body = TokenRequest, responses(
    (status = 201, body = IssuedToken), (status = 400, body = Problems),
    (status = 409, description = "The user has the maximum number of tokens", body = Problems)))]
async fn create_token(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    JsonBody(TokenRequest { name, days }): JsonBody<TokenRequest>,
) -> Result<(StatusCode, Json<IssuedToken>), Refusal> {
    check_name(&name)?;
    if !(1..=366).contains(&days) {
        return Err(Refusal::bad_request("days is out of range", "choose 1 to 366"));
    }
    let made = move |server: &Server| server.create_token(&requester, &name, days);
    Ok((StatusCode::CREATED, Json(IssuedToken { token: run_blocking(server, made).await? })))
}

/// Revokes a token.
#[utoipa::path(delete, path = "/api/tokens/{id}", params(("id" = i64, Path)), responses(
    (status = 204), (status = 404, body = Problems)))]
async fn revoke(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<StatusCode, Refusal> {
    let revoked = move |server: &Server| {
        if !server.store.revoke_token(requester.id, id)? {
            return Err(Refusal::not_found());
        }
        server.end_streams();
        Ok(())
    };
    run_blocking(server, revoked).await.map(|()| StatusCode::NO_CONTENT)
}
