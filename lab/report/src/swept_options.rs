//! Repeats the points of transports that a swept option of another transport does not affect.

use std::borrow::Cow;

use hol_lab::is_transport_option;

use crate::data::{Cell, Dataset};

/// Swept options, each with a value.
type Options = Vec<(String, String)>;

impl Dataset {
    /// Returns the data with a copy of each point for all values of the swept options that its transport does not have;
    /// its runs are the same for all of them. A claim then compares the point with every point of the transport that
    /// has the option.
    pub fn with_all_options(&self) -> Cow<'_, Self> {
        let cells = || self.cells.iter().chain(&self.unmeasured);
        let has_option = |cell: &Cell| cell.conditions.axes.iter().any(|(key, _)| is_transport_option(key));
        let is_complete = |cell: &Cell| self.missing_options(cell).is_empty();
        // Most studies sweep no option; to look for missing ones takes time in the square of the number of points.
        if !cells().any(has_option) || cells().all(is_complete) {
            return Cow::Borrowed(self);
        }
        let repeat = |cells: &[Cell]| cells.iter().flat_map(|cell| self.at_all_options(cell)).collect();
        Cow::Owned(Self {
            cells: repeat(&self.cells),
            unmeasured: repeat(&self.unmeasured),
            compared: self.compared.clone(),
        })
    }

    /// Returns the options that a point lacks, for each transport that has them: the combinations of their values that
    /// this transport's points have.
    fn missing_options(&self, of: &Cell) -> Vec<Vec<Options>> {
        let cells =
            || self.cells.iter().chain(&self.unmeasured).filter(|cell| cell.experiment == of.experiment);
        let owner = |key: &str| cells().find(|cell| cell.conditions.axis_value(key).is_some());
        let mut by_transport: Vec<(&str, Vec<Options>)> = Vec::new();
        for cell in cells() {
            let lacks = |key: &str| {
                is_transport_option(key)
                    && of.conditions.axis_value(key).is_none()
                    && owner(key).is_some_and(|owner| owner.transport == cell.transport)
            };
            let options: Options =
                cell.conditions.axes.iter().filter(|(key, _)| lacks(key)).cloned().collect();
            if options.is_empty() {
                continue;
            }
            match by_transport.iter_mut().find(|(transport, _)| *transport == cell.transport) {
                Some((_, combinations)) if combinations.contains(&options) => {}
                Some((_, combinations)) => combinations.push(options),
                None => by_transport.push((&cell.transport, vec![options])),
            }
        }
        by_transport.into_iter().map(|(_, combinations)| combinations).collect()
    }

    fn at_all_options(&self, cell: &Cell) -> Vec<Cell> {
        let mut cells = vec![cell.clone()];
        for combinations in self.missing_options(cell) {
            let at = |cell: &Cell| {
                let cell = cell.clone();
                combinations.iter().map(move |options| {
                    let mut cell = cell.clone();
                    cell.conditions.axes.extend(options.iter().cloned());
                    cell
                })
            };
            cells = cells.iter().flat_map(|cell| at(cell).collect::<Vec<_>>()).collect();
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{cell, dataset};

    use super::*;

    fn point(transport: &str, axes: &[(&str, &str)]) -> Cell {
        let mut cell = cell(transport, 1.0, 10.0, &[1.0, 2.0]);
        cell.conditions.axes = axes.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        cell
    }

    #[test]
    fn transports_are_repeated_at_the_options_of_others() {
        let data = dataset(vec![
            point("TCP", &[("network.delay", "5ms"), ("tcp.cc", "reno")]),
            point("TCP", &[("network.delay", "5ms"), ("tcp.cc", "cubic")]),
            point("SCTP", &[("network.delay", "5ms"), ("sctp.rto_min", "100ms"), ("sctp.rto_max", "1s")]),
            point("SCTP", &[("network.delay", "5ms"), ("sctp.rto_min", "1s"), ("sctp.rto_max", "2s")]),
            point("UDP", &[("network.delay", "5ms")]),
        ]);
        let all = data.with_all_options();
        // Keys that are zipped, as rto_min and rto_max, have only the combinations of the file.
        for transport in ["TCP", "SCTP", "UDP"] {
            let of: Vec<&Cell> = all.cells.iter().filter(|cell| cell.transport == transport).collect();
            assert_eq!(of.len(), 4, "{transport}");
            for (cc, rto_min, rto_max) in [
                ("reno", "100ms", "1s"),
                ("reno", "1s", "2s"),
                ("cubic", "100ms", "1s"),
                ("cubic", "1s", "2s"),
            ] {
                let values = [("tcp.cc", cc), ("sctp.rto_min", rto_min), ("sctp.rto_max", rto_max)];
                let has = |cell: &&&Cell| {
                    values.iter().all(|(key, value)| cell.conditions.axis_value(key) == Some(value))
                };
                assert_eq!(of.iter().filter(has).count(), 1, "{transport} {cc} {rto_min}");
            }
        }
        assert!(matches!(all.with_all_options(), Cow::Borrowed(_)));
    }
}
