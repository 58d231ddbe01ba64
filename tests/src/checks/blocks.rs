//! Blocks of right-hand sides: the bits of each alone, however many share a launch.
use super::Kind;
use crate::accuracy::Accuracy;
use crate::report::{Report, Scope};
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{Fermion, HostField};
use ferrite::field::{FieldSpace, FullField};
use ferrite::generate;
use ferrite::lattice::Lattice;
use gpu_kernels::storage::{Double, FourSpins, Fp16, Half, OneSpin, Single};
use num_complex::Complex64;
use solvers::{ConvertFrom, ShiftStep, VectorSpace};
use std::ops::Range;

/// One launch has coefficients for 16 sides: fewer, as many, and one more.
const SIDES: [usize; 6] = [1, 2, 3, 12, 16, 17];
/// Fields that the operations work on.
const FIELDS: usize = 7;

/// Linear algebra on blocks of many right-hand sides, in every format.
pub fn blocks<B: Backend>(backend: &B, report: &mut Report) -> Result {
    // 320 sites of a parity: whole tiles, and more than one block of threads.
    let lattice = Lattice::new([4, 4, 4, 10]).expect("even extents");
    let domain = Domain::single(backend.clone(), lattice)?;
    macro_rules! check {
        ($kind:ident: $($precision:ident)*) => {$(for nrhs in SIDES {
            let hosts = sources::<$kind>(lattice, nrhs);
            let format = format!("{} {}", <$precision as gpu_kernels::storage::Precision>::NAME, $kind::NAME);
            let scope = Scope { format, detail: format!("{lattice} {nrhs} rhs") };
            each_alone::<B, $kind, $precision>(&domain, &hosts, &scope, report)?;
        })*};
    }
    use gpu_kernels::storage::SiteKind;
    check!(FourSpins: Double Single Half Fp16);
    check!(OneSpin: Double Single Half);
    Ok(())
}

/// Blocks of random fields.
fn sources<K: Kind>(lattice: Lattice, nrhs: usize) -> Vec<Vec<HostField<K::Host>>> {
    let block = |k: usize| (0..nrhs).map(|j| generate::random_source(lattice, (100 * k + j) as u64)).collect();
    (0..FIELDS).map(block).collect()
}

/// Every operation with coefficients on a block, and on blocks of one, after another.
fn each_alone<B: Backend, K: Kind, P: Accuracy>(
    domain: &Domain<B>,
    hosts: &[Vec<HostField<K::Host>>],
    scope: &Scope,
    report: &mut Report,
) -> Result {
    let nrhs = hosts[0].len();
    let (fields, sums) = operations::<B, K, P>(domain, hosts, 0..nrhs)?;
    let (mut same_fields, mut same_sums) = (true, true);
    for j in 0..nrhs {
        let host: Vec<_> = hosts.iter().map(|block| vec![block[j].clone()]).collect();
        let (field, sum) = operations::<B, K, P>(domain, &host, j..j + 1)?;
        for (field, block) in field.iter().zip(&fields) {
            same_fields &= bits(&field[0]).eq(bits(&block[j]));
        }
        same_sums &= sum[0].iter().map(|x| x.to_bits()).eq(sums[j].iter().map(|x| x.to_bits()));
    }
    report.holds(scope, "blocks, bits of each side", same_fields);
    report.holds(scope, "blocks, bits of each side's sums", same_sums);
    // Nothing is compared with nothing.
    let moved = fields.iter().flatten().all(|field| field.numbers().iter().all(|z| z.is_finite()));
    report.holds(scope, "blocks, numbers", moved && sums.iter().flatten().all(|x| x.is_finite() && *x != 0.0));
    Ok(())
}

fn bits<T: Fermion>(field: &HostField<T>) -> impl Iterator<Item = [u64; 2]> {
    field.numbers().iter().map(|z| [z.re.to_bits(), z.im.to_bits()])
}

/// Fields `[field][side]` after the operations, and sums `[side][sum]`.
type Outcome<K> = (Vec<Vec<HostField<<K as ferrite::field::FieldKind>::Host>>>, Vec<Vec<f64>>);

/// All operations with coefficients, one after the other, on the even sites. `sides` says which coefficients.
fn operations<B: Backend, K: Kind, P: Accuracy>(
    domain: &Domain<B>,
    hosts: &[Vec<HostField<K::Host>>],
    sides: Range<usize>,
) -> Result<Outcome<K>> {
    let n = sides.len();
    let space = FieldSpace::<B, K, P>::new(domain, n);
    let upload = |host: &Vec<_>| {
        let mut field = FullField::<B, K, P>::zero(domain, n)?;
        field.upload(host)?;
        Ok(field)
    };
    let mut fields = hosts.iter().map(upload).collect::<Result<Vec<_>>>()?;
    // None of them is 0, or 1.
    let real = |first: f64| sides.clone().map(|j| first - 0.047 * j as f64).collect::<Vec<_>>();
    let complex = |re: f64, im: f64| {
        real(re).into_iter().zip(real(im)).map(|(re, im)| Complex64::new(re, im)).collect::<Vec<_>>()
    };
    let mut sums = vec![Vec::new(); n];
    let (mut norm, mut dots) = (vec![0.0; n], vec![Complex64::ZERO; 5 * n]);
    {
        let [r, x, p, y, q, z, s] = &mut fields[..] else { unreachable!("there are {FIELDS}") };
        let [r, x, p, y, q, z, s] = [r, x, p, y, q, z, s].map(|field| &mut field.even);
        // Some of the old fields are not read.
        let b: Vec<_> = sides.clone().map(|j| if j % 3 == 1 { 0.0 } else { 0.25 }.into()).collect();
        space.axpby(&complex(0.5, -0.25), x, &b, r)?;
        space.axpy_norm2(&complex(-0.5, 0.75), y, x, &mut norm)?;
        sums.iter_mut().zip(&norm).for_each(|(sums, norm)| sums.push(*norm));
        space.cg_update(&real(0.5), &real(-0.25), r, x, p)?;
        if K::SPINS == 4 {
            space.bicgstab_step(&complex(0.5, 0.1), &complex(0.2, 0.3), &complex(-0.4, 0.5), z, s, x, r, p)?;
        }
        // A system that goes on for all sides, one that rests for some, one that was dropped just now for some.
        let (a, b, ones) = (real(0.3), real(0.6), vec![1.0; n]);
        let if_odd = |yes: f64, no: &[f64]| {
            let each = sides.clone().zip(no);
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
    let scale: Vec<f64> = sides.map(|j| 0.5f64.powi(j as i32 % 5)).collect();
    macro_rules! to {
        ($($precision:ident)*) => {$({
            let other = FieldSpace::<B, K, $precision>::new(domain, n);
            let mut to = FullField::<B, K, $precision>::zero(domain, n)?;
            ConvertFrom::<FieldSpace<B, K, P>>::convert(&other, &scale, &fields[1].even, &mut to.even)?;
            ConvertFrom::<FieldSpace<B, K, P>>::accumulate(&other, &scale, &fields[2].even, &mut to.even)?;
            downloads.push(to.download()?);
        })*};
    }
    to!(Double Single Half);
    Ok((downloads, sums))
}
