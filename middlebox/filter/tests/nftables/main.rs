//! Packets through nftables: what rules allow passes, and nothing else. `nft` is the witness of what the kernel holds.

mod documentation;
mod guard;
mod lifetimes;
mod nat;
mod pinholes;
mod reconcile;
mod rules;
mod tampering;
mod worker;
mod world;
