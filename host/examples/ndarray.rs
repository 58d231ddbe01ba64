//! Fields as arrays of the crate `ndarray`: a view of a solution, and a source that is made as an array.
//!
//! `cargo run --release --example ndarray`
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{FieldError, HostSpinor};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::num_complex::Complex64;
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite::solve::{Request, solve};
use ndarray::{Array6, ArrayView6, Axis, s};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lattice = Lattice::new([4, 4, 4, 8])?;

    // Axes are those of `.npy` files: t, z, y, x, spin, colour. A wall of ones at t = 2, spin 0, colour 1:
    let mut wall = Array6::<Complex64>::zeros((8, 4, 4, 4, 4, 3));
    wall.slice_mut(s![2, .., .., .., 0, 1]).fill(Complex64::ONE);
    // Numbers have to be in C order; an array in another one is made so by `as_standard_layout`.
    let numbers = wall.as_standard_layout();
    let source = HostSpinor::from_numbers(wall.shape(), numbers.as_slice().unwrap_or_default())?;

    let gauge = generate::weak_field(lattice, 7, 0.1);
    let domain = Domain::single(Cpu::new(None), lattice)?;
    let request = Request::new(WilsonParams::from_mass(0.2, TimeBoundary::Antiperiodic));
    let (solutions, _) = solve(&domain, &gauge, &[source], &request, &mut ())?;

    // A view takes no copy. Σ |ψ|² over space, spin and colour, for each t:
    let psi = ArrayView6::from_shape((8, 4, 4, 4, 4, 3), solutions[0].numbers())?;
    let correlator: Vec<f64> = psi.axis_iter(Axis(0)).map(|slice| slice.iter().map(|c| c.norm_sqr()).sum()).collect();
    for (t, value) in correlator.iter().enumerate() {
        println!("t = {t}: {value:.6}");
    }
    let (sum, norm2) = (correlator.iter().sum::<f64>(), solutions[0].norm2());
    let largest = correlator.iter().copied().fold(0.0, f64::max);
    if (sum - norm2).abs() > 1e-12 * norm2 || correlator[2] != largest {
        return Err("the array does not hold the field".into());
    }

    // An array of another shape is refused.
    match HostSpinor::from_numbers(psi.permuted_axes([3, 2, 1, 0, 5, 4]).shape(), solutions[0].numbers()) {
        Err(error @ FieldError::Shape { .. }) => println!("refused: {error}"),
        other => return Err(format!("a wrong shape gave {other:?}").into()),
    }
    Ok(())
}
