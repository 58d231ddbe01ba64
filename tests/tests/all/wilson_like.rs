//! Wilson-like operators on the CPU: against the reference, and against what CL2QCD computed.
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostGauge, HostSpinor, Spinor};
use ferrite::lattice::Lattice;
use ferrite::operators::{TimeBoundary, TwistedParams, WilsonParams};
use ferrite::solve::{Method, Request, solve};
use ferrite_tests::checks;
use ferrite_tests::gamma::{self, SpinMatrix};
use ferrite_tests::refdata;
use ferrite_tests::reference::{dot, gamma5, spin_multiply};
use ferrite_tests::report::Report;
use num_complex::Complex64;
use serde_json::Value;
use std::fs;

#[test]
fn wilson_like_operators_agree_with_the_reference() {
    let mut report = Report::default();
    checks::wilson_like(&Cpu::new(None), &mut report).unwrap();
    print!("{}", report.table());
    report.assert_passed();
}

#[test]
fn wilson_like_solves_end_at_their_tolerance() {
    let mut report = Report::default();
    checks::wilson_like_solves(&Cpu::new(None), &mut report).unwrap();
    print!("{}", report.table());
    report.assert_passed();
}

/// γ matrices of CL2QCD: γ_k = (0 −iσ_k; iσ_k 0), γ_t = (0 −1; −1 0).
fn gammas_of_cl2qcd() -> [SpinMatrix; 4] {
    let i = Complex64::I;
    let (one, zero) = (Complex64::ONE, Complex64::ZERO);
    let pauli = [[[zero, one], [one, zero]], [[zero, -i], [i, zero]], [[one, zero], [zero, -one]]];
    let blocks = |upper: [[Complex64; 2]; 2], lower: [[Complex64; 2]; 2]| -> SpinMatrix {
        std::array::from_fn(|r| {
            std::array::from_fn(|c| match (r / 2, c / 2) {
                (0, 1) => upper[r][c - 2],
                (1, 0) => lower[r - 2][c],
                _ => zero,
            })
        })
    };
    let times = |c: Complex64, m: [[Complex64; 2]; 2]| m.map(|row| row.map(|z| c * z));
    let identity = [[one, zero], [zero, one]];
    let space = |k: usize| blocks(times(-i, pauli[k]), times(i, pauli[k]));
    [space(0), space(1), space(2), blocks(times(-one, identity), times(-one, identity))]
}

/// U with γ_DeGrand-Rossi U = U γ: Σ_k Γ_k X Γ'_k† over all 16 products of γ matrices in both bases, for any X.
fn change_of_basis(from: &[SpinMatrix; 4]) -> SpinMatrix {
    let identity: SpinMatrix =
        std::array::from_fn(|r| std::array::from_fn(|c| Complex64::from(if r == c { 1.0 } else { 0.0 })));
    let product = |gammas: &[SpinMatrix; 4], which: usize| {
        (0..4).filter(|mu| which >> mu & 1 == 1).fold(identity, |m, mu| gamma::multiply(&m, &gammas[mu]))
    };
    let any: SpinMatrix = std::array::from_fn(|r| {
        std::array::from_fn(|c| Complex64::new((1 + r + 3 * c) as f64, (2 * r * r + c) as f64 - 3.0))
    });
    let mut sum = [[Complex64::ZERO; 4]; 4];
    for which in 0..16 {
        let (here, there) = (product(&gamma::GAMMA, which), product(from, which));
        let adjoint: SpinMatrix = std::array::from_fn(|r| std::array::from_fn(|c| there[c][r].conj()));
        sum = gamma::add(&sum, Complex64::ONE, &gamma::multiply(&gamma::multiply(&here, &any), &adjoint));
    }
    let norm = sum[0].iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    sum.map(|row| row.map(|z| z / norm))
}

/// The condensate of twisted quarks on unit links, from all sites and from one slice, with every solver: −4κ/(12 V) Im
/// (γ5 b)† M⁻¹ b for their M, which is 2κ times ours, and b = 1 in their basis.
#[test]
fn cl2qcd_condenses_twisted_quarks_alike() {
    let Some(folder) = refdata::folder() else { return };
    let text = fs::read_to_string(folder.join("answers/cl2qcd_twisted_4444.json")).unwrap();
    let answers: Value = serde_json::from_str(&text).unwrap();
    let number = |key: &str| answers[key].as_f64().unwrap();
    let lattice = Lattice::new([4; 4]).unwrap();
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let wilson = WilsonParams::from_kappa(number("kappa"), TimeBoundary::Periodic);
    let operator = TwistedParams { wilson, mu: number("mu") };
    let basis = change_of_basis(&gammas_of_cl2qcd());
    let ones: Spinor = spin_multiply(&basis, &[[Complex64::ONE; 3]; 4]);
    for method in [Method::Bicgstab, Method::Cg, Method::Cgne, Method::BlockCg] {
        let request = Request { method, tol: 1e-14, ..Request::new(operator) };
        let condensate = |is_source: &dyn Fn([usize; 4]) -> bool| {
            let site = |x: usize| if is_source(lattice.coordinates(x)) { ones } else { Spinor::default() };
            let b = HostSpinor::from_sites(lattice, (0..lattice.volume()).map(site).collect());
            let (psi, _) =
                solve(&domain, &HostGauge::unit(lattice), std::slice::from_ref(&b), &request, &mut ()).unwrap();
            -2.0 / (12.0 * lattice.volume() as f64) * dot(&gamma5(&b), &psi[0]).im
        };
        for (found, key) in [
            (condensate(&|_| true), "twisted_mass_cold_volume"),
            (condensate(&|[_, _, z, _]| z == 0), "twisted_mass_cold_zslice"),
        ] {
            let expected = number(key);
            assert!((found / expected - 1.0).abs() < 1e-12, "{method:?} {key}: {found} {expected}");
        }
    }
}
