//! Mesons of staggered quarks with any spin and taste that need no shift in time.
//!
//! O(x) = χ̄(x) φ(x) (D_δ χ)(x) has the spin γ_S and the taste ξ_T, where S and T are sets of directions, if δ = S △ T, the directions that
//! are in one of the sets only, and
//!
//! φ(x) = ¼ tr Γ_x† Γ_S Γ_{x△δ} Γ_T†,  Γ_x = γ_x^{x} γ_y^{y} γ_z^{z} γ_t^{t}
//!
//! (Kluberg-Stern et al. 1983; Golterman 1986), which is a sign for each corner of a hypercube. D_δ is the mean over all orders of the
//! shifts D_k χ(x) = ½ [U_k(x) χ(x+k̂) + U_k†(x−k̂) χ(x−k̂)] in the directions of δ. Such an operator couples to γ_S ⊗ ξ_T, and to
//! γ_tγ_5γ_S ⊗ ξ_tξ_5ξ_T, which alternates in time. With the propagator G from x₀ and the ε-hermiticity of M, the correlator of O with
//! itself is
//!
//! C(t, p) = Σ_x e^{−i p (x−x₀)} s(x − x₀) tr (D_δ G D_δ)(x, x₀) G₂†(x, x₀),
//!
//! where s = φ ε is a sign, ±1 for even and odd distances in some of the directions, and 1 at x₀. The overall sign is left out, as for
//! [local mesons](super::staggered::local_mesons).
use super::contraction::MomentumSums;
use super::gamma;
use super::staggered::with_corners;
use crate::domain::Result;
use crate::field::FullField;
use crate::operators::StaggeredPhases;
use num_complex::Complex64;
use std::fmt;
use std::str::FromStr;

/// Spin and taste γ_S ⊗ ξ_T of a staggered meson. S and T are sets of directions with one bit for each direction, x first, as in
/// [gamma::Gamma::new].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpinTaste {
    /// Set S of directions that determines the spin γ_S, with one bit for each direction.
    pub spin: usize,
    /// Set T of directions that determines the taste ξ_T, with one bit for each direction.
    pub taste: usize,
}

/// Usual names of the staggered pions, each with the operators over whose correlators the pion is averaged. The 16 tastes form eight
/// multiplets.
pub const PIONS: [(&str, &[&str]); 8] = [
    ("pion-5", &["g5-g5"]),
    ("pion-05", &["gtg5-gtg5"]),
    ("pion-i5", &["g5-gxg5", "g5-gyg5", "g5-gzg5"]),
    ("pion-ij", &["gtg5-gxgy", "gtg5-gygz", "gtg5-gzgx"]),
    ("pion-i0", &["g5-gxgt", "g5-gygt", "g5-gzgt"]),
    ("pion-i", &["gtg5-gx", "gtg5-gy", "gtg5-gz"]),
    ("pion-0", &["g5-gt"]),
    ("pion-s", &["gtg5-1"]),
];

/// Bit of the time direction.
const TIME: usize = 1 << 3;

impl SpinTaste {
    /// Whether the operator needs no shift in time.
    pub fn is_at_one_time(self) -> bool {
        (self.spin ^ self.taste) & TIME == 0
    }
    /// Returns whether x, y and z are in δ, the directions in either S or T but not in both. Quarks are shifted in the directions of δ.
    pub fn shift(self) -> [bool; 3] {
        std::array::from_fn(|k| (self.spin ^ self.taste) >> k & 1 == 1)
    }
    /// Returns the directions in which s alternates from one site to the next, with one bit for each direction. The convention of `phases`
    /// determines the order of the factors in Γ_x: directions come in the order in which they get their signs, t first in MILC's.
    fn alternating(self, phases: StaggeredPhases) -> usize {
        let (spin, shift) = (self.spin, self.spin ^ self.taste);
        let before = |mu: usize| match phases {
            StaggeredPhases::Lexicographic => (1 << mu) - 1,
            StaggeredPhases::Milc if mu == 3 => 0,
            StaggeredPhases::Milc => TIME | ((1 << mu) - 1),
        };
        // A step in direction μ changes s by three signs: Γ_S is moved through γ_μ, γ_μ is moved through the factors of δ before it, and ε
        // alternates.
        let one = |mu: usize| (spin & !(1 << mu)).count_ones() + (shift & before(mu)).count_ones() + 1;
        (0..4).map(|mu| (one(mu) as usize & 1) << mu).sum()
    }
}

impl fmt::Display for SpinTaste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", gamma::name(self.spin), gamma::name(self.taste))
    }
}

/// Parses a product such as `gtg5`, whose sign is ignored.
fn product(text: &str) -> Option<usize> {
    let factor = |rest: &str| {
        let known = [("gx", 1), ("gy", 2), ("gz", 4), ("gt", 8), ("g5", 15)];
        known.into_iter().find_map(|(name, bits)| Some((rest.strip_prefix(name)?.len(), bits)))
    };
    if text == "1" {
        return Some(0);
    }
    let (mut rest, mut bits) = (text, 0);
    while !rest.is_empty() {
        let (left, factor) = factor(rest)?;
        (rest, bits) = (&rest[rest.len() - left..], bits ^ factor);
    }
    (!text.is_empty()).then_some(bits)
}

impl FromStr for SpinTaste {
    type Err = String;
    /// Parses `g5-gxg5`: the spin and the taste, each a product of gx, gy, gz, gt and g5, or 1.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = text.split_once('-').and_then(|(spin, taste)| Some((product(spin)?, product(taste)?)));
        let Some((spin, taste)) = found else {
            return Err(format!(
                "'{text}' is not a spin and a taste, such as g5-gxg5, where each is a product of gx, gy, gz, gt and \
                 g5, or 1"
            ));
        };
        let found = SpinTaste { spin, taste };
        match found.is_at_one_time() {
            true => Ok(found),
            false => Err(format!(
                "'{text}' shifts quarks in time: gt must be a factor of both spin and taste, or of neither; g5 is gx gy \
                 gz gt"
            )),
        }
    }
}

/// Computes the correlator C(t, p) of each of `operators`, which have the same shift δ, as `[operator][momentum][time]`. `quark` is D_δ G
/// D_δ for the three colours of a source at `origin`, in double precision; `antiquark` is the propagator G₂ of the quark whose antiquark is
/// in the meson, on the same device. Momenta are in units of 2π/L.
///
/// # Errors
/// Fields of another shape or lattice; failures of the device.
pub fn taste_mesons(
    quark: &FullField,
    antiquark: &FullField,
    operators: &[SpinTaste],
    origin: [usize; 4],
    momenta: &[[i32; 3]],
    phases: StaggeredPhases,
) -> Result<Vec<Vec<Vec<Complex64>>>> {
    let domain = quark.even.domain();
    let extent = domain.global().size()[3];
    let sums = MomentumSums::new(domain, origin, &with_corners(domain, momenta))?;
    let [products, _] = sums.of_staggered(quark, antiquark)?;
    let one = |operator: &SpinTaste| {
        let signs = operator.alternating(phases);
        let at = |k: usize, t: usize| {
            // The extent in t is even, so a distance across the end of the lattice is even if the direct distance is even, and odd
            // otherwise.
            let turned = signs & TIME != 0 && !t.is_multiple_of(2);
            let sum = products[8 * k + (signs & 7)][t];
            if turned { -sum } else { sum }
        };
        (0..momenta.len()).map(|k| (0..extent).map(|t| at(k, t)).collect()).collect()
    };
    Ok(operators.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::gamma::Gamma;
    use super::*;
    use crate::field::host::HostColour;
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::observables::spectrum::staggered::local_mesons;
    use crate::observables::spectrum::tests::on_cpu;

    fn all() -> Vec<SpinTaste> {
        let pairs = (0..256).map(|n| SpinTaste { spin: n % 16, taste: n / 16 });
        pairs.filter(|one| one.is_at_one_time()).collect()
    }

    /// γ_x^{x} …, with its factors in the order of a convention.
    fn gamma_of(corner: usize, phases: StaggeredPhases) -> Gamma {
        let order = match phases {
            StaggeredPhases::Lexicographic => [0, 1, 2, 3],
            StaggeredPhases::Milc => [3, 0, 1, 2],
        };
        let factors = order.into_iter().filter(|mu| corner >> mu & 1 == 1);
        factors.fold(Gamma::UNIT, |product, mu| product * Gamma::new(1 << mu))
    }

    /// s(x) s(0) = φ(x) φ(0) ε(x) by traces of matrices.
    #[test]
    fn signs_are_those_of_the_trace() {
        for phases in [StaggeredPhases::Lexicographic, StaggeredPhases::Milc] {
            for one in all() {
                let phi = |corner: usize| -> Complex64 {
                    let hop = gamma_of(corner ^ one.spin ^ one.taste, phases);
                    let left = gamma_of(corner, phases).adjoint() * Gamma::new(one.spin);
                    let all = left * hop * Gamma::new(one.taste).adjoint();
                    0.25 * (0..4).map(|row| all.at(row, row)).sum::<Complex64>()
                };
                assert!((phi(0).norm() - 1.0).abs() < 1e-14, "{one}");
                let signs = one.alternating(phases);
                for corner in 0..16usize {
                    let epsilon = if corner.count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                    let expected = if (corner & signs).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                    let found = phi(corner) / phi(0) * epsilon;
                    assert!((found - expected).norm() < 1e-14, "{one} {corner} {phases:?}: {found}");
                }
            }
        }
    }

    /// Mesons without a shift are the local ones, in either convention.
    #[test]
    fn local_operators_are_local_mesons() {
        let lattice = Lattice::new([2, 4, 6, 4]).unwrap();
        let fields = |first: u64| -> Vec<HostColour> {
            (first..first + 3).map(|seed| generate::random_source(lattice, seed)).collect()
        };
        let on = on_cpu(lattice, &[&fields(0), &fields(3)]);
        let (momenta, origin) = ([[0, 0, 0], [0, 1, -1]], [1, 2, 3, 3]);
        let local = local_mesons(&on[0], &on[1], origin, &momenta).unwrap();
        let names =
            [&["g5-g5"][..], &["gtg5-gtg5"], &["gx-gx", "gy-gy", "gz-gz"], &["gtgx-gtgx", "gtgy-gtgy", "gtgz-gtgz"]];
        for phases in [StaggeredPhases::Lexicographic, StaggeredPhases::Milc] {
            for (names, expected) in names.iter().zip(&local) {
                let operators: Vec<SpinTaste> = names.iter().map(|name| name.parse().unwrap()).collect();
                let found = taste_mesons(&on[0], &on[1], &operators, origin, &momenta, phases).unwrap();
                for (k, expected) in expected.iter().enumerate() {
                    for (t, expected) in expected.iter().enumerate() {
                        let sum: Complex64 = found.iter().map(|one| one[k][t]).sum();
                        assert!((sum - expected).norm() < 1e-12 * (1.0 + expected.norm()), "{names:?} {k} {t}");
                    }
                }
            }
        }
    }

    #[test]
    fn pions_have_all_tastes() {
        let mut tastes = Vec::new();
        for (name, operators) in PIONS {
            for operator in operators {
                let one: SpinTaste = operator.parse().unwrap();
                // The spin of a pion: γ_5, or γ_tγ_5, up to a sign.
                assert!([15, 7].contains(&one.spin), "{name}");
                tastes.push(one.taste);
            }
        }
        tastes.sort_unstable();
        assert_eq!(tastes, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn names_are_read() {
        let found: SpinTaste = "gtg5-gzgx".parse().unwrap();
        assert_eq!((found.spin, found.taste, found.to_string()), (7, 5, "gxgygz-gxgz".into()));
        assert_eq!(found.shift(), [false, true, false]);
        for (text, why) in [
            ("g5", "not a spin and a taste"),
            ("g5-", "not a spin and a taste"),
            ("g5-gxx", "not a spin and a taste"),
            ("1-gt", "in time"),
        ] {
            let error = text.parse::<SpinTaste>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
