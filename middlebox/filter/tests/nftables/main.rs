//! Packets through nftables: only packets that rules allow pass. `nft` shows the content of the kernel's table.

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
