//! `hol advise`: along an axis, where does the better transport change?

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use hol_base::Ratio;
use hol_lab::{
    Archive, Experiment, Finished, InputError, Plan, Point, PointResult, Repetitions, Source, execute,
};
use hol_measure::{Border, Probe, Search, Side, borders};
use hol_report::data::Cell;
use hol_report::metric::Metric;
use hol_report::survey::{Axis, Contest, NO_MATTER, Outcome, axes, lead};
use serde::Serialize;

use crate::failure::Failure;
use crate::fill::{stop_on_interrupt, threads, warn_of_engine};
use crate::number::positive;
use crate::question::set_all;
use crate::row::json;
use crate::terminal::say;

/// All tests of one line shall hold together, so that each has to be surer than the 95 % of the whole.
const TESTS: usize = 100;
/// Repetitions before a place is judged at all, and, unless told, the most that it may take: what is rare has to have had its
/// chance.
const FIRST: u32 = 64;
const MOST: u32 = 400;
/// Ends of borders that are confirmed at most.
const CONFIRMED: usize = 16;
/// Columns of the map.
const WIDTH: usize = 56;

/// Search where along an axis of a sweep the better transport changes: more samples where it matters.
///
/// The axis is the first numeric one, its ends are the least and the greatest value of the file. Each place is repeated
/// until it is decided (99.95 %), and the border is closed in on until it is as precise as asked for; its ends are confirmed with all
/// repetitions.
#[derive(Debug, Args)]
pub struct Advise {
    /// The experiment, with an axis of numbers under [sweep]
    file: PathBuf,
    /// The key to search along [default: the first that is swept over numbers]
    #[arg(long, value_name = "KEY")]
    over: Option<String>,
    /// How near each other the ends of a border are to be: of its place on a logarithmic axis, else of the axis
    #[arg(long, value_name = "5%", default_value = "5%")]
    precision: Ratio,
    /// Repetitions of one place at most [default: 400, or 16 times those of the file]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    most: Option<usize>,
    /// Override a key, as in network.loss=1%
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Runs at the same time [default: all cores]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// One JSON object a line for each two transports and each combination of the other axes
    #[arg(long)]
    json: bool,
}

/// Samples places of one axis, all other things equal.
struct Sampler<'a> {
    advise: &'a Advise,
    source: &'a Source,
    name: &'a str,
    axis: &'a Axis,
    stop: &'a AtomicBool,
    finished: Finished,
    runs: usize,
}

/// What is said of two transports under one combination of the other axes.
#[derive(Debug, Serialize)]
struct Line {
    axis: String,
    unit: &'static str,
    /// The steps of the other axes, in words.
    at: String,
    transport: String,
    than: String,
    metric: &'static str,
    borders: Vec<Crossing>,
    sentence: String,
    #[serde(skip)]
    map: String,
}

/// A border for programs.
#[derive(Debug, Serialize)]
struct Crossing {
    x: f64,
    low: f64,
    high: f64,
    before: &'static str,
    after: &'static str,
}

impl Advise {
    /// Searches every line, then says what came out.
    pub fn run(&self) -> Result<(), Failure> {
        let (name, source) = self.source()?;
        let experiment = Experiment::parse(&name, &source)?;
        let axis = self.axis(&experiment)?;
        let labels = labels(&experiment);
        let [yardstick, challengers @ ..] = &labels[..] else { return Ok(()) };
        if challengers.is_empty() {
            return Err(Failure::Usage(format!("{name}: one transport has no rival; name two or more")));
        }
        let stop = stop_on_interrupt()?;
        let (finished, runs) = (Finished::default(), 0);
        let mut sampler =
            Sampler { advise: self, source: &source, name: &name, axis: &axis, stop, finished, runs };
        let mut lines = Vec::new();
        for others in others(&experiment, &axis) {
            for challenger in challengers {
                let line = sampler.line(&others, challenger, yardstick)?;
                if self.json {
                    say(&json(&line));
                } else {
                    say(&format!("{}\n", line.sentence));
                }
                lines.push(line);
            }
        }
        warn_of_engine(&sampler.finished);
        if !self.json {
            say(&map(&lines, &axis));
            say(&format!("\n{} runs\n", sampler.runs));
        }
        Ok(())
    }

    /// The experiment's name, and its text with what overrides it.
    fn source(&self) -> Result<(String, Source), Failure> {
        let name = self.file.file_stem().map_or("experiment".into(), |stem| stem.to_string_lossy());
        let mut source = Source::read(&self.file)?;
        set_all(&mut source, &self.settings)?;
        Ok((name.into_owned(), source))
    }

    /// Everything up to the first run.
    pub fn rehearse(&self) -> Result<(), Failure> {
        let (name, source) = self.source()?;
        self.axis(&Experiment::parse(&name, &source)?)?;
        Ok(())
    }

    /// The axis to search along.
    fn axis(&self, experiment: &Experiment) -> Result<Axis, InputError> {
        let points: Vec<&[(String, String)]> =
            experiment.points.iter().map(|point| point.axes.as_slice()).collect();
        let axes = axes(&points);
        let wrong = |problem: String| InputError { place: self.file.display().to_string(), problem };
        let numeric = |axis: &&Axis| axis.numbers.is_some() && axis.keys.len() == 1;
        let found = match &self.over {
            Some(key) => axes.iter().filter(numeric).find(|axis| axis.keys[0] == *key),
            None => axes.iter().find(numeric),
        };
        let known: Vec<&str> = axes.iter().filter(numeric).map(|axis| axis.keys[0].as_str()).collect();
        found.cloned().ok_or_else(|| {
            wrong(match (&self.over, known.as_slice()) {
                (Some(key), [_, ..]) => format!("{key} is not swept over numbers; {} is", known.join(", ")),
                _ => "no key of its own is swept over numbers; write [sweep] with \"network.loss\" = [\"0.1%\", \"10%\"]"
                    .to_owned(),
            })
        })
    }
}

/// The labels of the transports, the yardstick first.
fn labels(experiment: &Experiment) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for point in &experiment.points {
        if !labels.contains(&point.label) {
            labels.push(point.label.clone());
        }
    }
    labels
}

/// Every combination of the other axes.
fn others(experiment: &Experiment, axis: &Axis) -> Vec<Vec<(String, String)>> {
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    for point in &experiment.points {
        let others = without(&point.axes, axis);
        if !all.contains(&others) {
            all.push(others);
        }
    }
    all
}

fn without(axes: &[(String, String)], axis: &Axis) -> Vec<(String, String)> {
    axes.iter().filter(|(key, _)| *key != axis.keys[0]).cloned().collect()
}

impl Sampler<'_> {
    fn line(&mut self, others: &[(String, String)], transport: &str, than: &str) -> Result<Line, Failure> {
        let axis = self.axis;
        let Some((_, numbers)) = &axis.numbers else { unreachable!("the axis was chosen for its numbers") };
        let search = Search {
            logarithmic: numbers.span_decades(),
            precision: self.advise.precision.value(),
            most: 24,
        };
        let grid: Vec<f64> = axis.ascending().into_iter().map(|step| axis.place(step)).collect();
        let mut seen: Vec<Seen> = Vec::new();
        let mut look = |x: f64, confirm: bool| {
            let (probe, what) = self.probe(x, &numbers.text(x), others, transport, than, confirm)?;
            seen.retain(|known| known.x != x);
            seen.push(what);
            Ok::<_, Failure>(probe)
        };
        let round = |x| numbers.round(x);
        let mut probes = search.run(&grid, round, |x| look(x, false))?;
        // Few repetitions may have missed what is rare: the ends of a border are looked at again with all, and what does not
        // stand is searched anew.
        let mut confirmed: Vec<f64> = Vec::new();
        let next =
            |probes: &[Probe], confirmed: &[f64]| ends(probes).into_iter().find(|x| !confirmed.contains(x));
        while let Some(x) = next(&probes, &confirmed).filter(|_| confirmed.len() < CONFIRMED) {
            let again = look(x, true)?;
            probes.iter_mut().filter(|probe| probe.x == x).for_each(|probe| *probe = again);
            confirmed.push(x);
            search.refine(&mut probes, round, |x| look(x, false))?;
        }
        let at: Vec<String> = others.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let metric = seen.last().map_or(Metric::ResponseTime, |seen| seen.metric);
        let said = Said { transport, than, axis, unit: numbers.unit, metric, seen: &seen };
        let sentence = said.sentence(&probes);
        let at = at.join(", ");
        Ok(Line {
            axis: axis.keys[0].clone(),
            unit: numbers.unit,
            sentence: if at.is_empty() { sentence } else { format!("{at}: {sentence}") },
            at,
            transport: transport.to_owned(),
            than: than.to_owned(),
            metric: metric.name(),
            borders: borders(&probes).into_iter().map(|border| said.crossing(border)).collect(),
            map: strip(&probes, search.logarithmic),
        })
    }

    /// Repeats one place until it is decided, or as often as allowed.
    fn probe(
        &mut self,
        x: f64,
        text: &str,
        others: &[(String, String)],
        transport: &str,
        than: &str,
        confirm: bool,
    ) -> Result<(Probe, Seen), Failure> {
        let key = &self.axis.keys[0];
        let mut source = self.source.clone();
        source.set(&format!("{key} = {text}"), key, text)?;
        let mut points = Experiment::parse(self.name, &source)?.points;
        points.retain(|point| {
            without(&point.axes, self.axis) == *others && [transport, than].contains(&point.label.as_str())
        });
        let asked = points.first().map_or(1, |point| point.repetitions.least);
        let most =
            self.advise.most.map_or(MOST.max(16 * asked), |most| u32::try_from(most).unwrap_or(u32::MAX));
        let least = if confirm { most } else { FIRST.max(asked).min(most) };
        let mut repetitions = least;
        loop {
            let results = self.sample(&points, repetitions)?;
            let cells: Vec<Cell> = results.iter().map(Cell::from).collect();
            let of = |label: &str| cells.iter().find(|cell| cell.transport == label);
            let (Some(cell), Some(yardstick)) = (of(transport), of(than)) else {
                return Err(Failure::Failed(format!("{key} = {text}: a transport has no runs")));
            };
            let metric = lead(cells.iter());
            let contest = Contest::that_matters(metric, cell, yardstick).among(TESTS);
            let side = match contest.outcome() {
                Outcome::Better => Side::Second,
                Outcome::Worse => Side::First,
                Outcome::Same => Side::Tie,
                Outcome::Undecided | Outcome::Unknown => Side::Unsure,
            };
            let is_known = contest.outcome() != Outcome::Unknown;
            let side = if contest.is_enough() { side } else { Side::Unsure };
            if side != Side::Unsure || repetitions >= most || !is_known {
                let (by, losses) = (contest.by(), contest.losses().filter(|_| is_known));
                let seen = Seen { x, metric, by, losses, lost: contest.lost(), is_known };
                return Ok((Probe { x, side, gain: contest.gain() }, seen));
            }
            repetitions = (repetitions * 2).min(most);
        }
    }

    /// So many repetitions of each point, each as long as the file says.
    fn sample(&mut self, points: &[Point], repetitions: u32) -> Result<Vec<PointResult>, Failure> {
        let longer = |point: &Point| {
            let mut point = point.clone();
            let each = point.messages.div_ceil(point.repetitions.least.into()).max(1);
            point.repetitions = Repetitions::fixed(repetitions);
            point.messages = each * u64::from(repetitions);
            point.precision = None;
            point.id = point.identity();
            point
        };
        let plan = Plan::of_points(points.iter().map(longer).collect());
        execute(
            &plan,
            &mut self.finished,
            threads(self.advise.jobs),
            self.stop,
            &Archive::default(),
            |_, _| Ok(()),
        )?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::Failed("interrupted".to_owned()));
        }
        if let Some(first) = self.finished.failed().next() {
            return Err(Failure::Failed(format!("a run failed: {first}")));
        }
        self.runs = self.finished.runs().count();
        Ok(plan.results(&self.finished))
    }
}

/// Words for the probes of one line.
struct Said<'a> {
    transport: &'a str,
    than: &'a str,
    axis: &'a Axis,
    unit: &'static str,
    metric: Metric,
    seen: &'a [Seen],
}

/// What was seen at a place beside the side that is better.
struct Seen {
    x: f64,
    metric: Metric,
    /// The size of the difference.
    by: String,
    /// Messages that never arrived, and how much their shares differ.
    losses: Option<String>,
    lost: f64,
    /// Both carried the load.
    is_known: bool,
}

/// The ends of all borders.
fn ends(probes: &[Probe]) -> Vec<f64> {
    borders(probes).into_iter().flat_map(|border| [border.low, border.high]).collect()
}

impl Said<'_> {
    fn word(&self, side: Side) -> &'static str {
        let [better, worse] = self.metric.comparatives();
        match side {
            Side::First => worse,
            Side::Second => better,
            Side::Tie => self.metric.equal(),
            Side::Unsure => "undecided",
        }
    }

    fn crossing(&self, border: Border) -> Crossing {
        let Border { x, low, high, before, after } = border;
        Crossing { x, low, high, before: self.word(before), after: self.word(after) }
    }

    fn place(&self, x: f64) -> String {
        format!("{} {} {}", self.axis.name(), short(x), self.unit).trim_end().to_owned()
    }

    /// What is so at one place, and by how much.
    fn at(&self, probe: &Probe) -> String {
        let by = self.seen.iter().find(|seen| seen.x == probe.x).map_or("", |seen| seen.by.as_str());
        format!("by {by} at {}", self.place(probe.x))
    }

    fn sentence(&self, probes: &[Probe]) -> String {
        let (name, other) = (self.transport, self.than);
        let borders = borders(probes);
        let sure: Vec<&Probe> = probes.iter().filter(|probe| probe.side != Side::Unsure).collect();
        let (Some(first), Some(last)) = (sure.first(), sure.last()) else {
            return match self.seen.iter().any(|seen| seen.is_known) {
                true => format!(
                    "{name} and {other} do not differ for sure anywhere; more repetitions (--most) may tell."
                ),
                false => format!(
                    "{name} cannot be compared with {other}: one of them did not carry the load anywhere."
                ),
            };
        };
        let body = match borders.as_slice() {
            [] if first.side == Side::Tie => {
                format!(
                    "{name} is {} as {other} (within {} %) wherever that is decided",
                    self.word(Side::Tie),
                    100.0 * NO_MATTER
                )
            }
            [] if first.x == last.x => {
                format!("{name} is {} than {other} {}", self.word(first.side), self.at(first))
            }
            [] => format!(
                "{name} is {} than {other} from {} to {}: {}, {}",
                self.word(first.side),
                self.place(first.x),
                self.place(last.x),
                self.at(first),
                self.at(last)
            ),
            [border] => format!(
                "{name} {} ({}), {} ({})",
                self.turn(border),
                self.at(last),
                self.below(border),
                self.at(first)
            ),
            // They cross, and where they do nobody notices.
            [to, from] if to.after == Side::Tie && from.after != to.before => format!(
                "{name} {} ({}), {} up to {} ({}), and {} between (within {} %)",
                self.turn(from),
                self.at(last),
                self.word(to.before),
                self.place(to.low),
                self.at(first),
                self.word(Side::Tie),
                100.0 * NO_MATTER
            ),
            several => {
                let turns: Vec<String> = several.iter().map(|border| self.turn(border)).collect();
                format!("{name}, {} below that, {}", self.word(first.side), turns.join(", then "))
            }
        };
        let ends = [(probes.first(), "below", first.x), (probes.last(), "beyond", last.x)];
        let open = ends.into_iter().filter(|(end, ..)| end.is_some_and(|end| end.side == Side::Unsure));
        let open: String =
            open.map(|(_, side, from)| format!("; {side} {} it is not decided", self.place(from))).collect();
        let unknown = self.seen.iter().filter(|seen| !seen.is_known).map(|seen| self.place(seen.x));
        let unknown: Vec<String> = unknown.collect();
        let unknown = match unknown.as_slice() {
            [] => String::new(),
            places => format!("; one of them did not carry the load at {}", places.join(", ")),
        };
        let lossy = self.seen.iter().filter(|seen| seen.losses.is_some());
        let lossy = lossy.max_by(|a, b| a.lost.total_cmp(&b.lost));
        let losses = lossy.map_or(String::new(), |seen| {
            format!("; {} at {}", seen.losses.as_deref().unwrap_or_default(), self.place(seen.x))
        });
        format!("{body}{open}{unknown}{losses}.")
    }

    fn turn(&self, border: &Border) -> String {
        let Border { low, high, after, .. } = *border;
        let is = match after {
            Side::Tie => format!("is {} as {} (within {} %)", self.word(after), self.than, 100.0 * NO_MATTER),
            side => format!("is {} than {}", self.word(side), self.than),
        };
        format!("{is} from {} on (the border lies above {})", self.place(high), short(low))
    }

    fn below(&self, border: &Border) -> String {
        format!("{} up to {}", self.word(border.before), self.place(border.low))
    }
}

/// Three digits that count.
fn short(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// The axis as a line of letters: which side is sure where.
fn strip(probes: &[Probe], logarithmic: bool) -> String {
    let (Some(first), Some(last)) = (probes.first(), probes.last()) else { return String::new() };
    let least = probes.iter().map(|probe| probe.x).find(|x| *x > 0.0).unwrap_or(1.0);
    let place = |column: usize| {
        let share = column as f64 / (WIDTH - 1) as f64;
        match logarithmic {
            // Zero has the first column.
            true if column == 0 => first.x,
            true => least.max(first.x) * (last.x / least.max(first.x)).powf(share),
            false => first.x + share * (last.x - first.x),
        }
    };
    let letter = |column: usize| {
        let x = place(column);
        let before = probes.iter().rfind(|probe| probe.x <= x * (1.0 + 1e-9)).unwrap_or(first);
        let after = probes.iter().find(|probe| probe.x >= x * (1.0 - 1e-9)).unwrap_or(last);
        match (before.side, after.side) {
            (a, b) if a != b => '·',
            (Side::First, _) => '─',
            (Side::Second, _) => '█',
            (Side::Tie, _) => '=',
            (Side::Unsure, _) => '·',
        }
    };
    (0..WIDTH).map(letter).collect()
}

/// All lines below each other over the axis.
fn map(lines: &[Line], axis: &Axis) -> String {
    let order = axis.ascending();
    let (Some(first), Some(last), Some(line)) = (order.first(), order.last(), lines.first()) else {
        return String::new();
    };
    let label = |line: &Line| {
        let named =
            if lines.iter().any(|other| other.transport != line.transport) { &*line.transport } else { "" };
        [line.at.as_str(), named]
            .iter()
            .filter(|part| !part.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(", ")
    };
    let width = lines.iter().map(|line| label(line).chars().count()).max().unwrap_or(0);
    let [from, to] = [first, last].map(|step| axis.place(*step).to_string());
    let head =
        format!("{:width$}  {from}{:>gap$}", "", format!("{} {to}", axis.label()), gap = WIDTH - from.len());
    let rows: String = lines.iter().map(|line| format!("{:width$}  {}\n", label(line), line.map)).collect();
    format!(
        "\n{head}\n{rows}\n█ better than {}   ─ worse   = as good (within {} %)   · not decided\n",
        line.than,
        100.0 * NO_MATTER
    )
}
