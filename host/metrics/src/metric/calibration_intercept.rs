//! Calibration intercept: a of P(y = 1) = logistic(a + b logit(score)), fitted together with the slope b (see
//! [`crate::recalibrate`]). 0 is ideal. This is Cox's joint fit: with a slope far from 1 it is not calibration in the
//! large, for which compare the mean score with the prevalence.

use crate::recalibration::recalibrate;
use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::MetricValue;

register!(MetricSpec {
    id: "calibration_intercept",
    title: "Calibration intercept",
    order: 110,
    direction: Direction::NearerZero,
    as_published: false,
    role: Role::Calibration,
    input: Input::Scores,
    share: None,
    from_tally: calibration_intercept,
});

fn calibration_intercept(tally: &Tally) -> MetricValue {
    recalibrate(tally).map(|fit| fit.intercept).into()
}
