//! Gauge actions of plaquettes, rectangles and parallelograms, and their forces.
use super::force::Force;
use super::links::EvolvingLinks;
use super::momenta::MomentumField;
use crate::domain::Result;
use crate::field::GaugeField;
use crate::gauge::loops::{LoopKind, LoopPath, closed_loops, mean_traces};
use gpu_kernels::gauge_force::{GaugeForce, SYMANZIK_FORCE_DOUBLE, SYMANZIK_FORCE_SINGLE, WILSON_FORCE};
use gpu_kernels::{Format, Precision};

/// S = (β/3) Σ_x [c_P Σ Re tr (1 − P) + c_R Σ Re tr (1 − R) + c_C Σ Re tr (1 − C)] over the 6 plaquettes, 12 rectangles and
/// 16 parallelograms of each site: closed paths of six links along three axes, (μ, ν, ρ, −μ, −ν, −ρ).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaugeAction {
    /// β
    pub beta: f64,
    /// c_P
    pub plaquette: f64,
    /// c_R
    pub rectangle: f64,
    /// c_C
    pub parallelogram: f64,
}

impl GaugeAction {
    /// Wilson's: plaquettes only.
    pub fn wilson(beta: f64) -> Self {
        GaugeAction { beta, plaquette: 1.0, rectangle: 0.0, parallelogram: 0.0 }
    }
    /// Symanzik's at tree level, with the tadpole factor u_0: c_R = −1 / (20 u_0²) (Lüscher and Weisz 1985). β is the factor
    /// of the plaquette, which is 5/3 of that in actions normalised to c_0 + 8 c_1 = 1.
    pub fn tree_level_symanzik(beta: f64, u0: f64) -> Self {
        GaugeAction { rectangle: -0.05 / (u0 * u0), ..Self::wilson(beta) }
    }
    /// Symanzik's to one loop, without quarks, as MILC has it: c_R = −(1 + 0.4805 α) / (20 u_0²) and
    /// c_C = −0.03325 α / u_0² with α = −4 ln u_0 / 3.0684 (Lepage and Mackenzie 1993; Alford et al. 1995).
    pub fn one_loop_symanzik(beta: f64, u0: f64) -> Self {
        let (square, ln) = (u0 * u0, u0.ln());
        GaugeAction {
            rectangle: -(1.0 - 0.6264 * ln) / (20.0 * square),
            parallelogram: 0.04335 * ln / square,
            ..Self::wilson(beta)
        }
    }
    fn is_improved(&self) -> bool {
        self.rectangle != 0.0 || self.parallelogram != 0.0
    }
    /// *Collective.* S of links in double precision.
    pub fn value(&self, links: &GaugeField) -> Result<f64> {
        let loops = closed_loops();
        let wanted = if self.is_improved() { loops.as_slice() } else { &loops[..6] };
        let traces = mean_traces(links, wanted)?;
        let volume = links.domain().global().volume() as f64;
        let sum: f64 = wanted.iter().zip(traces).map(|(path, trace)| self.factor(path) * (3.0 - trace)).sum();
        Ok(self.beta / 3.0 * volume * sum)
    }
    fn factor(&self, path: &LoopPath) -> f64 {
        match path.kind {
            LoopKind::Plaquette => self.plaquette,
            LoopKind::Rectangle => self.rectangle,
            LoopKind::Parallelogram => self.parallelogram,
        }
    }
    /// P ← P − ε ∂S
    fn kick(&self, links: &GaugeField, step: f64, momenta: &mut MomentumField) -> Result {
        momenta.expect_on(links.domain())?;
        let factor = step * self.beta / 3.0;
        let coefficients = [factor * self.plaquette, factor * self.rectangle, factor * self.parallelogram];
        let (domain, lattice) = (links.domain(), links.bordered());
        let format = Format::between(links.precision(), momenta.precision());
        let kernel = match (self.is_improved(), links.precision()) {
            (false, _) => &WILSON_FORCE,
            (true, Precision::Double) => &SYMANZIK_FORCE_DOUBLE,
            (true, _) => &SYMANZIK_FORCE_SINGLE,
        };
        for parity in 0..2 {
            let (links, momenta, parity) = (links.both(), momenta.view(parity), parity as u32);
            let arguments = GaugeForce { links, momenta, lattice, parity, coefficients };
            domain.backend().launch(kernel, format, &arguments, domain.half_sites(), 4)?;
        }
        Ok(())
    }
}

/// A gauge action as a force.
pub struct GaugeActionForce {
    /// The action.
    pub action: GaugeAction,
    /// Whether staples are multiplied in single precision, or in double.
    pub single: bool,
}

impl Force for GaugeActionForce {
    fn name(&self) -> String {
        "gauge".into()
    }
    fn kick(
        &self,
        links: &EvolvingLinks,
        step: f64,
        momenta: &mut MomentumField,
    ) -> std::result::Result<(), super::HmcError> {
        let precision = if self.single { Precision::Single } else { Precision::Double };
        Ok(self.action.kick(&*links.thin(precision)?, step, momenta)?)
    }
}
