//! The Wilson operator: M = (4 + m) − ½ D = (1 − κ D) / (2κ), κ = 1 / (2 (4 + m)), with D of Clark et al. 2009, eq. 1;
//! on an anisotropic lattice M = (1 + 3 ν/ξ_0 + m) − ½ (ν/ξ_0 D_space + D_time).
use super::angles::{BOUNDARIES, TimeBoundary};
use super::even_odd::Width;
use super::keys::{DIVISOR, Key, KeyKind, Keys, choose, is_divisor};
use crate::domain::{Domain, Result};
use crate::field::{DeviceField, DeviceGauge, FieldShape, HopPhases};
use crate::halo::HopBoundary;
use gpu_kernels::lattice::Region;
use gpu_kernels::wilson::{Hopping, WILSON_DSLASH};
use gpu_kernels::{Format, LinkStorage, Precision};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Flops per site for the hopping term, by the community's standard count.
pub const DSLASH_FLOPS: f64 = 1320.0;
/// Operations of a x + b D ψ per site: two more for each of the 24 real components.
pub const DSLASH_ADD_FLOPS: f64 = DSLASH_FLOPS + 48.0;

/// Anisotropy of the lattice, in Chroma's convention: ξ_0 is the bare ratio of the lattice spacings in space and in time, and ν the bare
/// velocity of light. Hops in space are multiplied by ν/ξ_0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anisotropy {
    /// Bare anisotropy ξ_0.
    pub xi: f64,
    /// Bare velocity of light ν.
    pub nu: f64,
}

impl Default for Anisotropy {
    /// Returns the values ξ_0 = ν = 1 of an isotropic lattice.
    fn default() -> Self {
        Anisotropy { xi: 1.0, nu: 1.0 }
    }
}

impl Anisotropy {
    /// Returns ν/ξ_0, the factor of the hops in space.
    pub fn space(&self) -> f64 {
        self.nu / self.xi
    }
}

/// Parameters of a Wilson operator, without its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonParams {
    /// Bare mass m.
    pub mass: f64,
    /// Boundary condition in t.
    pub boundary: TimeBoundary,
    /// Anisotropy of the lattice.
    pub anisotropy: Anisotropy,
}

impl WilsonParams {
    /// Returns the parameters for a bare mass, on an isotropic lattice.
    pub fn from_mass(mass: f64, boundary: TimeBoundary) -> Self {
        WilsonParams { mass, boundary, anisotropy: Anisotropy::default() }
    }
    /// Returns the parameters for κ = 1 / (2 (4 + m)), on an isotropic lattice.
    pub fn from_kappa(kappa: f64, boundary: TimeBoundary) -> Self {
        Self::from_mass(0.5 / kappa - 4.0, boundary)
    }
    /// Returns the diagonal of M: 1 + 3 ν/ξ_0 + m, which is 4 + m on an isotropic lattice.
    pub fn diagonal(&self) -> f64 {
        1.0 + 3.0 * self.anisotropy.space() + self.mass
    }
    /// Returns the factor of the hopping term D̃ in M = diagonal − `hop` D̃. Kernels compute D̃ = D_space + (ξ_0/ν) D_time.
    pub fn hop(&self) -> f64 {
        0.5 * self.anisotropy.space()
    }
    /// Returns [`hop`](Self::hop) / [`diagonal`](Self::diagonal), which is κ on an isotropic lattice.
    pub fn kappa(&self) -> f64 {
        self.hop() / self.diagonal()
    }
}

/// Wilson operator on links in one precision and storage. On fields with a fifth dimension, the operator acts on each slice.
pub struct Wilson {
    gauge: Arc<DeviceGauge>,
    params: WilsonParams,
    boundary: HopBoundary,
    nrhs: Width,
}

impl Clone for Wilson {
    fn clone(&self) -> Self {
        Wilson { gauge: self.gauge.clone(), params: self.params, boundary: self.boundary, nrhs: Width::default() }
    }
}

impl Wilson {
    /// Makes the operator on the given links.
    pub fn new(gauge: Arc<DeviceGauge>, params: WilsonParams) -> Self {
        Wilson { gauge, params, boundary: HopBoundary::Neighbours, nrhs: Width::default() }
    }
    /// Whether this build has kernels of the Wilson operator for fields in `precision` and links in `storage`.
    pub fn exists(precision: Precision, storage: LinkStorage) -> bool {
        WILSON_DSLASH.0.instance(Format::with_links(precision, storage)).is_some()
    }
    /// Divides the operator into blocks of these extents, which must divide the local lattice. ψ counts as 0 outside a block, so no
    /// messages are needed. This is the operator of an additive Schwarz preconditioner.
    #[must_use]
    pub fn in_blocks(self, extents: [usize; 4]) -> Self {
        Wilson { boundary: HopBoundary::Blocks(extents), ..self }
    }
    /// Returns the extents of the independent blocks; without blocks, those of the whole lattice.
    pub(super) fn block(&self) -> [usize; 4] {
        match self.boundary {
            HopBoundary::Neighbours => self.domain().global().size(),
            HopBoundary::Blocks(extents) => extents,
        }
    }
    /// Returns the number of right-hand sides on which the operator works.
    pub(super) fn nrhs(&self) -> &Width {
        &self.nrhs
    }
    pub(super) fn boundary(&self) -> HopBoundary {
        self.boundary
    }
    /// Returns mass, boundary condition and anisotropy.
    pub fn params(&self) -> WilsonParams {
        self.params
    }
    /// Returns the domain on which the links are stored.
    pub fn domain(&self) -> &Domain {
        self.gauge.domain()
    }
    /// Returns the precision of links and fields.
    pub fn precision(&self) -> Precision {
        self.gauge.precision()
    }
    /// Returns the storage of the links.
    pub fn storage(&self) -> LinkStorage {
        self.gauge.storage()
    }
    /// Returns the phases with which the links are multiplied.
    pub(crate) fn phases(&self) -> HopPhases {
        self.gauge.phases()
    }
    /// Returns the format of the operator's kernels.
    pub(super) fn format(&self) -> Format {
        Format::with_links(self.precision(), self.storage())
    }
    /// Allocates a field of the operator's precision that is zero everywhere.
    pub(super) fn zero(&self, nrhs: usize) -> Result<DeviceField> {
        DeviceField::zero(self.domain(), FieldShape::spinors(self.precision(), nrhs))
    }
    /// Checks that fields are on the domain of the links and have this shape.
    pub(super) fn expect(&self, fields: &[&DeviceField], shape: FieldShape) -> Result {
        fields.iter().try_for_each(|field| field.expect(self.domain(), shape))
    }
    pub(crate) fn hopping(&self, input: &DeviceField, parity: usize) -> Hopping {
        let time = 1.0 / self.params.anisotropy.space();
        Hopping {
            input: input.view(),
            links: self.gauge.links(parity),
            geometry: self.domain().geometry(),
            region: Region::WHOLE,
            parity: parity as u32,
            time: time.into(),
            time_across: (time * self.params.boundary.sign()).into(),
        }
    }
}

/// Key of the bare mass.
pub(super) static MASS: Key = Key::new("mass", "M", KeyKind::Number, "Bare mass in lattice units", "0.05");
/// Key of κ.
pub(super) static KAPPA: Key =
    Key::new("kappa", "K", KeyKind::Number, "Hopping parameter kappa, instead of the mass", "0.12").instead_of("mass");
/// Key of ξ_0.
pub(super) static XI: Key = Key::new(
    "xi",
    "XI",
    KeyKind::Number,
    "Bare anisotropy xi_0, at tree level the ratio of the spatial to the temporal lattice spacing [default: 1]",
    "1.0",
)
.or("1");
/// Key of ν.
pub(super) static NU: Key = Key::new(
    "nu",
    "NU",
    KeyKind::Number,
    "Bare velocity of light nu: hops in space are multiplied by nu / xi_0 [default: 1]",
    "1.0",
)
.or("1");

/// JSON keys that answers of Wilson-like operators include, with their meanings.
pub(super) static OUTPUT: [(&str, &str); 5] = [
    ("mass", "bare mass"),
    ("kappa", "hopping parameter κ: factor of the hopping term relative to the diagonal term"),
    ("xi", "bare anisotropy ξ_0"),
    ("nu", "bare velocity of light ν"),
    ("clover", "object with the parameters of the clover term; `null` without a clover term"),
];

impl WilsonParams {
    /// Reads mass or kappa, boundary condition and anisotropy from `keys`, which records errors. Returns `None` if neither mass nor kappa
    /// has a valid value.
    pub fn resolve(keys: &mut dyn Keys) -> Option<Self> {
        let boundary = choose(keys, "bc-time", &BOUNDARIES).unwrap_or_default();
        let mut anisotropy = |key| keys.number(key, DIVISOR, &is_divisor).unwrap_or(1.0);
        let anisotropy = Anisotropy { xi: anisotropy("xi"), nu: anisotropy("nu") };
        // The mass has a lower bound, because the diagonal of M is a divisor and must not vanish.
        let lowest = -1.0 - 3.0 * anisotropy.space();
        let mass = keys.number("mass", &format!("a number above {lowest}"), &|m| m > lowest);
        let kappa = keys.number("kappa", DIVISOR, &is_divisor);
        match (keys.is_given("mass"), keys.is_given("kappa")) {
            (false, false) => {
                let [mass, kappa] = [("mass", "M"), ("kappa", "K")].map(|(key, value)| keys.spelled(key, value));
                keys.missing(&format!("no mass: give {mass} or {kappa}"));
            }
            (true, true) => keys.conflict("mass", "kappa", "give either mass or kappa = 1 / (2 (4 + mass))"),
            (false, true) => {
                for key in ["xi", "nu"] {
                    if keys.is_given(key) {
                        keys.conflict("kappa", key, "on an anisotropic lattice, give the mass instead of kappa");
                    }
                }
            }
            _ => {}
        }
        let isotropic = mass.map(|mass| WilsonParams::from_mass(mass, boundary));
        let isotropic = isotropic.or(kappa.map(|kappa| WilsonParams::from_kappa(kappa, boundary)));
        isotropic.map(|params| WilsonParams { anisotropy, ..params })
    }
    /// Returns the JSON keys that describe the parameters in answers.
    pub fn describe(&self) -> Map<String, Value> {
        let Anisotropy { xi, nu } = self.anisotropy;
        let all = [("mass", self.mass), ("kappa", self.kappa()), ("xi", xi), ("nu", nu)];
        all.into_iter().map(|(key, number)| (key.to_string(), number.into())).collect()
    }
}
