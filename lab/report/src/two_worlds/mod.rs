//! Compares the results of one study in two worlds: the verdicts on each claim, and the points.

mod agreement;
mod pairs;

use hol_lab::{Point, Results};

use crate::claims::JudgedClaim;
use crate::data::{Cell, Dataset};
use crate::report::{Report, ReportError, StudyFiles};
use crate::validation::{ComparedPoint, Validation};
use hol_lab::Metric;

pub use agreement::Agreement;
pub use pairs::Mismatch;

/// The kernel's results in the report of the model.
#[derive(Debug, Clone)]
pub struct KernelResults {
    /// Name of the kernel's world, such as `kernel:6.12.1-amd64`.
    pub name: String,
    /// The claims with the kernel's verdicts, in the order of the report.
    pub judged_claims: Vec<JudgedClaim>,
    /// Agreement of both worlds on the current stack, claim by claim, on all points of each world.
    pub agreements: Vec<Agreement>,
    /// Agreement of both worlds, claim by claim, on the points measured in both.
    pub agreements_on_shared: Vec<Agreement>,
    /// Number of points measured in both worlds.
    pub shared_points: usize,
    /// Number of points measured in both worlds whose runs have different lengths, so that they are not
    /// compared.
    pub incomparable_points: usize,
    /// Comparisons of the comparable points: one for points with response times, and one for points with
    /// throughputs.
    pub validations: Vec<Validation>,
    /// Number of points measured only in the model, and a description for each experiment.
    pub only_model: (usize, Vec<String>),
    /// Number of points measured only in the kernel, and a description for each experiment.
    pub only_kernel: (usize, Vec<String>),
}

impl Report {
    /// Creates the model's report with the kernel's verdicts; the two directories may come in any order.
    pub fn of_both(one: &Results, other: &Results) -> Result<Self, ReportError> {
        let (model, kernel) = pairs::model_first(one, other)?;
        let pairs = pairs::Pairs::of(model, kernel);
        let alike = || {
            pairs
                .shared
                .iter()
                .filter(|(model, kernel)| pairs::have_equal_lengths(&model.point, &kernel.point))
        };
        let compared: Vec<ComparedPoint> = alike()
            .map(|(model, kernel)| ComparedPoint::of(kernel, model, metric_of(&model.point)))
            .collect();
        let with_comparison = |data: Dataset| Dataset { compared: Some(compared.clone()), ..data };
        let of = |cells: Vec<Cell>| with_comparison(Dataset { cells, ..Dataset::default() });
        let [model_files, kernel_files] = [StudyFiles::of(model)?, StudyFiles::of(kernel)?];

        let judged_claims = kernel_files.judge(&with_comparison(Dataset::from(kernel)));
        let shared_model =
            model_files.judge(&of(pairs.shared.iter().map(|(model, _)| Cell::from(*model)).collect()));
        let shared_kernel =
            kernel_files.judge(&of(pairs.shared.iter().map(|(_, kernel)| Cell::from(*kernel)).collect()));
        let mut report = Self::from_data(model, with_comparison(Dataset::from(model)), model_files);
        let validations = [Metric::ResponseTime, Metric::Throughput].map(|metric| {
            let points = compared.iter().filter(|point| point.metric == metric).cloned().collect();
            let names = [kernel.manifest.world.clone(), model.manifest.version.clone()];
            Validation::of_points(&report.title, metric, points, names)
        });
        let describe = |points: &[&Point]| (points.len(), pairs::describe_points(points));
        report.kernel = Some(KernelResults {
            name: kernel.manifest.world.clone(),
            agreements: agreement::compare_claims(&report.judged_claims, &judged_claims),
            agreements_on_shared: agreement::compare_claims(&shared_model, &shared_kernel),
            judged_claims,
            shared_points: pairs.shared.len(),
            incomparable_points: pairs.shared.len() - compared.len(),
            validations: validations.into_iter().filter(|validation| !validation.points.is_empty()).collect(),
            only_model: describe(&pairs.only_model),
            only_kernel: describe(&pairs.only_kernel),
        });
        Ok(report)
    }
}

/// Returns the metric that is compared: throughput for flows, response time for transactions.
fn metric_of(point: &Point) -> Metric {
    if point.has_flow_metrics() { Metric::Throughput } else { Metric::ResponseTime }
}

#[cfg(test)]
mod tests {
    use hol_lab::{Manifest, PointResult, WorldName};

    use super::*;
    use crate::validation::test_points::measured;

    /// Points of ikr53's first experiment, with one run for each of these times in ms.
    const EXP1: &str = "transports = [{ spec = 'tcp', label = 'TCP' }]\nmessages = 8\nrepetitions = 8\n\
                        [network]\ndelay = '10ms'\n[sweep]\n'network.loss' = ['1%', '5%']\n";

    fn results(world: &str, study: Option<&str>, points: Vec<PointResult>) -> Results {
        let mut manifest = Manifest::new("A study", study, &[], Vec::new());
        let model_first = |mut result: PointResult| {
            result.point.world = WorldName::of(world, "");
            result
        };
        let points: Vec<PointResult> = points.into_iter().map(model_first).collect();
        manifest.experiments = vec![("exp1".to_owned(), "Loss".to_owned())];
        manifest.points = points.iter().map(|result| result.point.clone()).collect();
        manifest.world = world.to_owned();
        Results { manifest, points, needed: 0, missing: 0, failed: Vec::new() }
    }

    fn of_ikr53(world: &str, millis: &[u64]) -> Results {
        results(world, Some("ikr53"), measured("exp1", EXP1, millis))
    }

    /// Returns the results of a claim on the current stack, in the model and in the kernel.
    fn today(report: &Report, id: &str) -> [Option<bool>; 2] {
        let at = report.judged_claims.iter().position(|judged| judged.claim.id == id).unwrap();
        let kernel = report.kernel.as_ref().unwrap();
        [&report.judged_claims[at], &kernel.judged_claims[at]].map(|judged| judged.findings[0].1.holds)
    }

    #[test]
    fn a_claim_about_two_platforms_is_decided_by_both() {
        let model = of_ikr53("model", &[24; 10]);
        let alone = Report::gather(&model).unwrap();
        let claim = alone.judged_claims.iter().find(|judged| judged.claim.id == "ikr53-7").unwrap();
        assert_eq!(claim.findings[0].1.holds, None, "one platform does not tell");

        let same = Report::of_both(&model, &of_ikr53("kernel", &[24; 8])).unwrap();
        assert_eq!(today(&same, "ikr53-7"), [Some(true); 2]);
        let other = Report::of_both(&of_ikr53("kernel", &[30; 8]), &model).unwrap();
        assert_eq!(today(&other, "ikr53-7"), [Some(false); 2]);
        assert_eq!(other.provenance.world, "model", "the model's report, whichever comes first");
    }

    #[test]
    fn disagreement_is_in_the_summary_and_in_the_claim() {
        // Claim 8: all means lie on an axis that ends at 120 ms.
        let (model, kernel) = (of_ikr53("model", &[500; 10]), of_ikr53("kernel", &[24; 8]));
        let report = Report::of_both(&model, &kernel).unwrap();
        assert_eq!(today(&report, "ikr53-8"), [Some(false), Some(true)]);
        let html = report.html();
        let lead = html.find("the worlds disagree on").expect("it is said");
        assert!(lead < html.find("class=\"question\"").unwrap());
        assert!(
            html.contains("<a href=\"#ikr53-8\">ikr53-8</a> (holds in the kernel only)"),
            "{}",
            &html[lead..]
        );
        assert!(html.contains(
            "The claim holds in the kernel, and not in the model; the worlds also disagree if only the points that were measured in both are counted"
        ));
        assert!(html.contains("<span class=\"chip v-bad\" title=\"not reproduced today\">model: "));
        assert!(!Report::gather(&model).unwrap().html().contains("class=\"worlds\""));
    }

    #[test]
    fn points_that_one_world_lacks_are_counted_and_named() {
        let model = of_ikr53("model", &[24; 10]);
        let mut kernel = of_ikr53("kernel", &[24; 8]);
        kernel.points.truncate(1);
        let report = Report::of_both(&model, &kernel).unwrap();
        let with_comparison = report.kernel.as_ref().unwrap();
        assert_eq!(
            (with_comparison.shared_points, with_comparison.only_model.0, with_comparison.only_kernel.0),
            (1, 1, 0)
        );
        assert_eq!(with_comparison.only_model.1, ["exp1: 1 points of TCP"]);
        assert!(report.html().contains("1 points that were measured only in the model"));
    }

    #[test]
    fn runs_of_different_lengths_are_not_ranked() {
        let model = of_ikr53("model", &[24; 10]);
        let longer = EXP1.replace("messages = 8", "messages = 80");
        let kernel = results("kernel", Some("ikr53"), measured("exp1", &longer, &[24; 8]));
        let report = Report::of_both(&model, &kernel).unwrap();
        let with_comparison = report.kernel.as_ref().unwrap();
        assert_eq!(
            (
                with_comparison.shared_points,
                with_comparison.incomparable_points,
                with_comparison.validations.len()
            ),
            (2, 2, 0)
        );
        assert_eq!(today(&report, "ikr53-7"), [None; 2]);
        assert!(report.html().contains("2 have runs of different lengths"));
    }

    #[test]
    fn other_experiments_and_equal_worlds_are_refused() {
        let refusal = |one: &Results, other: &Results| Report::of_both(one, other).unwrap_err().to_string();
        let model = of_ikr53("model", &[24; 10]);
        let twice = refusal(&model, &model);
        assert!(
            twice.contains("both directories have results of the model world")
                && twice.contains("--world kernel"),
            "{twice}"
        );
        let own = results("kernel", None, measured("exp1", EXP1, &[24; 8]));
        let other = refusal(&model, &own);
        assert!(other.contains("the study ikr53") && other.contains("the experiment exp1"), "{other}");
    }
}
