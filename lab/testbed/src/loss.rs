//! Error models of ns: which packets a direction of a link loses.

use std::borrow::Cow;

use hol_base::Ratio;
use hol_network::{ExplicitLoss, LinkChange, LossSpec};

use crate::quantity::{any_number, whole_number};
use crate::random_variables::RandomObjects;
use crate::simulator::{ENTRY_OCTETS, Object, Outcome, Simulator};
use crate::tcl::{Word, WordError, error_at, list_of};

/// An `ErrorModel` of ns, and the direction of a link to which it applies.
#[derive(Debug)]
pub(crate) struct ErrorModel {
    at: usize,
    /// A packet is lost if the value of the random variable is below this rate.
    rate: f64,
    /// The unit of the rate. Only packets are supported; bits, octets and time are not.
    unit: String,
    /// Index of the random variable of the model; `None`: a variable uniform from 0 to 1.
    variable: Option<usize>,
    /// The numbers of the packets that the model loses; `None` if they are random.
    list: Option<Vec<u64>>,
    line: Option<(usize, usize)>,
}

impl ErrorModel {
    /// Returns whether the model draws a number from ns's default random generator for each packet of a link.
    pub fn draws_random_numbers(&self, randoms: &RandomObjects) -> bool {
        let is_default = self.variable.is_none_or(|variable| randoms.generator_of(variable) == 0);
        self.line.is_some() && self.list.is_none() && is_default
    }

    fn spec(&self, randoms: &RandomObjects) -> Result<LossSpec, WordError> {
        let wrong = |problem: String| WordError { at: self.at, problem };
        if !matches!(self.unit.as_str(), "pkt" | "packet" | "EU_PKT") {
            let unit = &self.unit;
            return Err(wrong(format!(
                "this error model counts {unit}; only packets are supported: $em unit pkt"
            )));
        }
        let share = match self.variable {
            Some(variable) => randoms.share_below(variable, self.rate),
            None => Some(self.rate),
        };
        let share = share.ok_or_else(|| {
            wrong(
                "the random variable of this error model is not RandomVariable/Uniform; for bursts use [network.links.NAME] loss in the experiment"
                    .to_owned(),
            )
        })?;
        match &self.list {
            // ns counts from 0.
            Some(list) => {
                Ok(LossSpec::Packets(ExplicitLoss { drop: list.iter().map(|number| number + 1).collect() }))
            }
            None => {
                let share = Ratio::new(share);
                let problem = || wrong(format!("{} is not a loss rate from 0 to 1, such as 0.01", self.rate));
                Ok(LossSpec::Independent(share.ok_or_else(problem)?))
            }
        }
    }
}

impl Simulator<'_> {
    /// Executes `new ErrorModel`, `new ErrorModel/Uniform 0.01 pkt` or `new ErrorModel/List`; `None` for another class.
    pub(crate) fn error_model(&mut self, class: &Word, arguments: &[Word]) -> Option<Outcome> {
        let list = match class.text.as_str() {
            "ErrorModel" | "ErrorModel/Uniform" => None,
            "ErrorModel/List" => Some(Vec::new()),
            _ => return None,
        };
        let (at, line) = (class.at, None);
        let unit = "pkt".to_owned();
        let model = ErrorModel { at, rate: 0.0, unit, variable: None, list, line };
        self.error_models.push(model);
        let index = self.error_models.len() - 1;
        Some((|| {
            for (attribute, value) in self.defaults_of(&class.text, at)? {
                self.set_error_model(index, &attribute, at, &value)?;
            }
            if let [rate, rest @ ..] = arguments {
                self.error_models[index].rate = any_number(rate)?;
                if let [unit, ..] = rest {
                    self.error_models[index].unit = unit.text.clone();
                }
            }
            Ok(self.add(Object::ErrorModel(index)))
        })())
    }

    /// Executes a command of an error model.
    pub(crate) fn error_model_command(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        match (method.text.as_str(), &words[2..]) {
            ("unit", [unit]) => self.error_models[index].unit = unit.text.clone(),
            ("set", [_]) => return Ok(self.error_models[index].rate.to_string()),
            ("set", [attribute, value]) => {
                self.set_error_model(index, &attribute.text, attribute.at, value)?;
            }
            ("droplist", [list]) => {
                let number = |text: Cow<str>| whole_number(&Word { text: text.into_owned(), ..list.clone() });
                self.error_models[index].list =
                    Some(list_of(list)?.into_iter().map(number).collect::<Result<Vec<_>, _>>()?);
            }
            ("ranvar", [variable]) => {
                let Some(Object::Variable(variable)) = self.object(&variable.text) else {
                    let problem = "this is not a random variable; create one with new RandomVariable/Uniform";
                    return error_at(variable.at, problem);
                };
                let former = self.error_models[index].variable.replace(variable);
                self.randoms.note_use(index, former, variable);
            }
            // The object that gets the lost packets has no effect.
            ("drop-target" | "target", _) => {
                return Ok(String::new());
            }
            _ => {
                return self.unknown(
                    method.at,
                    format!("{:?} is not a supported command of an error model", method.text),
                );
            }
        }
        self.apply_error_model(index)
    }

    /// Executes `$ns lossmodel $em $from $to` or `$ns link-lossmodel $em $from $to`, which lose packets behind the
    /// queue of the link.
    pub(crate) fn lossmodel(&mut self, model: &Word, from: &Word, to: &Word) -> Outcome {
        let line = self.find_link(from, to)?;
        self.add_loss(model, line)
    }

    /// Applies an error model to a direction of a link.
    pub(crate) fn add_loss(&mut self, model: &Word, line: (usize, usize)) -> Outcome {
        let Some(Object::ErrorModel(index)) = self.object(&model.text) else {
            return error_at(model.at, "this is not an error model; create one with new ErrorModel");
        };
        if self.draft.segments[line.0].lines[line.1].has_error_model {
            let problem =
                "this direction of the link already has an error model; in ns both would lose packets";
            return error_at(model.at, problem);
        }
        if self.error_models[index].line.is_some() {
            let problem = "ns misroutes packets if one error model is in two places; create another one";
            return error_at(model.at, problem);
        }
        self.error_models[index].line = Some(line);
        self.draft.segments[line.0].lines[line.1].has_error_model = true;
        self.apply_error_model(index)
    }

    /// Applies the change of a random variable to the error models that draw from it.
    pub(crate) fn apply_variable(&mut self, variable: usize, at: usize) -> Result<(), WordError> {
        self.charge_memory(at, self.randoms.error_models_of(variable).len() * ENTRY_OCTETS)?;
        for model in self.randoms.error_models_of(variable).clone() {
            self.apply_error_model(model)?;
        }
        Ok(())
    }

    fn set_error_model(
        &mut self,
        index: usize,
        name: &str,
        at: usize,
        value: &Word,
    ) -> Result<(), WordError> {
        match name {
            "rate_" => self.error_models[index].rate = any_number(value)?,
            "enable_" if matches!(value.text.as_str(), "1" | "true") => {}
            "bandwidth_" | "markecn_" | "delay_pkt_"
                if matches!(value.text.as_str(), "0" | "false" | "2Mb") => {}
            _ => {
                return error_at(
                    at,
                    format!("attribute {name:?} of an error model is not supported; supported is rate_"),
                );
            }
        }
        Ok(())
    }

    fn apply_error_model(&mut self, index: usize) -> Outcome {
        if let Some((segment, line)) = self.error_models[index].line {
            let model = &self.error_models[index];
            let (at, loss) = (model.at, model.spec(&self.randoms)?);
            // Each change of a link has its own copy of the list.
            let listed = model.list.as_ref().map_or(0, Vec::len);
            self.charge_memory(at, ENTRY_OCTETS + listed * size_of::<u64>())?;
            self.change_link(segment, Some(line), LinkChange::Loss(loss));
        }
        Ok(String::new())
    }
}
