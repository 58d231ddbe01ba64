//! A linear operator of one's own, solved by a Krylov method of the library, on plain vectors: a charged scalar particle
//! on a square lattice in a constant magnetic field.
//!
//! `cargo run --release --example own_operator`
use ferrite::num_complex::Complex64;
use ferrite::solvers::{
    CgWorkspace, LengthError, LinearOperator, PlainSpace, SolveError, SolverParams, Uniform, VectorSpace, cg,
};
use std::f64::consts::TAU;

/// Extent of the periodic lattice.
const L: usize = 32;
/// Quanta of the magnetic flux through it.
const FLUX: f64 = 8.0;

/// A = m² − Δ with the covariant Laplace operator Δ of a magnetic field.
struct Particle {
    mass2: f64,
}

impl Particle {
    /// The magnetic field: the phase of a plaquette.
    const FIELD: f64 = TAU * FLUX / (L * L) as f64;

    /// The neighbour of (x, y) ahead in direction `mu`, and the link that leads there.
    fn ahead(x: usize, y: usize, mu: usize) -> (usize, Complex64) {
        let phase = match (mu, x + 1 == L) {
            (0, false) => 0.0,
            // So that the plaquettes at the end of the lattice are like all others.
            (0, true) => -Self::FIELD * (L * y) as f64,
            _ => Self::FIELD * x as f64,
        };
        let neighbour = if mu == 0 { (x + 1) % L + L * y } else { x + L * ((y + 1) % L) };
        (neighbour, Complex64::from_polar(1.0, phase))
    }
}

impl LinearOperator<PlainSpace> for Particle {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
        for (out, x) in out.iter_mut().zip(x) {
            *out = (self.mass2 + 4.0) * x;
        }
        for here in 0..L * L {
            for mu in 0..2 {
                let (there, link) = Self::ahead(here % L, here / L, mu);
                out[here] -= link * x[there];
                out[there] -= link.conj() * x[here];
            }
        }
        Ok(())
    }
    fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
        self.apply(x, out)
    }
    fn flops(&self) -> f64 {
        (34 * L * L) as f64
    }
}

/// Solves A x = b for b = 1 in one corner; gives x and the relative residual, computed apart from the solver.
fn solve(operator: &Particle) -> Result<(Vec<Complex64>, f64), SolveError<LengthError>> {
    let space = PlainSpace::new(L * L);
    let system = Uniform::new(&space, operator);
    let (mut b, mut x, mut residual) = (space.allocate()?, space.allocate()?, space.allocate()?);
    b[0] = Complex64::ONE;
    let params = SolverParams { tol: 1e-10, ..Default::default() };
    let info = cg(&system, &b, &mut x, &params, &mut CgWorkspace::new(&system)?, &mut ())?;
    println!("m² = {:+.3} F: {} iterations", operator.mass2 / Particle::FIELD, info.iterations);

    operator.apply(&x, &mut residual)?;
    let mut norm2 = [0.0];
    space.sub_norm2(&b, &mut residual, &mut norm2)?;
    Ok((x, norm2[0].sqrt()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The lowest Landau level of −Δ is at the magnetic field F, so that m² may be negative as long as m² + F is not.
    let (x, residual) = solve(&Particle { mass2: -0.5 * Particle::FIELD })?;
    println!("|b - Ax| / |b| = {residual:.1e}, x(0) = {:.6}", x[0].re);
    if residual > 1e-10 {
        return Err("the residual is too large".into());
    }

    // Beyond that A is not positive any more. CG notices, and says so by an error that can be matched on.
    match solve(&Particle { mass2: -1.5 * Particle::FIELD }) {
        Err(SolveError::NotPositiveDefinite { curvature, iteration, .. }) => {
            println!("m² = -1.500 F: not positive, (p, A p) = {curvature:.1e} at iteration {iteration}");
            Ok(())
        }
        Err(other) => Err(other.into()),
        Ok(_) => Err("CG solved a system that is not positive".into()),
    }
}
