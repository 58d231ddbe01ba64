//! Spatial operations on quark fields: smearing and shifts.
use crate::text;
use ferrite::domain::Result;
use ferrite::field::FullField;
use ferrite::observables::spectrum::smearing::{GaussianSmearing, SmearingLinks};
use ferrite::{FermionKind, Precision};

/// Operation on fields that acts on each time slice separately: smearing or a shift.
#[derive(Clone, Copy)]
pub enum SpatialWork {
    /// Gaussian smearing.
    Smearing(GaussianSmearing),
    /// Shift of staggered quarks in these spatial directions.
    Shift([bool; 3]),
}

impl SpatialWork {
    /// Returns the momentum of the smearing, in units of 2π/L; 0 for shifts.
    pub fn momentum(self) -> [f64; 3] {
        match self {
            SpatialWork::Smearing(smearing) => smearing.momentum,
            SpatialWork::Shift(_) => [0.0; 3],
        }
    }
    /// Returns the device memory that the operation needs, as in [`SmearingLinks::bytes`].
    pub fn bytes(self, kind: FermionKind, sites: usize, together: usize) -> [(&'static str, usize); 2] {
        match self {
            SpatialWork::Smearing(_) => SmearingLinks::bytes(kind, Precision::Double, sites, together),
            SpatialWork::Shift(directions) => {
                SmearingLinks::shift_bytes(sites, together, directions.iter().filter(|shifts| **shifts).count())
            }
        }
    }
    /// Returns the name of the operation in messages.
    pub fn name(self) -> &'static str {
        match self {
            SpatialWork::Smearing(_) => "smearing",
            SpatialWork::Shift(_) => "the shift",
        }
    }
    /// Applies the operation to a field in double precision.
    pub fn on(self, links: &SmearingLinks, field: FullField) -> Result<FullField> {
        match self {
            SpatialWork::Smearing(smearing) => links.smear_on_device(&smearing, field),
            SpatialWork::Shift(directions) => links.shifted(directions, field),
        }
    }
}

impl std::fmt::Display for SpatialWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SpatialWork::Smearing(smearing) => write!(f, "smearing ({})", text::count(smearing.steps, "step")),
            SpatialWork::Shift(directions) => write!(f, "shift in {}", shift_name(*directions)),
        }
    }
}

/// Returns the directions of a shift: `xz` for x and z.
pub fn shift_name(directions: [bool; 3]) -> String {
    ["x", "y", "z"].into_iter().zip(directions).filter(|(_, shifts)| *shifts).map(|(name, _)| name).collect()
}
