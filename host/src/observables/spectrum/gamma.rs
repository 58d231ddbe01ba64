//! The 16 products Γ_n = γ_x^{n₀} γ_y^{n₁} γ_z^{n₂} γ_t^{n₃}, n = n₀ + 2 n₁ + 4 n₂ + 8 n₃ (Chroma's numbers), in the DeGrand–Rossi
//! basis. γ_5 is number 15.
use num_complex::Complex64;

/// Matrix in spin space with one non-zero element in each row and column, which is 1, −1, i or −i.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gamma {
    /// Column of the non-zero element in each row.
    pub column: [usize; 4],
    /// Non-zero element of each row.
    pub value: [Complex64; 4],
}

const ONE: Complex64 = Complex64::ONE;
const I: Complex64 = Complex64::I;
const MINUS: Complex64 = Complex64::new(-1.0, 0.0);
const MINUS_I: Complex64 = Complex64::new(0.0, -1.0);

/// Matrices γ_x, γ_y, γ_z, γ_t.
const DIRECTIONS: [Gamma; 4] = [
    Gamma { column: [3, 2, 1, 0], value: [I, I, MINUS_I, MINUS_I] },
    Gamma { column: [3, 2, 1, 0], value: [MINUS, ONE, ONE, MINUS] },
    Gamma { column: [2, 3, 0, 1], value: [I, MINUS_I, MINUS_I, I] },
    Gamma { column: [2, 3, 0, 1], value: [ONE, ONE, ONE, ONE] },
];

/// Number of matrices Γ_n.
pub const COUNT: usize = 16;

impl Gamma {
    /// Unit matrix, Γ_0.
    pub const UNIT: Gamma = Gamma { column: [0, 1, 2, 3], value: [ONE; 4] };

    /// Returns Γ_n for n = `number`, of which only the four lowest bits are used.
    pub fn new(number: usize) -> Self {
        let direction = |mu: &usize| number >> mu & 1 == 1;
        (0..4).filter(direction).fold(Self::UNIT, |product, mu| product * DIRECTIONS[mu])
    }
    /// Returns γ_5.
    pub fn five() -> Self {
        Self::new(15)
    }
    /// Returns γ_t.
    pub fn time() -> Self {
        Self::new(8)
    }
    /// Returns Γ†.
    #[must_use]
    pub fn adjoint(&self) -> Self {
        let mut adjoint = Self::UNIT;
        for row in 0..4 {
            adjoint.column[self.column[row]] = row;
            adjoint.value[self.column[row]] = self.value[row].conj();
        }
        adjoint
    }
    /// Returns γ_t Γ† γ_t, the matrix of the operator that is conjugate to ψ̄ Γ ψ.
    #[must_use]
    pub fn bar(&self) -> Self {
        Self::time() * self.adjoint() * Self::time()
    }
    /// Returns the element in a row and a column, both counted from 0.
    pub fn at(&self, row: usize, column: usize) -> Complex64 {
        if self.column[row] == column { self.value[row] } else { Complex64::ZERO }
    }
}

impl std::ops::Mul for Gamma {
    type Output = Gamma;
    fn mul(self, other: Gamma) -> Gamma {
        Gamma {
            column: std::array::from_fn(|row| other.column[self.column[row]]),
            value: std::array::from_fn(|row| self.value[row] * other.value[self.column[row]]),
        }
    }
}

/// Returns the name of Γ_n for n = `number`, such as `1`, `gx`, `gxgy` or `g5`.
pub fn name(number: usize) -> String {
    match number & 15 {
        0 => "1".into(),
        15 => "g5".into(),
        n => ["gx", "gy", "gz", "gt"].iter().enumerate().filter(|(mu, _)| n >> mu & 1 == 1).map(|(_, g)| *g).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// {γ_μ, γ_ν} = 2 δ_μν, and γ_5 as the conventions have it.
    #[test]
    fn they_are_a_clifford_algebra() {
        for (mu, first) in DIRECTIONS.into_iter().enumerate() {
            for (nu, second) in DIRECTIONS.into_iter().enumerate() {
                let (a, b) = (first * second, second * first);
                for row in 0..4 {
                    for column in 0..4 {
                        let expected = if mu == nu && row == column { 2.0 } else { 0.0 };
                        assert_eq!(a.at(row, column) + b.at(row, column), expected.into());
                    }
                }
            }
            assert_eq!(first.adjoint(), first);
        }
        let five: Vec<f64> = (0..4).map(|s| Gamma::five().at(s, s).re).collect();
        assert_eq!(five, [1.0, 1.0, -1.0, -1.0]);
    }

    /// Γ̄ = ±Γ, and its own inverse up to the sign.
    #[test]
    fn conjugates_are_the_same_up_to_a_sign() {
        for n in 0..COUNT {
            let (gamma, bar) = (Gamma::new(n), Gamma::new(n).bar());
            let sign = bar.value[0] / gamma.value[0];
            assert!(sign == ONE || sign == MINUS, "{n}: {sign}");
            assert!(
                (0..4).all(|row| bar.column[row] == gamma.column[row] && bar.value[row] == sign * gamma.value[row])
            );
        }
    }

    #[test]
    fn names() {
        let all: Vec<String> = (0..COUNT).map(name).collect();
        assert_eq!(
            (all[0].as_str(), all[5].as_str(), all[7].as_str(), all[15].as_str()),
            ("1", "gxgz", "gxgygz", "g5")
        );
    }
}
