//! Reconstructs the axes of an experiment from its points.

use std::collections::BTreeSet;

use hol_lab::is_transport_option;

use super::axis_numbers::AxisNumbers;
use crate::data::{Cell, last_key_part};

/// An axis of an experiment: keys that change together and have more than one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Dotted names of the keys, in the order of the file.
    pub keys: Vec<String>,
    /// The values of the keys at each step, as written.
    pub steps: Vec<Vec<String>>,
    /// The index of the key that orders the steps, and its values as numbers; `None` if the steps have no order.
    pub numbers: Option<(usize, AxisNumbers)>,
}

/// Reconstructs the axes from points, each a list of keys and values. The axes form a grid; an axis may consist of
/// several zipped keys.
///
/// Keys belong to the same axis if not every combination of their values exists. A point lacks the keys of an axis that
/// has no effect on it, such as an option of another transport.
pub fn axes(points: &[&[(String, String)]]) -> Vec<Axis> {
    let keys = all_keys(points);
    // The values of these keys at each point that has all of them.
    let values = |wanted: &[usize]| {
        let value = |point: &&[(String, String)], key: &usize| {
            point.iter().find(|(own, _)| own == keys[*key]).map(|(_, value)| value.clone())
        };
        let of = |point| wanted.iter().map(|key| value(point, key)).collect::<Option<Vec<String>>>();
        points.iter().filter_map(of).collect::<Vec<_>>()
    };
    let count = |values: &mut dyn Iterator<Item = &[String]>| values.collect::<BTreeSet<_>>().len();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for key in 0..keys.len() {
        let is_tied = |group: &Vec<usize>| {
            let together = values(&[&group[..], &[key]].concat());
            let of_group = count(&mut together.iter().map(|step| &step[..group.len()]));
            let of_key = count(&mut together.iter().map(|step| &step[group.len()..]));
            count(&mut together.iter().map(Vec::as_slice)) < of_group * of_key
        };
        // A key may connect groups, like the third list of a zip whose first two lists happen to form a grid.
        let (tied, mut free): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_tied);
        free.push(tied.into_iter().flatten().chain([key]).collect());
        free.sort_by_key(|group| group[0]);
        groups = free;
    }
    let axis = |group: Vec<usize>| {
        let mut seen = BTreeSet::new();
        let steps: Vec<Vec<String>> =
            values(&group).into_iter().filter(|step| seen.insert(step.clone())).collect();
        let numbers = scale(group.len(), &steps);
        Axis { keys: group.iter().map(|key| keys[*key].to_owned()).collect(), steps, numbers }
    };
    groups.into_iter().map(axis).filter(|axis| axis.steps.len() > 1).collect()
}

/// Returns the keys of all points; a key that the first points lack is before the key that follows it elsewhere.
fn all_keys<'p>(points: &[&'p [(String, String)]]) -> Vec<&'p str> {
    let mut keys: Vec<&str> = Vec::new();
    let mut seen = BTreeSet::new();
    for point in points {
        let own: Vec<&str> = point.iter().map(|(key, _)| key.as_str()).collect();
        if !seen.insert(own.clone()) {
            continue;
        }
        for (at, key) in own.iter().enumerate().filter(|(_, key)| !keys.contains(key)).collect::<Vec<_>>() {
            let next = own[at..].iter().find_map(|later| keys.iter().position(|known| known == later));
            keys.insert(next.unwrap_or(keys.len()), key);
        }
    }
    keys
}

/// Returns the first key whose numbers distinguish the steps, if all other keys advance with it. `None`: the steps have
/// no order, so no line joins them.
fn scale(keys: usize, steps: &[Vec<String>]) -> Option<(usize, AxisNumbers)> {
    let read =
        |key: usize| AxisNumbers::read(&steps.iter().map(|step| step[key].as_str()).collect::<Vec<_>>());
    let all: Vec<Option<AxisNumbers>> = (0..keys).map(read).collect();
    let distinguishes =
        |numbers: &Option<AxisNumbers>| numbers.as_ref().is_some_and(AxisNumbers::are_distinct);
    let key = all.iter().position(distinguishes)?;
    let numbers = all[key].clone()?;
    let advances =
        |other: &Option<AxisNumbers>| other.as_ref().is_some_and(|other| other.are_monotonic_in(&numbers));
    all.iter().all(advances).then_some((key, numbers))
}

impl Axis {
    /// Returns the label of the axis: `loss (%)`; keys that advance together are all named.
    pub fn label(&self) -> String {
        let Some((key, numbers)) = &self.numbers else { return self.key_names() };
        let unit = if numbers.unit.is_empty() { String::new() } else { format!(" ({})", numbers.unit) };
        let others =
            (0..self.keys.len()).filter(|other| other != key).map(|other| key_name(&self.keys[other]));
        let others = others.collect::<Vec<_>>().join(", ");
        let others = if others.is_empty() { others } else { format!(", together with {others}") };
        format!("{}{unit}{others}", key_name(&self.keys[*key]))
    }

    /// Returns whether the point has the keys of the axis: an option of another transport has no effect on it.
    pub fn affects(&self, cell: &Cell) -> bool {
        self.keys.iter().any(|key| cell.conditions.axis_value(key).is_some())
    }

    /// Returns the name of the axis in a sentence: `loss`.
    pub fn name(&self) -> String {
        let key = self.numbers.as_ref().map_or(0, |(key, _)| *key);
        key_name(&self.keys[key])
    }

    /// Returns the names of all keys of the axis: `delay, bandwidth`.
    pub fn key_names(&self) -> String {
        self.keys.iter().map(|key| key_name(key)).collect::<Vec<_>>().join(", ")
    }

    /// Describes a step briefly, for places where the names are nearby: `loss 1%`, `10ms, 100/s`.
    pub fn describe_step_briefly(&self, step: usize) -> String {
        if self.keys.len() > 1 { self.format_values(step) } else { self.describe_step(step) }
    }

    /// Returns the values of a step: `10ms, 100/s`.
    pub fn format_values(&self, step: usize) -> String {
        self.steps[step].iter().map(|value| format_value(value)).collect::<Vec<_>>().join(", ")
    }

    /// Describes a step: `loss 1%`, `delay 10ms, rate 100/s`.
    pub fn describe_step(&self, step: usize) -> String {
        let parts = self
            .keys
            .iter()
            .zip(&self.steps[step])
            .map(|(key, value)| format!("{} {}", key_name(key), format_value(value)));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Returns the steps by ascending number, else in the order of the file.
    pub fn ascending(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        if let Some((_, numbers)) = &self.numbers {
            order.sort_by(|a, b| numbers.values[*a].total_cmp(&numbers.values[*b]));
        }
        order
    }

    /// Returns the position of a step: its number, or else its index.
    pub fn position(&self, step: usize) -> f64 {
        self.numbers.as_ref().map_or(step as f64, |(_, numbers)| numbers.values[step])
    }
}

/// Formats a value; for a table its contents: `{codel={ecn=true}}` is `codel ecn=true`.
fn format_value(value: &str) -> String {
    if !value.starts_with('{') {
        return value.to_owned();
    }
    let mut lists = 0;
    let letter = |letter: char| {
        lists += i32::from(letter == '[') - i32::from(letter == ']');
        match letter {
            '{' | '}' => None,
            ',' if lists == 0 => Some(' '),
            letter => Some(letter),
        }
    };
    value.replace("={", " {").chars().filter_map(letter).collect()
}

/// Returns the name of a key. Several tables have a rate: that of `network.rate` is the bandwidth, that of `workload.rate` the message
/// rate; keys of one direction or of the background are qualified.
fn key_name(key: &str) -> String {
    let last = last_key_part(key);
    match key {
        "network.rate" => "bandwidth".to_owned(),
        "network.ip" => "IP version".to_owned(),
        "network.rtt" => "RTT".to_owned(),
        "network.handover.changes" => "handover".to_owned(),
        "workload.rate" => "message rate".to_owned(),
        "workload.size" => "message size".to_owned(),
        "background.count" => last.to_owned(),
        // Several transports have an option of this name.
        _ if is_transport_option(key) => key.to_owned(),
        _ if key.contains(".up.") => format!("{last} up"),
        _ if key.contains(".down.") => format!("{last} down"),
        _ if key.starts_with("background") => format!("background {last}"),
        _ => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &[&str]) -> Vec<Vec<(String, String)>> {
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap();
            (key.to_owned(), value.to_owned())
        };
        text.iter().map(|point| point.split(' ').map(pair).collect()).collect()
    }

    fn of(text: &[&str]) -> Vec<Axis> {
        let points = points(text);
        axes(&points.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn table_value_is_formatted_by_its_contents() {
        for (value, told) in [
            ("fq_codel", "fq_codel"),
            ("{codel={ce_threshold=1ms,ecn=true}}", "codel ce_threshold=1ms ecn=true"),
            ("{drop=[3,7]}", "drop=[3,7]"),
            ("[{},{delay=40ms}]", "[{},{delay=40ms}]"),
        ] {
            assert_eq!(format_value(value), told);
        }
    }

    #[test]
    fn grid_has_an_axis_per_key_and_a_zip_has_one() {
        let grid = of(&["a.x=1 b.y=2%", "a.x=1 b.y=3%", "a.x=2 b.y=2%", "a.x=2 b.y=3%"]);
        assert_eq!(grid.iter().map(Axis::label).collect::<Vec<_>>(), ["x", "y (%)"]);
        let zip = of(&[
            "network.delay=1ms workload.rate=5/s z=0",
            "network.delay=1ms workload.rate=5/s z=1",
            "network.delay=2ms workload.rate=6/s z=0",
            "network.delay=2ms workload.rate=6/s z=1",
        ]);
        assert_eq!(zip.len(), 2);
        assert_eq!(zip[0].label(), "delay (ms), together with message rate");
        assert_eq!(zip[0].describe_step(1), "delay 2ms, message rate 6/s");
        assert_eq!(
            (zip[0].describe_step_briefly(1).as_str(), zip[1].describe_step_briefly(1).as_str()),
            ("2ms, 6/s", "z 1")
        );
    }

    /// A zip may repeat a value of one key; then another key distinguishes its steps.
    #[test]
    fn numbers_come_from_the_first_key_with_distinct_values() {
        let zip = of(&["a=1ms b=5%", "a=1ms b=6%", "a=2ms b=7%"]);
        assert_eq!(zip.len(), 1, "{zip:?}");
        assert_eq!(zip[0].numbers.as_ref().unwrap().0, 1);
    }

    /// A line through the steps of this zip would rise and fall with the rate.
    #[test]
    fn zip_that_is_not_monotonic_has_no_scale() {
        let zip = of(&["a=1ms b=10p c=1Mbit", "a=1ms b=20p c=5Mbit", "a=2ms b=30p c=1Mbit"]);
        assert_eq!((zip.len(), &zip[0].numbers), (1, &None));
        let falls = of(&["a=1ms b=30p", "a=2ms b=20p", "a=3ms b=20p"]);
        assert_eq!(falls[0].numbers.as_ref().map(|(key, _)| *key), Some(0));
    }

    #[test]
    fn a_zip_whose_first_lists_make_a_grid_is_one_axis() {
        let zip = of(&["a=1 b=1 c=1 d=7", "a=1 b=2 c=2 d=8", "a=2 b=1 c=3 d=7", "a=2 b=2 c=4 d=8"]);
        assert_eq!(zip.iter().map(|axis| axis.keys.join(" ")).collect::<Vec<_>>(), ["a b c d"]);
        let beside = of(&[
            "a=1 b=1 c=1 d=7",
            "a=1 b=2 c=2 d=7",
            "a=2 b=1 c=3 d=7",
            "a=2 b=2 c=4 d=7",
            "a=1 b=1 c=1 d=8",
            "a=1 b=2 c=2 d=8",
            "a=2 b=1 c=3 d=8",
            "a=2 b=2 c=4 d=8",
        ]);
        assert_eq!(beside.iter().map(|axis| axis.keys.join(" ")).collect::<Vec<_>>(), ["a b c", "d"]);
    }

    #[test]
    fn keys_of_directions_and_background_have_qualified_names() {
        assert_eq!(
            ["network.loss", "network.up.loss", "network.down.loss"].map(key_name),
            ["loss", "loss up", "loss down"]
        );
        assert_eq!(
            ["network.rate", "background.rate", "background.count"].map(key_name),
            ["bandwidth", "background rate", "competitors"]
        );
        assert_eq!(
            ["network.ip", "network.rtt", "network.handover.changes"].map(key_name),
            ["IP version", "RTT", "handover"]
        );
    }

    #[test]
    fn points_of_other_transports_lack_the_key_of_an_option() {
        let axes = of(&[
            "network.loss=0% tcp.cc=reno network.delay=1ms",
            "network.loss=0% tcp.cc=bbr network.delay=1ms",
            "network.loss=0% sctp.rto_min=1s network.delay=1ms",
            "network.loss=1% sctp.rto_min=1s network.delay=1ms",
            "network.loss=0% sctp.rto_min=2s network.delay=1ms",
            "network.loss=1% sctp.rto_min=2s network.delay=1ms",
            "network.loss=0% network.delay=1ms",
        ]);
        let steps: Vec<String> = axes.iter().map(|axis| axis.describe_step(1)).collect();
        assert_eq!(steps, ["loss 1%", "tcp.cc bbr", "sctp.rto_min 2s"]);
        assert!(axes.iter().all(|axis| axis.steps.len() == 2), "{axes:?}");
    }

    #[test]
    fn constant_key_is_not_an_axis() {
        assert_eq!(of(&["a=1 b=2", "a=1 b=3"]).len(), 1);
        assert_eq!(axes(&[]), []);
    }

    #[test]
    fn names_keep_the_order_of_the_file() {
        let axis = &of(&["cc=reno", "cc=bbr"])[0];
        assert_eq!((axis.ascending(), axis.position(1)), (vec![0, 1], 1.0));
    }
}
