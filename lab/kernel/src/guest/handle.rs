//! Handles of the queueing disciplines of a chain. tc(8)

/// Returns the handle of the stage with index `place` in a chain that has been changed `changes` times. The stages of
/// one installation have up to sixteen handles, which differ from those of the installation that it replaces.
pub(super) const fn handle_of(changes: u32, place: usize) -> u32 {
    let major = 1 + (changes % 2048) * 16 + place as u32;
    major << 16
}

/// Returns the index of the stage with this handle.
pub(super) const fn place_of(handle: u32) -> usize {
    (((handle >> 16) - 1) % 16) as usize
}
