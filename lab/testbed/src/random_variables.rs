//! Random numbers in scripts: `RNG`, `RandomVariable/…`, `ns-random` and the procedures `uniform`,
//! `exponential` and `integer`.
//!
//! A script draws the same numbers as in ns (`tools/ranvar.cc`, `tcl/lib/ns-random.tcl`); losses and marks of the run
//! itself derive from the experiment's seed.

use std::collections::{BTreeMap, BTreeSet};

use crate::ns_defaults::defaults;
use crate::quantity::{any_number, seconds};
use crate::random::{MAX_RANDOM, RngStream, RngStreams};
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{MEASURED_VALUE, Word, WordError, error_at, format_general, format_scientific};

/// The generators and random variables of a script; the first generator is ns's default.
#[derive(Debug)]
pub(crate) struct RandomObjects {
    streams: RngStreams,
    pub generators: Vec<RngStream>,
    variables: Vec<RandomVariable>,
    spare: Option<f64>,
}

/// A random variable of a script.
#[derive(Debug)]
struct RandomVariable {
    class: &'static str,
    /// The numeric attributes of the random variable, by name.
    values: BTreeMap<String, f64>,
    generator: usize,
    /// The table of an empirical distribution: each value, and the probability that a drawn value is at most as large.
    table: Vec<[f64; 2]>,
    /// Indices of the error models that draw from the random variable.
    error_models: BTreeSet<usize>,
}

/// The classes of random variables in ns.
const CLASSES: [&str; 10] = [
    "RandomVariable/Uniform",
    "RandomVariable/Exponential",
    "RandomVariable/Pareto",
    "RandomVariable/ParetoII",
    "RandomVariable/Constant",
    "RandomVariable/Normal",
    "RandomVariable/LogNormal",
    "RandomVariable/Weibull",
    "RandomVariable/HyperExponential",
    "RandomVariable/Empirical",
];

/// The attribute `alpha_` of HyperExponentialRandomVariable, which no script sets.
const ALPHA: f64 = 0.95;

impl Default for RandomObjects {
    fn default() -> Self {
        let mut streams = RngStreams::default();
        // ns-random.tcl: `$defaultRNG seed 1`.
        let usual = streams.seeded(1);
        Self { streams, generators: vec![usual], variables: Vec::new(), spare: None }
    }
}

impl RandomVariable {
    /// Creates a random variable with ns's defaults for its class.
    fn new(class: &'static str) -> Self {
        let own = defaults().filter(|(known, ..)| *known == class);
        let values = own.filter_map(|(_, name, value)| Some((name.to_owned(), value.parse().ok()?)));
        let (values, error_models) = (values.collect(), BTreeSet::new());
        Self { class, values, generator: 0, table: Vec::new(), error_models }
    }

    fn get(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or_default()
    }

    fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the quantile `share` of an empirical distribution.
    fn of_table(&self, share: f64) -> f64 {
        // ns compares the first share separately, and never the last one.
        let (Some(first), Some(last)) = (self.table.first(), self.table.len().checked_sub(1)) else {
            return 0.0;
        };
        if share <= first[1] || last == 0 {
            return first[0];
        }
        let index = 1 + self.table[1..last].partition_point(|[_, own]| share > *own);
        let ([low, below], [high, above]) = (self.table[index - 1], self.table[index]);
        let between = low + (share - below) * (high - low) / (above - below);
        // 1 is INTER_CONTINUOUS, 2 INTER_INTEGRAL.
        match self.get("interpolation_") as i64 {
            0 => high,
            _ if share >= above => high,
            2 => between.ceil(),
            _ => between,
        }
    }
}

impl RandomObjects {
    /// Returns whether a random variable has this attribute.
    pub fn has(&self, variable: usize, attribute: &str) -> bool {
        self.variables.get(variable).is_some_and(|own| own.has(attribute))
    }

    /// Notes that an error model draws from `variable`, and no longer from `former`.
    pub fn note_use(&mut self, error_model: usize, former: Option<usize>, variable: usize) {
        if let Some(former) = former {
            self.variables[former].error_models.remove(&error_model);
        }
        self.variables[variable].error_models.insert(error_model);
    }

    /// Returns the error models that draw from a random variable.
    pub fn error_models_of(&self, variable: usize) -> &BTreeSet<usize> {
        &self.variables[variable].error_models
    }

    /// Returns the index of the generator that a random variable draws from.
    pub fn generator_of(&self, variable: usize) -> usize {
        self.variables[variable].generator
    }

    /// Returns the probability that a random variable is below a limit; `None` if its distribution is not uniform.
    pub fn share_below(&self, variable: usize, limit: f64) -> Option<f64> {
        let own = self.variables.get(variable).filter(|own| own.class == "RandomVariable/Uniform")?;
        let (min, max) = (own.get("min_"), own.get("max_"));
        (max > min).then(|| ((limit - min) / (max - min)).clamp(0.0, 1.0))
    }

    fn value(&mut self, index: usize) -> f64 {
        let own = &self.variables[index];
        let stream = &mut self.generators[own.generator];
        let (mean, shape) = (own.get("avg_"), own.get("shape_"));
        match own.class {
            "RandomVariable/Uniform" => {
                own.get("min_") + (own.get("max_") - own.get("min_")) * stream.uniform()
            }
            "RandomVariable/Exponential" => stream.exponential(mean),
            "RandomVariable/Pareto" => stream.pareto(mean * (shape - 1.0) / shape, shape),
            "RandomVariable/ParetoII" => stream.pareto_from_zero(mean * (shape - 1.0), shape),
            "RandomVariable/Constant" => own.get("val_"),
            "RandomVariable/Normal" => stream.normal(&mut self.spare, mean, own.get("std_")),
            "RandomVariable/LogNormal" => stream.normal(&mut self.spare, mean, own.get("std_")).exp(),
            // The arguments of ns are in this order.
            "RandomVariable/Weibull" => stream.weibull(own.get("scale_"), shape),
            "RandomVariable/Empirical" => {
                let (min, max) = (own.get("minCDF_"), own.get("maxCDF_"));
                // Without a table ns draws no number.
                if own.table.is_empty() { 0.0 } else { own.of_table(min + (max - min) * stream.uniform()) }
            }
            _ => {
                let spread = ((own.get("cov_").powi(2) - 1.0) / (2.0 * ALPHA * (1.0 - ALPHA))).sqrt();
                // ns draws from the default generator, whatever generator the variable has.
                let stream = &mut self.generators[0];
                match stream.uniform() < ALPHA {
                    true => stream.exponential(mean - spread * (1.0 - ALPHA) * mean),
                    false => stream.exponential(mean + spread * ALPHA * mean),
                }
            }
        }
    }
}

impl Simulator<'_> {
    /// Creates a random generator or a random variable; `None` for another class.
    pub(crate) fn new_random(&mut self, class: &Word, arguments: &[Word]) -> Option<Outcome> {
        if class.text == "RNG" {
            let stream = self.randoms.streams.stream();
            self.randoms.generators.push(stream);
            return Some(Ok(self.add(Object::Generator(self.randoms.generators.len() - 1))));
        }
        let class_name = CLASSES.iter().find(|known| **known == class.text)?;
        if let Some(argument) = arguments.first() {
            return Some(error_at(
                argument.at,
                format!("{class_name} takes no arguments; set its attributes"),
            ));
        }
        self.randoms.variables.push(RandomVariable::new(class_name));
        let index = self.randoms.variables.len() - 1;
        let own = match self.defaults_of(&class.text, class.at) {
            Ok(own) => own,
            Err(complaint) => return Some(Err(complaint)),
        };
        for (attribute, value) in own {
            if let Err(problem) = self.set_variable(index, &Word { text: attribute, ..value.clone() }, &value)
            {
                return Some(Err(problem));
            }
        }
        Some(Ok(self.add(Object::Variable(index))))
    }

    /// Executes `ns-random`, `uniform`, `exponential` or `integer`, which draw a random number; `None` for another
    /// command.
    pub(crate) fn random_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let name = words[0].text.as_str();
        match (name, &words[1..]) {
            ("ns-random", []) => Some(Ok(self.randoms.generators[0].next().to_string())),
            ("ns-random", [seed]) => Some(self.seed(0, seed, words)),
            ("uniform", [_, _]) | ("exponential", [] | [_]) | ("integer", [_]) => {
                Some(self.draw(0, &words[0], &words[1..]))
            }
            _ => None,
        }
    }

    /// Executes a command of a random generator.
    pub(crate) fn generator_command(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        let arguments = &words[2..];
        let generator = &mut self.randoms.generators[index];
        match (method.text.as_str(), arguments) {
            ("next-random", []) => Ok(generator.next().to_string()),
            ("seed", []) => Ok(generator.seed().to_string()),
            ("seed", [seed]) => self.seed(index, seed, words),
            ("seed", [kind, seed]) if kind.text == "raw" => self.seed(index, seed, words),
            ("next-substream", []) => {
                generator.next_substream();
                Ok(String::new())
            }
            ("reset-start-substream", []) => {
                generator.restart_substream();
                Ok(String::new())
            }
            ("reset-start-stream", []) => {
                generator.restart();
                Ok(String::new())
            }
            ("default", []) if index == 0 => Ok(String::new()),
            _ => self.draw(index, method, arguments),
        }
    }

    /// Executes a command that draws a random number, such as `$rng uniform 0 1`: ns-random.tcl, and `RNG::command`.
    fn draw(&mut self, index: usize, method: &Word, arguments: &[Word]) -> Outcome {
        let numbers = arguments.iter().map(any_number).collect::<Result<Vec<f64>, _>>()?;
        let generator = &mut self.randoms.generators[index];
        let largest = MAX_RANDOM as f64;
        let text = |value: f64| Ok(format!("{value:?}"));
        match (method.text.as_str(), &numbers[..]) {
            ("uniform", [from, to]) => text(from + (to - from) * (generator.next() as f64 / largest)),
            ("integer", [count]) if *count >= 1.0 => Ok((generator.next() % *count as u64).to_string()),
            ("exponential", []) => text(-((generator.next() as f64 + 1.0) / (largest + 1.0)).ln()),
            ("exponential", [mean]) => text(-mean * ((generator.next() as f64 + 1.0) / (largest + 1.0)).ln()),
            ("normal", [mean, deviation]) => {
                Ok(format_general(generator.normal(&mut self.randoms.spare, *mean, *deviation), 6))
            }
            ("lognormal", [mean, deviation]) => {
                Ok(format_general(generator.normal(&mut self.randoms.spare, *mean, *deviation).exp(), 6))
            }
            _ => {
                let problem = format!(
                    "{:?} is not a supported command of a random generator; use uniform, integer, exponential, normal or next-random",
                    method.text
                );
                self.unknown(method.at, problem)
            }
        }
    }

    fn seed(&mut self, index: usize, seed: &Word, words: &[Word]) -> Outcome {
        let mut value = any_number(seed)? as i64;
        if value == 0 {
            let _ = self.ignore(words, "ns takes this seed from the clock; hol uses 1");
            value = 1;
        }
        let Some(value) = u64::try_from(value).ok().filter(|value| *value < MAX_RANDOM) else {
            return error_at(seed.at, format!("a seed is a number from 1 to {}", MAX_RANDOM - 1));
        };
        self.randoms.generators[index] = self.randoms.streams.seeded(value);
        Ok(value.to_string())
    }

    /// Returns the index of the random generator that a handle names.
    pub(crate) fn generator(&self, word: &Word) -> Result<usize, WordError> {
        match self.object(&word.text) {
            Some(Object::Generator(generator)) => Ok(generator),
            _ => error_at(word.at, "this is not a generator; create one with new RNG"),
        }
    }

    /// Executes a command of a random variable.
    pub(crate) fn variable_command(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        match (method.text.as_str(), &words[2..]) {
            ("value", []) => Ok(format_scientific(self.randoms.value(index), 6)),
            ("set", [name]) => Ok(format!("{:?}", self.randoms.variables[index].get(&name.text))),
            ("set", [name, value]) => {
                self.set_variable(index, name, value)?;
                Ok(value.text.clone())
            }
            ("loadCDF", [file]) if self.randoms.variables[index].class == "RandomVariable/Empirical" => {
                self.randoms.variables[index].table = self.distribution(file)?;
                Ok(String::new())
            }
            ("use-rng", [generator]) => {
                self.randoms.variables[index].generator = self.generator(generator)?;
                Ok(String::new())
            }
            _ => self.unknown(
                method.at,
                format!("{:?} is not a supported command of a random variable; use value", method.text),
            ),
        }
    }

    /// Reads the table of a distribution from a file. Each line contains a value, its number of occurrences, and its
    /// cumulative probability (tools/ranvar.cc, `EmpiricalRandomVariable::loadCDF`).
    fn distribution(&mut self, file: &Word) -> Result<Vec<[f64; 2]>, WordError> {
        let wrong = |why: &str| WordError { at: file.at, problem: format!("loadCDF {}: {why}", file.text) };
        let text = (self.read_file)(&file.text).map_err(|why| wrong(&why))?;
        self.charge_memory(file.at, text.len())?;
        let entry = |line: &str| {
            let numbers: Vec<f64> =
                line.split_whitespace().map_while(|word| word.parse().ok()).take(3).collect();
            <[f64; 3]>::try_from(numbers).ok().filter(|all| all.iter().all(|own| own.is_finite()))
        };
        let table: Option<Vec<_>> =
            text.lines().map(|line| entry(line).map(|[value, _, share]| [value, share])).collect();
        let table = table.filter(|table| table.is_sorted_by(|one, other| one[1] <= other[1]));
        table.ok_or_else(|| {
            wrong("each line needs a value, a number and a cumulative probability that does not decrease, as in \"3.5 1 0.2\"")
        })
    }

    fn set_variable(&mut self, index: usize, name: &Word, value: &Word) -> Result<(), WordError> {
        let variable = &mut self.randoms.variables[index];
        if !variable.has(&name.text) {
            let problem = format!("{:?} is not an attribute of {}", name.text, variable.class);
            return error_at(name.at, problem);
        }
        let number = match any_number(value) {
            Ok(number) => number,
            Err(_) if value.text != MEASURED_VALUE => seconds(value)?.as_secs_f64(),
            Err(problem) => return Err(problem),
        };
        variable.values.insert(name.text.clone(), number);
        self.apply_variable(index, name.at)
    }
}
