//! Runs blocking work outside of the threads that serve connections.

use crate::client::ClientNetwork;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::{Server, SharedServer};

/// Runs `work` on a thread that may block.
pub async fn run_blocking<T: Send + 'static>(
    server: SharedServer,
    work: impl FnOnce(&Server) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(move || work(&server))
        .await
        .unwrap_or_else(|panic| Err(Refusal::internal(panic)))
}

/// Runs work that hashes a password like [`run_blocking`], a few at a time.
pub async fn run_hashing<T: Send + 'static>(
    server: SharedServer,
    work: impl FnOnce(&Server) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let turn = server.limits.admit_hash().await?;
    run_blocking(server, move |server| {
        let _turn = turn;
        work(server)
    })
    .await
}

/// Runs work that checks the password of `name`, as [`run_hashing`] does, but only after the delay that wrong
/// passwords from `network` have caused.
pub async fn run_login<T: Send + 'static>(
    server: SharedServer,
    (network, name): (&ClientNetwork, &str),
    work: impl FnOnce(&Server) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    if let Some((delay, _turn)) = server.delay_login(network, name)? {
        tokio::time::sleep(delay).await;
    }
    run_hashing(server, work).await
}

/// Runs expensive work like [`run_blocking`], or rejects it if too much expensive work is running. Work counts until it
/// ends, even if its client has disconnected.
pub async fn run_expensive<T: Send + 'static>(
    server: SharedServer,
    requester: &Requester,
    work: impl FnOnce(&Server) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let turn = server.limits.admit_expensive(server.limited_user(requester))?;
    run_blocking(server, move |server| {
        let _turn = turn;
        work(server)
    })
    .await
}
