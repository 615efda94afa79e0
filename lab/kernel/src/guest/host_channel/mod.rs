//! The guest's channel to the host: it receives the job and sends the result. Each engine has its own implementation of
//! the trait in `contract`.

mod contract;
mod qemu;
mod stdio;
mod uml;

pub(super) use qemu::await_root;

use super::variables::{ENGINE_VARIABLE, LOCAL_KERNEL, UML};
pub(super) use contract::HostChannel;

/// Returns the channel of the engine that runs this guest. [`ENGINE_VARIABLE`] names the engine.
pub(super) fn current() -> &'static dyn HostChannel {
    match std::env::var(ENGINE_VARIABLE).as_deref() {
        Ok(LOCAL_KERNEL) => &stdio::StdioChannel,
        Ok(UML) => &uml::Uml,
        _ => &qemu::Qemu,
    }
}
