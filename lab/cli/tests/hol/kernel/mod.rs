//! The kernel world: Linux in virtual time, in QEMU and in User-Mode Linux.
//!
//! Both engines run the same guest program in the same network, so the behaviour of Linux is tested in User-Mode Linux,
//! which is several times as fast. QEMU is used for tests that depend on the engine: whether it boots, restores
//! snapshots and repeats runs exactly however the host interrupts it (`runs`, `provenance`, `faults`), the speed of its
//! processor (`programs`), whether a shell stops its clock (`shell`), and a sample of the conformance cases
//! (`conformance`). Tests of more than 20 s are in modules called `nightly`.

/// Ignored tests of these functions in one world.
macro_rules! tests_in {
    ($module:ident = $world:expr, $($test:ident: $reason:literal,)+) => {
        mod $module {
            $(#[test]
            #[ignore = $reason]
            fn $test() {
                super::$test($world);
            })+
        }
    };
}

mod beside;
mod beside_model;
mod conformance;
mod differential;
mod ecn;
mod engine;
mod faults;
mod filter;
mod flows;
mod giving_up;
mod handover;
mod interleaving;
mod ipv6;
mod namespaces;
mod network;
mod paths;
mod points;
mod programs;
mod provenance;
mod quic;
mod router;
mod runs;
mod series;
mod shell;
mod talks;
mod trace;
mod uml;
mod validate;
