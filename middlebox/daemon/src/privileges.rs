//! The daemon's capabilities, and how it drops them. capabilities(7).

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Drops every capability except CAP_NET_ADMIN, which the packet filter needs; if `filters` is false, drops
/// CAP_NET_ADMIN, too. Child processes cannot regain any.
///
/// This applies to the calling thread and to threads that it starts later, so it must be called before there are other
/// threads, but after all files and sockets have been opened.
pub fn drop_privileges(filters: bool) -> io::Result<()> {
    let needed = if filters { CapabilitySet::NET_ADMIN } else { CapabilitySet::empty() };
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    limit_bounding_set(needed)?;
    let kept = needed & capabilities(None)?.permitted;
    Ok(set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?)
}

/// Removes all capabilities except `needed` from the bounding set. Without CAP_SETPCAP the set stays as it is.
fn limit_bounding_set(needed: CapabilitySet) -> io::Result<()> {
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for capability in all.filter(|capability| !needed.contains(*capability)) {
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The capability is beyond the last one that the kernel knows, or CAP_SETPCAP is missing.
            Err(Errno::INVAL | Errno::PERM) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{capability_is_in_bounding_set, no_new_privs};

    /// Runs in a thread of its own, because capabilities belong to a thread.
    fn after_dropping(filters: bool) -> CapabilitySets {
        let before = capabilities(None).unwrap();
        let after = std::thread::spawn(move || {
            drop_privileges(filters).unwrap();
            assert!(no_new_privs().unwrap());
            if before.effective.contains(CapabilitySet::SETPCAP) {
                assert!(!capability_is_in_bounding_set(CapabilitySet::SYS_ADMIN).unwrap());
                assert_eq!(capability_is_in_bounding_set(CapabilitySet::NET_ADMIN).unwrap(), filters);
            }
            capabilities(None).unwrap()
        });
        let after = after.join().unwrap();
        assert_eq!(capabilities(None).unwrap(), before);
        after
    }

    #[test]
    fn only_the_capability_that_the_filter_needs_remains() {
        let had = capabilities(None).unwrap().permitted & CapabilitySet::NET_ADMIN;
        let with = after_dropping(true);
        assert_eq!((with.effective, with.permitted, with.inheritable), (had, had, CapabilitySet::empty()));
        let without = after_dropping(false);
        assert_eq!(without.permitted, CapabilitySet::empty());
    }
}
