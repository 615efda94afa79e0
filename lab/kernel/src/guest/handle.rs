//! Handles of the queueing disciplines of a chain. tc(8)

/// Returns the handle of a stage of a link's emulation. `place` is the index of the stage in the chain; `changes`
/// is how often the chain has been changed. A chain has at most sixteen stages, and after each change the handles
/// differ from those before.
pub(super) const fn stage_handle(changes: u32, place: usize) -> u32 {
    let major = 1 + (changes % 2048) * 16 + place as u32;
    major << 16
}

/// Returns the index in the chain of the stage that has this handle.
pub(super) const fn stage_index(handle: u32) -> usize {
    (((handle >> 16) - 1) % 16) as usize
}
