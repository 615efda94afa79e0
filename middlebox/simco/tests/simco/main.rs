//! RFC 4540, section by section.

mod access;
mod batches;
mod choices;
mod disable;
mod messages;
mod middlebox;
mod nat;
mod policy;
mod quotas;
mod receipt;
mod replacement;
mod sessions;
mod world;
