//! ns's error models: which packets a direction of a link loses.

use hol_base::Ratio;
use hol_network::{ExplicitLoss, LinkChange, LossSpec};

use crate::quantity::{loss, whole};
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{Complaint, Word, complain, elements};

/// An `ErrorModel`, and the directions that have it.
#[derive(Debug)]
pub(crate) struct ErrorModel {
    at: usize,
    rate: Ratio,
    /// It counts packets, not bits, octets or time.
    unit: String,
    is_uniform: bool,
    /// The packets that it loses, if it has a list.
    list: Option<Vec<u64>>,
    lines: Vec<(usize, usize)>,
}

impl ErrorModel {
    fn spec(&self) -> Result<LossSpec, Complaint> {
        let wrong = |problem: String| Complaint { at: self.at, problem };
        if !matches!(self.unit.as_str(), "pkt" | "packet" | "EU_PKT") {
            let unit = &self.unit;
            return Err(wrong(format!(
                "this error model counts {unit}; losses here are of packets: $em unit pkt"
            )));
        }
        if !self.is_uniform {
            return Err(wrong(
                "this error model's random variable is not RandomVariable/Uniform from 0 to 1; bursts are set in the \
                 experiment, by [network.links.NAME] loss"
                    .to_owned(),
            ));
        }
        match &self.list {
            // ns counts from 0.
            Some(list) => {
                Ok(LossSpec::Packets(ExplicitLoss { drop: list.iter().map(|number| number + 1).collect() }))
            }
            None => Ok(LossSpec::Independent(self.rate)),
        }
    }
}

impl Simulator<'_> {
    /// `new ErrorModel`, `new ErrorModel/Uniform 0.01 pkt`, `new ErrorModel/List`; `None` for what is none of them.
    pub(crate) fn error_model(&mut self, class: &Word, arguments: &[Word]) -> Option<Outcome> {
        let list = match class.text.as_str() {
            "ErrorModel" | "ErrorModel/Uniform" => None,
            "ErrorModel/List" => Some(Vec::new()),
            _ => return None,
        };
        let (at, lines) = (class.at, Vec::new());
        let unit = "pkt".to_owned();
        let model = ErrorModel { at, rate: Ratio::ZERO, unit, is_uniform: true, list, lines };
        self.error_models.push(model);
        let index = self.error_models.len() - 1;
        Some((|| {
            for (attribute, value) in self.defaults.of(&class.text) {
                self.set_error_model(index, &attribute, at, &value)?;
            }
            if let [rate, rest @ ..] = arguments {
                self.error_models[index].rate = loss(rate)?;
                if let [unit, ..] = rest {
                    self.error_models[index].unit = unit.text.clone();
                }
            }
            Ok(self.add(Object::ErrorModel(index)))
        })())
    }

    /// A command of an error model.
    pub(crate) fn ask_error_model(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        match (method.text.as_str(), &words[2..]) {
            ("unit", [unit]) => self.error_models[index].unit = unit.text.clone(),
            ("set", [_]) => return Ok(self.error_models[index].rate.value().to_string()),
            ("set", [attribute, value]) => {
                self.set_error_model(index, &attribute.text, attribute.at, value)?;
            }
            ("droplist", [list]) => {
                let numbers = elements(&list.text).map_err(|problem| Complaint { at: list.at, problem })?;
                let number = |text| whole(&Word { text, ..list.clone() });
                self.error_models[index].list =
                    Some(numbers.into_iter().map(number).collect::<Result<Vec<_>, _>>()?);
            }
            ("ranvar", [variable]) => {
                let Some(Object::Variable { is_uniform }) = self.object_called(&variable.text) else {
                    let problem = "this is not a random variable; make one with new RandomVariable/Uniform";
                    return complain(variable.at, problem);
                };
                self.error_models[index].is_uniform = is_uniform;
            }
            // Where lost packets go.
            ("drop-target" | "target" | "FECstrength" | "datapktsize" | "cntrlpktsize", _) => {
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

    /// `$ns lossmodel $em $from $to`, or `link-lossmodel`, behind the queue.
    pub(crate) fn lossmodel(&mut self, model: &Word, from: &Word, to: &Word) -> Outcome {
        let Some(Object::ErrorModel(index)) = self.object_called(&model.text) else {
            return complain(model.at, "this is not an error model; make one with new ErrorModel");
        };
        let line = self.between(from, to)?;
        self.error_models[index].lines.push(line);
        self.apply_error_model(index)
    }

    fn set_error_model(
        &mut self,
        index: usize,
        name: &str,
        at: usize,
        value: &Word,
    ) -> Result<(), Complaint> {
        match name {
            "rate_" => self.error_models[index].rate = loss(value)?,
            "enable_" if matches!(value.text.as_str(), "1" | "true") => {}
            "bandwidth_" | "markecn_" | "delay_pkt_"
                if matches!(value.text.as_str(), "0" | "false" | "2Mb") => {}
            _ => return complain(at, format!("{name:?} of an error model is not read; it has rate_ here")),
        }
        Ok(())
    }

    fn apply_error_model(&mut self, index: usize) -> Outcome {
        for (segment, line) in self.error_models[index].lines.clone() {
            let loss = self.error_models[index].spec()?;
            self.change(segment, Some(line), LinkChange::Loss(loss));
        }
        Ok(String::new())
    }
}
