//! Checks every request, and adds security headers to every response.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::drain::DrainedBody;
use crate::encoding::ClientCache;
use crate::extract::AcceptHeader;
use crate::pages::RefusalPage;
use crate::refusal::Refusal;
use crate::server::{Config, SharedServer};

/// Content security policy of pages: resources only from this origin. CSP level 3
const CONTENT_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
     connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);
const APPLICATION_JSON: &str = "application/json";
const TEXT_HTML: &str = "text/html; charset=utf-8";
/// Maximum number of octets of the path and the headers of a request. The HTTP/2 server accepts more, so that this
/// module can explain the error.
const MAX_HEAD: usize = 16 << 10;
const HSTS_ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Maximum time until a response begins; streams begin at once.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Forwards a request to its handler, or rejects it.
pub async fn guard(State(server): State<SharedServer>, request: Request, next: Next) -> Response {
    let is_private = !request.uri().path().starts_with("/web/");
    let is_http2 = request.version() == Version::HTTP_2;
    let request = if is_http2 { request.map(DrainedBody::wrap) } else { request };
    let cache = (request.method() == Method::GET).then(|| ClientCache::of(request.headers()));
    let is_page = request.method() == Method::GET && AcceptHeader::of(request.headers()).is_browser;
    let mut response = match check(&server.config, &request) {
        Err(refusal) => refusal.into_response(),
        Ok(()) => match server.limits.admit_request() {
            Err(refusal) => refusal.into_response(),
            Ok(_turn) => match tokio::time::timeout(RESPONSE_TIMEOUT, next.run(request)).await {
                Ok(response) => with_json_body(response),
                Err(_) => Refusal::busy("the server took too long", 60).into_response(),
            },
        },
    };
    if is_page && let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        response = RefusalPage(refusal).into_response();
    }
    if let Some(cache) = cache {
        response = cache.encode(response, server.config.state.clone()).await;
    }
    add_security_headers(response.headers_mut(), is_private, server.config.is_secure);
    response
}

/// Adds a JSON body to an error from a library, because all other errors have one. Returns other responses unchanged.
fn with_json_body(response: Response) -> Response {
    let status = response.status();
    let has_form = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| [APPLICATION_JSON.as_bytes(), TEXT_HTML.as_bytes()].contains(&kind.as_bytes()));
    if has_form || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut old, _) = response.into_parts();
    let reason = status.canonical_reason().unwrap_or("the request failed").to_lowercase();
    let cure = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "send less at a time",
        _ => "see /api/openapi.json for the expected request",
    };
    let mut response = Refusal::new(status, reason, cure).into_response();
    [CONTENT_TYPE, CONTENT_LENGTH].iter().for_each(|name| drop(old.headers.remove(name)));
    response.headers_mut().extend(old.headers);
    response
}

fn check(config: &Config, request: &Request) -> Result<(), Refusal> {
    let headers = request.headers();
    let octets: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if octets + request.uri().path().len() > MAX_HEAD {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Refusal::new(
            status,
            format!("the path and the headers have more than {MAX_HEAD} octets"),
            "send shorter headers",
        ));
    }
    let host = request.uri().authority().map(Authority::as_str).or_else(|| text(headers, &HOST));
    let host: Authority = host.and_then(|host| host.parse().ok()).ok_or_else(|| {
        Refusal::bad_request("the request has no valid Host header", "send one Host header")
    })?;
    if headers.get_all(HOST).iter().count() > 1 {
        return Err(Refusal::bad_request("the request has several Host headers", "send one Host header"));
    }
    check_host(config, &host)?;
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method()) {
        return Ok(());
    }
    check_origin(headers, config.is_secure, &host)
}

/// Rejects unknown host names, to prevent DNS rebinding. Accepts IP addresses, because DNS cannot redirect them.
fn check_host(config: &Config, host: &Authority) -> Result<(), Refusal> {
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    let is_ours = || config.names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_address || name.eq_ignore_ascii_case("localhost") || is_ours() {
        return Ok(());
    }
    let cure = "use the address of the server, or start it with --name NAME";
    Err(Refusal::new(
        StatusCode::MISDIRECTED_REQUEST,
        "this server does not accept requests to this host name",
        cure,
    ))
}

/// Rejects changes that come from pages of other sites. Fetch, section 3.2; Fetch Metadata, section 2.1
fn check_origin(headers: &HeaderMap, is_secure: bool, host: &Authority) -> Result<(), Refusal> {
    // The scheme matters: without TLS an attacker on the path can serve pages under our name.
    let ours = format!("{}://{host}", if is_secure { "https" } else { "http" });
    let origin = text(headers, &ORIGIN).map(|origin| origin.eq_ignore_ascii_case(&ours));
    let is_undecodable = headers.contains_key(ORIGIN) && origin.is_none();
    let site = text(headers, &HeaderName::from_static("sec-fetch-site"));
    let is_foreign = site.is_some_and(|site| !["same-origin", "none"].contains(&site));
    if origin == Some(false) || is_undecodable || is_foreign {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the request comes from a page of another site",
            "send it from a page of this server, or from a program",
        ));
    }
    Ok(())
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn add_security_headers(headers: &mut HeaderMap, is_private: bool, is_secure: bool) {
    // Reports and files have their own policies.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(CONTENT_POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), same_origin.clone());
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), same_origin);
    let cache = if is_private { "no-store" } else { "no-cache" };
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(cache));
    if is_secure {
        headers.insert(STRICT_TRANSPORT_SECURITY, HSTS_ONE_YEAR);
    }
}
