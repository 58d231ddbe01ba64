//! Linear algebra of the solvers, transfers and conversions.
use super::{Case, Kind, NRHS, OnHost, upload};
use crate::accuracy::Accuracy;
use crate::formats;
use crate::reference::{combine, dot, norm2, on_parity};
use crate::report::{CheckReport, Scope, Tolerance};
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{Fermion, HostField};
use ferrite::field::{DeviceField, FieldShape, FieldSpace, FullField};
use ferrite::lattice::Lattice;
use ferrite::{FermionKind, Precision};
use num_complex::Complex64;
use solvers::{ConvertFrom, VectorSpace};

/// A block on the device and what it holds there.
struct DeviceBlock<F> {
    device: FullField,
    stored: Vec<HostField<F>>,
}

impl<F: Fermion> DeviceBlock<F> {
    fn new(domain: &Domain, precision: Precision, host: &[HostField<F>]) -> Result<Self> {
        let (device, stored) = upload(domain, precision, host)?;
        Ok(DeviceBlock { device, stored })
    }
    /// A copy of the device's field that an operation may overwrite.
    fn copy(&self, space: &FieldSpace) -> Result<FullField> {
        let mut copy = FullField { even: space.allocate()?, odd: space.allocate()? };
        for parity in 0..2 {
            space.copy(self.device.parity(parity), copy.parity_mut(parity))?;
        }
        Ok(copy)
    }
    fn half(&self, parity: usize) -> &DeviceField {
        self.device.parity(parity)
    }
}

/// Σ_k c_k\[j\] ψ_k\[j\] for every right-hand side j.
fn sum<T: Fermion>(terms: &[(&[Complex64], &[HostField<T>])]) -> Vec<HostField<T>> {
    let one = |j: usize| combine(&terms.iter().map(|(c, psi)| (c[j], &psi[j])).collect::<Vec<_>>());
    (0..terms[0].1.len()).map(one).collect()
}

/// Every operation of the vector space against plain loops over what the device holds, on blocks of three and of one.
pub fn linear_algebra<F: Kind>(
    backend: &dyn Backend,
    case: &Case,
    precision: Precision,
    report: &mut CheckReport,
) -> Result {
    for nrhs in [1, NRHS] {
        Algebra::<F>::new(backend, case, precision, nrhs)?.all(case, report)?;
    }
    Ok(())
}

struct Algebra<F> {
    space: FieldSpace,
    precision: Precision,
    scope: Scope,
    /// Five different blocks.
    x: DeviceBlock<F>,
    y: DeviceBlock<F>,
    z: DeviceBlock<F>,
    v: DeviceBlock<F>,
    w: DeviceBlock<F>,
    /// Coefficients, different for every right-hand side, and exact in every precision.
    a: Vec<Complex64>,
    b: Vec<Complex64>,
    one: Vec<Complex64>,
}

impl<F: Kind> Algebra<F> {
    fn new(backend: &dyn Backend, case: &Case, precision: Precision, nrhs: usize) -> Result<Self> {
        let domain = case.domain(backend)?;
        let block = |k: usize| DeviceBlock::new(&domain, precision, &F::block(case, k)[..nrhs]);
        let coefficients = |re: f64, im: f64| {
            (0..nrhs).map(|j| Complex64::new(re - 0.25 * j as f64, im + 0.5 * j as f64)).collect::<Vec<_>>()
        };
        Ok(Algebra {
            space: FieldSpace::new(&domain, FieldShape::new(F::KIND, precision, nrhs)),
            precision,
            scope: case.scope(&format!("{precision} {}", F::KIND), &format!("{nrhs} rhs")),
            x: block(0)?,
            y: block(1)?,
            z: block(2)?,
            v: block(3)?,
            w: block(4)?,
            a: coefficients(0.75, -0.5),
            b: coefficients(-1.25, 0.375),
            one: vec![Complex64::ONE; nrhs],
        })
    }
    /// Tolerance of a sum of a few terms.
    fn tol(&self) -> Tolerance {
        self.precision.sum_of(F::KIND.spins())
    }

    fn all(&self, case: &Case, report: &mut CheckReport) -> Result {
        self.transfer(case, report)?;
        self.updates(report)?;
        self.sums(report)?;
        self.fused(report)?;
        self.solver_updates(report)
    }

    fn minus(&self) -> Vec<Complex64> {
        self.one.iter().map(|c| -c).collect()
    }

    /// Notes numbers per right-hand side, made on one parity.
    fn numbers(&self, report: &mut CheckReport, name: &str, got: &[f64], expected: &[f64], scale: &[f64], tol: f64) {
        for j in 0..got.len() {
            report.number(&self.scope, name, got[j], expected[j], scale[j], tol);
        }
    }
    /// ‖ψ_j‖² on one parity.
    fn norms(parity: usize, fields: OnHost<F>) -> Vec<f64> {
        fields.iter().map(|f| norm2(&on_parity(parity, f))).collect()
    }
    /// Notes (x, y) on one parity, relative to ‖x‖ ‖y‖.
    fn dots(
        &self,
        report: &mut CheckReport,
        name: &str,
        parity: usize,
        got: &[Complex64],
        (x, y): (OnHost<F>, OnHost<F>),
        tol: f64,
    ) {
        for j in 0..got.len() {
            let (x, y) = (on_parity(parity, &x[j]), on_parity(parity, &y[j]));
            let (expected, scale) = (dot(&x, &y), (norm2(&x) * norm2(&y)).sqrt());
            report.complex(&self.scope, name, (got[j], expected), scale, tol);
        }
    }
    fn terms(&self) -> usize {
        F::COMPONENTS * self.x.stored[0].lattice().volume()
    }

    fn transfer(&self, case: &Case, report: &mut CheckReport) -> Result {
        let sources = &F::block(case, 0)[..self.one.len()];
        report.fields(&self.scope, "pack and unpack", self.x.device.download()?, sources, self.tol());
        let copy = self.x.copy(&self.space)?;
        report.holds(&self.scope, "copy, bits", copy.download()? == self.x.stored);
        let mut cleared = copy;
        self.space.zero(&mut cleared.even)?;
        self.space.zero(&mut cleared.odd)?;
        report.holds(&self.scope, "zero", cleared.download::<F>()?.iter().all(|f| f.norm2() == 0.0));
        Ok(())
    }

    fn updates(&self, report: &mut CheckReport) -> Result {
        let (x, y, a, b) = (&self.x, &self.y, &self.a[..], &self.b[..]);
        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            self.space.axpby(a, x.half(parity), b, out.parity_mut(parity))?;
        }
        report.fields(&self.scope, "axpby", out.download()?, &sum(&[(a, &x.stored), (b, &y.stored)]), self.tol());

        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            self.space.axpy(a, x.half(parity), out.parity_mut(parity))?;
        }
        report.fields(
            &self.scope,
            "axpy",
            out.download()?,
            &sum(&[(a, &x.stored), (&self.one, &y.stored)]),
            self.tol(),
        );

        // With b = 0 the old content does not count, not even a NaN.
        let zero = vec![Complex64::ZERO; a.len()];
        let nan: Vec<_> = y.stored.iter().map(|f| combine(&[(f64::NAN.into(), f)])).collect();
        out.upload(&nan)?;
        for parity in 0..2 {
            self.space.axpby(a, x.half(parity), &zero, out.parity_mut(parity))?;
        }
        report.fields(&self.scope, "axpby, b = 0", out.download()?, &sum(&[(a, &x.stored)]), self.tol());
        Ok(())
    }

    fn sums(&self, report: &mut CheckReport) -> Result {
        let (x, y, n) = (&self.x, &self.y, self.one.len());
        let tol = self.precision.stored_sum(self.terms());
        for parity in 0..2 {
            let (x_half, y_half) = (x.half(parity), y.half(parity));
            let norms = Self::norms(parity, &x.stored);
            let (mut norm, mut again) = (vec![0.0; n], vec![0.0; n]);
            self.space.norm2(x_half, &mut norm)?;
            self.space.norm2(x_half, &mut again)?;
            self.numbers(report, "norm2", &norm, &norms, &norms, tol);
            report.holds(&self.scope, "norm2, bits when repeated", norm == again);

            let (mut product, mut repeated) = (vec![Complex64::ZERO; n], vec![Complex64::ZERO; n]);
            self.space.dot(x_half, y_half, &mut product)?;
            self.space.dot_norm2(x_half, y_half, &mut repeated, &mut norm)?;
            self.dots(report, "dot", parity, &product, (&x.stored, &y.stored), tol);
            self.dots(report, "dot_norm2", parity, &repeated, (&x.stored, &y.stored), tol);
            self.numbers(report, "dot_norm2, norm", &norm, &norms, &norms, tol);
            report.holds(&self.scope, "dot, bits when repeated", product == repeated);
        }
        Ok(())
    }

    fn fused(&self, report: &mut CheckReport) -> Result {
        let (x, y, a, n) = (&self.x, &self.y, &self.a[..], self.one.len());
        let mut norm = vec![0.0; n];

        let expected = sum(&[(a, &x.stored), (&self.one, &y.stored)]);
        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            self.space.axpy_norm2(a, x.half(parity), out.parity_mut(parity), &mut norm)?;
            let norms = Self::norms(parity, &expected);
            self.numbers(report, "axpy_norm2, norm", &norm, &norms, &norms, self.precision.fused_sum(self.terms()));
        }
        report.fields(&self.scope, "axpy_norm2", out.download()?, &expected, self.tol());

        let real: Vec<f64> = a.iter().map(|a| a.re).collect();
        let factors: Vec<Complex64> = real.iter().map(Complex64::from).collect();
        let expected = sum(&[(&self.one, &x.stored), (&factors, &y.stored)]);
        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            let mut times = 0;
            let mut behind = || {
                times += 1;
                Ok(())
            };
            self.space.xpay_norm2(x.half(parity), &real, out.parity_mut(parity), &mut norm, &mut behind)?;
            report.holds(&self.scope, "xpay_norm2, work behind it", times == 1);
            let norms = Self::norms(parity, &expected);
            self.numbers(report, "xpay_norm2, norm", &norm, &norms, &norms, self.precision.fused_sum(self.terms()));
        }
        report.fields(&self.scope, "xpay_norm2", out.download()?, &expected, self.tol());

        let expected = sum(&[(&self.one, &x.stored), (&self.minus(), &y.stored)]);
        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            self.space.sub_norm2(x.half(parity), out.parity_mut(parity), &mut norm)?;
            let norms = Self::norms(parity, &expected);
            self.numbers(report, "sub_norm2, norm", &norm, &norms, &norms, self.precision.fused_sum(self.terms()));
        }
        report.fields(&self.scope, "sub_norm2", out.download()?, &expected, self.tol());
        Ok(())
    }

    fn solver_updates(&self, report: &mut CheckReport) -> Result {
        let Algebra { x, y, z, v, w, a, b, one, space, .. } = self;
        let real = |c: &[Complex64]| c.iter().map(|c| c.re).collect::<Vec<_>>();
        let complex = |c: &[f64]| c.iter().map(|&c| c.into()).collect::<Vec<Complex64>>();

        // x ← x + α p, p ← r + β p, with the old p in both.
        let (alpha, beta) = (real(a), real(b));
        let (mut new_x, mut new_p) = (x.copy(space)?, y.copy(space)?);
        for parity in 0..2 {
            space.cg_update(&alpha, &beta, z.half(parity), new_x.parity_mut(parity), new_p.parity_mut(parity))?;
        }
        let expected = sum(&[(one, &x.stored), (&complex(&alpha), &y.stored)]);
        report.fields(&self.scope, "cg_update, x", new_x.download()?, &expected, self.tol());
        let expected = sum(&[(one, &z.stored), (&complex(&beta), &y.stored)]);
        report.fields(&self.scope, "cg_update, p", new_p.download()?, &expected, self.tol());

        // There is no BiCGstab for colour vectors: staggered operators on one parity are positive.
        if F::KIND == FermionKind::Staggered {
            return Ok(());
        }
        // x ← x + α p + ω s, r ← s − ω t, p ← r + β (p − ω v), with s in w, p in y, v in z and t in v.
        let (alpha, omega, beta) = (a, b, a);
        let (mut new_x, mut r, mut new_p) = (x.copy(space)?, w.copy(space)?, y.copy(space)?);
        for parity in 0..2 {
            let (x, r, p) = (new_x.parity_mut(parity), r.parity_mut(parity), new_p.parity_mut(parity));
            space.bicgstab_step(alpha, omega, beta, z.half(parity), v.half(parity), x, r, p)?;
        }
        let expected = sum(&[(one, &x.stored), (alpha, &y.stored), (omega, &w.stored)]);
        report.fields(&self.scope, "bicgstab_step, x", new_x.download()?, &expected, self.tol());
        let minus: Vec<_> = omega.iter().map(|o| -o).collect();
        let expected = sum(&[(one, &w.stored), (&minus, &v.stored)]);
        report.fields(&self.scope, "bicgstab_step, r", r.download()?, &expected, self.tol());
        let product: Vec<_> = beta.iter().zip(omega).map(|(b, o)| -b * o).collect();
        let expected = sum(&[(one, &expected), (beta, &y.stored), (&product, &z.stored)]);
        report.fields(&self.scope, "bicgstab_step, p", new_p.download()?, &expected, self.tol());
        Ok(())
    }
}

/// All pairs of precisions.
pub fn conversions<F: Kind>(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
    for from in formats::fields(F::KIND) {
        for to in formats::fields(F::KIND) {
            convert::<F>(backend, case, (from, to), report)?;
        }
    }
    Ok(())
}

fn convert<F: Kind>(
    backend: &dyn Backend,
    case: &Case,
    (p, q): (Precision, Precision),
    report: &mut CheckReport,
) -> Result {
    let domain = case.domain(backend)?;
    let from = DeviceBlock::<F>::new(&domain, p, F::block(case, 0))?;
    let to = DeviceBlock::<F>::new(&domain, q, F::block(case, 1))?;
    let space = FieldSpace::new(&domain, FieldShape::new(F::KIND, q, NRHS));
    let scope = case.scope(&format!("{p} to {q} {}", F::KIND), "");
    // Powers of two, one for each right-hand side.
    let scale: Vec<f64> = (0..NRHS).map(|j| 0.5f64.powi(j as i32)).collect();
    let factors: Vec<Complex64> = scale.iter().map(Complex64::from).collect();
    let mut out = to.copy(&space)?;
    for parity in 0..2 {
        space.convert(&scale, from.half(parity), out.parity_mut(parity))?;
    }
    let mut tol = q.sum_of(F::KIND.spins());
    report.fields(&scope, "convert", out.download()?, &sum(&[(&factors, &from.stored)]), tol);
    let mut out = to.copy(&space)?;
    for parity in 0..2 {
        space.accumulate(&scale, from.half(parity), out.parity_mut(parity))?;
    }
    let one = vec![Complex64::ONE; NRHS];
    // The addend is rounded to the precision of the sum first.
    tol.relative += q.unit();
    report.fields(&scope, "accumulate", out.download()?, &sum(&[(&factors, &from.stored), (&one, &to.stored)]), tol);
    Ok(())
}

/// A NaN or an infinity in any of the real components of a site comes out of a norm: nothing in storage swallows it.
pub fn not_a_number<F: Kind>(backend: &dyn Backend, precision: Precision, report: &mut CheckReport) -> Result {
    let lattice = Lattice::new([2, 2, 2, 4]).expect("even extents");
    let domain = Domain::single(backend, lattice)?;
    let space = FieldSpace::new(&domain, FieldShape::new(F::KIND, precision, 1));
    let scope = Scope { format: format!("{precision} {}", F::KIND), detail: lattice.to_string() };
    let (mut seen, mut nan) = ([true; 2], [0.0]);
    for k in 0..2 * F::COMPONENTS {
        for (which, bad) in [f64::NAN, f64::INFINITY].into_iter().enumerate() {
            let mut source: HostField<F> = ferrite::gauge::generate::random_source(lattice, 7);
            // Each at a site of its own.
            let z = &mut source.numbers_mut()[k * F::COMPONENTS + k / 2];
            *(if k % 2 == 0 { &mut z.re } else { &mut z.im }) = bad;
            let mut field = FullField::zero(&domain, FieldShape::new(F::KIND, precision, 1))?;
            field.upload(&[source])?;
            space.norm2(field.parity(lattice.parity(lattice.coordinates(k))), &mut nan)?;
            seen[which] &= if which == 0 { nan[0].is_nan() } else { !nan[0].is_finite() };
        }
    }
    report.holds(&scope, "NaN in a component is NaN in the norm", seen[0]);
    report.holds(&scope, "infinity in a component is not finite in the norm", seen[1]);
    Ok(())
}
