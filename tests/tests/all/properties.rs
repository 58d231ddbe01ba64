//! Properties that hold for every input: arithmetic of indices, storage formats, random streams, names of kernels.
use ferrite::Precision;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostSpinor, Matrix};
use ferrite::field::{FieldShape, FullField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite_tests::accuracy::Accuracy;
use ferrite_tests::report::{relative_error, worst_error};
use gpu_kernels::Format;
use gpu_kernels::algebra::{Complex, Complex16, Phase, Su3};
use gpu_kernels::lattice::{Divisor, Geometry};
use gpu_kernels::random::Philox;
use half::f16;
use num_complex::Complex64;
use proptest::prelude::*;
use std::collections::HashSet;

fn even(most: usize) -> impl Strategy<Value = usize> {
    (1..=most / 2).prop_map(|n| 2 * n)
}
fn extents() -> impl Strategy<Value = [usize; 4]> {
    [even(12), even(8), even(8), even(10)]
}

proptest! {
    // Cases are small; a failure prints its own.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn divisor_divides(n in 0u32..1 << 31, d in 1u32..=1 << 31) {
        prop_assert_eq!(Divisor::new(d).divide(n), (n / d, n % d));
    }
    #[test]
    fn divisor_divides_by_small_numbers_near_multiples(q in 0u32..1 << 20, d in 1u32..2048, off in 0u32..3) {
        let n = (q * d + off).saturating_sub(1);
        prop_assert_eq!(Divisor::new(d).divide(n), (n / d, n % d));
    }

    #[test]
    fn geometry_and_lattice_agree(size in extents()) {
        let lattice = Lattice::new(size).unwrap();
        let geometry = Geometry::new(size.map(|e| e as u32));
        prop_assert_eq!(geometry.half_volume() as usize, lattice.half_volume());
        prop_assert_eq!(geometry.size().map(|e| e as usize), size);
        let mut seen = HashSet::new();
        for parity in 0..2u32 {
            for index in 0..geometry.half_volume() {
                let site = geometry.site(index, parity);
                let lexicographic = geometry.lexicographic(&site) as usize;
                let x = lattice.coordinates(lexicographic);
                prop_assert!(seen.insert(lexicographic));
                prop_assert_eq!(lattice.index(x), lexicographic);
                prop_assert_eq!(lexicographic / 2, index as usize);
                prop_assert_eq!(lattice.parity(x), parity as usize);
                for mu in 0..4 {
                    for forward in [false, true] {
                        let next = geometry.site(geometry.neighbour(&site, mu, forward), 1 - parity);
                        let expected = lattice.neighbour(lexicographic, mu, forward);
                        prop_assert_eq!(geometry.lexicographic(&next) as usize, expected);
                        let back = geometry.neighbour(&next, mu, !forward);
                        prop_assert_eq!(back, index, "there and back");
                        let edge = if forward { size[mu] - 1 } else { 0 };
                        prop_assert_eq!(geometry.wraps(&site, mu, forward), x[mu] == edge);
                    }
                }
            }
        }
        prop_assert_eq!(seen.len(), lattice.volume());
    }

    #[test]
    fn third_row_of_random_su3_matrices_comes_back(seed: u64) {
        let complex = |z: Complex64| Complex { re: z.re, im: z.im };
        for u in generate::random(Lattice::new([2; 4]).unwrap(), seed).links() {
            let row = |i: usize| [complex(u[i][0]), complex(u[i][1]), complex(u[i][2])];
            let double = Su3::from_two_rows(row(0), row(1)).0[2];
            let single = Su3::<f32>::from_two_rows(row(0).map(|z| z.cast()), row(1).map(|z| z.cast())).0[2];
            for k in 0..3 {
                prop_assert!((double[k].re - u[2][k].re).abs().max((double[k].im - u[2][k].im).abs()) < 1e-15);
                let (re, im) = (single[k].re as f64 - u[2][k].re, single[k].im as f64 - u[2][k].im);
                prop_assert!(re.abs().max(im.abs()) < 4e-7);
            }
        }
    }

    #[test]
    fn random_links_are_su3(seed: u64, noise in 0.01f64..1.0) {
        let lattice = Lattice::new([2, 2, 2, 4]).unwrap();
        for gauge in [generate::random(lattice, seed), generate::weak_field(lattice, seed, noise)] {
            let off = gauge.links().iter().map(distance_from_su3).fold(0.0, f64::max);
            prop_assert!(off < 1e-14, "{}", off);
        }
    }

    #[test]
    fn storage_keeps_fields_and_powers_of_two(seed: u64, exponent in -40i32..40) {
        keeps(Precision::Double, seed, exponent)?;
        keeps(Precision::Single, seed, exponent)?;
        keeps(Precision::Half, seed, exponent)?;
        // No factor here: without a norm, digits depend on how far below 2⁻¹⁴ a component is.
        keeps(Precision::Fp16, seed, 0)?;
    }

    #[test]
    fn a_component_does_not_suffer_from_another_site(seed: u64, exponent in 0i32..60) {
        // Sites of very different sizes: each has a norm of its own.
        let lattice = Lattice::new([2; 4]).unwrap();
        let mut source: HostSpinor = generate::random_source(lattice, seed);
        for (x, site) in source.sites_mut().iter_mut().enumerate() {
            let size = 2f64.powi(exponent * (x % 2) as i32 - 30);
            site.iter_mut().flatten().for_each(|z| *z *= size);
        }
        prop_assert!(worst_error(&[stored(Precision::Half, &source)], &[source]) <= Precision::Half.sum().worst);
    }

    #[test]
    fn sixteen_bit_floats_are_the_nearest(re: f32, im in -70000f32..70000.0, small in -1e-4f32..1e-4) {
        for x in [re, im, small] {
            let (y, nearest) = (Complex16::round(Complex { re: x, im: 1.0 }).widen().re, f16::from_f32(x).to_f32());
            prop_assert!(y.to_bits() == nearest.to_bits() || y.is_nan() && x.is_nan(), "{}: {} {}", x, y, nearest);
        }
    }

    #[test]
    fn sums_of_sixteen_bit_floats_are_rounded_once(a: u32, b: u32) {
        let (x, y) = (Complex16(a).widen(), Complex16(b).widen());
        let wide = |z: Complex<f32>| [z.re as f64, z.im as f64];
        let ([a_re, a_im], [b_re, b_im]) = (wide(x), wide(y));
        for (phase, re, im) in [
            (Phase::One, a_re + b_re, a_im + b_im),
            (Phase::MinusOne, a_re - b_re, a_im - b_im),
            (Phase::I, a_re - b_im, a_im + b_re),
            (Phase::MinusI, a_re + b_im, a_im - b_re),
        ] {
            let sum = Complex16(a).combine(phase, Complex16(b.rotate_left(16)));
            for (got, exact) in [(sum.re as f64, re), (sum.im as f64, im)] {
                // Sums of two such floats are exact in double.
                let right = got == f16::from_f64(exact).to_f64() || got.is_nan() && exact.is_nan();
                prop_assert!(right, "{:?} {:?} {:?}: {} is not {}", x, phase, y, got, exact);
            }
        }
    }

    #[test]
    fn random_streams_do_not_depend_on_the_order_of_calls(seed: u64, first: u64, other: u64, substream: u32) {
        prop_assume!(first != other);
        let draw = |stream: &mut Philox| (0..9).map(|_| stream.next_u32()).collect::<Vec<_>>();
        let alone = draw(&mut Philox::new(seed, first, substream));
        let beside = draw(&mut Philox::new(seed, other, substream));
        let (mut a, mut b) = (Philox::new(seed, first, substream), Philox::new(seed, other, substream));
        let (mut from_a, mut from_b) = (Vec::new(), Vec::new());
        for k in 0..9 {
            if k % 2 == 0 {
                from_b.push(b.next_u32());
                from_a.push(a.next_u32());
            } else {
                from_a.push(a.next_u32());
                from_b.push(b.next_u32());
            }
        }
        prop_assert_eq!(&from_a, &alone);
        prop_assert_eq!(&from_b, &beside);
        prop_assert_ne!(&alone, &beside);
        prop_assert_ne!(&alone, &draw(&mut Philox::new(seed, first, substream.wrapping_add(1))));
        prop_assert_ne!(&alone, &draw(&mut Philox::new(seed.wrapping_add(1), first, substream)));
    }

    #[test]
    fn uniform_numbers_stay_inside(seed: u64, stream: u64) {
        let mut stream = Philox::new(seed, stream, 0);
        for _ in 0..100 {
            let x = stream.uniform();
            prop_assert!(0.0 < x && x < 1.0);
        }
    }
}

/// The largest element of U U† − 1, or |det U − 1|.
fn distance_from_su3(u: &Matrix) -> f64 {
    let mut off = 0f64;
    for i in 0..3 {
        for j in 0..3 {
            let product: Complex64 = (0..3).map(|k| u[i][k] * u[j][k].conj()).sum();
            off = off.max((product - f64::from(i == j)).norm());
        }
    }
    let minor = |j: usize, k: usize| u[1][j] * u[2][k] - u[1][k] * u[2][j];
    let determinant = u[0][0] * minor(1, 2) + u[0][1] * minor(2, 0) + u[0][2] * minor(0, 1);
    off.max((determinant - 1.0).norm())
}

/// A field after it was stored in a precision.
fn stored(precision: Precision, host: &HostSpinor) -> HostSpinor {
    let domain = Domain::single(Cpu::new(Some(1)), host.lattice()).unwrap();
    let mut field = FullField::zero(&domain, FieldShape::spinors(precision, 1)).unwrap();
    field.upload(std::slice::from_ref(host)).unwrap();
    field.download().unwrap().remove(0)
}

/// Errors are bounded; a factor 2^n goes through without changing a bit of the mantissas; storing twice is no worse.
fn keeps(precision: Precision, seed: u64, exponent: i32) -> Result<(), TestCaseError> {
    let source = generate::random_source(Lattice::new([2; 4]).unwrap(), seed);
    let source = [source];
    let once = [stored(precision, &source[0])];
    let (off, worst) = (relative_error(&once, &source), worst_error(&once, &source));
    let allowed = precision.sum();
    prop_assert!(off <= allowed.relative && worst <= allowed.worst, "{}: {} {}", precision, off, worst);
    let scaled = |psi: &HostSpinor| {
        let mut psi = psi.clone();
        psi.sites_mut().iter_mut().flatten().flatten().for_each(|z| *z *= 2f64.powi(exponent));
        psi
    };
    prop_assert_eq!(stored(precision, &scaled(&source[0])), scaled(&once[0]));
    prop_assert!(worst_error(&[stored(precision, &once[0])], &once) <= allowed.worst);
    Ok(())
}

#[test]
fn normal_numbers_have_mean_0_and_variance_1() {
    let (mut sum, mut square, n) = (0.0, 0.0, 100_000);
    for site in 0..n / 2 {
        for x in Philox::new(5, site, 3).normal_pair() {
            sum += x;
            square += x * x;
        }
    }
    // Five standard deviations: 1/√n of the mean, √(2/n) of the variance.
    let n = n as f64;
    assert!((sum / n).abs() < 5.0 / n.sqrt());
    assert!((square / n - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
}

#[test]
fn names_of_kernels_are_unique_and_those_of_their_formats() {
    let mut names = HashSet::new();
    for family in gpu_kernels::FAMILIES {
        for table in family.tables {
            let mut formats = HashSet::new();
            for instance in table.instances() {
                let name = instance.name;
                assert!(names.insert(name), "{name} twice");
                assert!(formats.insert(instance.format), "{name}: another instance has its format");
                assert!(instance.module.starts_with(family.name), "{name} in {}", instance.module);
                // What fields have at a site is said where kernels are for spinors and for colour vectors.
                let of = |format: Format| format!("{} {format}", table.name).trim_end().replace(' ', "_");
                let without_kind = Format { kind: None, ..instance.format };
                let only = table.instances().all(|other| other.format.kind == instance.format.kind);
                assert!(name == of(instance.format) || only && name == of(without_kind), "{name}: {}", instance.format);
            }
        }
    }
    assert!(names.len() > 70, "{} kernels", names.len());
}
