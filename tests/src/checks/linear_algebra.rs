//! Linear algebra of the solvers, transfers and conversions.
use super::{Case, Kind, NRHS, OnHost};
use crate::accuracy::Accuracy;
use crate::reference::{combine, dot, norm2, on_parity};
use crate::report::{Report, Scope};
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{Fermion, HostField};
use ferrite::field::{DeviceField, FieldSpace, FullField};
use ferrite::lattice::Lattice;
use gpu_kernels::storage::{Double, FourSpins, Fp16, Half, OneSpin, Single};
use num_complex::Complex64;
use solvers::{ConvertFrom, VectorSpace};

/// A block on the device and what it holds there.
struct Block<K: Kind, P> {
    device: FullField<K, P>,
    stored: Vec<HostField<K::Host>>,
}

impl<K: Kind, P: Accuracy> Block<K, P> {
    fn new(domain: &Domain, host: &[HostField<K::Host>]) -> Result<Self> {
        let mut device = FullField::zero(domain, host.len())?;
        device.upload(host)?;
        let stored = device.download()?;
        Ok(Block { device, stored })
    }
    /// A copy of the device's field that an operation may overwrite.
    fn copy(&self, space: &FieldSpace<K, P>) -> Result<FullField<K, P>> {
        let mut copy = FullField { even: space.allocate()?, odd: space.allocate()? };
        for parity in 0..2 {
            space.copy(self.device.parity(parity), copy.parity_mut(parity))?;
        }
        Ok(copy)
    }
    fn half(&self, parity: usize) -> &DeviceField<K, P> {
        self.device.parity(parity)
    }
}

/// Σ_k c_k\[j\] ψ_k\[j\] for every right-hand side j.
fn sum<T: Fermion>(terms: &[(&[Complex64], &[HostField<T>])]) -> Vec<HostField<T>> {
    let one = |j: usize| combine(&terms.iter().map(|(c, psi)| (c[j], &psi[j])).collect::<Vec<_>>());
    (0..terms[0].1.len()).map(one).collect()
}

/// Every operation of the vector space against plain loops over what the device holds, on blocks of three and of one.
pub fn linear_algebra<K: Kind, P: Accuracy>(backend: &dyn Backend, case: &Case, report: &mut Report) -> Result {
    for nrhs in [1, NRHS] {
        Algebra::<K, P>::new(backend, case, nrhs)?.all(case, report)?;
    }
    Ok(())
}

struct Algebra<K: Kind, P> {
    space: FieldSpace<K, P>,
    scope: Scope,
    /// Five different blocks.
    x: Block<K, P>,
    y: Block<K, P>,
    z: Block<K, P>,
    v: Block<K, P>,
    w: Block<K, P>,
    /// Coefficients, different for every right-hand side, and exact in every precision.
    a: Vec<Complex64>,
    b: Vec<Complex64>,
    one: Vec<Complex64>,
}

impl<K: Kind, P: Accuracy> Algebra<K, P> {
    fn new(backend: &dyn Backend, case: &Case, nrhs: usize) -> Result<Self> {
        let domain = case.domain(backend)?;
        let block = |k: usize| Block::new(&domain, &K::block(case, k)[..nrhs]);
        let coefficients = |re: f64, im: f64| {
            (0..nrhs).map(|j| Complex64::new(re - 0.25 * j as f64, im + 0.5 * j as f64)).collect::<Vec<_>>()
        };
        Ok(Algebra {
            space: FieldSpace::new(&domain, nrhs),
            scope: case.scope(&format!("{} {}", P::NAME, K::NAME), &format!("{nrhs} rhs")),
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

    fn all(&self, case: &Case, report: &mut Report) -> Result {
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
    fn numbers(&self, report: &mut Report, name: &str, got: &[f64], expected: &[f64], scale: &[f64], tol: f64) {
        for j in 0..got.len() {
            report.number(&self.scope, name, got[j], expected[j], scale[j], tol);
        }
    }
    /// ‖ψ_j‖² on one parity.
    fn norms(parity: usize, fields: OnHost<K>) -> Vec<f64> {
        fields.iter().map(|f| norm2(&on_parity(parity, f))).collect()
    }
    /// Notes (x, y) on one parity, relative to ‖x‖ ‖y‖.
    fn dots(
        &self,
        report: &mut Report,
        name: &str,
        parity: usize,
        got: &[Complex64],
        (x, y): (OnHost<K>, OnHost<K>),
        tol: f64,
    ) {
        for j in 0..got.len() {
            let (x, y) = (on_parity(parity, &x[j]), on_parity(parity, &y[j]));
            let (expected, scale) = (dot(&x, &y), (norm2(&x) * norm2(&y)).sqrt());
            report.number(&self.scope, &format!("{name}, real part"), got[j].re, expected.re, scale, tol);
            report.number(&self.scope, &format!("{name}, imaginary part"), got[j].im, expected.im, scale, tol);
        }
    }
    fn terms(&self) -> usize {
        K::Host::COMPONENTS * self.x.stored[0].lattice().volume()
    }

    fn transfer(&self, case: &Case, report: &mut Report) -> Result {
        let sources = &K::block(case, 0)[..self.one.len()];
        report.fields(&self.scope, "pack and unpack", self.x.device.download()?, sources, P::sum_of(K::SPINS));
        let copy = self.x.copy(&self.space)?;
        report.holds(&self.scope, "copy, bits", copy.download()? == self.x.stored);
        let mut cleared = copy;
        self.space.zero(&mut cleared.even)?;
        self.space.zero(&mut cleared.odd)?;
        report.holds(&self.scope, "zero", cleared.download()?.iter().all(|f| f.norm2() == 0.0));
        Ok(())
    }

    fn updates(&self, report: &mut Report) -> Result {
        let (x, y, a, b) = (&self.x, &self.y, &self.a[..], &self.b[..]);
        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            self.space.axpby(a, x.half(parity), b, out.parity_mut(parity))?;
        }
        report.fields(
            &self.scope,
            "axpby",
            out.download()?,
            &sum(&[(a, &x.stored), (b, &y.stored)]),
            P::sum_of(K::SPINS),
        );

        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            self.space.axpy(a, x.half(parity), out.parity_mut(parity))?;
        }
        report.fields(
            &self.scope,
            "axpy",
            out.download()?,
            &sum(&[(a, &x.stored), (&self.one, &y.stored)]),
            P::sum_of(K::SPINS),
        );

        // With b = 0 the old content does not count, not even a NaN.
        let zero = vec![Complex64::ZERO; a.len()];
        let nan: Vec<_> = y.stored.iter().map(|f| combine(&[(f64::NAN.into(), f)])).collect();
        out.upload(&nan)?;
        for parity in 0..2 {
            self.space.axpby(a, x.half(parity), &zero, out.parity_mut(parity))?;
        }
        report.fields(&self.scope, "axpby, b = 0", out.download()?, &sum(&[(a, &x.stored)]), P::sum_of(K::SPINS));
        Ok(())
    }

    fn sums(&self, report: &mut Report) -> Result {
        let (x, y, n) = (&self.x, &self.y, self.one.len());
        let tol = P::stored_sum(self.terms());
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

    fn fused(&self, report: &mut Report) -> Result {
        let (x, y, a, n) = (&self.x, &self.y, &self.a[..], self.one.len());
        let mut norm = vec![0.0; n];

        let expected = sum(&[(a, &x.stored), (&self.one, &y.stored)]);
        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            self.space.axpy_norm2(a, x.half(parity), out.parity_mut(parity), &mut norm)?;
            let norms = Self::norms(parity, &expected);
            self.numbers(report, "axpy_norm2, norm", &norm, &norms, &norms, P::fused_sum(self.terms()));
        }
        report.fields(&self.scope, "axpy_norm2", out.download()?, &expected, P::sum_of(K::SPINS));

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
            self.numbers(report, "xpay_norm2, norm", &norm, &norms, &norms, P::fused_sum(self.terms()));
        }
        report.fields(&self.scope, "xpay_norm2", out.download()?, &expected, P::sum_of(K::SPINS));

        let expected = sum(&[(&self.one, &x.stored), (&self.minus(), &y.stored)]);
        let mut out = y.copy(&self.space)?;
        for parity in 0..2 {
            self.space.sub_norm2(x.half(parity), out.parity_mut(parity), &mut norm)?;
            let norms = Self::norms(parity, &expected);
            self.numbers(report, "sub_norm2, norm", &norm, &norms, &norms, P::fused_sum(self.terms()));
        }
        report.fields(&self.scope, "sub_norm2", out.download()?, &expected, P::sum_of(K::SPINS));
        Ok(())
    }

    fn solver_updates(&self, report: &mut Report) -> Result {
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
        report.fields(&self.scope, "cg_update, x", new_x.download()?, &expected, P::sum_of(K::SPINS));
        let expected = sum(&[(one, &z.stored), (&complex(&beta), &y.stored)]);
        report.fields(&self.scope, "cg_update, p", new_p.download()?, &expected, P::sum_of(K::SPINS));

        // There is no BiCGstab for colour vectors: staggered operators on one parity are positive.
        if K::SPINS == 1 {
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
        report.fields(&self.scope, "bicgstab_step, x", new_x.download()?, &expected, P::sum_of(K::SPINS));
        let minus: Vec<_> = omega.iter().map(|o| -o).collect();
        let expected = sum(&[(one, &w.stored), (&minus, &v.stored)]);
        report.fields(&self.scope, "bicgstab_step, r", r.download()?, &expected, P::sum_of(K::SPINS));
        let product: Vec<_> = beta.iter().zip(omega).map(|(b, o)| -b * o).collect();
        let expected = sum(&[(one, &expected), (beta, &y.stored), (&product, &z.stored)]);
        report.fields(&self.scope, "bicgstab_step, p", new_p.download()?, &expected, P::sum_of(K::SPINS));
        Ok(())
    }
}

/// All pairs of precisions.
pub fn conversions(backend: &dyn Backend, case: &Case, report: &mut Report) -> Result {
    macro_rules! pairs {
        ($kind:ident: $from:ident to $($to:ident)*) => {$(convert::<$kind, $from, $to>(backend, case, report)?;)*};
    }
    pairs!(FourSpins: Double to Double Single Half Fp16);
    pairs!(FourSpins: Single to Double Single Half Fp16);
    pairs!(FourSpins: Half to Double Single Half Fp16);
    pairs!(FourSpins: Fp16 to Double Single Half Fp16);
    pairs!(OneSpin: Double to Double Single Half);
    pairs!(OneSpin: Single to Double Single Half);
    pairs!(OneSpin: Half to Double Single Half);
    Ok(())
}

fn convert<K: Kind, P: Accuracy, Q: Accuracy>(backend: &dyn Backend, case: &Case, report: &mut Report) -> Result {
    let domain = case.domain(backend)?;
    let from = Block::<K, P>::new(&domain, K::block(case, 0))?;
    let to = Block::<K, Q>::new(&domain, K::block(case, 1))?;
    let space = FieldSpace::<K, Q>::new(&domain, NRHS);
    let scope = case.scope(&format!("{} to {} {}", P::NAME, Q::NAME, K::NAME), "");
    // Powers of two, one for each right-hand side.
    let scale: Vec<f64> = (0..NRHS).map(|j| 0.5f64.powi(j as i32)).collect();
    let factors: Vec<Complex64> = scale.iter().map(Complex64::from).collect();
    let mut out = to.copy(&space)?;
    for parity in 0..2 {
        ConvertFrom::<FieldSpace<K, P>>::convert(&space, &scale, from.half(parity), out.parity_mut(parity))?;
    }
    report.fields(&scope, "convert", out.download()?, &sum(&[(&factors, &from.stored)]), Q::sum_of(K::SPINS));
    let mut out = to.copy(&space)?;
    for parity in 0..2 {
        ConvertFrom::<FieldSpace<K, P>>::accumulate(&space, &scale, from.half(parity), out.parity_mut(parity))?;
    }
    let one = vec![Complex64::ONE; NRHS];
    let mut tol = Q::sum_of(K::SPINS);
    // The addend is rounded to the precision of the sum first.
    tol.relative += Q::UNIT;
    report.fields(&scope, "accumulate", out.download()?, &sum(&[(&factors, &from.stored), (&one, &to.stored)]), tol);
    Ok(())
}

/// A NaN or an infinity in any of the real components of a site comes out of a norm: nothing in storage swallows it.
pub fn not_a_number<K: Kind, P: Accuracy>(backend: &dyn Backend, report: &mut Report) -> Result {
    let lattice = Lattice::new([2, 2, 2, 4]).expect("even extents");
    let domain = Domain::single(backend, lattice)?;
    let space = FieldSpace::<K, P>::new(&domain, 1);
    let scope = Scope { format: format!("{} {}", P::NAME, K::NAME), detail: lattice.to_string() };
    let (mut seen, mut nan) = ([true; 2], [0.0]);
    for k in 0..2 * K::Host::COMPONENTS {
        for (which, bad) in [f64::NAN, f64::INFINITY].into_iter().enumerate() {
            let mut source: HostField<K::Host> = ferrite::generate::random_source(lattice, 7);
            // Each at a site of its own.
            let z = &mut source.numbers_mut()[k * K::Host::COMPONENTS + k / 2];
            *(if k % 2 == 0 { &mut z.re } else { &mut z.im }) = bad;
            let mut field = FullField::<K, P>::zero(&domain, 1)?;
            field.upload(&[source])?;
            space.norm2(field.parity(lattice.parity(lattice.coordinates(k))), &mut nan)?;
            seen[which] &= if which == 0 { nan[0].is_nan() } else { !nan[0].is_finite() };
        }
    }
    report.holds(&scope, "NaN in a component is NaN in the norm", seen[0]);
    report.holds(&scope, "infinity in a component is not finite in the norm", seen[1]);
    Ok(())
}
