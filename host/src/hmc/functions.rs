//! Rational functions for monomials of rooted staggered quarks.
use rational::{Approximation, Error, Factor, Fraction, Interval, PartialFractions, Pole, Power};
use serde::Serialize;

/// Mass and number of flavours of quarks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quarks {
    /// Mass m in M = m + ½ D.
    pub mass: f64,
    /// Number of flavours N_f; a staggered field without a root has 4 flavours.
    pub flavours: Fraction,
}

/// Largest relative errors of rational approximations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerances {
    /// Largest relative error of the function of molecular dynamics.
    pub dynamics: f64,
    /// Largest relative error of the functions of heat bath and Metropolis step.
    pub action: f64,
}

impl Default for Tolerances {
    fn default() -> Self {
        Tolerances { dynamics: 1e-7, action: 1e-14 }
    }
}

/// Rational functions of a Hermitian operator, for the action and the heat bath of quarks. For staggered quarks, M = m + ½ D, the operator
/// is A = −D² on the even sites, so that M†M = m² + ¼ A; the shifts of the poles include 4 m². For Wilson-like quarks the operator is K =
/// M̂†M̂.
#[derive(Clone, Debug, PartialEq)]
pub struct RationalFunctions {
    /// Function r of the action φ† r φ in molecular dynamics.
    pub dynamics: PartialFractions,
    /// Function r of the heat bath φ = r ξ.
    pub heat_bath: PartialFractions,
    /// Function r of the action ‖r φ‖² in the Metropolis step.
    pub action: PartialFractions,
}

/// Computes rational functions of A = −D² for staggered quarks that share `count` = n pseudofermions. No eigenvalue of A may be above
/// `largest`. Quarks of equal mass count as one entry with the sum of their flavours. The function of molecular dynamics approximates Π_k
/// (A + 4 m_k²)^{−N_k / (4 n)}, and the function of the action its square root. The function of the heat bath is the exact inverse of that
/// of the action. `approximate` is [`rational::approximate_to`], or a lookup in a [cache](rational::Cache).
///
/// # Errors
/// Errors of the approximation: bounds that are not numbers, and powers without a rational approximation.
pub fn rational_functions(
    quarks: &[Quarks],
    count: usize,
    largest: f64,
    tolerances: Tolerances,
    mut approximate: impl FnMut(&Power, Interval, f64) -> Result<Approximation, Error>,
) -> Result<RationalFunctions, Error> {
    let quarks = &by_mass(quarks)?[..];
    let lightest = quarks.iter().map(|quarks| quarks.mass.abs()).fold(f64::INFINITY, f64::min);
    let origin = 4.0 * lightest * lightest;
    let interval = Interval::new(origin, origin + largest)?;
    let power = |parts: i64| {
        let factor = |quarks: &Quarks| {
            let (numerator, denominator) = (quarks.flavours.numerator(), quarks.flavours.denominator());
            let power = Fraction::new(-i64::from(numerator), i64::from(denominator) * parts)?;
            Ok(Factor { shift: 4.0 * quarks.mass * quarks.mass - origin, power })
        };
        Power::product(quarks.iter().map(factor).collect::<Result<Vec<_>, Error>>()?)
    };
    let count = count as i64;
    // Turns a function of A + 4 m², with the smallest mass m, into a function of A.
    let moved = |function: &PartialFractions| PartialFractions {
        constant: function.constant,
        poles: function.poles.iter().map(|pole| Pole { shift: pole.shift + origin, ..*pole }).collect(),
    };
    let dynamics = match power(4 * count) {
        Ok(power) => moved(approximate(&power, interval, tolerances.dynamics)?.direct()),
        // Four flavours of one mass for each pseudofermion need no approximation: the function is 1/(A + 4 m²).
        Err(Error::AlreadyRational { .. }) if quarks.len() == 1 && quarks[0].flavours.value() == 4.0 * count as f64 => {
            PartialFractions { constant: 0.0, poles: vec![Pole { residue: 1.0, shift: origin }] }
        }
        Err(error) => return Err(error),
    };
    let action = approximate(&power(8 * count)?, interval, tolerances.action)?;
    Ok(RationalFunctions { dynamics, heat_bath: moved(action.inverse()), action: moved(action.direct()) })
}

/// Computes rational functions of K = M̂†M̂ for N = `flavours` Wilson-like quarks of one mass that share `count` = n pseudofermions.
/// `interval` contains the eigenvalues of K. The function of molecular dynamics approximates K^{−N / (2 n)}, and the function of the action
/// its square root. The function of the heat bath is the exact inverse of that of the action.
///
/// # Errors
/// Errors of the approximation: bounds that are not numbers, and powers that have no rational approximation or need none.
pub fn rational_functions_of_norm(
    flavours: u32,
    count: usize,
    interval: [f64; 2],
    tolerances: Tolerances,
    mut approximate: impl FnMut(&Power, Interval, f64) -> Result<Approximation, Error>,
) -> Result<RationalFunctions, Error> {
    let interval = Interval::new(interval[0], interval[1])?;
    let power = |parts: usize| Power::new(Fraction::new(-i64::from(flavours), (parts * count) as i64)?);
    let dynamics = approximate(&power(2)?, interval, tolerances.dynamics)?.direct().clone();
    let action = approximate(&power(4)?, interval, tolerances.action)?;
    Ok(RationalFunctions { dynamics, heat_bath: action.inverse().clone(), action: action.direct().clone() })
}

/// Combines quarks of equal mass into one entry with the sum of their flavours.
fn by_mass(quarks: &[Quarks]) -> Result<Vec<Quarks>, Error> {
    let mut all: Vec<Quarks> = Vec::new();
    for one in quarks {
        match all.iter_mut().find(|other| other.mass.abs() == one.mass.abs()) {
            Some(same) => same.flavours = sum(same.flavours, one.flavours)?,
            None => all.push(*one),
        }
    }
    Ok(all)
}

fn sum(a: Fraction, b: Fraction) -> Result<Fraction, Error> {
    let [(p, q), (r, s)] = [a, b].map(|x| (i64::from(x.numerator()), i64::from(x.denominator())));
    Fraction::new(p * s + r * q, q * s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarks_of_one_mass_are_one_kind_of_quarks() {
        let made = |quarks: &[(f64, &str)], count| {
            let one = |(mass, flavours): &(f64, &str)| Quarks { mass: *mass, flavours: flavours.parse().unwrap() };
            let quarks: Vec<Quarks> = quarks.iter().map(one).collect();
            let tolerances = Tolerances { dynamics: 1e-5, action: 1e-6 };
            rational_functions(&quarks, count, 80.0, tolerances, rational::approximate_to).unwrap()
        };
        assert_eq!(made(&[(0.2, "1"), (0.2, "1/2"), (0.5, "1")], 1), made(&[(0.2, "3/2"), (0.5, "1")], 1));
        // Four flavours on one pseudofermion, which need no approximation in molecular dynamics.
        let four = made(&[(0.2, "2"), (0.2, "2")], 1);
        assert_eq!(four, made(&[(0.2, "4")], 1));
        assert_eq!(four.dynamics.poles.len(), 1);
    }

    /// Quarks with negative numbers divide: MILC's 2 + 1 flavours over three heavy ones, whose functions have 9 and 11 poles
    /// with these errors.
    #[test]
    fn ratios_of_determinants() {
        let one = |mass, flavours: &str| Quarks { mass, flavours: flavours.parse().unwrap() };
        let quarks = [one(0.0018, "2"), one(0.018, "1"), one(0.2, "-3")];
        let tolerances = Tolerances { dynamics: 7.15e-7, action: 2.61e-8 };
        let made = rational_functions(&quarks, 1, 90.0, tolerances, rational::approximate_to).unwrap();
        assert_eq!([&made.dynamics, &made.heat_bath, &made.action].map(|f| f.poles.len()), [9, 11, 11]);
        let close = |found: f64, milcs: f64| assert!((found / milcs - 1.0).abs() < 1e-6, "{found} {milcs}");
        close(made.dynamics.constant, 1.0000007752683888);
        close(made.dynamics.poles[0].residue, 0.00204485209402315);
        close(made.dynamics.poles[8].shift, 0.09898375258995923);
        close(made.heat_bath.poles[10].residue, -0.031771069043608095);
        close(made.action.poles[0].shift, 1.4526277877996827e-05);
        let exact = |x: f64| {
            let power = |m: f64, p: f64| (x + 4.0 * m * m).powf(p);
            power(0.0018, -0.5) * power(0.018, -0.25) * power(0.2, 0.75)
        };
        for x in [0.0, 1e-6, 1e-4, 0.01, 1.0, 90.0] {
            let value =
                |f: &PartialFractions| f.poles.iter().fold(f.constant, |sum, p| sum + p.residue / (x + p.shift));
            assert!((value(&made.dynamics) / exact(x) - 1.0).abs() < 7.15e-7, "{x}");
            assert!((value(&made.action).powi(2) / exact(x) - 1.0).abs() < 5.3e-8, "{x}");
            assert!((value(&made.action) * value(&made.heat_bath) - 1.0).abs() < 1e-12, "{x}");
        }
        // More of them in front than behind.
        let grown = rational_functions(&quarks[1..], 1, 90.0, tolerances, rational::approximate_to);
        assert!(matches!(grown, Err(Error::NotStieltjes { .. })), "{grown:?}");
    }
}
