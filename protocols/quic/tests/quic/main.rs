//! Tests two endpoints and a path between them.

mod encrypted;
mod pipe;
mod rules;
mod transfer;
mod tshark;
mod zero_rtt;
