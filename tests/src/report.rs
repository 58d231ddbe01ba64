//! Outcomes of checks: an error, what it may be, and what it was an error of.
use ferrite::field::host::{Fermion, HostField, HostGauge};
use num_complex::Complex64;
use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// One comparison.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `wilson_dslash`, `axpby` ….
    pub operation: String,
    /// Precision and reconstruction.
    pub format: String,
    /// Lattice, boundary condition and everything else that distinguishes this comparison from the others.
    pub detail: String,
    /// The error found.
    pub error: f64,
    /// The largest error allowed.
    pub tolerance: f64,
}

impl Outcome {
    /// Whether the error is within the tolerance; false for NaN.
    pub fn passed(&self) -> bool {
        self.error <= self.tolerance
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { operation, format, detail, error, tolerance } = self;
        write!(f, "{operation} {format} ({detail}): error {error:.2e}, allowed {tolerance:.2e}")
    }
}

/// Largest errors allowed between two fields.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Bound of ‖a − b‖ / ‖b‖: rounding errors of many sites add up like a random walk, so this bound is sharp.
    pub relative: f64,
    /// Bound of the largest |a − b| of any real component over the largest |b| of its site: it detects a single bad site.
    pub worst: f64,
}

/// Format and conditions of a computation, repeated in every outcome.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Precision and reconstruction.
    pub format: String,
    /// Lattice, boundary condition ….
    pub detail: String,
}

/// Outcomes, and the fields and numbers themselves where they are wanted for a comparison of backends.
#[derive(Default)]
pub struct CheckReport {
    /// All comparisons so far.
    pub outcomes: Vec<Outcome>,
    keep: bool,
    fields: Vec<(String, Scope, Tolerance, ReportedFields)>,
    numbers: Vec<(String, Scope, f64, f64, f64)>,
}

/// Fields of any kind: complex numbers, so many of which belong to a site.
struct ReportedFields {
    components: usize,
    fields: Vec<Vec<Complex64>>,
}

impl ReportedFields {
    fn slices(&self) -> Vec<&[Complex64]> {
        self.fields.iter().map(Vec::as_slice).collect()
    }
}

fn slices<T: Fermion>(fields: &[HostField<T>]) -> Vec<&[Complex64]> {
    fields.iter().map(HostField::numbers).collect()
}

/// The larger one, or NaN if either is.
pub fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

/// ‖a − b‖ / ‖b‖, the largest over the right-hand sides.
pub fn relative_error<T: Fermion>(a: &[HostField<T>], b: &[HostField<T>]) -> f64 {
    relative(&slices(a), &slices(b))
}
fn relative(a: &[&[Complex64]], b: &[&[Complex64]]) -> f64 {
    assert_eq!(a.len(), b.len());
    let error = |(a, b): (&&[Complex64], &&[Complex64])| {
        assert_eq!(a.len(), b.len());
        let off: f64 = a.iter().zip(*b).map(|(a, b)| (a - b).norm_sqr()).sum();
        if off == 0.0 { 0.0 } else { (off / b.iter().map(|b| b.norm_sqr()).sum::<f64>()).sqrt() }
    };
    a.iter().zip(b).map(error).fold(0.0, larger)
}

/// The largest |a − b| of a real component over the largest |b| of its site. Infinite where b is zero and a is not.
pub fn worst_error<T: Fermion>(a: &[HostField<T>], b: &[HostField<T>]) -> f64 {
    worst(T::COMPONENTS, &slices(a), &slices(b))
}
fn worst(components: usize, a: &[&[Complex64]], b: &[&[Complex64]]) -> f64 {
    let mut worst = 0.0;
    for (a, b) in a.iter().zip(b) {
        for (a, b) in a.chunks(components).zip(b.chunks(components)) {
            let (mut off, mut peak) = (0.0, 0.0);
            for (a, b) in a.iter().zip(b) {
                off = larger(off, larger((a.re - b.re).abs(), (a.im - b.im).abs()));
                peak = larger(peak, larger(b.re.abs(), b.im.abs()));
            }
            if off != 0.0 {
                worst = larger(worst, off / peak);
            }
        }
    }
    worst
}

impl CheckReport {
    /// A report that keeps what was computed, for [`compare`].
    pub fn keeping() -> Self {
        CheckReport { keep: true, ..Default::default() }
    }
    /// Notes an error.
    pub fn error(&mut self, scope: &Scope, operation: &str, error: f64, tolerance: f64) {
        let Scope { format, detail } = scope.clone();
        self.outcomes.push(Outcome { operation: operation.into(), format, detail, error, tolerance });
    }
    /// Notes whether something holds.
    pub fn holds(&mut self, scope: &Scope, operation: &str, yes: bool) {
        self.error(scope, operation, if yes { 0.0 } else { 1.0 }, 0.0);
    }
    /// Compares fields with what they should be.
    pub fn fields<T: Fermion>(
        &mut self,
        scope: &Scope,
        operation: &str,
        got: Vec<HostField<T>>,
        expected: &[HostField<T>],
        tol: Tolerance,
    ) {
        self.compared(scope, operation, T::COMPONENTS, (&slices(&got), &slices(expected)), tol);
    }
    /// Compares links with what they should be, a link in the place of a site.
    pub fn links(&mut self, scope: &Scope, operation: &str, got: &HostGauge, expected: &HostGauge, tol: Tolerance) {
        let [got, expected] = [got, expected].map(|gauge| gauge.numbers());
        self.compared(scope, operation, 9, (&[got], &[expected]), tol);
    }
    fn compared(
        &mut self,
        scope: &Scope,
        operation: &str,
        components: usize,
        (got, expected): (&[&[Complex64]], &[&[Complex64]]),
        tol: Tolerance,
    ) {
        self.error(scope, operation, relative(got, expected), tol.relative);
        self.error(scope, &format!("{operation}, worst site"), worst(components, got, expected), tol.worst);
        if self.keep {
            let fields = got.iter().map(|field| field.to_vec()).collect();
            self.fields.push((operation.into(), scope.clone(), tol, ReportedFields { components, fields }));
        }
    }
    /// Compares a number with what it should be; the error is in units of `scale`.
    pub fn number(&mut self, scope: &Scope, operation: &str, got: f64, expected: f64, scale: f64, tolerance: f64) {
        self.error(scope, operation, (got - expected).abs() / scale, tolerance);
        if self.keep {
            self.numbers.push((operation.into(), scope.clone(), got, scale, tolerance));
        }
    }
    /// Compares both parts of a complex number with what they should be.
    pub fn complex(
        &mut self,
        scope: &Scope,
        operation: &str,
        (got, expected): (Complex64, Complex64),
        scale: f64,
        tolerance: f64,
    ) {
        self.number(scope, &format!("{operation}, real part"), got.re, expected.re, scale, tolerance);
        self.number(scope, &format!("{operation}, imaginary part"), got.im, expected.im, scale, tolerance);
    }
    /// Returns the outcomes that did not pass.
    pub fn failures(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| !outcome.passed())
    }
    /// Adds the outcomes of another report.
    pub fn absorb(&mut self, other: CheckReport) {
        self.outcomes.extend(other.outcomes);
    }
    /// Panics with a list if something did not pass, or if nothing was compared.
    pub fn assert_passed(&self) {
        let failures: Vec<String> = self.failures().take(40).map(Outcome::to_string).collect();
        let count = self.failures().count();
        assert!(!self.outcomes.is_empty(), "nothing was compared");
        assert!(count == 0, "{count} of {} failed:\n{}", self.outcomes.len(), failures.join("\n"));
    }
    /// A line per operation and format: comparisons, the largest error, what it may be.
    pub fn table(&self) -> String {
        let mut rows: BTreeMap<(&str, &str), (usize, usize, &Outcome)> = BTreeMap::new();
        for outcome in &self.outcomes {
            let row = rows.entry((&outcome.operation, &outcome.format)).or_insert((0, 0, outcome));
            row.0 += 1;
            row.1 += usize::from(!outcome.passed());
            let share = |o: &Outcome| if o.error == 0.0 { 0.0 } else { o.error / o.tolerance };
            if share(outcome).is_nan() || share(outcome) > share(row.2) {
                row.2 = outcome;
            }
        }
        let mut text =
            format!("{:<44} {:<24} {:>6} {:>9} {:>9}\n", "operation", "format", "checks", "error", "allowed");
        for ((operation, format), (count, failed, worst)) in rows {
            let verdict = if failed == 0 { String::new() } else { format!("  {failed} FAILED") };
            text += &format!(
                "{operation:<44} {format:<24} {count:>6} {:>9.1e} {:>9.1e}{verdict}\n",
                worst.error, worst.tolerance
            );
        }
        text
    }
}

/// Compares what two backends computed, by the tolerances that each had against the reference.
pub fn compare(one: &CheckReport, other: &CheckReport) -> CheckReport {
    let mut report = CheckReport::default();
    let paired = one.fields.len() == other.fields.len() && one.numbers.len() == other.numbers.len();
    let all = Scope { format: String::new(), detail: String::new() };
    report.holds(&all, "backends: the same comparisons", paired);
    for ((operation, scope, tol, a), (_, _, _, b)) in one.fields.iter().zip(&other.fields) {
        let name = format!("backends: {operation}");
        let (one, other) = (a.slices(), b.slices());
        report.error(scope, &name, relative(&one, &other), tol.relative);
        report.error(scope, &format!("{name}, worst site"), worst(a.components, &one, &other), tol.worst);
    }
    for ((operation, scope, a, scale, tolerance), (_, _, b, ..)) in one.numbers.iter().zip(&other.numbers) {
        report.error(scope, &format!("backends: {operation}"), (a - b).abs() / scale, *tolerance);
    }
    report
}
