//! Errors from storing links: the distance of a link from itself after its kept numbers are rounded to a format and the others made from
//! them, here in double from the formulas of Clark et al. 2009, appendix A.
use crate::accuracy::Accuracy;
use crate::formats::LinkFormat;
use crate::reference::adjoint;
use crate::report::Tolerance;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::{LinkStorage, Precision};
use num_complex::Complex64;

/// Largest errors of a reconstruction's own arithmetic, in units of those of storage.
pub fn arithmetic(storage: LinkStorage) -> f64 {
    match storage.reals {
        // Far below the errors of storage.
        _ if storage.half => 0.0,
        // Sines and cosines of GPUs are good to 2⁻²⁰·⁵, eleven units.
        8 | 9 => 12.0,
        // A rational function makes the phase, and a product the third row.
        13 => 3.0,
        _ => 1.0,
    }
}

/// A link from the real numbers that are kept of it, each rounded by `round`.
///
/// # Panics
/// For numbers of reals that no format has.
pub fn rounded(u: &Matrix, reals: u8, round: impl Fn(f64) -> f64) -> Matrix {
    match reals {
        18 => u.map(|row| row.map(|z| each(&round, z))),
        12 => two_rows(u, &round),
        13 => {
            let [a, b, n] = two_rows(u, &round);
            let det = phase(&round, determinant(u));
            [a, b, n.map(|z| det * z)]
        }
        // That of diag(1, 1, det U*) U, a matrix of SU(3), with the phase that its c_1 has in U.
        9 => {
            let det = phase(&round, determinant(u));
            let [a, b, c] = minimal(u, phase(&round, u[2][0]) * det.conj(), round);
            [a, b, c.map(|z| det * z)]
        }
        8 => minimal(u, phase(&round, u[2][0]), round),
        _ => panic!("no format keeps {reals} reals of a link"),
    }
}

fn each(round: &impl Fn(f64) -> f64, z: Complex64) -> Complex64 {
    Complex64::new(round(z.re), round(z.im))
}
/// (a × b)*
pub fn cross(a: [Complex64; 3], b: [Complex64; 3]) -> [Complex64; 3] {
    [(a[1] * b[2] - a[2] * b[1]).conj(), (a[2] * b[0] - a[0] * b[2]).conj(), (a[0] * b[1] - a[1] * b[0]).conj()]
}
fn two_rows(u: &Matrix, round: &impl Fn(f64) -> f64) -> Matrix {
    let [a, b] = [u[0], u[1]].map(|row| row.map(|z| each(round, z)));
    [a, b, cross(a, b)]
}
/// e^{iφ} of a number with phase φ, which is kept as tan(φ/4).
fn phase(round: &impl Fn(f64) -> f64, z: Complex64) -> Complex64 {
    Complex64::cis(4.0 * round((z.arg() / 4.0).tan()).atan())
}
fn determinant(u: &Matrix) -> Complex64 {
    cross(u[0], u[1]).iter().zip(u[2]).map(|(n, z)| n.conj() * z).sum()
}
/// The matrix of SU(3) with the a_2, a_3 and b_1 of `u`, the phase of its a_1, and the given phase of c_1.
fn minimal(u: &Matrix, phase_of_c1: Complex64, round: impl Fn(f64) -> f64) -> Matrix {
    let (a2, a3, b1) = (each(&round, u[0][1]), each(&round, u[0][2]), each(&round, u[1][0]));
    let square = a2.norm_sqr() + a3.norm_sqr();
    let a1 = (1.0 - square).max(0.0).sqrt() * phase(&round, u[0][0]);
    let c1 = (square - b1.norm_sqr()).max(0.0).sqrt() * phase_of_c1;
    // b and c lie in the plane orthogonal to a, which b' and c' span: b = p1 b' + p2 c', c = −p2* b' + p1* c'.
    let n = square.sqrt();
    let (p1, p2) = (c1.conj() / n, b1 / n);
    let primed = [Complex64::ZERO, -a3.conj() / n, a2.conj() / n];
    let second = [n.into(), -a1.conj() * a2 / n, -a1.conj() * a3 / n];
    let b = std::array::from_fn(|k| p1 * primed[k] + p2 * second[k]);
    let c = std::array::from_fn(|k| -p2.conj() * primed[k] + p1.conj() * second[k]);
    [[a1, a2, a3], b, c]
}

/// ‖δU‖ / √3, in the mean over the links (rms), and the largest |δU_ij|. Links are kept twice, forward as U, backward
/// as U†. The mean is that of the links in space or in time, whichever is larger: an anisotropy gives them weights. In
/// temporal gauge links in t are not kept on any slice but the last.
pub fn errors(gauge: &HostGauge, (precision, storage): LinkFormat) -> [f64; 2] {
    // In 16 bits, whatever the fields are in.
    let kept_in = if storage.half { Precision::Half } else { precision };
    let (mut squares, mut worst) = ([0.0f64; 2], 0.0f64);
    let (lattice, last) = (gauge.lattice(), gauge.lattice().size()[3] - 1);
    let kept = |k: usize| !storage.temporal || k % 4 != 3 || lattice.coordinates(k / 4)[3] == last;
    for (k, link) in gauge.links().iter().enumerate().filter(|(k, _)| kept(*k)) {
        for u in [*link, adjoint(link)] {
            let stored = rounded(&u, storage.reals, |x| kept_in.round_link(x));
            for (a, b) in stored.iter().flatten().zip(u.iter().flatten()) {
                squares[usize::from(k % 4 == 3)] += (a - b).norm_sqr() / 3.0;
                worst = worst.max((a - b).norm());
            }
        }
    }
    let volume = lattice.volume() as f64;
    let mean = (squares[0] / (6.0 * volume)).max(squares[1] / (2.0 * volume)).sqrt();
    [mean * precision.link_scale(), worst * precision.link_scale()]
}

/// Tolerance of the hopping term, made of a stored field.
///
/// *Relative*: that of the links, (δU ψ) / ψ, hops being independent; that of storing the result; that of projecting,
/// where it rounds as storage does; and the roundings of 48 products, each at most one unit, as a random walk.
///
/// *Worst*: 8 hops, each the sum of two spins and three colours, so that errors of links, projection and roundings enter
/// 48 times, in units of the peak of the *input* around the site. The output, a sum of 8 random terms, is larger than that by a
/// factor near 3, which remains as a margin.
pub fn hopping(gauge: &HostGauge, format: LinkFormat) -> Tolerance {
    let ([mean, worst], (precision, storage)) = (errors(gauge, format), format);
    // The storage of reconstructed numbers is exact in half precision compared with single-precision arithmetic.
    let factor = if precision.is_coarse() { 1.5 } else { 1.5 + arithmetic(storage) };
    // Two errors of the same size and of random sign.
    let projected = if precision.project() > 0.0 { 1.42 } else { 1.0 };
    let (sum, unit) = (precision.sum(), precision.unit());
    Tolerance {
        relative: factor * mean + projected * sum.relative + 5.0 * unit,
        worst: 48.0 * (factor * worst + precision.project() + unit) + sum.worst,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::gauge::generate;
    use ferrite::lattice::Lattice;

    #[test]
    fn without_rounding_every_reconstruction_gives_the_link_back() {
        for (k, u) in generate::random(Lattice::new([4; 4]).unwrap(), 1).links().iter().enumerate() {
            let off = |v: Matrix| v.iter().flatten().zip(u.iter().flatten()).map(|(a, b)| (a - b).norm()).sum::<f64>();
            let turn = Complex64::cis(k as f64);
            let turned = u.map(|row| row.map(|z| turn * z));
            let off_turned =
                |v: Matrix| v.iter().flatten().zip(turned.iter().flatten()).map(|(a, b)| (a - b).norm()).sum::<f64>();
            assert!(off_turned(rounded(&turned, 13, |x| x)) < 2e-14);
            assert!(off_turned(rounded(&turned, 9, |x| x)) < 1e-11);
            assert_eq!(off(rounded(u, 18, |x| x)), 0.0);
            assert!(off(rounded(u, 12, |x| x)) < 1e-14);
            // Singular links lose digits.
            assert!(off(rounded(u, 8, |x| x)) < 1e-11);
        }
    }
}
