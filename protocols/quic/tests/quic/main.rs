//! Two endpoints and a path between them.

mod pipe;
mod rules;
mod sealed;
mod transfer;
mod tshark;
