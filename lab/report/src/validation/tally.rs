//! The number of points that agree.

use super::ComparedPoint;

/// Numbers of points by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of points.
    pub points: usize,
    /// Number of points at which model and kernel agree.
    pub agree: usize,
    /// Number of points whose uncertainty exceeds the tolerance.
    pub imprecise: usize,
    /// Number of points whose uncertainty exceeds the tolerance and that agree.
    pub imprecise_and_agree: usize,
}

impl Tally {
    /// Returns the share of points that agree; 0 without points.
    pub fn share(&self) -> f64 {
        self.agree as f64 / self.points.max(1) as f64
    }

    /// Describes how many agree, as a clause.
    pub fn describe_agreement(&self) -> String {
        format!("{} of {} points agree ({:.1} %)", self.agree, self.points, 100.0 * self.share())
    }

    /// Describes the effect of the uncertain points, as a clause.
    pub fn describe_certainty(&self) -> String {
        let Self { points, agree, imprecise, imprecise_and_agree } = self;
        format!(
            "{imprecise} points have an uncertainty above the tolerance; {imprecise_and_agree} of these agree, and {} of the other {}",
            agree - imprecise_and_agree,
            points - imprecise,
        )
    }
}

impl<'c> FromIterator<&'c ComparedPoint> for Tally {
    fn from_iter<I: IntoIterator<Item = &'c ComparedPoint>>(points: I) -> Self {
        let mut tally = Self::default();
        for point in points {
            let (agrees, little) = (point.agrees(), point.is_imprecise());
            tally.points += 1;
            tally.agree += usize::from(agrees);
            tally.imprecise += usize::from(little);
            tally.imprecise_and_agree += usize::from(little && agrees);
        }
        tally
    }
}
