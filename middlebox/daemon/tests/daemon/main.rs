//! The daemon on sockets of this machine.

#[path = "../certificates/mod.rs"]
mod certificates;
mod full_disk;
mod kill;
#[path = "../../../journal/tests/limit/mod.rs"]
mod limit;
mod log_lines;
mod namespace;
mod open_files;
mod tls;
mod warnings;
