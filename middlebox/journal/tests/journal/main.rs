//! A journal and its directory.

mod directory;
mod full_disk;
mod histories;
#[path = "../limit/mod.rs"]
mod limit;
mod mark;
mod replica;
mod world;
