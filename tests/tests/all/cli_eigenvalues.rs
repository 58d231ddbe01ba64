//! `ferrite eigenvalues`: against dense matrices on tiny lattices, and free fields.
use crate::program::*;
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::files::{ReadOptions, read_gauge};
use ferrite::lattice::Lattice;
use ferrite_tests::reference::WilsonDirac;
use ferrite_tests::staggered_reference::{Boundary, EtaPhases, ReferenceLinks, StaggeredDirac};
use ferrite_tests::testkit::dense::{all_numbers, dense, even_numbers, squares_of_singular_values};
use serde_json::Value;
use std::f64::consts::TAU;

fn spectral_bounds(found: &Value) -> [[f64; 3]; 2] {
    ["smallest", "largest"].map(|end| {
        ["low", "value", "high"].map(|key| {
            let value = &found["configurations"][0][end][key];
            value.as_f64().unwrap_or_else(|| panic!("{end}: {value}"))
        })
    })
}

/// Values are exact to the residual of CG, 1e-9, and the square of that of the Ritz vector, 1e-12, over the distance to the next
/// eigenvalue, of which few are closer than 1e-5; bounds are bounds, but for rounding.
fn expect(found: &Value, exact: [f64; 2], what: &str) {
    for ([low, value, high], exact) in spectral_bounds(found).into_iter().zip(exact) {
        assert!((value / exact - 1.0).abs() < 1e-7, "{what}: {value:e}, {exact:e}");
        let rounding = 1e-12 * exact;
        assert!(
            low - rounding <= exact && exact <= high + rounding && high - low < 3e-6 * exact,
            "{what}: {low:e} {high:e} {exact:e}"
        );
    }
    let condition = found["configurations"][0]["condition"].as_f64().unwrap();
    assert!((condition * exact[0] / exact[1] - 1.0).abs() < 2e-7, "{what}");
}

#[test]
fn eigenvalues_are_those_of_dense_matrices() {
    let room = Room::new();
    room.json("generate weak-field --lattice 2,2,2,4 --seed 3 --noise 0.5 -o cfg.ildg");
    let gauge = read_gauge(room.path("cfg.ildg").as_path(), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    let dirac = WilsonDirac::new(&gauge, 0.1, -1.0);
    let schur = dense(lattice, &even_numbers::<Spinor>(lattice), |psi| dirac.schur(false, psi));
    let found = room.json("eigenvalues cfg.ildg --mass 0.1");
    expect(&found, squares_of_singular_values(&schur), "wilson");
    assert!(found["configurations"][0]["d_dagger_d"].is_null());

    let mass = 0.05;
    let naive = StaggeredDirac::naive(&gauge, mass, EtaPhases::Milc, Boundary::Sign(-1.0));
    let improved = ReferenceLinks::hisq(&gauge, 0.0);
    let hisq = improved.operator(mass, EtaPhases::Milc, Boundary::Sign(-1.0));
    for (name, operator) in [("staggered", &naive), ("hisq", &hisq)] {
        // M from even sites to all: its singular values are those of M†M on the even sites.
        let whole = dense(lattice, &all_numbers::<ColourVector>(lattice), |v| operator.apply(false, v));
        let exact = squares_of_singular_values(&whole);
        let found = room.json(&format!("eigenvalues cfg.ildg --operator {name} --mass {mass}"));
        expect(&found, exact, name);
        for (key, exact) in [("smallest", exact[0]), ("largest", exact[1])] {
            let value = found["configurations"][0]["d_dagger_d"][key].as_f64().unwrap();
            assert!((value - 4.0 * (exact - mass * mass)).abs() < 4e-7 * exact, "{name} {key}: {value}");
        }
    }
}

/// Eigenvalues on unit links are |1 − κ² (w ± i s)²|² with w = 2 Σ cos p, s² = 4 Σ sin² p; those of staggered fermions are m² + Σ sin² p.
#[test]
fn free_eigenvalues_are_known() {
    let room = Room::new();
    room.json("generate unit --lattice 4,4,2,6 -o cfg.ildg");
    let lattice = Lattice::new([4, 4, 2, 6]).unwrap();
    let spectral_bounds = |of: &dyn Fn([f64; 4]) -> f64| {
        let all = (0..lattice.volume()).map(|k| {
            let (n, size) = (lattice.coordinates(k), lattice.size());
            of(std::array::from_fn(|mu| TAU * (n[mu] as f64 + if mu == 3 { 0.5 } else { 0.0 }) / size[mu] as f64))
        });
        all.fold([f64::INFINITY, 0.0], |[low, high]: [f64; 2], x| [low.min(x), high.max(x)])
    };
    let (mass, kappa) = (0.2, 0.5 / 4.2);
    let wilson = spectral_bounds(&|p| {
        let (w, s) =
            (2.0 * p.iter().map(|p| p.cos()).sum::<f64>(), 2.0 * p.iter().map(|p| p.sin().powi(2)).sum::<f64>().sqrt());
        let (re, im) = (1.0 - kappa * kappa * (w * w - s * s), 2.0 * kappa * kappa * w * s);
        re * re + im * im
    });
    expect(&room.json("eigenvalues cfg.ildg --mass 0.2"), wilson, "wilson");
    let staggered = spectral_bounds(&|p| mass * mass + p.iter().map(|p| p.sin().powi(2)).sum::<f64>());
    expect(&room.json("eigenvalues cfg.ildg --operator staggered --mass 0.2"), staggered, "staggered");
    let text = room.run("eigenvalues cfg.ildg --operator staggered --mass 0.2 --backend cpu").stdout;
    for part in
        ["staggered operator on 4×4×2×6", "largest eigenvalue", "smallest eigenvalue", "condition number", "D^+ D"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn mistakes_are_sentences() {
    let room = Room::with_weak_field();
    for (flags, parts) in [
        ("", &["--mass"][..]),
        ("--mass 0.1 --tol 0", &["--tol", "1e-12"]),
        ("--mass 0.1 --csw 1", &["csw", "clover"]),
        ("--mass 0.1 --steps 0", &["--steps"]),
        ("--operator staggered", &["no mass"]),
    ] {
        room.fails(2, &format!("eigenvalues weak.ildg {flags} --backend cpu"), parts);
    }
    room.fails(2, "eigenvalues none.ildg --mass 0.1 --backend cpu", &["none.ildg"]);
    let few = "eigenvalues weak.ildg --mass 0.1 --max-iterations 2 --backend cpu";
    room.fails(1, few, &["weak.ildg: the smallest eigenvalue was not found: ", "increase --max-iterations"]);
    let text = room.run("eigenvalues weak.ildg --mass 0.1 --steps 2 --backend cpu").stdout;
    assert!(text.contains("not converged: increase --steps"), "{text}");
}
