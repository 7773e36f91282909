//! Where field, disc and fovea lie. Knows nothing of disease or colour.
//!
//! Proportions of a macula-centred photograph of about 45 degrees: the disc's diameter is about 1/7 of the field's, its
//! centre lies two and a half disc diameters to the nasal side of the fovea, and the fovea a little below it.

use crate::cohort::Case;
use crate::config::Config;
use crate::maths::{cos, sin};
use crate::truth::Laterality;

/// Geometry of one photograph, in pixels.
#[derive(Debug, Clone)]
pub struct Anatomy {
    /// Side of the square picture.
    pub size: usize,
    /// Centre of the circular field.
    pub field: (f64, f64),
    /// Radius of the circular field: the unit in which all else is drawn.
    pub radius: f64,
    /// Rows above and below these are black: the camera crops the circle a little.
    pub crop: (f64, f64),
    /// Disc centre.
    pub disc: (f64, f64),
    /// Half the disc's vertical diameter.
    pub disc_radius: f64,
    /// Horizontal over vertical diameter of the disc.
    pub disc_aspect: f64,
    /// The unit of sizes on the retina: the field's radius where the view is 45 degrees wide and the disc of mean size.
    pub unit: f64,
    /// Centre of the fovea.
    pub fovea: (f64, f64),
    /// +1 where the temporal side is to the right (left eye), -1 where it is to the left (right eye).
    pub temporal: f64,
}

impl Anatomy {
    /// Places everything for a case. What belongs to the patient is mirrored between the eyes, what belongs to the moment
    /// of the photograph is not.
    pub fn draw(config: &Config, case: &Case) -> Self {
        let camera = &config.cameras[case.camera];
        let mut person = case.patient_stream(10);
        let mut moment = case.stream(11);
        let size = f64::from(config.size);
        let radius = 0.5 * size * camera.fill * moment.range(0.98, 1.0);
        let field = (
            size * 0.5 + size * moment.range(-0.006, 0.006),
            size * 0.5 + size * moment.range(-0.006, 0.006),
        );
        // Half the height that the camera leaves of the circle.
        let cut = (1.0 - camera.cut * moment.range(0.4, 1.0)) * radius;
        let temporal = if case.eye == Laterality::Left {
            1.0
        } else {
            -1.0
        };

        // A narrower view shows everything larger, and is centred more nearly between disc and fovea.
        let zoom = 45.0 / camera.field;
        let unit = radius * zoom;
        let disc_radius = unit * (person.range(0.122, 0.148) + 0.003 * moment.normal());
        let distance = 2.0 * disc_radius * person.range(2.35, 2.65);
        let angle = person.range(0.07, 0.15);
        let aside = (0.05 + 0.6 * (zoom - 1.0)) * temporal;
        let fovea = (
            field.0 + radius * (aside + moment.range(-0.07, 0.07)),
            field.1 + radius * moment.range(-0.06, 0.08),
        );
        let disc = (
            fovea.0 - temporal * distance * cos(angle),
            fovea.1 - distance * sin(angle),
        );
        Self {
            size: config.size as usize,
            field,
            radius,
            crop: (field.1 - cut, field.1 + cut),
            disc,
            disc_radius,
            disc_aspect: person.range(0.86, 0.98),
            unit: disc_radius / 0.135,
            fovea,
            temporal,
        }
    }

    /// From disc-centred coordinates (temporal, down) in disc diameters to pixels.
    pub fn beside_disc(&self, temporal: f64, down: f64) -> (f64, f64) {
        let unit = 2.0 * self.disc_radius;
        (
            self.disc.0 + self.temporal * temporal * unit,
            self.disc.1 + down * unit,
        )
    }

    /// Distance to the disc centre in disc radii, the disc's aspect counted in: 1 on its rim.
    pub fn disc_distance(&self, x: f64, y: f64) -> f64 {
        let (dx, dy) = (
            (x - self.disc.0) / (self.disc_radius * self.disc_aspect),
            (y - self.disc.1) / self.disc_radius,
        );
        (dx * dx + dy * dy).sqrt()
    }

    /// Distance to the fovea in disc diameters.
    pub fn fovea_distance(&self, x: f64, y: f64) -> f64 {
        let (dx, dy) = (x - self.fovea.0, y - self.fovea.1);
        (dx * dx + dy * dy).sqrt() / (2.0 * self.disc_radius)
    }

    /// Whether a point lies in the visible field, `margin` pixels or more from its edge.
    pub fn visible(&self, x: f64, y: f64, margin: f64) -> bool {
        let (dx, dy) = (x - self.field.0, y - self.field.1);
        let inner = self.radius - margin;
        dx * dx + dy * dy < inner * inner && y > self.crop.0 + margin && y < self.crop.1 - margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::Camera;
    use crate::cohort;

    #[test]
    fn disc_is_nasal_and_a_little_above_the_fovea() {
        let preset = |name| Camera::preset(name).unwrap();
        let config = Config {
            cameras: Camera::PRESETS.map(preset).to_vec(),
            ..Config::default()
        };
        for index in 0..config.images() {
            let case = cohort::case(&config, index);
            let anatomy = Anatomy::draw(&config, &case);
            let nasal = if case.eye == Laterality::Right {
                1.0
            } else {
                -1.0
            };
            let (dx, dy) = (
                anatomy.disc.0 - anatomy.fovea.0,
                anatomy.disc.1 - anatomy.fovea.1,
            );
            let diameter = 2.0 * anatomy.disc_radius;
            assert!((2.2..2.8).contains(&(dx * nasal / diameter)), "{dx}");
            assert!((0.1..0.5).contains(&(-dy / diameter)), "{dy}");
            assert!(
                anatomy.visible(anatomy.disc.0, anatomy.disc.1, anatomy.disc_radius),
                "disc {index} leaves the field"
            );
            assert!(anatomy.visible(anatomy.fovea.0, anatomy.fovea.1, anatomy.radius * 0.5));
            assert!(
                (anatomy.disc_distance(anatomy.disc.0, anatomy.disc.1 + anatomy.disc_radius) - 1.0)
                    .abs()
                    < 1e-12
            );
        }
    }
}
