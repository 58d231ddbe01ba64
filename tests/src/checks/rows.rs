//! Iterations whose sums stay on the device, against iterations for which the host waits and computes the coefficients.
use super::{Case, NRHS};
use crate::report::{CheckReport, Scope};
use ferrite::backend::Backend;
use ferrite::domain::{DeviceError, Result};
use ferrite::field::{DeviceField, FieldShape, FieldSpace, GaugeField};
use ferrite::operators::{
    CloverParams, EvenOddStaggered, EvenOddWilson, Operator, Schur, Staggered, StaggeredLinks, StaggeredParams,
    TimeBoundary, Wilson, WilsonLike, WilsonParams,
};
use ferrite::{FermionKind, LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{
    BicgstabWorkspace, CgNormalWorkspace, CgWorkspace, Dots, Info, LinearOperator, MultiShiftParams,
    MultiShiftWorkspace, Normal, SolveError, SolverParams, Uniform, VectorSpace, bicgstab, cg, cgne, cgnr,
    multishift_cg,
};
use std::cell::Cell;
use std::sync::Arc;

/// Right-hand sides of a batch that takes two launches of linear algebra.
const TWO_LAUNCHES: usize = 17;

/// An operator that leaves sums on the device or not, and counts how often it was asked to.
struct Observed<'a> {
    operator: &'a dyn LinearOperator<FieldSpace>,
    /// Whether it leaves three sums there, and eight.
    keeps: [bool; 2],
    kept: Cell<usize>,
}

impl LinearOperator<FieldSpace> for Observed<'_> {
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> Result {
        self.operator.apply(x, out)
    }
    fn apply_dagger(&self, x: &DeviceField, out: &mut DeviceField) -> Result {
        self.operator.apply_dagger(x, out)
    }
    fn apply_dot(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result {
        self.operator.apply_dot(space, x, out, w, dot, norm2)
    }
    fn apply_dots(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        dots: &mut [Dots],
    ) -> Result {
        self.operator.apply_dots(space, x, out, w, dots)
    }
    fn apply_dot_kept(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        place: usize,
    ) -> Result<bool> {
        self.kept.set(self.kept.get() + 1);
        Ok(self.keeps[0] && self.operator.apply_dot_kept(space, x, out, w, place)?)
    }
    fn apply_dots_kept(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        place: usize,
    ) -> Result<bool> {
        self.kept.set(self.kept.get() + 1);
        Ok(self.keeps[1] && self.operator.apply_dots_kept(space, x, out, w, place)?)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.operator.narrow(nrhs)
    }
    fn flops(&self) -> f64 {
        self.operator.flops()
    }
}

type Solved<T> = std::result::Result<T, SolveError<DeviceError>>;
type Solve = fn(&FieldSpace, &Observed<'_>, &DeviceField, &mut DeviceField, &SolverParams) -> Solved<Info>;

/// Name, fermion type and operator of quarks, and the methods that solve for them.
type Quarks<'a> = (&'a str, FermionKind, &'a dyn LinearOperator<FieldSpace>, &'a [(&'a str, Solve)]);

/// Returns the solve of a system in one precision by a method.
macro_rules! by {
    ($method:ident, $workspace:ident) => {
        |space, operator, b, x, params| {
            let system = Uniform::new(space, operator);
            $method(&system, b, x, params, &mut $workspace::new(&system)?, &mut ())
        }
    };
}
const BICGSTAB: (&str, Solve) = ("bicgstab", by!(bicgstab, BicgstabWorkspace));
const CG: (&str, Solve) = ("cg", by!(cg, CgWorkspace));
const CGNR: (&str, Solve) = ("cgnr", by!(cgnr, CgNormalWorkspace));
const CGNE: (&str, Solve) = ("cgne", by!(cgne, CgNormalWorkspace));

const NORMAL_CG: (&str, Solve) = ("cg on M†M", |space, operator, b, x, params| {
    let normal = Normal::new(space, operator)?;
    let system = Uniform::new(space, &normal);
    cg(&system, b, x, params, &mut CgWorkspace::new(&system)?, &mut ())
});
/// Multi-shift CG, whose steps are not in rows, with the solution for a shift that is not the smallest.
const SHIFTS: (&str, Solve) = ("multi-shift cg", |space, operator, b, x, params| {
    let normal = Normal::new(space, operator)?;
    let (shifts, params) = ([0.7, 0.05, 0.2, 1.4, 5.0, 0.1], MultiShiftParams::from(*params));
    let mut all = shifts.iter().map(|_| space.allocate()).collect::<Result<Vec<_>>>()?;
    let mut workspace = MultiShiftWorkspace::new(space, shifts.len())?;
    let info = multishift_cg(space, &normal, &shifts, b, &mut all, &params, &mut workspace, &mut ())?;
    space.copy(&all[2], x)?;
    Ok(info.whole)
});

/// Compares solves in rows of iterations with solves one iteration at a time, for every method that has rows.
pub fn rows(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Solved<()> {
    let domain = case.domain(backend)?;
    let links = GaugeField::upload(&domain, &case.gauge)?;
    for nrhs in [1, NRHS, TWO_LAUNCHES] {
        let params = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        let packed = Arc::new(links.pack(Precision::Double, LinkStorage::FULL)?);
        let wilson = EvenOddWilson::new(Wilson::new(Arc::clone(&packed), params), nrhs)?;
        let like = Operator::from(CloverParams::isotropic(params, 1.0, 1.0));
        let like = like.parameters::<WilsonLike>().expect("clover is like Wilson");
        let term = like.diagonal(&links)?;
        let clover =
            EvenOddWilson::with_diagonal(Wilson::new(Arc::clone(&packed), params), term, Schur::Symmetric, nrhs)?;
        let staggered = StaggeredLinks::naive(Arc::clone(&packed));
        let staggered = Staggered::new(Arc::new(staggered), StaggeredParams::new(0.2, TimeBoundary::Antiperiodic));
        let staggered = EvenOddStaggered::new(staggered, nrhs)?;
        let cases: [Quarks<'_>; 3] = [
            ("wilson", FermionKind::Wilson, &wilson, &[BICGSTAB, CGNR, CGNE, NORMAL_CG, SHIFTS]),
            ("clover", FermionKind::Wilson, &clover, &[BICGSTAB, CGNR, NORMAL_CG, SHIFTS]),
            ("staggered", FermionKind::Staggered, &staggered, &[CG]),
        ];
        for (name, kind, operator, methods) in cases {
            let space = FieldSpace::new(&domain, FieldShape::new(kind, Precision::Double, nrhs));
            let b = sources(case, &space)?;
            for (method, solve) in methods {
                let scope = case.scope(&format!("{name} {method}"), &format!("{nrhs} right-hand sides"));
                compare(&scope, &space, operator, &b, *solve, report)?;
            }
        }
    }
    Ok(())
}

/// Returns different sources, of which the last of several is zero.
fn sources(case: &Case, space: &FieldSpace) -> Result<DeviceField> {
    let shape = space.shape();
    let mut field = ferrite::field::FullField::zero(space.domain(), shape)?;
    let zero = |j: usize| j > 0 && j + 1 == shape.nrhs;
    match shape.kind {
        FermionKind::Wilson => {
            let mut host: Vec<_> = (0..shape.nrhs).map(|j| case.sources[j % case.sources.len()].clone()).collect();
            host.iter_mut()
                .enumerate()
                .filter(|(j, _)| zero(*j))
                .for_each(|(_, x)| x.numbers_mut().fill(Complex64::ZERO));
            field.upload(&host)?;
        }
        FermionKind::Staggered => {
            let mut host: Vec<_> = (0..shape.nrhs).map(|j| case.colours[j % case.colours.len()].clone()).collect();
            host.iter_mut()
                .enumerate()
                .filter(|(j, _)| zero(*j))
                .for_each(|(_, x)| x.numbers_mut().fill(Complex64::ZERO));
            field.upload(&host)?;
        }
    }
    Ok(field.even)
}

fn compare(
    scope: &Scope,
    space: &FieldSpace,
    operator: &dyn LinearOperator<FieldSpace>,
    b: &DeviceField,
    solve: Solve,
    report: &mut CheckReport,
) -> Solved<()> {
    let params = SolverParams { tol: 1e-11, ..SolverParams::default() };
    let run = |keeps: [bool; 2]| {
        let operator = Observed { operator, keeps, kept: Cell::new(0) };
        let mut x = space.allocate()?;
        let info = solve(space, &operator, b, &mut x, &params)?;
        Ok::<_, SolveError<DeviceError>>((info, x, operator.kept.get()))
    };
    let ((row, x, in_rows), (one, y, _)) = (run([true; 2])?, run([false; 2])?);
    report.holds(scope, "rows: most iterations are in rows", 2 * in_rows > row.iterations);
    report.holds(scope, "rows: converged", row.converged && one.converged);
    // A row may end up to half its length after an iteration that would have been the last.
    report.holds(scope, "rows: as many iterations", row.iterations.abs_diff(one.iterations) <= 4);
    // All compute the same sums in the same order; coefficients differ by roundings, which grow from iteration to iteration.
    let apart = |info: &Info| {
        let pairs = info.history.iter().zip(&one.history).flat_map(|(row, one)| row.iter().zip(one).take(12));
        pairs.map(|(row, one)| (row - one).abs() / one.max(1e-300)).fold(0.0, f64::max)
    };
    report.error(scope, "rows: the first residuals", apart(&row), 1e-8);
    let (half, ..) = run([true, false])?;
    report.error(scope, "rows: the first residuals, three sums kept", apart(&half), 1e-8);
    report.holds(scope, "rows: converged, three sums kept", half.converged);
    // ‖A⁻¹‖‖b‖/‖x‖ is a few hundred at most.
    let (mut difference, mut norm) = (space.allocate()?, vec![0.0; space.nrhs()]);
    space.copy(&x, &mut difference)?;
    let mut apart = vec![0.0; space.nrhs()];
    space.norm2(&y, &mut norm)?;
    space.axpy_norm2(&vec![-Complex64::ONE; space.nrhs()], &y, &mut difference, &mut apart)?;
    for (apart, norm) in apart.iter().zip(&norm) {
        report.error(scope, "rows: the same solution", (apart / norm.max(1e-300)).sqrt(), 500.0 * params.tol);
    }
    Ok(())
}
