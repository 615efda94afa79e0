//! Handles of the queueing disciplines of a chain. tc(8)

/// That of the stage at `place` after so many changes. Handles of one installation, sixteen at most, are not those of the one that it
/// takes the place of.
pub(super) const fn of(changes: u32, place: usize) -> u32 {
    let major = 1 + (changes % 2048) * 16 + place as u32;
    major << 16
}

/// The place of the stage that has a handle.
pub(super) const fn place_of(handle: u32) -> usize {
    (((handle >> 16) - 1) % 16) as usize
}
