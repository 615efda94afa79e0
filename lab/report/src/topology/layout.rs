//! The layout of a graph by forces between its nodes (Fruchterman and Reingold 1991).

use std::f64::consts::TAU;

/// The preferred length of an edge, in pixels.
pub(super) const EDGE_LENGTH: f64 = 220.0;

/// Returns positions of `count` nodes with these edges; the same graph always has the same layout.
pub(super) fn layout(count: usize, edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let radius = EDGE_LENGTH * (count as f64 / TAU).max(0.5);
    let mut at: Vec<(f64, f64)> = (0..count)
        .map(|node| TAU * node as f64 / count as f64)
        .map(|angle| (-radius * angle.cos(), -radius * angle.sin()))
        .collect();
    // Large graphs get fewer iterations: the cost of each is quadratic in their size.
    let turns = if count < 300 { 400 } else { 40 };
    for turn in 0..turns {
        let longest = EDGE_LENGTH * 0.5 * (1.0 - f64::from(turn) / f64::from(turns));
        for (position, (x, y)) in forces(&at, edges).into_iter().enumerate() {
            let strength = x.hypot(y).max(1e-9);
            let step = strength.min(longest) / strength;
            at[position].0 += x * step;
            at[position].1 += y * step;
        }
    }
    at
}

/// Returns the forces: nodes repel each other, and edges pull their ends together.
fn forces(at: &[(f64, f64)], edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let mut forces = vec![(0.0, 0.0); at.len()];
    let mut between = |one: usize, other: usize, force: &dyn Fn(f64) -> f64| {
        let (x, y) = (at[other].0 - at[one].0, at[other].1 - at[one].1);
        let distance = x.hypot(y).max(1.0);
        let (x, y) = (x / distance * force(distance), y / distance * force(distance));
        forces[one].0 += x;
        forces[one].1 += y;
        forces[other].0 -= x;
        forces[other].1 -= y;
    };
    for one in 0..at.len() {
        for other in one + 1..at.len() {
            between(one, other, &|distance| -EDGE_LENGTH * EDGE_LENGTH / distance);
        }
    }
    for (one, other) in edges {
        between(*one, *other, &|distance| distance * distance / EDGE_LENGTH);
    }
    forces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(at: &[(f64, f64)], one: usize, other: usize) -> f64 {
        (at[one].0 - at[other].0).hypot(at[one].1 - at[other].1)
    }

    #[test]
    fn neighbours_are_closer_than_other_nodes() {
        let at = layout(4, &[(0, 1), (1, 2), (2, 3)]);
        assert!((0.8..1.3).contains(&(distance(&at, 0, 1) / EDGE_LENGTH)), "{at:?}");
        assert!(distance(&at, 0, 3) > 1.5 * EDGE_LENGTH, "{at:?}");
    }

    #[test]
    fn nodes_do_not_overlap() {
        let star: Vec<(usize, usize)> = (1..12).map(|leaf| (0, leaf)).collect();
        let at = layout(12, &star);
        for one in 0..12 {
            assert!((one + 1..12).all(|other| distance(&at, one, other) > 60.0), "{at:?}");
        }
    }
}
