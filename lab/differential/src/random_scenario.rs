//! A scenario that was drawn: the settings of an experiment file, each of which can be taken away.

use hol_lab::{Experiment, InputError, Point, Source};

/// One scenario, as the keys that it sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomScenario {
    /// The name of the file that it would be.
    pub name: String,
    /// `tcp`, `sctp`.
    pub protocol: String,
    /// Options of the transport, in the words of a specification.
    pub options: Vec<(String, String)>,
    /// Options that the first world has beside these: what the other does anyhow.
    pub assumed: Vec<(String, String)>,
    /// Keys of the experiment file, dotted, and their values as TOML.
    pub settings: Vec<(String, String)>,
}

impl RandomScenario {
    /// The transport as a specification: `sctp:streams=8`.
    pub fn transport(&self) -> String {
        self.specification(self.options.iter())
    }

    fn specification<'o>(&self, options: impl Iterator<Item = &'o (String, String)>) -> String {
        let options: Vec<String> = options.map(|(key, value)| format!("{key}={value}")).collect();
        if options.is_empty() {
            self.protocol.clone()
        } else {
            format!("{}:{}", self.protocol, options.join(","))
        }
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// What is compared with what: the transport's protocol and the workload.
    pub fn family(&self) -> String {
        format!("{} {}", self.protocol, self.kind())
    }

    /// The kind of its workload.
    pub(crate) fn kind(&self) -> &str {
        self.value("workload.kind").unwrap_or("simco").trim_matches('"')
    }

    /// Whether it names a probability: chance has a part in it, even if nothing happens in one run. What QUIC sends is encrypted, so
    /// its packets are not compared either.
    pub fn names_chance(&self) -> bool {
        self.protocol == "quic"
            || self.settings.iter().any(|(_, value)| value.contains('%') || value.contains("poisson"))
    }

    fn source(&self, transport: &str) -> Result<Source, InputError> {
        let mut source = Source::new(format!("{}.toml", self.name), "repetitions = 1\n");
        source.set("transports", "transports", &format!("[{transport:?}]"))?;
        self.settings.iter().try_for_each(|(key, value)| source.set(key, key, value))?;
        Ok(source)
    }

    /// The one point of the experiment; refused where settings contradict each other.
    pub fn point(&self) -> Result<Point, InputError> {
        self.point_over(&self.transport())
    }

    /// The same in the first world, with what is assumed there.
    pub fn first_point(&self) -> Result<Point, InputError> {
        self.point_over(&self.specification(self.options.iter().chain(&self.assumed)))
    }

    fn point_over(&self, transport: &str) -> Result<Point, InputError> {
        let source = self.source(transport)?;
        let mut points = Experiment::parse(&self.name, &source)?.points;
        points.truncate(1);
        points.pop().ok_or_else(|| InputError { place: self.name.clone(), problem: "no point".to_owned() })
    }

    /// The experiment file.
    pub fn file(&self) -> Result<String, InputError> {
        self.source(&self.transport())?.merged().map(|table| table.to_string())
    }

    /// The command that runs it.
    pub fn command(&self) -> String {
        let settings = self.settings.iter().map(|(key, value)| format!(" --set '{key}={value}'"));
        format!("hol trace {} --repetitions 1{}", self.transport(), settings.collect::<String>())
    }
}
