//! Dirac operators on links: products, solves, and multigrid setups.
use crate::array::{Checked, fe_array};
use crate::call::{given, leave_record, make, nothing_in, options, path, refused, store};
use crate::device::{OnDevice, OpenDevice, free, with};
use crate::gauge::{fe_gauge, go_on};
use ferrite::lattice::Section;
use ferrite::multigrid::Multigrid;
use ferrite::operators::OperatorForm;
use ferrite_records::object;
use ferrite_records::solve::{ObservedSolve, SolveOutcome};
use ferrite_tasks::dirac::{LinkedDirac, SystemSeries};
use ferrite_tasks::failure::FailureKind;
use ferrite_tasks::host_fields::{HostFields, site_shape};
use ferrite_tasks::{Failure, Outcome};
use serde_json::json;
use std::ffi::c_char;
use std::rc::Rc;

/// Form M of an operator.
pub const FE_PLAIN: i32 = 0;
/// Form M† of an operator.
pub const FE_DAGGER: i32 = 1;
/// Form M†M of an operator.
pub const FE_NORMAL: i32 = 2;

/// Dirac operator on links. It keeps the links in every format that a product or a solve has used, and its multigrid setup.
pub struct fe_operator {
    pub(crate) own: Rc<LinkedOperator>,
}

/// Operator with its device, which a multigrid setup shares.
pub(crate) struct LinkedOperator {
    pub(crate) device: Rc<OpenDevice>,
    pub(crate) dirac: LinkedDirac,
    pub(crate) part: Section,
}

impl OnDevice for fe_operator {
    fn device(&self) -> &Rc<OpenDevice> {
        &self.own.device
    }
}

/// Outcome of a solve.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct fe_solution {
    /// 1 if every true residual is at or below the requested tolerance, otherwise 0.
    pub converged: i32,
    /// Set to 0.
    pub reserved: i32,
    /// Iterations of the slowest right-hand side.
    pub iterations: i64,
    /// Largest ‖b − M x‖ / ‖b‖, computed in double precision from the solutions.
    pub true_residual: f64,
    /// Seconds of the iterations.
    pub seconds: f64,
    /// Seconds of the call on the device, including transfers and the final check.
    pub total_seconds: f64,
    /// 10⁹ floating-point operations of M per second of the iterations.
    pub gflops: f64,
}

/// *Collective.* Makes an operator on links, and stores it in `*out`.
///
/// `options` is a JSON object with `operator` (`"wilson"`, `"clover"`, `"exp-clover"`, `"twisted"`, `"twisted-clover"`, `"staggered"`,
/// `"asqtad"`, `"hisq"`, …) and its parameters: `mass` or `kappa`, `csw`, `mu`, `bc_time`, … as listed by `ferrite solve --help`.
///
/// # Safety
/// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_operator_new(
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_operator,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let named = options(options_json)?.operator()?;
            make(out, || {
                let (device, part, links) = (gauge.device().clone(), gauge.own.part, gauge.own.gauge.clone());
                let dirac = LinkedDirac::new(device.tasks(), named.operator, part, links)?;
                leave_record(named.parameters);
                Ok(fe_operator { own: Rc::new(LinkedOperator { device, dirac, part }) })
            })
        })
    }
}

/// Frees an operator with its multigrid setup.
///
/// # Safety
/// `op` is null or a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_operator_free(op: *mut fe_operator) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { free(op) }
}

impl LinkedOperator {
    /// Checks an array of fields of the operator. Its last axes are t, z, y, x and those of a site; axes in front count fields.
    unsafe fn array(&self, array: *const fe_array, what: &str) -> Outcome<Checked> {
        // SAFETY: the promise of the caller's caller.
        let array = unsafe { given(array, what) }?.check(what, &self.device)?;
        let sites = self.part.local.size().into_iter().rev();
        let field: Vec<usize> = sites.chain(site_shape(self.dirac.kind()).iter().copied()).collect();
        if !array.shape.ends_with(&field) {
            let why = format!(
                "an array of shape {:?} has no fields of this operator: the last axes have to be {field:?}",
                array.shape
            );
            return Err(refused(what, &why));
        }
        Ok(array)
    }
    /// Reads fields of the operator from an array.
    unsafe fn fields(&self, array: *const fe_array, what: &str) -> Outcome<(HostFields, Vec<usize>)> {
        // SAFETY: the promise of the caller's caller.
        let (array, numbers) = unsafe {
            let array = self.array(array, what)?;
            let numbers = array.read();
            (array, numbers)
        };
        let (fields, _) = HostFields::of_array(self.dirac.kind(), &array.shape, &numbers)?;
        Ok((fields, array.shape))
    }
    /// Returns an array for results of the shape `shape`.
    unsafe fn result(&self, array: *const fe_array, what: &str, shape: &[usize]) -> Outcome<Checked> {
        // SAFETY: the promise of the caller's caller.
        let array = unsafe { self.array(array, what) }?;
        array.expect_shape(what, shape)?;
        Ok(array)
    }
}

/// *Collective.* Computes M ψ, M† ψ or M†M ψ in double precision for all fields ψ of an array.
///
/// The axes of both arrays are those of the fields (any number of fields in front), then t, z, y, x, spin and colour; fields of staggered
/// operators have no spin. `form` is `FE_PLAIN`, `FE_DAGGER` or `FE_NORMAL`. The arrays may be the same.
///
/// # Safety
/// `op` is a handle that has not been freed; `input` describes memory that may be read, and `output` memory that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_apply(
    op: *const fe_operator,
    form: i32,
    input: *const fe_array,
    output: *const fe_array,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(op, "op", |fe_operator { own: op }| {
            let form = match form {
                FE_PLAIN => OperatorForm::Plain,
                FE_DAGGER => OperatorForm::Dagger,
                FE_NORMAL => OperatorForm::Normal,
                other => return Err(refused("form", &format!("{other} is not FE_PLAIN, FE_DAGGER or FE_NORMAL"))),
            };
            let (fields, shape) = op.fields(input, "input")?;
            let result = op.result(output, "output", &shape)?;
            result.write(&op.dirac.apply(form, &fields, &mut go_on)?.numbers());
            Ok(())
        })
    }
}

/// *Collective.* Solves M x = b for all fields b of an array, as many as are given.
///
/// Axes are those of `fe_apply`. `guess` has initial guesses, or is null. `options` is a JSON object, or null: `solver` (`"auto"`), `tol`
/// (1e-10), `precision` (chosen for the device), `reconstruct`, `max_iterations`, `batch`, and others that `ferrite solve --help` lists.
/// The record is that of `ferrite solve --json`. If a solver gives up, `x` has the best iterates, `*solution` and the record are there,
/// too, and the call returns `FE_SOLVER`.
///
/// # Safety
/// `op` is a handle that has not been freed; `b` and `guess` describe memory that may be read, and `x` memory that may be written;
/// `options` is null or a text with a final zero; `solution` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_solve(
    op: *const fe_operator,
    b: *const fe_array,
    guess: *const fe_array,
    x: *const fe_array,
    options_json: *const c_char,
    solution: *mut fe_solution,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(op, "op", |fe_operator { own: op }| {
            store(solution, fe_solution::default());
            let settings = options(options_json)?.solver()?;
            let (fields, shape) = op.fields(b, "b")?;
            let guess = if guess.is_null() { None } else { Some(op.fields(guess, "guess")?) };
            if guess.as_ref().is_some_and(|(_, of_guess)| *of_guess != shape) {
                return Err(refused("guess", "the shape differs from that of b"));
            }
            let result = op.result(x, "x", &shape)?;
            let guess = guess.as_ref().map(|(fields, _)| fields);
            let (solutions, observed) = op.dirac.solve(op.device.tasks(), &fields, guess, &settings, &mut ())?;
            result.write(&solutions.numbers());
            finish_solve(&observed, solution)
        })
    }
}

/// Stores the outcome of a solve and leaves its record. Fails if the solve did not converge.
///
/// # Safety
/// `solution` is null or valid for writes.
pub(crate) unsafe fn finish_solve(observed: &ObservedSolve, solution: *mut fe_solution) -> Outcome {
    let SolveOutcome { converged, iterations, true_residual, seconds, total_seconds, gflops, .. } = observed.outcome;
    let found = fe_solution {
        converged: converged.into(),
        reserved: 0,
        iterations: iterations as i64,
        true_residual,
        seconds,
        total_seconds,
        gflops,
    };
    // SAFETY: the caller's promise.
    unsafe { store(solution, found) };
    leave_record(object(observed));
    unsolved(converged, observed.failure.clone(), true_residual)
}

/// Fails if a solve did not converge, with the reason if there is one.
fn unsolved(converged: bool, failure: Option<String>, residual: f64) -> Outcome {
    match failure {
        None if converged => Ok(()),
        why => {
            let why = why.unwrap_or_else(|| format!("the solve did not converge: |b - Mx| / |b| = {residual:.3e}"));
            Err(Failure::failed(why).of_kind(FailureKind::Solver))
        }
    }
}

/// *Collective.* Solves several systems of a staggered operator that differ by a mass, or by a shift σ of M†M + σ, for all fields b of an
/// array.
///
/// `options` has `masses` or `shifts`, a list of numbers, beside the options of `fe_solve`. The axes of `x` are those of `b` with the
/// systems in front. The record has the outcome of each system, in the order of the list.
///
/// # Safety
/// As for `fe_solve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_solve_systems(
    op: *const fe_operator,
    b: *const fe_array,
    x: *const fe_array,
    options_json: *const c_char,
    solution: *mut fe_solution,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(op, "op", |fe_operator { own: op }| {
            store(solution, fe_solution::default());
            let mut given = options(options_json)?;
            let lists: [Option<Vec<f64>>; 2] = [given.take_or("masses", None)?, given.take_or("shifts", None)?];
            let (series, count) = match lists {
                [Some(masses), None] => (SystemSeries::Masses(masses.clone()), masses.len()),
                [None, Some(shifts)] => (SystemSeries::Shifts(shifts.clone()), shifts.len()),
                _ => return Err(Failure::refused("options: give either masses or shifts, a list of numbers")),
            };
            let settings = given.solver()?;
            let (fields, shape) = op.fields(b, "b")?;
            let result = op.result(x, "x", &[&[count], &shape[..]].concat())?;
            let (solutions, observed) =
                op.dirac.solve_series(op.device.tasks(), &fields, &series, &settings, &mut ())?;
            result.write(&solutions.numbers());
            let outcome = &observed.outcome;
            let most = |of: fn(&_) -> f64| outcome.systems.iter().map(of).fold(0.0, f64::max);
            store(
                solution,
                fe_solution {
                    converged: outcome.converged.into(),
                    reserved: 0,
                    iterations: outcome.systems.iter().map(|system| system.iterations).max().unwrap_or(0) as i64,
                    true_residual: most(|system| system.true_residual),
                    seconds: outcome.seconds,
                    total_seconds: outcome.total_seconds,
                    gflops: outcome.gflops,
                },
            );
            let failed = outcome.systems.iter().find_map(|system| system.failure.clone());
            leave_record(object(&observed));
            unsolved(outcome.converged, failed, most(|system| system.true_residual))
        })
    }
}

/// *Collective.* Computes the smallest and the largest eigenvalue of M̂†M̂, where M̂ is the even-odd preconditioned operator on the even
/// sites, or of M†M of a staggered operator. They are stored in `*smallest` and `*largest`.
///
/// `options` is a JSON object, or null: `tol` (1e-6: residual relative to the eigenvalue), `steps` (500), `max_iterations` (100,000: CG in
/// each step for the smallest eigenvalue) and `seed` (1). The record has bounds and numbers of steps.
///
/// # Safety
/// `op` is a handle that has not been freed; `options` is null or a text with a final zero; `smallest` and `largest` are null or valid for
/// writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_eigenvalues(
    op: *const fe_operator,
    options_json: *const c_char,
    smallest: *mut f64,
    largest: *mut f64,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(op, "op", |op| {
            let found = op.own.dirac.eigenvalues(&options(options_json)?.request()?, &mut ())?;
            store(smallest, found.0.value);
            store(largest, found.1.value);
            leave_record(json!({ "smallest": found.0, "largest": found.1 }));
            Ok(())
        })
    }
}

/// Multigrid setup of an operator.
pub struct fe_multigrid {
    op: Rc<LinkedOperator>,
    /// Setup that this handle stands for; another one may have replaced it.
    setup: Option<Rc<Multigrid>>,
}

impl fe_multigrid {
    fn of(op: &Rc<LinkedOperator>) -> Self {
        fe_multigrid { op: op.clone(), setup: op.dirac.setup() }
    }
    /// Returns whether the operator still has the setup of this handle.
    fn is_current(&self) -> bool {
        let current = self.op.dirac.setup();
        self.setup.as_ref().zip(current.as_ref()).is_some_and(|(own, current)| Rc::ptr_eq(own, current))
    }
}

impl OnDevice for fe_multigrid {
    fn device(&self) -> &Rc<OpenDevice> {
        &self.op.device
    }
}

/// *Collective.* Makes the multigrid setup of an operator, and stores it in `*out`. Solves with `"solver": "multigrid"` or `"auto"` use it
/// until it is freed. An operator has one setup; a new one replaces it.
///
/// `options` are those of `fe_solve`, among them `vectors`, `levels`, `blocks`, `improvements` and `setup_precision`. The record has the
/// seconds and the levels.
///
/// # Safety
/// `op` is a handle that has not been freed; `options` is null or a text with a final zero; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_multigrid_new(
    op: *const fe_operator,
    options_json: *const c_char,
    out: *mut *mut fe_multigrid,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(op, "op", |op| {
            let settings = options(options_json)?.solver()?;
            make(out, || {
                leave_record(object(&op.own.dirac.set_up(&settings, &mut ())?));
                Ok(fe_multigrid::of(&op.own))
            })
        })
    }
}

/// *Collective.* Makes the multigrid setup of an operator from the near-null vectors of a file. Options and record are those of
/// `fe_multigrid_new`.
///
/// # Safety
/// As for `fe_multigrid_new`; `path` is a text with a final zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_multigrid_read(
    op: *const fe_operator,
    file: *const c_char,
    options_json: *const c_char,
    out: *mut *mut fe_multigrid,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(op, "op", |op| {
            let (path, settings) = (path(file)?, options(options_json)?.solver()?);
            make(out, || {
                leave_record(object(&op.own.dirac.load_setup(op.device().tasks(), &path, &settings, &mut ())?));
                Ok(fe_multigrid::of(&op.own))
            })
        })
    }
}

/// *Collective.* Writes the near-null vectors of a multigrid setup to a file.
///
/// # Safety
/// `multigrid` is a handle that has not been freed; `path` is a text with a final zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_multigrid_write(multigrid: *const fe_multigrid, file: *const c_char) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(multigrid, "multigrid", |multigrid| {
            if !multigrid.is_current() {
                return Err(refused("multigrid", "a later setup of the operator has replaced this one"));
            }
            multigrid.op.dirac.save_setup(multigrid.op.device.tasks(), &path(file)?).map(drop)
        })
    }
}

/// Frees a multigrid setup. Later solves make another one if they need it.
///
/// # Safety
/// `multigrid` is null or a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_multigrid_free(multigrid: *mut fe_multigrid) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { free(multigrid) }
}

impl Drop for fe_multigrid {
    fn drop(&mut self) {
        if self.is_current() {
            self.op.dirac.forget_setup();
        }
    }
}
