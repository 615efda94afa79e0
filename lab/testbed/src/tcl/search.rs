//! Searches a text for a regular expression. The match starts at the first possible position and is the
//! longest one there, or the shortest if the expression prefers that (re_syntax(n), "MATCHING").
//!
//! Each part of an expression maps a set of start positions to a set of end positions, so the time is bounded by the
//! lengths of the expression and the text. Each step counts for the script's limits. Groups are then found as in
//! `regexec.c` of Tcl 8.6.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::budget::Budget;
use super::interpreter::Stop;
use super::pattern::{Constraint, Node, Pattern, is_word_character};

/// Number of octets charged for each position from which a search step is made.
const STEP_COST: usize = 64;
/// Number of octets charged for a repeated character, and for each comparison with an item of a set.
const LETTER_COST: usize = 8;

/// Number of start positions that are tried one by one; afterwards all others are tried together.
const PLACES_TRIED: usize = 16;

/// For the match and each of its groups, the range of characters, from start to end; `None` for a group without a
/// match.
pub(super) type GroupRanges = Vec<Option<(usize, usize)>>;

/// The search for a pattern in a text.
pub(super) struct Search<'s> {
    pub text: &'s [char],
    pub pattern: &'s Pattern,
    /// Index of the character at which the search starts.
    pub from: usize,
    pub budget: &'s mut Budget,
    /// Position in the script at which errors are reported.
    pub at: usize,
}

impl Search<'_> {
    /// Returns the ranges of the first match and of its groups; `None` if there is no match.
    pub fn first(&mut self) -> Result<Option<GroupRanges>, Stop> {
        let root = &self.pattern.root;
        for start in self.from..=self.text.len() {
            // Finding out whether the pattern matches at all is faster than finding the position.
            let tried = start - self.from;
            if tried >= PLACES_TRIED && tried.is_power_of_two() {
                let rest: Vec<usize> = (start..=self.text.len()).collect();
                if self.ends(root, &rest)?.is_empty() {
                    return Ok(None);
                }
            }
            let ends = self.ends(root, &[start])?;
            let end = if root.is_lazy() == Some(true) { ends.first() } else { ends.last() };
            if let Some(&end) = end {
                let mut found = vec![None; self.pattern.groups];
                found[0] = Some((start, end));
                self.dissect(root, start, end, &mut found)?;
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the positions at which a match of `node` can end if it begins at one of the positions `from`. Both lists
    /// are sorted.
    fn ends(&mut self, node: &Node, from: &[usize]) -> Result<Vec<usize>, Stop> {
        self.budget.charge_octets(self.at, (1 + from.len()) * (STEP_COST + self.cost(node)))?;
        Ok(match node {
            _ if from.is_empty() => Vec::new(),
            Node::Letter(_) | Node::Constraint(_) => {
                let ends = from.iter().filter_map(|place| self.step(node, *place));
                ends.collect()
            }
            Node::Group(_, node) => self.ends(node, from)?,
            Node::Sequence(nodes) => self.ends_of_all(nodes, from)?,
            Node::Either(nodes) => {
                let mut all = BTreeSet::new();
                for node in nodes {
                    all.extend(self.ends(node, from)?);
                }
                all.into_iter().collect()
            }
            Node::Repeat { node, min, max, .. } => self.repeated(node, *min, *max, from)?,
        })
    }

    /// Returns the number of octets charged for the comparison of a character with a node.
    fn cost(&self, node: &Node) -> usize {
        match node {
            Node::Letter(set) if self.pattern.ignores_case => 3 * LETTER_COST * set.size(),
            Node::Letter(set) => LETTER_COST * set.size(),
            _ => 0,
        }
    }

    /// Returns the position after the match of a node that matches at most one character; `None` if it does not match.
    fn step(&self, node: &Node, place: usize) -> Option<usize> {
        let is_word = |place: Option<usize>| {
            place.and_then(|place| self.text.get(place)).is_some_and(|c| is_word_character(*c))
        };
        let before = || is_word(place.checked_sub(1).filter(|before| *before >= self.from));
        let behind = || is_word(Some(place));
        match node {
            Node::Letter(set) => {
                let letter = *self.text.get(place)?;
                let is_in = set.contains(letter, self.pattern.ignores_case);
                is_in.then_some(place + 1)
            }
            Node::Constraint(wanted) => match wanted {
                Constraint::Start => place == 0,
                Constraint::End => place == self.text.len(),
                Constraint::WordStart => !before() && behind(),
                Constraint::WordEnd => before() && !behind(),
                Constraint::WordEdge => before() != behind(),
                Constraint::NoWordEdge => before() == behind(),
            }
            .then_some(place),
            _ => None,
        }
    }

    fn ends_of_all(&mut self, nodes: &[Node], from: &[usize]) -> Result<Vec<usize>, Stop> {
        let mut places = from.to_vec();
        for node in nodes {
            places = self.ends(node, &places)?;
        }
        Ok(places)
    }

    /// Returns the positions at which `min` to `max` repetitions of `node` can end if they begin at one of the
    /// positions `from`.
    fn repeated(&mut self, node: &Node, min: usize, max: usize, from: &[usize]) -> Result<Vec<usize>, Stop> {
        if let (Node::Letter(_), [start]) = (node, from) {
            let (mut run, cost) = (0, LETTER_COST + self.cost(node));
            while run < max && self.step(node, start + run).is_some() {
                self.budget.charge_octets(self.at, cost)?;
                run += 1;
            }
            return Ok((start + min..=start + run).collect());
        }
        let mut new = from.to_vec();
        for _ in 0..min {
            new = self.ends(node, &new)?;
        }
        let mut all = BTreeSet::new();
        for count in min..=max {
            new.retain(|place| all.insert(*place));
            if new.is_empty() || count == max {
                break;
            }
            new = self.ends(node, &new)?;
        }
        Ok(all.into_iter().collect())
    }

    /// Finds the ranges of the groups in a node that matches from one position to another.
    fn dissect(&mut self, node: &Node, from: usize, to: usize, found: &mut GroupRanges) -> Result<(), Stop> {
        match node {
            node if !node.has_groups() => {}
            Node::Letter(_) | Node::Constraint(_) => {}
            Node::Group(number, node) => {
                found[*number] = Some((from, to));
                self.dissect(node, from, to, found)?;
            }
            Node::Sequence(nodes) => {
                let mut place = from;
                for (index, node) in nodes.iter().enumerate() {
                    let rest = &nodes[index + 1..];
                    let end =
                        self.end(node, place, place..=to, |search, end| search.ends_of_all(rest, &[end]))?;
                    self.dissect(node, place, end, found)?;
                    place = end;
                }
            }
            Node::Either(nodes) => {
                for node in nodes {
                    if self.ends(node, &[from])?.contains(&to) {
                        return self.dissect(node, from, to, found);
                    }
                }
            }
            // Tcl turns x{m,n} into x{m-1,n-1}x, in which only the last part has groups.
            Node::Repeat { node: own, min: min @ 1.., max, .. } => {
                let mut places = self.repeated(own, min - 1, max.saturating_sub(1), &[from])?;
                if node.is_lazy() != Some(true) {
                    places.reverse();
                }
                for place in places {
                    if self.ends(own, &[place])?.contains(&to) {
                        return self.dissect(own, place, to, found);
                    }
                }
            }
            Node::Repeat { node, max, .. } => {
                let (mut place, mut count) = (from, 0);
                while place < to {
                    count += 1;
                    // None of these repetitions is empty.
                    let end = self.end(node, place, place + 1..=to, |search, end| {
                        search.repeated(node, 0, max - count, &[end])
                    })?;
                    // Each group keeps what it matches in the last repetition.
                    forget(node, found);
                    self.dissect(node, place, end, found)?;
                    place = end;
                }
            }
        }
        Ok(())
    }

    /// Returns the preferred end of a node's match, among the `allowed` positions from which the remaining nodes match
    /// up to the last position.
    fn end(
        &mut self,
        node: &Node,
        from: usize,
        allowed: RangeInclusive<usize>,
        mut rest: impl FnMut(&mut Self, usize) -> Result<Vec<usize>, Stop>,
    ) -> Result<usize, Stop> {
        let mut ends = self.ends(node, &[from])?;
        ends.retain(|end| allowed.contains(end));
        if node.is_lazy() != Some(true) {
            ends.reverse();
        }
        for end in ends {
            if rest(self, end)?.contains(allowed.end()) {
                return Ok(end);
            }
        }
        unreachable!("the part matches from {from} within {allowed:?}")
    }
}

/// Resets the groups in a node to "no match".
fn forget(node: &Node, found: &mut GroupRanges) {
    match node {
        Node::Letter(_) | Node::Constraint(_) => {}
        Node::Group(number, node) => {
            found[*number] = None;
            forget(node, found);
        }
        Node::Sequence(nodes) | Node::Either(nodes) => nodes.iter().for_each(|node| forget(node, found)),
        Node::Repeat { node, .. } => forget(node, found),
    }
}
