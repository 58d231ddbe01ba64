//! Tests of fields with a fifth dimension, in which a right-hand side is one vector of L_s blocks.
use super::host::{ColourVector, Fermion, HostField, Spinor};
use super::{DeviceField, FieldShape, FieldSpace, FullField};
use crate::backend::Cpu;
use crate::domain::Domain;
use crate::lattice::Lattice;
use gpu_kernels::Precision;
use num_complex::Complex64;
use solvers::{ConvertFrom, ShiftStep, VectorSpace};

/// All numbers of each right-hand side.
type Numbers = Vec<Vec<Complex64>>;

/// Domain and vector space for fields of a shape, with operations that compare them with plain numbers.
struct ShapedVectors<F> {
    domain: Domain,
    shape: FieldShape,
    space: FieldSpace,
    fermion: std::marker::PhantomData<F>,
}

impl<F: Fermion> ShapedVectors<F> {
    fn new(precision: Precision, ls: usize, nrhs: usize) -> Self {
        let domain = Domain::single(Cpu::new(Some(1)), Lattice::new([2, 4, 2, 2]).unwrap()).unwrap();
        let shape = FieldShape::new(F::KIND, precision, nrhs).with_ls(ls);
        let space = FieldSpace::new(&domain, shape);
        ShapedVectors { domain, shape, space, fermion: Default::default() }
    }
    /// Returns a field of random numbers between −1 and 1, and its numbers.
    fn random(&self, seed: u64) -> (FullField, Numbers) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 44) as f64 / f64::from(1 << 19) - 1.0
        };
        let one = |_| {
            let mut field = HostField::<F>::zero(self.domain.local());
            field.numbers_mut().iter_mut().for_each(|z| *z = Complex64::new(next(), next()));
            field
        };
        let host: Vec<_> = (0..self.shape.blocks()).map(one).collect();
        let mut field = FullField::zero(&self.domain, self.shape).unwrap();
        field.upload(&host).unwrap();
        let numbers = self.numbers(&field);
        let expected: Vec<_> = host.iter().flat_map(|block| block.numbers().to_vec()).collect();
        self.close("block j L_s + s, which is slice s of right-hand side j", &numbers.concat(), &expected);
        (field, numbers)
    }
    fn numbers(&self, field: &FullField) -> Numbers {
        let host = field.download::<F>().unwrap();
        host.chunks(field.even.shape().ls)
            .map(|slices| slices.iter().flat_map(|s| s.numbers().to_vec()).collect())
            .collect()
    }
    /// Adds the results of `sums` for the two parities.
    fn both(&self, count: usize, sums: impl Fn(usize, &mut [Complex64])) -> Vec<Complex64> {
        let mut total = vec![Complex64::ZERO; count];
        for parity in 0..2 {
            let mut part = vec![Complex64::ZERO; count];
            sums(parity, &mut part);
            total.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        total
    }
    fn norms(&self, norms: impl Fn(usize, &mut [f64])) -> Vec<Complex64> {
        let n = self.space.nrhs();
        self.both(n, |parity, out| {
            let mut norm2 = vec![0.0; n];
            norms(parity, &mut norm2);
            out.iter_mut().zip(norm2).for_each(|(out, norm2)| *out = norm2.into());
        })
    }
    /// Compares numbers. Only sums lose bits, and results that are stored in single precision.
    fn close(&self, what: &str, found: &[Complex64], expected: &[Complex64]) {
        let scale = expected.iter().map(|z| z.norm()).fold(1.0, f64::max);
        let tolerance = if self.shape.precision == Precision::Double { 1e-13 } else { 1e-5 };
        assert_eq!(found.len(), expected.len(), "{what}");
        for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!((found - expected).norm() <= tolerance * scale, "{what}, number {k}: {found} is not {expected}");
        }
    }
    fn same(&self, what: &str, found: &FullField, expected: &Numbers) {
        self.close(what, &self.numbers(found).concat(), &expected.concat());
    }
    fn each(&self, field: &mut FullField, mut update: impl FnMut(usize, &mut DeviceField)) {
        (0..2).for_each(|parity| update(parity, field.parity_mut(parity)));
    }
    fn copy(&self, field: &FullField) -> FullField {
        field.rhs(0..field.even.nrhs(), &self.domain).unwrap()
    }
}

fn dot(x: &[Complex64], y: &[Complex64]) -> Complex64 {
    x.iter().zip(y).map(|(x, y)| x.conj() * y).sum()
}

fn combined(terms: &[(&[Complex64], &Numbers)]) -> Numbers {
    let zero = terms[0].1.iter().map(|x| vec![Complex64::ZERO; x.len()]).collect();
    terms.iter().fold(zero, |mut sum: Numbers, (a, x)| {
        for ((sum, x), a) in sum.iter_mut().zip(x.iter()).zip(a.iter()) {
            sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += a * x);
        }
        sum
    })
}

/// Returns coefficients that change from one right-hand side to the next.
fn coefficients(n: usize, re: f64, im: f64) -> Vec<Complex64> {
    (0..n).map(|j| Complex64::new(re + 0.25 * (j % 7) as f64, im - 0.5 * (j % 5) as f64)).collect()
}

fn reals(a: &[Complex64]) -> Vec<f64> {
    a.iter().map(|a| a.re).collect()
}

fn sums<F: Fermion>(precision: Precision, ls: usize, nrhs: usize) {
    let v = ShapedVectors::<F>::new(precision, ls, nrhs);
    let space = &v.space;
    let [(x, x_), (y, y_), (z, z_)] = [1, 2, 3].map(|seed| v.random(seed));
    let norms: Vec<_> = x_.iter().map(|x| dot(x, x)).collect();
    let dots: Vec<_> = x_.iter().zip(&y_).map(|(x, y)| dot(x, y)).collect();
    v.close("norm2", &v.norms(|p, out| space.norm2(x.parity(p), out).unwrap()), &norms);
    v.close("dot", &v.both(nrhs, |p, out| space.dot(x.parity(p), y.parity(p), out).unwrap()), &dots);
    let with_norm = v.both(2 * nrhs, |p, out| {
        let (dot, norm) = out.split_at_mut(nrhs);
        let mut norm2 = vec![0.0; nrhs];
        space.dot_norm2(x.parity(p), y.parity(p), dot, &mut norm2).unwrap();
        norm.iter_mut().zip(norm2).for_each(|(norm, norm2)| *norm = norm2.into());
    });
    v.close("dot_norm2", &with_norm, &[dots.clone(), norms.clone()].concat());

    let all = [v.copy(&x), v.copy(&y), v.copy(&z), v.copy(&x), v.copy(&z)];
    let all_ = [&x_, &y_, &z_, &x_, &z_];
    for count in [2, 5] {
        let half = |p: usize| all[..count].iter().map(|f| v.copy(f)).map(move |f| if p == 0 { f.even } else { f.odd });
        let halves = [0, 1].map(|p| half(p).collect::<Vec<_>>());
        let found = v.both((count + 1) * nrhs, |p, out| {
            let (dots, norm) = out.split_at_mut(count * nrhs);
            let mut norm2 = vec![0.0; nrhs];
            space.multi_dot(&halves[p], y.parity(p), dots, &mut norm2).unwrap();
            norm.iter_mut().zip(norm2).for_each(|(norm, norm2)| *norm = norm2.into());
        });
        let products = all_[..count].iter().copied().chain([&y_]);
        let expected: Vec<_> = products.flat_map(|x| x.iter().zip(&y_).map(|(x, y)| dot(x, y))).collect();
        v.close("multi_dot", &found, &expected);
        let pairs: Vec<_> = (0..count).flat_map(|b| (0..=b).map(move |a| (a, b))).collect();
        let found = v.both(pairs.len() * nrhs, |p, out| space.multi_gram(&halves[p], out).unwrap());
        let expected: Vec<_> =
            pairs.iter().flat_map(|&(a, b)| (0..nrhs).map(move |j| dot(&all_[a][j], &all_[b][j]))).collect();
        v.close("multi_gram", &found, &expected);
    }
    let found = v.both(nrhs * nrhs, |p, out| space.gram(x.parity(p), y.parity(p), out).unwrap());
    let expected: Vec<_> = x_.iter().flat_map(|x| y_.iter().map(move |y| dot(x, y))).collect();
    v.close("gram", &found, &expected);
}

fn updates<F: Fermion>(precision: Precision, ls: usize, nrhs: usize) {
    let v = ShapedVectors::<F>::new(precision, ls, nrhs);
    let space = &v.space;
    let [(x, x_), (y, y_), (z, z_), (w, w_)] = [1, 2, 3, 4].map(|seed| v.random(seed));
    let (a, b, c) = (coefficients(nrhs, 0.75, -0.5), coefficients(nrhs, -1.25, 0.5), coefficients(nrhs, 0.5, 0.25));
    let one = vec![Complex64::ONE; nrhs];
    let negative = |a: &[Complex64]| a.iter().map(|a| -a).collect::<Vec<_>>();
    let squares = |x: &Numbers| x.iter().map(|x| dot(x, x)).collect::<Vec<_>>();

    let mut out = v.copy(&y);
    v.each(&mut out, |p, y| space.axpby(&a, x.parity(p), &b, y).unwrap());
    v.same("axpby", &out, &combined(&[(&a, &x_), (&b, &y_)]));

    let sum = combined(&[(&a, &x_), (&one, &y_)]);
    let out = std::cell::RefCell::new(v.copy(&y));
    let norms = v.norms(|p, n| space.axpy_norm2(&a, x.parity(p), out.borrow_mut().parity_mut(p), n).unwrap());
    v.same("axpy_norm2", &out.borrow(), &sum);
    v.close("its norm", &norms, &squares(&sum));

    let real = reals(&a);
    let of_real: Vec<_> = real.iter().map(Complex64::from).collect();
    let sum = combined(&[(&one, &x_), (&of_real, &y_)]);
    *out.borrow_mut() = v.copy(&y);
    let norms = v.norms(|p, n| {
        space.xpay_norm2(x.parity(p), &real, out.borrow_mut().parity_mut(p), n, &mut || Ok(())).unwrap();
    });
    v.same("xpay_norm2", &out.borrow(), &sum);
    v.close("its norm", &norms, &squares(&sum));

    let (alpha, beta) = (reals(&a), reals(&b));
    let [alpha_, beta_] = [&alpha, &beta].map(|c| c.iter().map(Complex64::from).collect::<Vec<_>>());
    let (mut new_x, mut new_p) = (v.copy(&y), v.copy(&z));
    v.each(&mut new_x, |p, x| space.cg_update(&alpha, &beta, w.parity(p), x, new_p.parity_mut(p)).unwrap());
    v.same("x of cg_update", &new_x, &combined(&[(&one, &y_), (&alpha_, &z_)]));
    v.same("p of cg_update", &new_p, &combined(&[(&one, &w_), (&beta_, &z_)]));

    // The last right-hand side has converged, and the system of the last but one is dropped in this step.
    let mut factor = vec![1.0; nrhs];
    let (mut shift_alpha, mut shift_beta) = (alpha.clone(), beta.clone());
    (factor[nrhs - 1], shift_alpha[nrhs - 1], shift_beta[nrhs - 1]) = (0.0, 0.0, 1.0);
    factor[nrhs - 2] = 0.0;
    let (mut new_x, mut new_p) = (v.copy(&y), v.copy(&z));
    v.each(&mut new_x, |p, x| {
        let p_ = new_p.parity_mut(p);
        let step = ShiftStep { a: &shift_alpha, z: &factor, b: &shift_beta, x, p: p_ };
        space.shift_update(w.parity(p), &mut [step]).unwrap();
    });
    let shift_alpha: Vec<_> = shift_alpha.iter().map(Complex64::from).collect();
    v.same("x of shift_update", &new_x, &combined(&[(&one, &y_), (&shift_alpha, &z_)]));
    let (new_p, mut expected) = (v.numbers(&new_p), combined(&[(&one, &w_), (&beta_, &z_)]));
    expected[nrhs - 1] = z_[nrhs - 1].clone();
    // The direction of a dropped system is not used again, so it may have any value.
    let used = |p: &Numbers| [&p[..nrhs - 2], &p[nrhs - 1..]].concat().concat();
    v.close("p of shift_update", &used(&new_p), &used(&expected));

    let (mut new_x, mut new_t) = (v.copy(&y), v.copy(&z));
    v.each(&mut new_x, |p, x| space.mr_update(&a, w.parity(p), x, new_t.parity_mut(p)).unwrap());
    v.same("x of mr_update", &new_x, &combined(&[(&one, &y_), (&a, &w_)]));
    v.same("t of mr_update", &new_t, &combined(&[(&one, &w_), (&negative(&a), &z_)]));

    if F::KIND.spins() == 4 {
        // The step computes x ← x + α p + ω s, r ← s − ω t, p ← r + β (p − ω v), here with v = y, t = z, s = w.
        let (mut new_x, mut r, mut direction) = (v.copy(&x), v.copy(&w), v.copy(&x));
        v.each(&mut new_x, |p, x| {
            let (r, direction) = (r.parity_mut(p), direction.parity_mut(p));
            space.bicgstab_step(&a, &b, &c, y.parity(p), z.parity(p), x, r, direction).unwrap();
        });
        let new_r = combined(&[(&one, &w_), (&negative(&b), &z_)]);
        let beta_omega: Vec<_> = b.iter().zip(&c).map(|(omega, beta)| -omega * beta).collect();
        v.same("x of bicgstab_step", &new_x, &combined(&[(&one, &x_), (&a, &x_), (&b, &w_)]));
        v.same("r of bicgstab_step", &r, &new_r);
        v.same("p of bicgstab_step", &direction, &combined(&[(&one, &new_r), (&c, &x_), (&beta_omega, &y_)]));
    }

    let many = [&x, &z, &w, &x, &z, &w].map(|field| v.copy(field));
    let factors: Vec<Vec<_>> = (0..6).map(|i| coefficients(nrhs, 0.25 * f64::from(i), -0.125)).collect();
    let halves = [many.each_ref().map(|f| v.copy(f).even), many.each_ref().map(|f| v.copy(f).odd)];
    let mut out = v.copy(&y);
    v.each(&mut out, |p, y| space.multi_axpy(&factors.concat(), &halves[p], y).unwrap());
    let terms = [&x_, &z_, &w_, &x_, &z_, &w_].into_iter().zip(&factors).map(|(x, a)| (&a[..], x));
    v.same("multi_axpy", &out, &combined(&terms.chain([(&one[..], &y_)]).collect::<Vec<_>>()));

    let matrix = coefficients(nrhs * nrhs, 0.5, 0.125);
    let product: Numbers = (0..nrhs)
        .map(|j| {
            let terms = x_.iter().enumerate().map(|(i, x)| combined(&[(&[matrix[i * nrhs + j]], &vec![x.clone()])]));
            terms.fold(vec![Complex64::ZERO; x_[0].len()], |sum, x| sum.iter().zip(&x[0]).map(|(s, x)| s + x).collect())
        })
        .collect();
    let mut out = v.copy(&y);
    v.each(&mut out, |p, y| space.block_scale(&matrix, x.parity(p), y).unwrap());
    v.same("block_scale", &out, &product);
    let mut out = v.copy(&y);
    v.each(&mut out, |p, y| space.block_axpy(&matrix, x.parity(p), y).unwrap());
    v.same("block_axpy", &out, &combined(&[(&one, &product), (&one, &y_)]));

    let other = match precision {
        Precision::Double => Precision::Single,
        _ => Precision::Double,
    };
    let to = ShapedVectors::<F>::new(other, ls, nrhs);
    let to = ShapedVectors { space: FieldSpace::new(&v.domain, to.shape), ..to };
    let scale: Vec<f64> = (0..nrhs).map(|j| f64::from(1 << (j % 4))).collect();
    let scale_: Vec<_> = scale.iter().map(Complex64::from).collect();
    let mut out = FullField::zero(&v.domain, v.shape.with_precision(other)).unwrap();
    to.each(&mut out, |p, out| to.space.convert(&scale, x.parity(p), out).unwrap());
    to.each(&mut out, |p, out| to.space.accumulate(&scale, y.parity(p), out).unwrap());
    let tolerant = ShapedVectors::<F>::new(Precision::Single, ls, nrhs);
    tolerant.same("convert and accumulate", &out, &combined(&[(&scale_, &x_), (&scale_, &y_)]));
}

/// Checks that all slices of a right-hand side leave the batch together.
fn compaction<F: Fermion>(precision: Precision, ls: usize, nrhs: usize) {
    let v = ShapedVectors::<F>::new(precision, ls, nrhs);
    let space = &v.space;
    let [(x, x_), (y, y_)] = [1, 2].map(|seed| v.random(seed));
    let (mut batch, last) = (v.copy(&x), nrhs - 1);
    v.each(&mut batch, |_, x| space.swap_rhs(x, (0, last), &mut space.allocate().unwrap()).unwrap());
    let mut swapped = x_.clone();
    swapped.swap(0, last);
    assert!(v.numbers(&batch) == swapped);

    assert!(space.narrow(last) && space.shape() == v.shape.with_nrhs(last));
    let a = coefficients(last, 0.5, -1.0);
    v.each(&mut batch, |p, x| space.axpy(&a, y.parity(p), x).unwrap());
    let mut expected = combined(&[(&[vec![Complex64::ONE; last], vec![Complex64::ONE]].concat(), &swapped)]);
    let added = combined(&[(&vec![Complex64::ONE; last], &swapped[..last].to_vec()), (&a, &y_[..last].to_vec())]);
    expected[..last].clone_from_slice(&added);
    v.same("axpy after it", &batch, &expected);
    let norms = v.norms(|p, out| space.norm2(batch.parity(p), out).unwrap());
    v.close("norm2 after it", &norms, &added.iter().map(|x| dot(x, x)).collect::<Vec<_>>());
    let mut copy = v.copy(&y);
    v.each(&mut copy, |p, out| space.copy(x.parity(p), out).unwrap());
    assert!(v.numbers(&copy) == [&x_[..last], &y_[last..]].concat());
    assert!(space.narrow(nrhs) && !space.narrow(nrhs + 1));

    let part = x.rhs(1..nrhs, &v.domain).unwrap();
    assert!(part.even.shape().ls == ls && v.numbers(&part) == x_[1..]);
    let mut whole = v.copy(&y);
    whole.set_rhs(0, part).unwrap();
    assert!(v.numbers(&whole) == [&x_[1..], &y_[last..]].concat());
}

#[test]
fn sums_are_over_all_slices() {
    for precision in [Precision::Double, Precision::Single] {
        sums::<Spinor>(precision, 3, 2);
        sums::<ColourVector>(precision, 3, 2);
    }
    // The first case has more blocks than a launch has coefficients, and the second more blocks than a launch has sums.
    sums::<Spinor>(Precision::Double, 20, 5);
    sums::<ColourVector>(Precision::Double, 20, 40);
}

#[test]
fn coefficients_are_those_of_right_hand_sides() {
    for precision in [Precision::Double, Precision::Single] {
        updates::<Spinor>(precision, 3, 2);
        updates::<ColourVector>(precision, 3, 2);
    }
    updates::<Spinor>(Precision::Double, 20, 3);
}

#[test]
fn right_hand_sides_move_with_all_slices() {
    compaction::<Spinor>(Precision::Double, 3, 2);
    compaction::<ColourVector>(Precision::Single, 3, 4);
    compaction::<Spinor>(Precision::Double, 20, 3);
}

/// Checks that the typical number is ¼ if a vector has the target norm.
#[test]
fn norms_grow_with_the_extent_of_the_fifth_dimension() {
    let target = |ls| ShapedVectors::<Spinor>::new(Precision::Fp16, ls, 1).space.target_norm().unwrap();
    assert!((target(1) - 0.25 * (24.0 * 16.0f64).sqrt()).abs() < 1e-12);
    assert!((target(4) - 2.0 * target(1)).abs() < 1e-12);
}

#[test]
fn vectors_of_another_extent_are_refused() {
    let (four, five) =
        (ShapedVectors::<Spinor>::new(Precision::Double, 1, 2), ShapedVectors::<Spinor>::new(Precision::Double, 3, 2));
    let x = DeviceField::zero(&five.domain, four.shape).unwrap();
    let error = five.space.norm2(&x, &mut [0.0; 2]).unwrap_err().to_string();
    assert!(error.contains("L_s = 1") && error.contains("L_s = 3"), "{error}");
    let mut field = FullField::zero(&five.domain, five.shape).unwrap();
    let host = vec![HostField::<Spinor>::zero(five.domain.local()); 2];
    assert!(field.upload(&host).is_err(), "one host field for each of six blocks");
}
