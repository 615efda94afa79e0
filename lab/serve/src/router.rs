//! All routes of the server.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;

use crate::guard::guard;
use crate::refusal::Refusal;
use crate::server::SharedServer;
use crate::{api, bundle, pages, shared};

/// Maximum number of octets of a body, except for texts and files: see [`Uploader`](crate::extract::Uploader).
const MAX_BODY_SIZE: usize = 512 << 10;

/// Returns the router of all paths.
pub fn router(server: SharedServer) -> Router {
    Router::new()
        .merge(pages::routes())
        .merge(bundle::routes())
        .merge(shared::routes())
        .merge(api::routes().0)
        .fallback(async || Refusal::not_found())
        .method_not_allowed_fallback(async || {
            let status = axum::http::StatusCode::METHOD_NOT_ALLOWED;
            Refusal::new(
                status,
                "this path does not allow this method",
                "see /api/openapi.json for the methods of each path",
            )
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_SIZE))
        .layer(from_fn_with_state(server.clone(), guard))
        .with_state(server)
}
