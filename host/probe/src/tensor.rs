//! The objective by candle's own operations, for any device: products on the device, row terms on the host. It must not
//! know the optimiser, nor what device it runs on.

use candle_core::Tensor;

use crate::objective::{Costs, Objective, Point, Precision, add_scaled, dot};
use crate::{Features, ProbeError};

pub(crate) struct TensorObjective<'a> {
    features: &'a Features,
    labels: &'a [bool],
    costs: Costs,
    /// `D_i` of the last evaluated point.
    latest: Vec<f64>,
    /// `D_i` of the settled point, a column on the device.
    settled: Option<Tensor>,
}

impl<'a> TensorObjective<'a> {
    pub fn new(features: &'a Features, labels: &'a [bool], costs: Costs) -> Self {
        Self {
            features,
            labels,
            costs,
            latest: vec![0.0; labels.len()],
            settled: None,
        }
    }

    fn column(&self, values: &[f64]) -> Result<Tensor, ProbeError> {
        Ok(Tensor::from_slice(
            values,
            (values.len(), 1),
            self.features.values.device(),
        )?)
    }
}

impl Objective for TensorObjective<'_> {
    fn evaluate(&mut self, point: &mut Point) -> Result<(), ProbeError> {
        let z = &self.features.values;
        let products: Vec<f64> = z
            .matmul(&self.column(&point.weights)?)?
            .flatten_all()?
            .to_vec1()?;
        let rows = products.len();
        let (mut loss, mut slope, mut curvature) = (0.0, 0.0, 0.0);
        // Row i holds its slope and its curvature: one product with the transpose then gives both sums.
        let mut pairs = Vec::with_capacity(2 * rows);
        for (index, (product, &label)) in products.iter().zip(self.labels).enumerate() {
            let terms = self.costs.terms(product + point.intercept, label);
            loss += terms.loss;
            slope += terms.slope;
            curvature += terms.curvature;
            self.latest[index] = terms.curvature;
            pairs.extend([terms.slope, terms.curvature]);
        }
        let pairs = Tensor::from_vec(pairs, (rows, 2), z.device())?;
        let sums: Vec<Vec<f64>> = z.t()?.matmul(&pairs)?.to_vec2()?;
        for (index, sums) in sums.iter().enumerate() {
            point.gradient[index] = point.weights[index] + sums[0];
            point.pull[index] = sums[1];
        }
        point.loss = 0.5 * dot(&point.weights, &point.weights) + loss;
        point.intercept_gradient = slope;
        point.intercept_curvature = curvature;
        Ok(())
    }

    fn curvature(
        &mut self,
        direction: &[f64],
        shift: f64,
        _: Precision,
        out: &mut [f64],
    ) -> Result<(), ProbeError> {
        let z = &self.features.values;
        let curvatures = self
            .settled
            .as_ref()
            .expect("a point was settled before its curvature was asked for");
        let centred = (z.matmul(&self.column(direction)?)? - shift)?;
        let sums: Vec<f64> = z
            .t()?
            .matmul(&(centred * curvatures)?)?
            .flatten_all()?
            .to_vec1()?;
        out.fill(0.0);
        add_scaled(out, 1.0, &sums);
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ProbeError> {
        self.settled = Some(self.column(&self.latest)?);
        Ok(())
    }

    fn precision(&self) -> Precision {
        Precision::Double
    }
}
