//! Solves and products with Wilson's operator, without and with a clover term.
use crate::enums::*;
use crate::links::{check_size, given, not_offered, set_to_other_than_0};
use crate::order::{Width, read_spinor, write_spinor};
use crate::setup::{State, say};
use crate::structs::QudaInvertParam;
use ferrite::field::host::HostSpinor;
use ferrite::lattice::Lattice;
use ferrite::operators::{Anisotropy, CloverParams, Operator, OperatorForm, TimeBoundary, WilsonParams};
use ferrite_records::solve::ObservedSolve;
use ferrite_tasks::dirac::LinkedDirac;
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::solver::SolverSettings;
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Operator with what it was made of, so that later calls use it again.
pub struct CachedOperator {
    kappa: f64,
    has_clover: bool,
    dirac: LinkedDirac,
}

/// Request of a call, made after a check of all fields that change the answer.
struct Wanted {
    kappa: f64,
    has_clover: bool,
    width: Width,
    /// Factor of M in the normalisation of κ.
    factor: f64,
    form: Form,
}

/// Operator of a system or a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Dagger,
    Normal,
}

impl Wanted {
    /// Checks the fields of a structure that change the answer, and collects what is wrong with them.
    fn of(param: &QudaInvertParam) -> Outcome<Self> {
        let mut wrong = Vec::new();
        let mut expect = |field: &str, of_type: &str, value: i32, offered: &[i32]| {
            if !offered.contains(&value) {
                let names = offered.iter().filter_map(|one| crate::define::name_of(of_type, *one));
                let names = names.collect::<Vec<_>>().join(" or ");
                wrong.push(not_offered(field, of_type, value, &format!("expected {names}")).message);
            }
        };
        expect("dslash_type", "QudaDslashType", param.dslash_type, &[QUDA_WILSON_DSLASH, QUDA_CLOVER_WILSON_DSLASH]);
        for (field, location) in [("input_location", param.input_location), ("output_location", param.output_location)]
        {
            expect(field, "QudaFieldLocation", location, &[QUDA_CPU_FIELD_LOCATION]);
        }
        expect("dirac_order", "QudaDiracFieldOrder", param.dirac_order, &[QUDA_DIRAC_ORDER]);
        expect("gamma_basis", "QudaGammaBasis", param.gamma_basis, &[QUDA_DEGRAND_ROSSI_GAMMA_BASIS]);
        expect(
            "solution_type",
            "QudaSolutionType",
            param.solution_type,
            &[QUDA_MAT_SOLUTION, QUDA_MATDAG_MAT_SOLUTION],
        );
        expect("dagger", "QudaDagType", param.dagger, &[QUDA_DAG_NO, QUDA_DAG_YES]);
        let normalisations = [QUDA_KAPPA_NORMALIZATION, QUDA_MASS_NORMALIZATION, QUDA_ASYMMETRIC_MASS_NORMALIZATION];
        expect("mass_normalization", "QudaMassNormalization", param.mass_normalization, &normalisations);
        let resident = [
            ("use_resident_solution", param.use_resident_solution),
            ("make_resident_solution", param.make_resident_solution),
        ];
        wrong.extend(resident.into_iter().filter_map(|(field, value)| set_to_other_than_0(field, value)));
        if !(param.kappa.is_finite() && param.kappa != 0.0) {
            wrong.push(format!("kappa = {}: expected a number other than 0", param.kappa));
        }
        if param.solution_type == QUDA_MATDAG_MAT_SOLUTION && param.dagger == QUDA_DAG_YES {
            wrong.push("dagger = QUDA_DAG_YES is not offered for M†M: expected QUDA_DAG_NO".into());
        }
        if !wrong.is_empty() {
            return Err(Failure::refused(wrong.join("; ")));
        }
        let form = match (param.solution_type, param.dagger) {
            (QUDA_MATDAG_MAT_SOLUTION, _) => Form::Normal,
            (_, QUDA_DAG_YES) => Form::Dagger,
            _ => Form::Plain,
        };
        let factor = if param.mass_normalization == QUDA_KAPPA_NORMALIZATION { 2.0 * param.kappa } else { 1.0 };
        Ok(Wanted {
            kappa: param.kappa,
            has_clover: param.dslash_type == QUDA_CLOVER_WILSON_DSLASH,
            width: Width::of("cpu_prec", param.cpu_prec)?,
            factor,
            form,
        })
    }
}

/// Makes the operator on the resident links, unless it is there.
fn operator<'a>(state: &'a mut State, wanted: &Wanted) -> Outcome<&'a LinkedDirac> {
    let is_known = |known: &CachedOperator| known.kappa == wanted.kappa && known.has_clover == wanted.has_clover;
    if !state.operator.as_ref().is_some_and(is_known) {
        let device = state.device.as_ref().ok_or_else(|| Failure::refused("no device is open: call initQuda first"))?;
        let links =
            state.links.as_ref().ok_or_else(|| Failure::refused("there are no links: call loadGaugeQuda first"))?;
        if (links.scale - 1.0).abs() > 1e-5 {
            return Err(Failure::refused(format!(
                "the links in space have the norm {}, but the anisotropy {} makes it {}: load the links with their factor",
                links.scale / links.anisotropy,
                links.anisotropy,
                1.0 / links.anisotropy
            )));
        }
        let boundary = if links.is_antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic };
        // M = 1/(2κ) − hops, whose diagonal is 1 + 3/ξ + m.
        let mass = 0.5 / wanted.kappa - 1.0 - 3.0 / links.anisotropy;
        let wilson = WilsonParams { mass, boundary, anisotropy: Anisotropy { xi: links.anisotropy, nu: 1.0 } };
        let operator: Operator = match wanted.has_clover {
            false => wilson.into(),
            true => {
                let clover = state
                    .clover
                    .as_ref()
                    .ok_or_else(|| Failure::refused("there is no clover term: call loadCloverQuda first"))?;
                let pairs = clover.gauge.numbers().iter().zip(links.gauge.numbers());
                if clover.gauge.lattice() != links.gauge.lattice()
                    || pairs.into_iter().any(|(a, b)| (a - b).norm() > 1e-5)
                {
                    return Err(Failure::refused(
                        "the clover term was made from other links than those that are loaded: load the clover term again",
                    ));
                }
                // The coefficients are those of 1 − κ D, which is 2κ M.
                let [space, time] = clover.coefficients.map(|coefficient| coefficient / wanted.kappa);
                CloverParams { wilson, space, time }.into()
            }
        };
        let part = device.place().section(links.gauge.lattice())?;
        let dirac = LinkedDirac::new(device, operator, part, links.gauge.clone())?;
        state.operator = Some(CachedOperator { kappa: wanted.kappa, has_clover: wanted.has_clover, dirac });
    }
    state.operator.as_ref().map(|known| &known.dirac).ok_or_else(|| Failure::failed("there is no operator"))
}

/// Multiplies fields by γ5 = diag(1, 1, −1, −1) or its negative, which cancels between two products.
fn gamma5(fields: &mut [HostSpinor]) {
    for field in fields {
        for numbers in field.numbers_mut().chunks_mut(12) {
            numbers[6..].iter_mut().for_each(|number| *number = -*number);
        }
    }
}

fn scale(fields: &mut [HostSpinor], factor: f64) {
    if factor != 1.0 {
        fields.iter_mut().flat_map(HostSpinor::numbers_mut).for_each(|number| *number *= factor);
    }
}

fn spinors(fields: HostFields) -> Outcome<Vec<HostSpinor>> {
    match fields {
        HostFields::Wilson(fields) => Ok(fields),
        HostFields::Staggered(_) => Err(Failure::failed("the fields have no spin")),
    }
}

/// Returns the lattice of the resident links.
fn lattice(state: &State) -> Outcome<Lattice> {
    let links = state.links.as_ref().ok_or_else(|| Failure::refused("there are no links: call loadGaugeQuda first"))?;
    Ok(links.gauge.lattice())
}

/// Reads fields of an application.
unsafe fn read(lattice: Lattice, arrays: &[*mut c_void], width: Width) -> Outcome<Vec<HostSpinor>> {
    let read = |array: &*mut c_void| match array.is_null() {
        true => Err(Failure::refused("a field is a null pointer")),
        // SAFETY: the promise of the caller's caller.
        false => Ok(unsafe { read_spinor(lattice, *array, width) }),
    };
    arrays.iter().map(read).collect()
}

/// Solves for one right-hand side.
///
/// # Safety
/// `x` and `b` are fields on the lattice of the resident links, as `param` describes them.
pub unsafe fn invert(x: *mut c_void, b: *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { solve(&[x], &[b], given(param, "param")?) }
}

/// Solves for `num_src` right-hand sides.
///
/// # Safety
/// `x` and `b` are arrays of `num_src` fields on the lattice of the resident links, as `param` describes them.
pub unsafe fn invert_several(x: *mut *mut c_void, b: *mut *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    let count =
        usize::try_from(param.num_src).ok().filter(|count| (1..=crate::structs::QUDA_MAX_MULTI_SRC).contains(count));
    let count = count.ok_or_else(|| Failure::refused(format!("num_src = {}: expected 1 to 128", param.num_src)))?;
    if x.is_null() || b.is_null() {
        return Err(Failure::refused("_hp_x or _hp_b is a null pointer"));
    }
    // SAFETY: the caller's promise.
    let (x, b) = unsafe { (std::slice::from_raw_parts(x, count), std::slice::from_raw_parts(b, count)) };
    // SAFETY: as above.
    unsafe { solve(x, b, param) }
}

/// Largest number of corrections of solves with M†M.
const MOST_CORRECTIONS: usize = 5;

/// Sums over the solves of a call.
#[derive(Default)]
struct SolveOutcome {
    iterations: usize,
    seconds: f64,
    /// Floating-point operations in units of 10⁹, as applications divide them by the seconds.
    operations: f64,
    residuals: Vec<f64>,
    failure: Option<String>,
}

impl SolveOutcome {
    /// Adds a solve.
    fn add(&mut self, observed: &ObservedSolve) {
        let outcome = &observed.outcome;
        self.iterations += outcome.iterations;
        self.seconds += outcome.seconds;
        self.operations += outcome.gflops * outcome.seconds;
        self.residuals.clone_from(&outcome.true_residuals);
        self.failure = self.failure.take().or_else(|| observed.failure.clone());
    }
    /// Stores the outcome in the fields of the application's structure, and warns if a residual is too large.
    fn store(&self, param: &mut QudaInvertParam) {
        param.iter = self.iterations as i32;
        param.secs = self.seconds;
        param.gflops = self.operations;
        param.true_res.iter_mut().zip(&self.residuals).for_each(|(to, residual)| *to = *residual);
        let worst = self.residuals.iter().copied().fold(0.0, f64::max);
        if worst > param.tol || worst.is_nan() {
            let why = self.failure.as_deref().unwrap_or_default();
            say(QUDA_SUMMARIZE, &format!("WARNING: the solve did not converge: the residual is {worst:.3e}; {why}"));
        }
    }
}

/// Function that solves with M, from initial guesses if there are some.
type Solver<'a> = dyn FnMut(&[HostSpinor], Option<&HostFields>) -> Outcome<Vec<HostSpinor>> + 'a;

/// Solves with M† = γ5 M γ5.
fn solved_with_dagger(solved: &mut Solver<'_>, sources: &[HostSpinor]) -> Outcome<Vec<HostSpinor>> {
    let mut fields = sources.to_vec();
    gamma5(&mut fields);
    let mut solutions = solved(&fields, None)?;
    gamma5(&mut solutions);
    Ok(solutions)
}

/// Returns the norm of a field.
fn norm(field: &HostSpinor) -> f64 {
    field.numbers().iter().map(|number| number.norm_sqr()).sum::<f64>().sqrt()
}

/// Adds a multiple of fields to others.
fn add(to: &mut [HostSpinor], factor: f64, fields: &[HostSpinor]) {
    for (to, field) in to.iter_mut().zip(fields) {
        to.numbers_mut().iter_mut().zip(field.numbers()).for_each(|(to, number)| *to += factor * number);
    }
}

/// Solves for all right-hand sides together.
unsafe fn solve(x: &[*mut c_void], b: &[*mut c_void], param: &mut QudaInvertParam) -> Outcome {
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    let wanted = Wanted::of(param)?;
    if param.residual_type & QUDA_HEAVY_QUARK_RESIDUAL != 0 && param.residual_type != i32::MIN {
        let offered = "expected QUDA_L2_RELATIVE_RESIDUAL";
        return Err(not_offered("residual_type", "QudaResidualType", param.residual_type, offered));
    }
    let settings = SolverSettings {
        tol: Some(param.tol),
        max_iterations: usize::try_from(param.maxiter).ok(),
        ..SolverSettings::default()
    };
    State::with(|state| {
        let lattice = lattice(state)?;
        // SAFETY: the promise of the caller's caller.
        let mut sources = unsafe { read(lattice, b, wanted.width) }?;
        let guess = match param.use_init_guess {
            QUDA_USE_INIT_GUESS_YES if wanted.form == Form::Plain => {
                // SAFETY: as above.
                Some(unsafe { read(lattice, x, wanted.width) }?.into())
            }
            _ => None,
        };
        scale(&mut sources, if wanted.form == Form::Normal { wanted.factor.powi(-2) } else { 1.0 / wanted.factor });
        operator(state, &wanted)?;
        let (Some(device), Some(CachedOperator { dirac, .. })) = (&state.device, &state.operator) else {
            return Err(Failure::failed("there is no operator"));
        };
        let (tol, mut outcome) = (param.tol, SolveOutcome::default());
        let mut solved = |sources: &[HostSpinor], guess: Option<&HostFields>| -> Outcome<Vec<HostSpinor>> {
            let (solutions, observed) = dirac.solve(device, &sources.to_vec().into(), guess, &settings, &mut ())?;
            outcome.add(&observed);
            spinors(solutions)
        };
        let solutions = match wanted.form {
            Form::Plain => solved(&sources, guess.as_ref())?,
            Form::Dagger => solved_with_dagger(&mut solved, &sources)?,
            Form::Normal => {
                // Each pair of solves lowers the residual; the last one decides.
                let norms: Vec<f64> = sources.iter().map(norm).collect();
                let mut rest = sources.clone();
                let mut solutions: Vec<HostSpinor> = sources.iter().map(|b| HostSpinor::zero(b.lattice())).collect();
                let mut residuals = vec![f64::INFINITY; sources.len()];
                for _ in 0..MOST_CORRECTIONS {
                    let correction = solved_with_dagger(&mut solved, &rest)?;
                    let correction = solved(&correction, None)?;
                    add(&mut solutions, 1.0, &correction);
                    let go_on = &mut || std::ops::ControlFlow::Continue(());
                    let images = spinors(dirac.apply(OperatorForm::Normal, &solutions.clone().into(), go_on)?)?;
                    rest = sources.clone();
                    add(&mut rest, -1.0, &images);
                    residuals = rest.iter().map(norm).zip(&norms).map(|(rest, norm)| rest / norm.max(1e-300)).collect();
                    if residuals.iter().all(|residual| *residual <= tol) {
                        break;
                    }
                }
                outcome.residuals = residuals;
                solutions
            }
        };
        outcome.store(param);
        for (field, array) in solutions.iter().zip(x) {
            if array.is_null() {
                return Err(Failure::refused("a solution is a null pointer"));
            }
            // SAFETY: as above.
            unsafe { write_spinor(field, *array, wanted.width) };
        }
        Ok(())
    })
}

/// Computes M ψ, or M† ψ if `dagger` says so.
///
/// # Safety
/// `h_out` and `h_in` are fields on the lattice of the resident links, as `inv_param` describes them.
pub unsafe fn apply(h_out: *mut c_void, h_in: *mut c_void, inv_param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        let param = *given(inv_param, "inv_param")?;
        product(h_out, h_in, &QudaInvertParam { solution_type: QUDA_MAT_SOLUTION, ..param })
    }
}

/// Computes M†M ψ.
///
/// # Safety
/// As for [`apply`].
pub unsafe fn apply_normal(h_out: *mut c_void, h_in: *mut c_void, inv_param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        let param = *given(inv_param, "inv_param")?;
        product(h_out, h_in, &QudaInvertParam { solution_type: QUDA_MATDAG_MAT_SOLUTION, ..param })
    }
}

unsafe fn product(h_out: *mut c_void, h_in: *mut c_void, param: &QudaInvertParam) -> Outcome {
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    let wanted = Wanted::of(param)?;
    if h_out.is_null() {
        return Err(Failure::refused("h_out: the pointer is null"));
    }
    State::with(|state| {
        // SAFETY: the promise of the caller's caller.
        let fields = unsafe { read(lattice(state)?, &[h_in], wanted.width) }?;
        let dirac = operator(state, &wanted)?;
        let form = match wanted.form {
            Form::Plain => OperatorForm::Plain,
            Form::Dagger => OperatorForm::Dagger,
            Form::Normal => OperatorForm::Normal,
        };
        let go_on = &mut || std::ops::ControlFlow::Continue(());
        let mut images = spinors(dirac.apply(form, &fields.into(), go_on)?)?;
        scale(&mut images, if wanted.form == Form::Normal { wanted.factor.powi(2) } else { wanted.factor });
        for image in &images {
            // SAFETY: as above.
            unsafe { write_spinor(image, h_out, wanted.width) };
        }
        Ok(())
    })
}
