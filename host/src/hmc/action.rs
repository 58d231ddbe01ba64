//! Gauge actions of plaquettes, rectangles and parallelograms, and their forces.
use super::momenta::MomentumField;
use crate::domain::Result;
use crate::field::GaugeField;
use crate::gauge::loops::{LoopKind, LoopPath, closed_loops, mean_traces};
use gpu_kernels::gauge_force::{
    GaugeForce, LoopCoefficients, SYMANZIK_FORCE_DOUBLE, SYMANZIK_FORCE_SINGLE, WILSON_FORCE,
};
use gpu_kernels::{Format, Precision};

/// The gauge action S = (β/3) Σ_x [c_P Σ Re tr (1 − P) + c_R Σ Re tr (1 − R) + c_C Σ Re tr (1 − C)]. Each site has 6 plaquettes P, 12
/// rectangles R and 16 parallelograms C. A parallelogram is a closed path of six links along three axes, (μ, ν, ρ, −μ, −ν, −ρ).
/// docs/rhmc.md compares β with that of other codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaugeAction {
    /// Coupling β.
    pub beta: f64,
    /// Coefficient c_P of plaquettes.
    pub plaquette: f64,
    /// Coefficient c_R of rectangles.
    pub rectangle: f64,
    /// Coefficient c_C of parallelograms.
    pub parallelogram: f64,
    /// Factors of c_P and c_R on an anisotropic lattice.
    pub anisotropy: GaugeAnisotropy,
}

/// Factors of c_P and c_R that depend on the orientation of a loop relative to t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaugeAnisotropy {
    /// Factors of c_P for spatial plaquettes and for plaquettes with t.
    pub plaquettes: [f64; 2],
    /// Factors of c_R for three kinds of rectangles: spatial, with the short side in t, and with the long side in t.
    pub rectangles: [f64; 3],
}

impl GaugeAnisotropy {
    /// Factors of an isotropic lattice, all 1.
    pub const NONE: Self = GaugeAnisotropy { plaquettes: [1.0; 2], rectangles: [1.0; 3] };
}

/// Parameters of an anisotropic lattice in gauge actions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnisotropicLattice {
    /// Bare anisotropy ξ_0: ratio of the lattice spacing in space to that in t.
    pub xi: f64,
    /// Tadpole factor u_s of links in space; not used by Wilson's action.
    pub space: f64,
    /// Tadpole factor u_t of links in t; not used by Wilson's action.
    pub time: f64,
}

/// Gauge actions that users can choose by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionName {
    /// Wilson's action of plaquettes alone (Wilson 1974).
    Wilson,
    /// Symanzik's action at tree level.
    SymanzikTree,
    /// Symanzik's action at one loop (Lüscher and Weisz 1985).
    LuscherWeisz,
    /// Iwasaki's action.
    Iwasaki,
    /// DBW2 action (QCD-TARO 2000).
    Dbw2,
}

impl ActionName {
    /// All named actions, each with its name in inputs.
    pub const ALL: [(&str, ActionName); 5] = [
        ("wilson", ActionName::Wilson),
        ("symanzik-tree", ActionName::SymanzikTree),
        ("luscher-weisz", ActionName::LuscherWeisz),
        ("iwasaki", ActionName::Iwasaki),
        ("dbw2", ActionName::Dbw2),
    ];
    /// Whether the action has a tadpole factor.
    pub fn has_tadpole_factor(self) -> bool {
        matches!(self, ActionName::SymanzikTree | ActionName::LuscherWeisz)
    }
    /// Whether the action is defined on anisotropic lattices.
    pub fn can_be_anisotropic(self) -> bool {
        matches!(self, ActionName::Wilson | ActionName::SymanzikTree)
    }
    /// Returns the action on an isotropic lattice with coupling β and tadpole factor u₀. `flavours` is the number of flavours of HISQ
    /// quarks in the coefficients of [`LuscherWeisz`](Self::LuscherWeisz); `None` for coefficients without quarks.
    pub fn isotropic(self, beta: f64, u0: f64, flavours: Option<f64>) -> GaugeAction {
        match (self, flavours) {
            (ActionName::Wilson, _) => GaugeAction::wilson(beta),
            (ActionName::SymanzikTree, _) => GaugeAction::tree_level_symanzik(beta, u0),
            (ActionName::LuscherWeisz, Some(flavours)) => GaugeAction::one_loop_symanzik_with_hisq(beta, u0, flavours),
            (ActionName::LuscherWeisz, None) => GaugeAction::one_loop_symanzik(beta, u0),
            (ActionName::Iwasaki, _) => GaugeAction::iwasaki(beta),
            (ActionName::Dbw2, _) => GaugeAction::dbw2(beta),
        }
    }
}

impl GaugeAction {
    /// Returns Wilson's action, which contains plaquettes only.
    pub fn wilson(beta: f64) -> Self {
        GaugeAction { beta, plaquette: 1.0, rectangle: 0.0, parallelogram: 0.0, anisotropy: GaugeAnisotropy::NONE }
    }
    /// Returns an action of plaquettes and rectangles with c_P = 1 − 8 c_1 and c_R = c_1, so that β = 6/g².
    pub fn with_rectangles(beta: f64, c1: f64) -> Self {
        GaugeAction { plaquette: 1.0 - 8.0 * c1, rectangle: c1, ..Self::wilson(beta) }
    }
    /// Returns Iwasaki's action: c_1 = −0.331 (Iwasaki 1985).
    pub fn iwasaki(beta: f64) -> Self {
        Self::with_rectangles(beta, -0.331)
    }
    /// Returns the DBW2 action (doubly blocked Wilson links, two couplings): c_1 = −1.4088 (Takaishi 1996; de Forcrand et al. 2000).
    pub fn dbw2(beta: f64) -> Self {
        Self::with_rectangles(beta, -1.4088)
    }
    /// Returns Wilson's action on an anisotropic lattice: spatial plaquettes are divided by ξ_0, and plaquettes with t are multiplied by
    /// ξ_0 (Klassen 1998).
    pub fn anisotropic_wilson(beta: f64, xi: f64) -> Self {
        let anisotropy = GaugeAnisotropy { plaquettes: [1.0 / xi, xi], ..GaugeAnisotropy::NONE };
        GaugeAction { anisotropy, ..Self::wilson(beta) }
    }
    /// Returns Symanzik's action at tree level on an anisotropic lattice (Morningstar and Peardon 1997, eq. 2). It is improved in space
    /// only: no loop extends over two steps in t, which avoids spurious states. As on isotropic lattices, β includes the factor of
    /// plaquettes, which is 5/3 u_s⁻⁴ in the paper. With this β, c_P is 1/ξ_0 for spatial plaquettes and (4/5) ξ_0 u_s²/u_t² for plaquettes
    /// with t. c_R is −1/(20 u_s² ξ_0) for spatial rectangles and −ξ_0/(20 u_t²) for rectangles with their short side in t.
    pub fn anisotropic_symanzik(beta: f64, lattice: AnisotropicLattice) -> Self {
        let AnisotropicLattice { xi, space, time } = lattice;
        let ratio = xi * (space / time).powi(2);
        let anisotropy = GaugeAnisotropy { plaquettes: [1.0 / xi, 0.8 * ratio], rectangles: [1.0 / xi, ratio, 0.0] };
        GaugeAction { anisotropy, ..Self::tree_level_symanzik(beta, space) }
    }
    /// Returns Symanzik's action at tree level with the tadpole factor u_0: c_R = −1 / (20 u_0²) (Lüscher and Weisz 1985). The plaquette
    /// has the factor β, since c_P = 1. For u_0 = 1, codes with the normalisation c_0 + 8 c_1 = 1 use 3/5 of this β.
    pub fn tree_level_symanzik(beta: f64, u0: f64) -> Self {
        GaugeAction { rectangle: -0.05 / (u0 * u0), ..Self::wilson(beta) }
    }
    /// Returns Symanzik's action to one loop, without quarks, as in MILC: c_R = −(1 + 0.4805 α) / (20 u_0²) and c_C = −0.03325 α / u_0²
    /// with α = −4 ln u_0 / 3.0684 (Lepage and Mackenzie 1993; Alford et al. 1995).
    pub fn one_loop_symanzik(beta: f64, u0: f64) -> Self {
        let (square, ln) = (u0 * u0, u0.ln());
        GaugeAction {
            rectangle: -(1.0 - 0.6264 * ln) / (20.0 * square),
            parallelogram: 0.04335 * ln / square,
            ..Self::wilson(beta)
        }
    }
    /// Returns Symanzik's action to one loop with N_f = `flavours` HISQ quarks, as in MILC: c_R = −(1 − (0.6264 − 1.1746 N_f) ln u_0) / (20
    /// u_0²) and c_C = (0.0433 − 0.0156 N_f) ln u_0 / u_0² (Hart, von Hippel and Horgan 2009). For N_f = 0, c_C has the factor 0.0433
    /// instead of the 0.04335 of [`one_loop_symanzik`](Self::one_loop_symanzik).
    pub fn one_loop_symanzik_with_hisq(beta: f64, u0: f64, flavours: f64) -> Self {
        let (square, ln) = (u0 * u0, u0.ln());
        GaugeAction {
            rectangle: -(1.0 - (0.6264 - 1.1746 * flavours) * ln) / (20.0 * square),
            parallelogram: (0.0433 - 0.0156 * flavours) * ln / square,
            ..Self::wilson(beta)
        }
    }
    fn is_improved(&self) -> bool {
        self.rectangle != 0.0 || self.parallelogram != 0.0
    }
    /// *Collective.* Computes the action S; `links` must be in double precision.
    pub fn value(&self, links: &GaugeField) -> Result<f64> {
        let loops = closed_loops();
        let wanted = if self.is_improved() { loops.as_slice() } else { &loops[..6] };
        let traces = mean_traces(links, wanted)?;
        let volume = links.domain().global().volume() as f64;
        let sum: f64 = wanted.iter().zip(traces).map(|(path, trace)| self.factor(path) * (3.0 - trace)).sum();
        Ok(self.beta / 3.0 * volume * sum)
    }
    fn factor(&self, path: &LoopPath) -> f64 {
        let steps_in_time = path.steps.iter().filter(|(mu, _)| *mu == 3).count();
        match path.kind {
            LoopKind::Plaquette => self.plaquette * self.anisotropy.plaquettes[steps_in_time / 2],
            LoopKind::Rectangle => self.rectangle * self.anisotropy.rectangles[steps_in_time / 2],
            LoopKind::Parallelogram => self.parallelogram,
        }
    }
    /// Computes P ← P − ε ∂S for the momenta P, where ε is `step`.
    pub(super) fn kick(&self, links: &GaugeField, step: f64, momenta: &mut MomentumField) -> Result {
        momenta.expect_on(links.domain())?;
        let factor = step * self.beta / 3.0;
        let coefficients = LoopCoefficients {
            plaquettes: self.anisotropy.plaquettes.map(|of| factor * self.plaquette * of),
            rectangles: self.anisotropy.rectangles.map(|of| factor * self.rectangle * of),
            parallelograms: factor * self.parallelogram,
        };
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
