//! Operations that solves consist of, each on its own random fields. `bench` times them, and `tune` calls each once.
mod staggered;

use crate::domain::{Domain, Result};
use crate::field::host::{ColourVector, Fermion, HostGauge, Spinor};
use crate::field::{DeviceField, FieldShape, FieldSpace, FullField, GaugeField};
use crate::gauge::fixing::temporal_gauge_on;
use crate::gauge::generate;
use crate::lattice::Lattice;
use crate::operators::{
    DSLASH_ADD_FLOPS, DSLASH_FLOPS, Definition, Diagonal, DiagonalForm, EvenOddWilson, Schur, Wilson, WilsonLike,
};
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{ConvertFrom, Dots, KeptRho, KeptSums, LinearOperator, ShiftStep, VectorSpace};
use std::borrow::Cow;
use std::sync::Arc;

/// Number of spinors or colour vectors that an even-odd matrix reads or writes on each site: one hopping term reads one and writes one, the
/// other reads that one and the argument, and writes the result.
const MATRIX_SPINORS: usize = 5;

/// Description of an operation that can be called repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// Name of the operation, such as `wilson_dslash` or `axpy`.
    pub name: String,
    /// Precision of the fields.
    pub precision: Precision,
    /// Storage of the links; `None` for an operation without links.
    pub storage: Option<LinkStorage>,
    /// Number of floating-point operations of a call, summed over all processes, by the standard count of the community.
    pub flops: f64,
    /// Compulsory traffic of a call in bytes, summed over all processes: every link and every spinor once.
    pub bytes: f64,
}

/// Options of a workload: lattice, formats and right-hand sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Lattice of the fields.
    pub lattice: Lattice,
    /// Precisions of the fields.
    pub precisions: Vec<Precision>,
    /// Storages of the links. Combinations with a precision that have no kernels are left out.
    pub reconstructions: Vec<LinkStorage>,
    /// Number of right-hand sides.
    pub nrhs: usize,
}

/// Selection of operations to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Operations that `bench` lists.
    Shown,
    /// Operations that a model of solvers needs: those that `bench` lists, and the even-odd matrix with the sums for which BiCGstab waits.
    Modelled,
    /// Every kernel that a solve may launch.
    All,
}

/// Function that receives each operation with a closure that calls it, and decides how often to call it.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(Operation, &mut dyn FnMut() -> Result) -> Result;

/// Visits the operations of an operator, with parameters for benchmarks.
pub(crate) fn operator(
    domain: &Domain,
    definition: &'static Definition,
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    match (definition.sample)().parameters::<WilsonLike>() {
        Some(operator) if operator.has_number() => number(domain, *operator, options, extent, visit),
        Some(operator) => term(domain, *operator, options, extent, visit),
        None if definition.is_improved() => staggered::improved(domain, definition, options, extent, visit),
        None => staggered::naive(domain, definition, options, extent, visit),
    }
}

/// Visits a Wilson-like operator whose diagonal term is a number: the hopping term from one parity to the other, alone and in a x + b D ψ.
fn number(domain: &Domain, operator: WilsonLike, options: &Options, extent: Extent, visit: Visit) -> Result {
    let gauge = generate::random(domain.section(), 1);
    for (gauge, reconstructions) in gauges(domain, &gauge, options)? {
        let device_links = GaugeField::upload(domain, &gauge)?;
        for (precision, storage) in formats(operator.definition, options, &reconstructions) {
            number_in(&device_links, operator, precision, storage, options, extent, visit)?;
        }
    }
    Ok(())
}

/// Links, and the storages to use for them.
type Formatted<'a> = (Cow<'a, HostGauge>, Vec<LinkStorage>);

/// Returns the links as they are and in temporal gauge, each with the requested storages for that gauge. A gauge without storages is left
/// out.
fn gauges<'a>(domain: &Domain, gauge: &'a HostGauge, options: &Options) -> Result<Vec<Formatted<'a>>> {
    let mut all = Vec::new();
    for temporal in [false, true] {
        let formats = options.reconstructions.iter().copied();
        let formats: Vec<_> = formats.filter(|format| format.temporal == temporal).collect();
        if !formats.is_empty() {
            let links = if temporal { Cow::Owned(temporal_gauge_on(domain, gauge)?.0) } else { Cow::Borrowed(gauge) };
            all.push((links, formats));
        }
    }
    Ok(all)
}

/// Returns all pairs of a precision and a link storage for which an operator has kernels.
fn formats(
    definition: &'static Definition,
    options: &Options,
    reconstructions: &[LinkStorage],
) -> impl Iterator<Item = (Precision, LinkStorage)> {
    let pairs = options.precisions.iter().flat_map(|&p| reconstructions.iter().map(move |&r| (p, r)));
    pairs.filter(|(precision, storage)| definition.exists(*precision, *storage))
}

fn number_in(
    device_links: &GaugeField,
    operator: WilsonLike,
    precision: Precision,
    storage: LinkStorage,
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    let links = Arc::new(device_links.pack(precision, storage)?);
    let domain = links.domain().clone();
    let (wilson, name) = (Wilson::new(links, operator.wilson), operator.definition.name);
    let mut fields = random_fields::<4>(&domain, FieldShape::spinors(precision, options.nrhs))?;
    let (sites, nrhs) = (domain.global().half_volume() as f64, options.nrhs);
    let spinor = FieldShape::spinors(precision, 1).site_bytes();
    let operation = |what: &str, flops: f64, spinors: usize| Operation {
        name: format!("{name}_{what}"),
        precision,
        storage: Some(storage),
        flops: flops * sites * nrhs as f64,
        bytes: sites * (storage.read_bytes(precision) + nrhs * spinors * spinor) as f64,
    };
    let daggers: &[_] = match extent {
        Extent::Shown | Extent::Modelled => &[(false, "dslash", "dslash_add")],
        Extent::All => &[(false, "dslash", "dslash_add"), (true, "dslash_dagger", "dslash_add_dagger")],
    };
    // The parities alternate, and the result of a call is the input of the next, as in a solver.
    let mut calls = 0;
    for &(dagger, plain, added) in daggers {
        visit(operation(plain, DSLASH_FLOPS, 2), &mut || {
            calls += 1;
            fields.rotate_left(1);
            let [input, out, ..] = &mut fields;
            wilson.dslash(calls % 2, dagger, input, out)
        })?;
        visit(operation(added, DSLASH_ADD_FLOPS, 3), &mut || {
            calls += 1;
            fields.rotate_left(1);
            let [input, out, x, _] = &mut fields;
            wilson.dslash_add(calls % 2, dagger, (1.0, x), (-0.01, input), out)
        })?;
    }
    if extent == Extent::Modelled {
        let matrix = EvenOddWilson::new(wilson, nrhs)?;
        let operation = |what: &str| Operation {
            name: format!("{name}_{what}"),
            precision,
            storage: Some(storage),
            flops: matrix.flops() * nrhs as f64,
            bytes: sites * (2 * storage.read_bytes(precision) + nrhs * MATRIX_SPINORS * spinor) as f64,
        };
        let [input, out, w, _] = &mut fields;
        visit(operation("matrix"), &mut || matrix.apply(input, out))?;
        visit(operation("matrix_sums"), &mut || with_sums(&matrix, &domain, [input, w], out))?;
    }
    Ok(())
}

/// Calls the even-odd matrix with the sums for which BiCGstab waits: (x, M̂ x), (w, x), (w, M̂ x), ‖x‖² and ‖M̂ x‖².
fn with_sums(
    matrix: &impl LinearOperator<FieldSpace>,
    domain: &Domain,
    [x, w]: [&DeviceField; 2],
    out: &mut DeviceField,
) -> Result {
    let space = FieldSpace::new(domain, x.shape());
    matrix.apply_dots(&space, x, out, w, &mut vec![Dots::default(); x.nrhs()])
}

/// Visits a Wilson-like operator whose diagonal term is not a number: A⁻¹ D in one pass, and the even-odd matrices.
fn term(domain: &Domain, operator: WilsonLike, options: &Options, extent: Extent, visit: Visit) -> Result {
    // The field is weak enough that no block of a clover term is nearly singular.
    let gauge = generate::weak_field(domain.section(), 1, 0.2);
    for (gauge, reconstructions) in gauges(domain, &gauge, options)? {
        let device_links = GaugeField::upload(domain, &gauge)?;
        let term = operator.diagonal(&device_links)?;
        for format in formats(operator.definition, options, &reconstructions) {
            term_in(&device_links, operator, &term, format, options, extent, visit)?;
        }
    }
    Ok(())
}

fn term_in(
    device_links: &GaugeField,
    operator: WilsonLike,
    term: &Diagonal,
    (precision, storage): (Precision, LinkStorage),
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    let (links, term) = (Arc::new(device_links.pack(precision, storage)?), term.convert(precision)?);
    let (domain, name) = (links.domain().clone(), operator.definition.name);
    let (sites, nrhs) = (domain.global().half_volume() as f64, options.nrhs);
    let wilson = Wilson::new(links, operator.wilson);
    let with = |schur| EvenOddWilson::with_diagonal(wilson.clone(), term.clone(), schur, nrhs);
    let operator = with(Schur::Symmetric)?;
    let mut fields = random_fields::<4>(&domain, FieldShape::spinors(precision, nrhs))?;
    let operation = |name: String, flops: f64, bytes: f64| Operation {
        name,
        precision,
        storage: Some(storage),
        flops: flops * nrhs as f64,
        bytes,
    };
    let spinor = FieldShape::spinors(precision, 1).site_bytes();
    let dslash_bytes = sites * (storage.read_bytes(precision) + term.bytes() + nrhs * 2 * spinor) as f64;
    let dslash = |what: &str| operation(format!("{name}_{what}"), (DSLASH_FLOPS + term.flops()) * sites, dslash_bytes);
    // Links and diagonal terms are read for all right-hand sides together.
    let matrix_bytes =
        sites * (2 * (storage.read_bytes(precision) + term.bytes()) + nrhs * MATRIX_SPINORS * spinor) as f64;
    let matrix = |what: &str| operation(format!("{name}_{what}"), operator.flops(), matrix_bytes);
    let mut calls = 0;
    visit(dslash("dslash"), &mut || {
        calls += 1;
        fields.rotate_left(1);
        let [input, out, ..] = &mut fields;
        operator.dslash(calls % 2, false, input, out)
    })?;
    visit(matrix("matrix"), &mut || {
        fields.rotate_left(1);
        let [input, out, ..] = &mut fields;
        operator.apply(input, out)
    })?;
    if extent == Extent::Modelled {
        let [input, out, w, _] = &mut fields;
        return visit(matrix("matrix_sums"), &mut || with_sums(&operator, &domain, [input, w], out));
    }
    if extent == Extent::Shown {
        return Ok(());
    }
    let asymmetric = with(Schur::Asymmetric)?;
    let [input, out, x, _] = &mut fields;
    let bytes = sites * (term.bytes() + nrhs * 2 * spinor) as f64;
    let form = DiagonalForm { parity: 0, inverse: true, dagger: false };
    visit(operation(format!("{name}_apply"), term.flops() * sites, bytes), &mut || {
        operator.apply_diagonal(form, input, out)
    })?;
    visit(dslash("dslash_dagger"), &mut || operator.dslash(0, true, input, out))?;
    visit(matrix("matrix_dagger"), &mut || operator.apply_dagger(input, out))?;
    visit(matrix("asymmetric_matrix"), &mut || asymmetric.apply(input, out))?;
    visit(matrix("asymmetric_matrix_dagger"), &mut || asymmetric.apply_dagger(input, out))?;
    // `wilson_dslash_add` occurs in the transformation to the even-odd system and back.
    let bytes = sites * (storage.read_bytes(precision) + nrhs * 3 * spinor) as f64;
    visit(operation("wilson_dslash_add".into(), DSLASH_ADD_FLOPS * sites, bytes), &mut || {
        wilson.dslash_add(0, false, (1.0, x), (-0.01, input), out)
    })
}

/// Returns fields of random numbers, because kernels could run faster on zeros.
fn random_fields<const N: usize>(domain: &Domain, shape: FieldShape) -> Result<[DeviceField; N]> {
    fn upload<F: Fermion>(full: &mut FullField) -> Result {
        let source = generate::random_source::<F>(full.even.domain().section(), 2);
        full.upload(&vec![source; full.even.shape().blocks()])
    }
    let mut full = FullField::zero(domain, shape)?;
    match shape.kind {
        FermionKind::Wilson => upload::<Spinor>(&mut full)?,
        FermionKind::Staggered => upload::<ColourVector>(&mut full)?,
    }
    let space = FieldSpace::new(domain, shape);
    let fields = (0..N)
        .map(|_| {
            let mut field = space.allocate()?;
            space.copy(&full.even, &mut field)?;
            Ok(field)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(fields.try_into().unwrap_or_else(|_| unreachable!("N fields were made")))
}

/// Visits linear algebra on fields of one fermion type and parity.
pub(crate) fn linear_algebra(
    domain: &Domain,
    kind: FermionKind,
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    precisions_of(kind, options).try_for_each(|precision| algebra_in(domain, kind, precision, options, extent, visit))
}

/// Returns the precisions in which fields of a fermion type exist.
fn precisions_of(kind: FermionKind, options: &Options) -> impl Iterator<Item = Precision> {
    let all = options.precisions.iter().copied();
    all.filter(move |&precision| kind == FermionKind::Wilson || precision != Precision::Fp16)
}

fn algebra_in(
    domain: &Domain,
    kind: FermionKind,
    precision: Precision,
    options: &Options,
    extent: Extent,
    visit: Visit,
) -> Result {
    let nrhs = options.nrhs;
    let space = FieldSpace::new(domain, FieldShape::new(kind, precision, nrhs));
    let [x, mut y, z, mut w, mut v, mut u] = random_fields::<6>(domain, FieldShape::new(kind, precision, nrhs))?;
    let sites = domain.global().half_volume() as f64 * nrhs as f64;
    // With these coefficients, the fields neither grow nor shrink over thousands of calls.
    let (a, b) = (vec![Complex64::new(0.5, 0.0); nrhs], vec![Complex64::new(0.5, 0.0); nrhs]);
    let (half, minus, ones) = (vec![0.5; nrhs], vec![-0.5; nrhs], vec![1.0; nrhs]);
    let (mut norms, mut dots) = (vec![0.0; nrhs], vec![Complex64::ZERO; nrhs]);
    // `operation` describes an operation: `bytes` is the number of bytes read and written for each site, and `flops` counts operations for
    // each real component.
    let operation = |name: &str, bytes: usize, flops: f64| Operation {
        name: name.into(),
        precision,
        storage: None,
        flops: flops * (6 * kind.spins()) as f64 * sites,
        bytes: sites * bytes as f64,
    };
    let one = kind.site_bytes(precision);
    // A solver waits for each of its sums; `norm2_kernel` shows the kernel without the wait.
    visit(operation("norm2_kernel", one, 2.0), &mut || space.start_norm2(&x))?;
    domain.sums(&mut norms)?;
    visit(operation("norm2", one, 2.0), &mut || space.norm2(&x, &mut norms))?;
    visit(operation("dot_norm2", 2 * one, 6.0), &mut || space.dot_norm2(&x, &z, &mut dots, &mut norms))?;
    visit(operation("axpy", 3 * one, 4.0), &mut || space.axpby(&a, &x, &b, &mut y))?;
    visit(operation("axpy_norm2", 3 * one, 6.0), &mut || {
        space.axpy_norm2(&vec![Complex64::ZERO; nrhs], &x, &mut y, &mut norms)
    })?;
    visit(operation("cg_update", 5 * one, 4.0), &mut || space.cg_update(&minus, &half, &x, &mut v, &mut y))?;
    // BiCGstab is not used for staggered quarks: their matrix M†M is Hermitian and positive.
    if !space.shape().is_colours() {
        visit(operation("bicgstab_step", 8 * one, 20.0), &mut || {
            let none = vec![Complex64::ZERO; nrhs];
            space.bicgstab_step(&none, &none, &none, &x, &z, &mut w, &mut v, &mut y)
        })?;
    }
    if extent != Extent::All {
        return Ok(());
    }
    // The same updates with coefficients that stay on the device.
    let (places @ [dot, dots], next) = ([0, 1], 2);
    space.keep_products(&x, &z, places)?;
    let rho = KeptRho { given: &ones, place: None };
    space.cg_residual_kept(&x, &mut v, rho, dot, true, next)?;
    visit(operation("cg_update_kept", 5 * one, 4.0), &mut || space.cg_update_kept(&x, &mut v, &mut y, rho, next))?;
    if !space.shape().is_colours() {
        let complex = vec![Complex64::ONE; nrhs];
        let rho = KeptRho { given: &complex, place: None };
        visit(operation("bicgstab_half_kept", 3 * one, 4.0), &mut || space.bicgstab_half_kept(&x, &mut v, rho, dot))?;
        visit(operation("bicgstab_step_kept", 8 * one, 20.0), &mut || {
            space.bicgstab_step_kept(&x, &z, &mut w, &mut v, &mut y, rho, [dot, dots])
        })?;
    }
    // Multi-shift CG updates four, two or one of its systems at a time. If a system was dropped for some right-hand side, each
    // right-hand side is updated separately.
    let [mut p, mut q, mut s, mut t] = random_fields::<4>(domain, FieldShape::new(kind, precision, nrhs))?;
    let (mut fewer, mut dropped) = (minus.clone(), ones.clone());
    (fewer[0], dropped[0]) = (0.0, 0.0);
    for (a, z, systems) in
        [(&minus, &ones, 2), (&minus, &ones, 4), (&fewer, &dropped, 1), (&fewer, &dropped, 2), (&fewer, &dropped, 4)]
    {
        visit(operation("shift_update", (1 + 4 * systems) * one, 8.0 * systems as f64), &mut || {
            let pairs = [(&mut w, &mut p), (&mut v, &mut q), (&mut y, &mut s), (&mut u, &mut t)];
            let mut steps = pairs.map(|(x, p)| ShiftStep { a, z, b: &half, x, p });
            space.shift_update(&x, &mut steps[..systems])
        })?;
    }
    // Block solvers use these sums and updates. The matrix averages the vectors, whose size therefore does not change.
    let (mean, mut products) =
        (vec![Complex64::new(1.0 / nrhs as f64, 0.0); nrhs * nrhs], vec![Complex64::ZERO; nrhs * nrhs]);
    let flops = 4.0 * nrhs as f64;
    visit(operation("gram", 2 * one, flops), &mut || space.gram(&x, &z, &mut products))?;
    visit(operation("block_scale", 2 * one, flops), &mut || space.block_scale(&mean, &x, &mut y))?;
    // True residuals of the solvers are in double or single precision.
    let mut others: Vec<_> = precisions_of(kind, options).collect();
    if !others.contains(&Precision::Double) {
        others.push(Precision::Double);
    }
    others.into_iter().try_for_each(|other| conversions(domain, other, &x, &mut y, visit))
}

/// Visits the change to another precision, the change back, and the addition to a field of the other precision.
fn conversions(domain: &Domain, to: Precision, x: &DeviceField, y: &mut DeviceField, visit: Visit) -> Result {
    let (kind, from, nrhs) = (x.kind(), x.precision(), x.nrhs());
    let (space, other) = (
        FieldSpace::new(domain, FieldShape::new(kind, from, nrhs)),
        FieldSpace::new(domain, FieldShape::new(kind, to, nrhs)),
    );
    let mut z = other.allocate()?;
    let scale = vec![0.5; nrhs];
    let sites = (domain.global().half_volume() * nrhs) as f64;
    let operation = |name: &str, precision: Precision, flops: f64, bytes: usize| Operation {
        name: name.into(),
        precision,
        storage: None,
        flops: flops * (6 * kind.spins()) as f64 * sites,
        bytes: sites * bytes as f64,
    };
    let (one, other_one) = (kind.site_bytes(from), kind.site_bytes(to));
    let pair = one + other_one;
    visit(operation("convert", to, 1.0, pair), &mut || other.convert(&scale, x, &mut z))?;
    visit(operation("convert", from, 1.0, pair), &mut || space.convert(&scale, &z, y))?;
    visit(operation("accumulate", to, 2.0, pair + other_one), &mut || other.accumulate(&scale, x, &mut z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::operators::OPERATORS;
    use crate::solve::names::RECONSTRUCTIONS;

    /// Counts the bytes of an operation from its name, on each site, for several right-hand sides; `None` for names that are not counted
    /// here.
    fn counted(name: &str, precision: Precision, storage: LinkStorage, nrhs: usize) -> Option<usize> {
        // 16-bit fixed point has a factor of four bytes for each field and site.
        let (real, factor) = match precision {
            Precision::Double => (8, 0),
            Precision::Single => (4, 0),
            Precision::Half => (2, 4),
            Precision::Fp16 => (2, 0),
        };
        let (operator, call) = name.rsplit_once('_')?;
        let link_real = if storage.half { 2 } else { real };
        // In temporal gauge, links in t are 1.
        let directions = if storage.temporal { 6 } else { 8 };
        // Three numbers of 21 bits take eight bytes.
        let fine = 8 * 18 * 8 / 3;
        let links = directions * usize::from(storage.reals) * link_real;
        let (links, field) = match operator {
            "asqtad" | "hisq" => (links + if storage.fine { fine } else { 8 * 18 * link_real }, 6 * real + factor),
            "staggered" => (links, 6 * real + factor),
            _ => (links, 24 * real + factor),
        };
        // Two Hermitian 6×6 blocks; the inverse of a twisted clover term is applied as two such terms.
        let blocks = match operator {
            "clover" | "exp-clover" => 1,
            "twisted-clover" | "twisted-exp-clover" => 2,
            _ => 0,
        };
        let term = blocks * (72 * real + factor);
        match call {
            "dslash" => Some(links + term + nrhs * 2 * field),
            "matrix" => Some(2 * (links + term) + nrhs * 5 * field),
            _ => None,
        }
    }

    #[test]
    fn bytes_are_those_of_a_count() {
        for nrhs in [1, 3] {
            let lattice = Lattice::new([2, 4, 2, 4]).unwrap();
            let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
            let (precisions, reconstructions) =
                (Precision::ALL.to_vec(), RECONSTRUCTIONS.map(|(_, storage)| storage).to_vec());
            let options = Options { lattice, precisions, reconstructions, nrhs };
            for definition in OPERATORS {
                let (mut rows, mut matrices) = (0, 0);
                operator(&domain, definition, &options, Extent::Shown, &mut |operation, _| {
                    let Operation { name, precision, storage, bytes, .. } = operation;
                    if let Some(count) = counted(&name, precision, storage.expect("the operation reads links"), nrhs) {
                        let expected = (count * lattice.half_volume()) as f64;
                        assert_eq!(bytes, expected, "{name} {precision:?} {storage:?}, {nrhs} right-hand sides");
                        rows += 1;
                        matrices += usize::from(name.ends_with("matrix"));
                    }
                    Ok(())
                })
                .unwrap();
                let has_matrix = definition.name != "wilson";
                assert!(rows > 3 && (matrices > 0) == has_matrix, "{}: {rows} rows", definition.name);
            }
        }
    }
}
