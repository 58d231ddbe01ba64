//! Blocks of right-hand sides: the bits of each alone, however many share a launch, and what mixes them.
use super::{Kind, peak, upload};
use crate::accuracy::Accuracy;
use crate::formats;
use crate::reference::{combine, dot, norm2, on_parity};
use crate::report::{CheckReport, Scope};
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{ColourVector, HostField, Spinor};
use ferrite::field::{FieldShape, FieldSpace, FullField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::{FermionKind, Precision};
use num_complex::Complex64;
use solvers::{ConvertFrom, ShiftStep, VectorSpace};
use std::ops::Range;

/// One launch has coefficients for 16 rhs: fewer, as many, and one more.
const NRHS: [usize; 6] = [1, 2, 3, 12, 16, 17];
/// Fields that the operations work on.
const FIELDS: usize = 7;

/// Linear algebra on blocks of many right-hand sides, in every format.
pub fn blocks(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    // 320 sites of a parity: whole tiles, and more than one block of threads.
    let lattice = Lattice::new([4, 4, 4, 10]).expect("even extents");
    let domain = Domain::single(backend, lattice)?;
    of::<Spinor>(&domain, report)?;
    of::<ColourVector>(&domain, report)
}

fn of<F: Kind>(domain: &Domain, report: &mut CheckReport) -> Result {
    let lattice = domain.local();
    for precision in formats::fields(F::KIND) {
        for nrhs in NRHS {
            let hosts = sources::<F>(lattice, nrhs);
            let format = format!("{precision} {}", F::KIND);
            let scope = Scope { format, detail: format!("{lattice} {nrhs} rhs") };
            each_alone(domain, precision, &hosts, &scope, report)?;
            matrices(domain, precision, &hosts, &scope, report)?;
            krylov_spaces(domain, precision, &hosts, &scope, report)?;
        }
    }
    Ok(())
}

/// Blocks of random fields.
fn sources<F: Kind>(lattice: Lattice, nrhs: usize) -> Vec<Vec<HostField<F>>> {
    let block = |k: usize| (0..nrhs).map(|j| generate::random_source(lattice, (100 * k + j) as u64)).collect();
    (0..FIELDS).map(block).collect()
}

/// Every operation with coefficients on a block, and on blocks of one, after another.
fn each_alone<F: Kind>(
    domain: &Domain,
    precision: Precision,
    hosts: &[Vec<HostField<F>>],
    scope: &Scope,
    report: &mut CheckReport,
) -> Result {
    let nrhs = hosts[0].len();
    let (fields, sums) = operations(domain, precision, hosts, 0..nrhs)?;
    let (mut same_fields, mut same_sums) = (true, true);
    for j in 0..nrhs {
        let host: Vec<_> = hosts.iter().map(|block| vec![block[j].clone()]).collect();
        let (field, sum) = operations(domain, precision, &host, j..j + 1)?;
        for (field, block) in field.iter().zip(&fields) {
            same_fields &= bits(&field[0]).eq(bits(&block[j]));
        }
        same_sums &= sum[0].iter().map(|x| x.to_bits()).eq(sums[j].iter().map(|x| x.to_bits()));
    }
    report.holds(scope, "blocks, bits of each rhs", same_fields);
    report.holds(scope, "blocks, bits of each rhs's sums", same_sums);
    // Nothing is compared with nothing.
    let moved = fields.iter().flatten().all(|field| field.numbers().iter().all(|z| z.is_finite()));
    report.holds(scope, "blocks, numbers", moved && sums.iter().flatten().all(|x| x.is_finite() && *x != 0.0));
    Ok(())
}

fn bits<F: Kind>(field: &HostField<F>) -> impl Iterator<Item = [u64; 2]> {
    field.numbers().iter().map(|z| [z.re.to_bits(), z.im.to_bits()])
}

/// Fields `[field][rhs]` after the operations, and sums `[rhs][sum]`.
type Outcome<F> = (Vec<Vec<HostField<F>>>, Vec<Vec<f64>>);

/// All operations with coefficients, one after the other, on the even sites. `rhs` says which coefficients.
fn operations<F: Kind>(
    domain: &Domain,
    precision: Precision,
    hosts: &[Vec<HostField<F>>],
    rhs: Range<usize>,
) -> Result<Outcome<F>> {
    let n = rhs.len();
    let space = FieldSpace::new(domain, FieldShape::new(F::KIND, precision, n));
    let mut fields = hosts.iter().map(|host| Ok(upload(domain, precision, host)?.0)).collect::<Result<Vec<_>>>()?;
    // None of them is 0, or 1.
    let real = |first: f64| rhs.clone().map(|j| first - 0.047 * j as f64).collect::<Vec<_>>();
    let complex = |re: f64, im: f64| {
        real(re).into_iter().zip(real(im)).map(|(re, im)| Complex64::new(re, im)).collect::<Vec<_>>()
    };
    let mut sums = vec![Vec::new(); n];
    let (mut norm, mut dots) = (vec![0.0; n], vec![Complex64::ZERO; 5 * n]);
    {
        let [r, x, p, y, q, z, s] = &mut fields[..] else { unreachable!("there are {FIELDS}") };
        let [r, x, p, y, q, z, s] = [r, x, p, y, q, z, s].map(|field| &mut field.even);
        // Some of the old fields are not read.
        let b: Vec<_> = rhs.clone().map(|j| if j % 3 == 1 { 0.0 } else { 0.25 }.into()).collect();
        space.axpby(&complex(0.5, -0.25), x, &b, r)?;
        space.axpy_norm2(&complex(-0.5, 0.75), y, x, &mut norm)?;
        sums.iter_mut().zip(&norm).for_each(|(sums, norm)| sums.push(*norm));
        space.cg_update(&real(0.5), &real(-0.25), r, x, p)?;
        if F::KIND == FermionKind::Wilson {
            space.bicgstab_step(&complex(0.5, 0.1), &complex(0.2, 0.3), &complex(-0.4, 0.5), z, s, x, r, p)?;
        }
        // A system that goes on for all rhs, one that rests for some, one that was dropped just now for some.
        let (a, b, ones) = (real(0.3), real(0.6), vec![1.0; n]);
        let if_odd = |yes: f64, no: &[f64]| {
            let each = rhs.clone().zip(no);
            each.map(|(j, no)| if j % 2 == 1 { yes } else { *no }).collect::<Vec<_>>()
        };
        let (rest_a, rest_z, rest_b) = (if_odd(0.0, &a), if_odd(0.0, &ones), if_odd(1.0, &b));
        let (last_z, last_b) = (if_odd(0.0, &ones), if_odd(1.0, &b));
        let mut steps = [
            ShiftStep { a: &a, z: &ones, b: &b, x: &mut *x, p: &mut *p },
            ShiftStep { a: &rest_a, z: &rest_z, b: &rest_b, x: &mut *y, p: &mut *q },
            ShiftStep { a: &a, z: &last_z, b: &last_b, x: &mut *z, p: &mut *s },
        ];
        space.shift_update(r, &mut steps)?;
        // Five vectors: a group of four, and one that is not full.
        let all = [(0.1, 0.2), (0.3, -0.1), (-0.2, 0.2), (0.1, -0.3), (0.2, 0.1)];
        let a: Vec<_> = all.into_iter().flat_map(|(re, im)| complex(re, im)).collect();
        let vectors = [x, p, y, q, z].map(|field| std::mem::replace(field, space.allocate().expect("memory")));
        space.multi_dot(&vectors, r, &mut dots, &mut norm)?;
        space.multi_axpy(&a, &vectors, r)?;
        for (j, sums) in sums.iter_mut().enumerate() {
            sums.push(norm[j]);
            sums.extend((0..5).flat_map(|i| [dots[i * n + j].re, dots[i * n + j].im]));
        }
        for (k, field) in [1, 2, 3, 4, 5].into_iter().zip(vectors) {
            fields[k].even = field;
        }
    }
    let mut downloads = fields.iter().map(FullField::download).collect::<Result<Vec<_>>>()?;
    let scale: Vec<f64> = rhs.map(|j| 0.5f64.powi(j as i32 % 5)).collect();
    for other in formats::fields(F::KIND) {
        let space = FieldSpace::new(domain, FieldShape::new(F::KIND, other, n));
        let mut to = FullField::zero(domain, FieldShape::new(F::KIND, other, n))?;
        space.convert(&scale, &fields[1].even, &mut to.even)?;
        space.accumulate(&scale, &fields[2].even, &mut to.even)?;
        downloads.push(to.download()?);
    }
    Ok((downloads, sums))
}

/// Products of all pairs and combinations of a block's vectors, against plain loops over what the device holds.
fn matrices<F: Kind>(
    domain: &Domain,
    precision: Precision,
    hosts: &[Vec<HostField<F>>],
    scope: &Scope,
    report: &mut CheckReport,
) -> Result {
    let n = hosts[0].len();
    let space = FieldSpace::new(domain, FieldShape::new(F::KIND, precision, n));
    let (x, xs) = upload(domain, precision, &hosts[0])?;
    let (mut y, ys) = upload(domain, precision, &hosts[1])?;

    let tol = precision.stored_sum(F::COMPONENTS * domain.local().volume());
    let mut products = vec![Complex64::ZERO; n * n];
    for parity in 0..2 {
        let [xs, ys] = [&xs, &ys].map(|all| all.iter().map(|f| on_parity(parity, f)).collect::<Vec<_>>());
        let [x_norms, y_norms] = [&xs, &ys].map(|all| all.iter().map(norm2).collect::<Vec<_>>());
        space.gram(x.parity(parity), y.parity(parity), &mut products)?;
        for (k, product) in products.iter().enumerate() {
            let (i, j) = (k / n, k % n);
            let (expected, scale) = (dot(&xs[i], &ys[j]), (x_norms[i] * y_norms[j]).sqrt());
            report.complex(scope, "gram", (*product, expected), scale, tol);
        }
        // The same vectors twice: norms on the diagonal.
        space.gram(x.parity(parity), x.parity(parity), &mut products)?;
        for (i, norm) in x_norms.iter().enumerate() {
            report.number(scope, "gram, norm", products[i * n + i].re, *norm, *norm, tol);
        }
    }

    // Different for every pair. Their squares add up to 1.
    let a: Vec<_> = (0..n * n)
        .map(|k| {
            Complex64::from_polar(1.0 / (n as f64).sqrt(), 0.7 * (k / n) as f64 + 1.1 * ((k % n) * (k / n + 1)) as f64)
        })
        .collect();
    let terms = |j: usize| (0..n).map(|i| (a[i * n + j], &xs[i])).collect::<Vec<_>>();
    for parity in 0..2 {
        space.block_axpy(&a, x.parity(parity), y.parity_mut(parity))?;
    }
    let all: Vec<_> = (0..n).map(|j| [vec![(Complex64::ONE, &ys[j])], terms(j)].concat()).collect();
    combined(report, (scope, precision), "block_axpy", y.download()?, &all);

    // The old content does not count, not even a NaN.
    y.upload(&ys.iter().map(|f| combine(&[(f64::NAN.into(), f)])).collect::<Vec<_>>())?;
    for parity in 0..2 {
        space.block_scale(&a, x.parity(parity), y.parity_mut(parity))?;
    }
    combined(report, (scope, precision), "block_scale", y.download()?, &(0..n).map(terms).collect::<Vec<_>>());
    Ok(())
}

/// Products of all vectors of a Krylov space, and a step of minimum residual, against plain loops.
fn krylov_spaces<F: Kind>(
    domain: &Domain,
    precision: Precision,
    hosts: &[Vec<HostField<F>>],
    scope: &Scope,
    report: &mut CheckReport,
) -> Result {
    let n = hosts[0].len();
    let space = FieldSpace::new(domain, FieldShape::new(F::KIND, precision, n));
    let (mut fields, mut kept) = (Vec::new(), Vec::new());
    for host in hosts {
        let (field, host) = upload(domain, precision, host)?;
        fields.push(field);
        kept.push(host);
    }

    let tol = precision.stored_sum(F::COMPONENTS * domain.local().volume());
    let even: Vec<Vec<_>> = kept.iter().map(|rhs| rhs.iter().map(|f| on_parity(0, f)).collect()).collect();
    let mut vectors = Vec::new();
    for field in &mut fields {
        vectors.push(std::mem::replace(&mut field.even, space.allocate()?));
    }
    let mut products = vec![Complex64::ZERO; vectors.len() * (vectors.len() + 1) / 2 * n];
    space.multi_gram(&vectors, &mut products)?;
    for b in 0..vectors.len() {
        for a in 0..=b {
            for j in 0..n {
                let (x, y, product) = (&even[a][j], &even[b][j], products[(b * (b + 1) / 2 + a) * n + j]);
                let (expected, scale) = (dot(x, y), (norm2(x) * norm2(y)).sqrt());
                report.complex(scope, "multi_gram", (product, expected), scale, tol);
            }
        }
    }
    fields.iter_mut().zip(vectors).for_each(|(field, even)| field.even = even);

    let alpha: Vec<_> = (0..n).map(|j| Complex64::from_polar(0.8, 0.5 + j as f64)).collect();
    let [r, z, t, ..] = &mut fields[..] else { unreachable!("there are {FIELDS}") };
    for parity in 0..2 {
        space.mr_update(&alpha, r.parity(parity), z.parity_mut(parity), t.parity_mut(parity))?;
    }
    let one = Complex64::ONE;
    let new_z: Vec<Terms<F>> = (0..n).map(|j| vec![(one, &kept[1][j]), (alpha[j], &kept[0][j])]).collect();
    let new_t: Vec<Terms<F>> = (0..n).map(|j| vec![(one, &kept[0][j]), (-alpha[j], &kept[2][j])]).collect();
    combined(report, (scope, precision), "mr_update, z", z.download()?, &new_z);
    combined(report, (scope, precision), "mr_update, t", t.download()?, &new_t);
    Ok(())
}

/// Terms of a sum of fields.
type Terms<'a, F> = Vec<(Complex64, &'a HostField<F>)>;

/// Notes sums of many terms. Beside storage, every term is added to each component by two operations that round, as in the
/// reference; a partial sum is no larger than the terms' magnitudes together. A component of a product is up to √2 times
/// as large as the factors' magnitudes, and so is one after a rotation of spins.
fn combined<F: Kind>(
    report: &mut CheckReport,
    (scope, precision): (&Scope, Precision),
    name: &str,
    got: Vec<HostField<F>>,
    terms: &[Terms<F>],
) {
    let expected: Vec<_> = terms.iter().map(|terms| combine(terms)).collect();
    let mut tol = precision.sum_of(F::KIND.spins());
    // How much larger than the sum its terms are: as a whole, and at the worst site.
    let (mut whole, mut worst) = (0.0f64, 0.0f64);
    for (terms, sum) in terms.iter().zip(&expected) {
        let magnitudes: f64 = terms.iter().map(|(a, f)| a.norm() * norm2(f).sqrt()).sum();
        whole = whole.max(magnitudes / norm2(sum).sqrt());
        let width = F::COMPONENTS;
        for (k, site) in sum.numbers().chunks(width).enumerate() {
            let peaks: f64 = terms.iter().map(|(a, f)| a.norm() * peak(&f.numbers()[k * width..][..width])).sum();
            worst = worst.max(peaks / peak(site));
        }
    }
    let roundings = 2.0 * 2.0 * terms[0].len() as f64 * precision.unit();
    tol.relative += roundings * whole;
    tol.worst += 2.0 * roundings * worst;
    report.fields(scope, name, got, &expected, tol);
}
