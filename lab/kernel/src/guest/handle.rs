//! Handles of the queueing disciplines of a chain. tc(8)

/// Returns the handle of a stage: `place` is its index in the chain, and `changes` is how often the chain has
/// been changed. The stages of one installation have up to sixteen handles; those of the next installation
/// differ from them.
pub(super) const fn stage_handle(changes: u32, place: usize) -> u32 {
    let major = 1 + (changes % 2048) * 16 + place as u32;
    major << 16
}

/// Returns the index of the stage with this handle.
pub(super) const fn stage_index(handle: u32) -> usize {
    (((handle >> 16) - 1) % 16) as usize
}
