//! The gradient flow by its formulas, loops as lists of steps on whole lattices, without any code of kernels.
use crate::clover_reference::path;
use crate::reference::{adjoint, multiply};
use crate::testkit::matrix::{add, anti_hermitian, exponential, scale};
use ferrite::field::host::{HostGauge, Matrix};

/// Force that the links follow in the flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowForce {
    /// The weight of plaquettes, and that of rectangles.
    pub weights: [f64; 2],
    /// Whether (1/12) ∇*_μ ∇_μ of the force is added to it.
    pub zeuthen: bool,
}

fn sum(terms: &[(f64, Matrix)]) -> Matrix {
    terms.iter().fold(Matrix::default(), |sum, (factor, matrix)| add(&sum, (*factor).into(), matrix))
}

impl FlowForce {
    /// Less the traceless anti-Hermitian part of all loops that begin with U_μ(x), and what is added to it.
    pub fn of(&self, gauge: &HostGauge) -> Vec<Matrix> {
        let lattice = gauge.lattice();
        let [plaquette, rectangle] = self.weights;
        let force = |x: usize, mu: usize| {
            let (on, off) = ((mu, true), (mu, false));
            let mut loops = Vec::new();
            for nu in (0..4).filter(|nu| *nu != mu) {
                for (a, b) in [((nu, true), (nu, false)), ((nu, false), (nu, true))] {
                    loops.push((plaquette, path(gauge, x, &[on, a, off, b])));
                    for steps in [[on, on, a, off, off, b], [on, a, off, off, b, on], [on, a, a, off, b, b]] {
                        loops.push((rectangle, path(gauge, x, &steps)));
                    }
                }
            }
            scale((-1.0).into(), &anti_hermitian(&sum(&loops)))
        };
        let all: Vec<Matrix> = (0..4 * lattice.volume()).map(|k| force(k / 4, k % 4)).collect();
        if !self.zeuthen {
            return all;
        }
        let added = |k: usize| {
            let (x, mu) = (k / 4, k % 4);
            let (ahead, behind) = (lattice.neighbour(x, mu, true), lattice.neighbour(x, mu, false));
            let (to, from) = (gauge.link(x, mu), gauge.link(behind, mu));
            let ahead = multiply(&multiply(to, &all[4 * ahead + mu]), &adjoint(to));
            let behind = multiply(&multiply(&adjoint(from), &all[4 * behind + mu]), from);
            sum(&[(1.0, all[k]), (1.0 / 12.0, ahead), (1.0 / 12.0, behind), (-1.0 / 6.0, all[k])])
        };
        (0..all.len()).map(added).collect()
    }
    /// A step ε of Lüscher's third-order scheme (2010, appendix C).
    pub fn step(&self, gauge: &HostGauge, epsilon: f64) -> HostGauge {
        let moved = |gauge: &HostGauge, by: &[(f64, &[Matrix])]| {
            let link = |k: usize| {
                let terms: Vec<(f64, Matrix)> = by.iter().map(|(factor, z)| (epsilon * factor, z[k])).collect();
                multiply(&exponential(&sum(&terms)), &gauge.links()[k])
            };
            HostGauge::from_links(gauge.lattice(), (0..gauge.links().len()).map(link).collect())
        };
        let z0 = self.of(gauge);
        let w1 = moved(gauge, &[(0.25, &z0)]);
        let z1 = self.of(&w1);
        let w2 = moved(&w1, &[(8.0 / 9.0, &z1), (-17.0 / 36.0, &z0)]);
        let z2 = self.of(&w2);
        moved(&w2, &[(0.75, &z2), (-8.0 / 9.0, &z1), (17.0 / 36.0, &z0)])
    }
}
