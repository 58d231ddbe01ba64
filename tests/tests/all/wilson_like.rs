//! Wilson-like operators on the CPU: against the reference, and against what CL2QCD computed.
use crate::program::{Room, Run, has_numpy};
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostGauge, HostSpinor, Spinor};
use ferrite::files::npy;
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::Operator;
use ferrite::operators::{
    Anisotropy, CloverParams, ExpCloverParams, OperatorForm, TimeBoundary, TwistedCloverParams, TwistedParams,
    WilsonParams,
};
use ferrite::solve::{Configuration, Method, Request, solve};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::checks;
use ferrite_tests::gamma::{self, SpinMatrix};
use ferrite_tests::refdata;
use ferrite_tests::reference::{dot, gamma5, spin_multiply};
use ferrite_tests::report;
use ferrite_tests::testkit::on_cpu;
use num_complex::Complex64;
use serde_json::Value;
use std::fs;
use std::process::Command;

#[test]
fn wilson_like_operators_agree_with_the_reference() {
    on_cpu(checks::wilson_like);
}

#[test]
fn wilson_like_solves_end_at_their_tolerance() {
    on_cpu(checks::wilson_like_solves);
}

/// M ψ or M† ψ, or of its Schur complement, by kernels in double.
fn image(
    gauge: &HostGauge,
    operator: impl Into<Operator>,
    form: OperatorForm,
    complement: bool,
    psi: &HostSpinor,
) -> HostSpinor {
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    let links = Configuration::new(&domain, gauge);
    let (psi, precision, storage) = (std::slice::from_ref(psi), Precision::Double, LinkStorage::FULL);
    let (mut images, _) = links.apply(form, complement, psi, operator, precision, storage).unwrap();
    images.swap_remove(0)
}

fn relative_error(a: &HostSpinor, b: &HostSpinor) -> f64 {
    report::relative_error(std::slice::from_ref(a), std::slice::from_ref(b))
}

/// Isotropic and antiperiodic, anisotropic and periodic.
fn some_wilson_params() -> [WilsonParams; 2] {
    let isotropic = WilsonParams::from_mass(0.2, TimeBoundary::Antiperiodic);
    let anisotropy = Anisotropy { xi: 2.5, nu: 0.75 };
    [isotropic, WilsonParams { boundary: TimeBoundary::Periodic, anisotropy, ..isotropic }]
}

/// An operator is a simpler one if the parameters by which they differ are zero: applied, as a Schur complement, and in solves.
#[test]
fn parameters_of_zero_leave_the_simpler_operator() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let gauge = generate::random(lattice, 31);
    let psi = generate::random_source(lattice, 32);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    for wilson in some_wilson_params() {
        let clover = |c: f64| CloverParams { wilson, space: 0.9 * c, time: 1.3 * c };
        let twisted_clover = |c, mu| TwistedCloverParams { clover: clover(c), mu };
        let pairs: [(&str, Operator, Operator); 5] = [
            ("exp-clover without clover", ExpCloverParams(clover(0.0)).into(), wilson.into()),
            ("twisted without mu", TwistedParams { wilson, mu: 0.0 }.into(), wilson.into()),
            (
                "twisted-clover without clover",
                twisted_clover(0.0, 0.3).into(),
                TwistedParams { wilson, mu: 0.3 }.into(),
            ),
            ("twisted-clover without mu", twisted_clover(1.0, 0.0).into(), clover(1.0).into()),
            ("twisted-clover without either", twisted_clover(0.0, 0.0).into(), wilson.into()),
        ];
        for (name, operator, simpler) in pairs {
            for form in [OperatorForm::Plain, OperatorForm::Dagger, OperatorForm::Normal] {
                for complement in [false, true] {
                    let [a, b] =
                        [&operator, &simpler].map(|operator| image(&gauge, operator.clone(), form, complement, &psi));
                    let off = relative_error(&a, &b);
                    assert!(off < 1e-14, "{name}, {form:?}, complement {complement}: {off:e}");
                }
            }
            let [a, b] = [operator, simpler].map(|operator| {
                let request = Request { tol: 1e-13, ..Request::new(operator) };
                let (found, report) = solve(&domain, &gauge, std::slice::from_ref(&psi), &request, &mut ()).unwrap();
                assert!(report.converged, "{name}");
                found
            });
            // Two residuals of 1e-13, times the condition of M, which is below ten on rough links with this mass.
            let off = relative_error(&a[0], &b[0]);
            assert!(off < 2e-12, "solve, {name}: {off:e}");
        }
        // A term c X in the exponent is that of clover to first order: what is left falls with c².
        let left = [1e-2, 1e-3].map(|c| {
            let [a, b] = [ExpCloverParams(clover(c)).into(), Operator::from(clover(c))]
                .map(|operator| image(&gauge, operator, OperatorForm::Plain, false, &psi));
            relative_error(&a, &b)
        });
        assert!(left[0] < 1e-4 && (left[0] / left[1] / 100.0 - 1.0).abs() < 0.02, "{left:?}");
    }
}

/// γ5 M(μ) γ5 = M†(−μ) of kernels; of operators without μ it is M†.
#[test]
fn kernels_are_gamma5_hermitian() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let gauge = generate::random(lattice, 33);
    let psi = generate::random_source(lattice, 34);
    for wilson in some_wilson_params() {
        let clover = CloverParams { wilson, space: 0.9, time: 1.3 };
        let operators: [(&str, &dyn Fn(f64) -> Operator); 5] = [
            ("wilson", &|_| wilson.into()),
            ("clover", &|_| clover.into()),
            ("exp-clover", &|_| ExpCloverParams(clover).into()),
            ("twisted", &|mu| TwistedParams { wilson, mu }.into()),
            ("twisted-clover", &|mu| TwistedCloverParams { clover, mu }.into()),
        ];
        for (name, operator) in operators {
            let [a, b] = [0.7, -0.7].map(|mu| image(&gauge, operator(mu), OperatorForm::Dagger, false, &psi));
            let between = gamma5(&image(&gauge, operator(0.7), OperatorForm::Plain, false, &gamma5(&psi)));
            let off = relative_error(&between, &b);
            assert!(off < 1e-14, "{name}: {off:e}");
            // And not of the same μ.
            let same = relative_error(&between, &a);
            assert_eq!(same > 0.1, name.starts_with("twisted"), "{name}: {same:e}");
        }
    }
}

/// The program's exponential term on rough links is exp by its power series, of a clover term that NumPy makes.
#[test]
fn the_exponential_term_is_that_of_numpy() {
    if !has_numpy() {
        return;
    }
    let room = Room::new();
    room.json("generate random --lattice 2,4,6,8 --seed 35 -o links.npy");
    // Field j is 1 in spin and colour j at every site.
    let volume = 2 * 4 * 6 * 8;
    let numbers: Vec<Complex64> =
        (0..12 * volume * 12).map(|k| Complex64::from(if k % 12 == k / 12 / volume { 1.0 } else { 0.0 })).collect();
    npy::write_complex(&room.path("unit.npy"), &[12, 8, 6, 4, 2, 4, 3], &numbers).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exp_clover.py");
    // d = 1 + 3 ν/ξ + m; the spatial coefficient is CR/ξ.
    for (wilson, coefficients, term) in [
        ("--mass 0.1", "--csw 1.5", "4.1 1.5 1.5"),
        ("--mass -0.2 --xi 2 --nu 0.8", "--clover-r 1.6 --clover-t 1.1", "2.0 0.8 1.1"),
    ] {
        let apply = "apply --gauge links.npy --source file:unit.npy --precision double --reconstruct 18";
        room.json(&format!("{apply} --operator wilson {wilson} -o wilson.npy"));
        room.json(&format!("{apply} --operator exp-clover {wilson} {coefficients} -o exponential.npy"));
        let mut python = Command::new("python3");
        python.arg(script).args(["links.npy", "wilson.npy", "exponential.npy"]).args(term.split(' '));
        let run = Run::from(python.current_dir(room.0.path()).output().unwrap());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let numbers: Vec<f64> = run.stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert!(numbers[0] < 1e-12 && numbers[1] > 0.05, "{coefficients}: {}", run.stdout);
    }
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
    for method in [Method::BICGSTAB, Method::CG, Method::CGNE, Method::BLOCK_CG] {
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
