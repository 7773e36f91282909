//! Calibration slope: b of P(y = 1) = logistic(a + b logit(score)), fitted to the rows (see [`crate::recalibrate`]). 1 is
//! ideal; below 1 the scores are too extreme.

use crate::recalibration::recalibrate;
use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::MetricValue;

register!(MetricSpec {
    id: "calibration_slope",
    title: "Calibration slope",
    order: 100,
    direction: Direction::NearerOne,
    as_published: false,
    role: Role::Calibration,
    input: Input::Scores,
    share: None,
    from_tally: calibration_slope,
});

fn calibration_slope(tally: &Tally) -> MetricValue {
    recalibrate(tally).map(|fit| fit.slope).into()
}
