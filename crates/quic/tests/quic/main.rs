//! Two endpoints and a path between them.

mod pipe;
mod rules;
mod transfer;
mod tshark;
