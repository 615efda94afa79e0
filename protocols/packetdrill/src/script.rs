//! A script: its settings, and its steps, one a line.

use hol_base::Duration;
use hol_stack::Kind;

use crate::Mistake;
use crate::call::Call;
use crate::when::When;
use crate::words::{Words, number};

/// A step later or earlier than it says by this much is in time.
const TOLERANCE: Duration = Duration::from_millis(1);

/// What has to happen.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// The application makes a system call.
    Call(Call),
    /// This packet comes.
    Arrives(String),
    /// This packet leaves.
    Leaves(String),
    /// Nothing leaves up to then.
    Silence,
    /// `%{ assert name == value }%`.
    Assert(String),
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) when: When,
    pub(crate) act: Act,
}

/// A script that can be read.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    stacks: Vec<String>,
    /// What differs from the stack, as in a specification: `sack=false`.
    options: Vec<String>,
    pub(crate) tolerance: Duration,
    pub(crate) steps: Vec<Step>,
}

impl Script {
    pub(crate) fn parse(text: &str) -> Result<Self, Mistake> {
        // Those of TCP are those of SCTP.
        let every = Kind::Tcp.stacks().map(|stack| stack.name.to_owned()).collect();
        let mut script = Self { stacks: every, options: Vec::new(), tolerance: TOLERANCE, steps: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default().trim();
            let read = if line.is_empty() || line.starts_with('#') {
                Ok(())
            } else if line.starts_with("--") {
                line.split_whitespace().try_for_each(|word| script.set(word))
            } else {
                step(line).map(|(when, act)| script.steps.push(Step { line: index + 1, when, act }))
            };
            read.map_err(|problem| Mistake::new(problem).at(index + 1))?;
        }
        Ok(script)
    }

    /// The stacks it is for.
    pub(crate) fn stacks(&self) -> Vec<String> {
        self.stacks.clone()
    }

    /// The specification of `protocol` as `stack` has it, with what the script says differs.
    pub(crate) fn specification(&self, protocol: &str, stack: &str) -> String {
        let options = self.options.iter().fold(String::new(), |all, option| all + "," + option);
        format!("{protocol}:stack={stack}{options}")
    }

    /// `--stack=rfc,linux-6.12`, `--tolerance_usecs=4000`, or an option of a specification such as `--sack=false`.
    fn set(&mut self, word: &str) -> Result<(), String> {
        let option =
            word.strip_prefix("--").ok_or_else(|| format!("{word:?} is no setting; begin it with \"--\""))?;
        match option.split_once('=') {
            Some(("stack", names)) => self.stacks = names.split(',').map(str::to_owned).collect(),
            Some(("tolerance_usecs", span)) => self.tolerance = Duration::from_micros(number(word, span)?),
            _ => self.options.push(option.to_owned()),
        }
        Ok(())
    }
}

fn step(line: &str) -> Result<(When, Act), String> {
    let mut words = Words::new(line);
    if words.take("%{") {
        let assertion = words.until("}%")?.to_owned();
        return Ok((When::After(Duration::ZERO), Act::Assert(assertion)));
    }
    let when = When::parse(words.next())?;
    let act = if words.take("<") {
        Act::Arrives(words.rest().to_owned())
    } else if words.take(">") {
        Act::Leaves(words.rest().to_owned())
    } else if words.take("%{") {
        Act::Assert(words.until("}%")?.to_owned())
    } else if words.is_empty() {
        Act::Silence
    } else {
        Act::Call(Call::parse(words.rest())?)
    };
    Ok((when, act))
}
