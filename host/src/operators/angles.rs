//! Boundary conditions of fermions: a sign in t, and twisted boundary conditions, which give a fermion a phase when it goes once around the
//! lattice.
use super::keys::{Key, KeyKind, Keys, LARGEST};
use crate::field::HopPhases;
use crate::lattice::Lattice;
use num_complex::Complex64;

/// Boundary condition of fermions in t; in space, fermions are periodic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeBoundary {
    /// Periodic: ψ(t + T) = ψ(t).
    Periodic,
    /// Antiperiodic: ψ(t + T) = −ψ(t), as in thermodynamics.
    #[default]
    Antiperiodic,
}

impl TimeBoundary {
    /// Returns the factor of a hop across the end of the lattice in t: 1 or −1.
    pub fn sign(self) -> f64 {
        match self {
            TimeBoundary::Periodic => 1.0,
            TimeBoundary::Antiperiodic => -1.0,
        }
    }
}

/// Angles θ_μ of twisted boundary conditions in x, y, z and t, in radians: ψ(x + L_μ μ̂) = e^{iθ_μ} ψ(x), in addition to the sign in t
/// (Bedaque 2004; Sachrajda and Villadoro 2005). The phase is spread evenly over each direction: hops over U_μ have the factor
/// e^{iθ_μ/L_μ}, backward hops its conjugate, and hops over a long link e^{3iθ_μ/L_μ}. The stored fields are χ(x) = e^{−iΣ θ_μ x_μ/L_μ}
/// ψ(x), which are periodic except for the sign in t. A free quark whose field χ has the momentum p has the momentum p_μ + θ_μ/L_μ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BoundaryAngles(pub [f64; 4]);

impl BoundaryAngles {
    /// Whether all angles are 0, so that hops have no phases.
    pub fn are_zero(&self) -> bool {
        self.0 == [0.0; 4]
    }
    /// Returns the factors e^{iθ_μ/L_μ} of hops over one link, on a whole lattice with the extents L_μ of `lattice`.
    pub fn of_hops(&self, lattice: Lattice) -> HopPhases {
        let size = lattice.size();
        HopPhases(std::array::from_fn(|mu| match self.0[mu] {
            0.0 => Complex64::ONE,
            theta => Complex64::cis(theta / size[mu] as f64),
        }))
    }
    /// Parses four angles, separated by commas.
    ///
    /// # Errors
    /// A sentence that describes the fault of the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let one = |text: &str| match text.trim().replace('_', "").parse::<f64>() {
            Ok(theta) if theta.abs() <= LARGEST => Ok(theta),
            _ => Err(format!("'{}' is not an angle in radians from -1e9 to 1e9", text.trim())),
        };
        let all = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
        let count = all.len();
        let angles = <[f64; 4]>::try_from(all);
        angles.map(BoundaryAngles).map_err(|_| format!("expected four angles, for x, y, z and t, but found {count}"))
    }
    /// Reads the angles from the key `theta`. All angles are 0 if the key is missing or invalid; `keys` records an invalid value.
    pub fn resolve(keys: &mut dyn Keys) -> Self {
        let mut angles = BoundaryAngles::default();
        keys.parse("theta", &mut |text| BoundaryAngles::parse(text).map(|found| angles = found));
        angles
    }
}

/// Boundary conditions in t with their names in inputs.
pub const BOUNDARIES: [(&str, TimeBoundary); 2] =
    [("antiperiodic", TimeBoundary::Antiperiodic), ("periodic", TimeBoundary::Periodic)];

/// Boundary condition in t.
pub(super) static BC_TIME: Key = Key::new(
    "bc-time",
    "NAME",
    KeyKind::Word,
    "Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic]",
    "\"antiperiodic\"",
)
.or("antiperiodic");
/// Key of the angles θ.
pub(super) static THETA: Key = Key::new(
    "theta",
    "TX,TY,TZ,TT",
    KeyKind::Numbers,
    "Angles of twisted boundary conditions, in radians: psi(x + L) = exp(i theta) psi(x) in each direction, in t also \
     with the sign of bc-time; unless all angles are 0, links are stored with 18 reals, and long links with 18, 13 or \
     9 [default: 0,0,0,0]",
    "[0.5, 0.0, 0.0, 0.0]",
)
.or("0,0,0,0");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_are_four_finite_numbers() {
        assert_eq!(BoundaryAngles::parse("0.5, -1,1e-3,0"), Ok(BoundaryAngles([0.5, -1.0, 1e-3, 0.0])));
        for (wrong, why) in [("0.5", "found 1"), ("1,2,3,4,5", "found 5"), ("1,2,x,4", "'x'"), ("1,2,3,nan", "'nan'")] {
            assert!(BoundaryAngles::parse(wrong).is_err_and(|said| said.contains(why)), "{wrong}");
        }
    }

    #[test]
    fn hops_share_the_angle_of_their_direction() {
        let phases =
            BoundaryAngles([0.6, 0.0, -0.3, std::f64::consts::PI]).of_hops(Lattice::new([2, 4, 6, 8]).unwrap());
        assert_eq!(phases.0[1], Complex64::ONE);
        for (mu, (extent, theta)) in
            [(2, 0.6f64), (4, 0.0), (6, -0.3), (8, std::f64::consts::PI)].into_iter().enumerate()
        {
            assert!((phases.over(extent).0[mu] - Complex64::cis(theta)).norm() < 1e-15);
        }
        assert!(BoundaryAngles::default().of_hops(Lattice::new([2; 4]).unwrap()).are_none());
    }
}
