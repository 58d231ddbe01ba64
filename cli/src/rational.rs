//! Command `ferrite rational`.
use super::text::count;
use super::{Context, Failure, Outcome};
use clap::{Args, ValueEnum};
use ferrite_records::rational::{
    FactorOfFunction, FunctionOfPoles, PoleOfFunction, RationalCheck, RationalChecks, RationalRecord,
};
use rational::{
    Approximation, Factor, Fraction, Interval, PartialFractionAccuracy, PartialFractions, Power, approximate,
    approximate_to,
};
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  ferrite rational --power -1/4 --interval 1e-6,6 --tol 1e-10
  ferrite rational --power 0.0016:-1/2,0.04:1/2 --interval 1e-15,90 --order 12
  ferrite rational --power 0.0016:-1/2 --interval 1e-15,90 --tol 1e-6 --milc MD

Prints R(x) = constant + sum residue/(x + shift) with the smallest maximum relative error on the interval (Remez), and 1/R in
the same form, which the heat bath needs if R is in the action. For staggered quarks, x is an eigenvalue of -D^2, where D is
without the factor 1/2 of M = m + D/2, and a mass is the shift 4 m^2. For Wilson-like quarks, x is an eigenvalue of M^+ M.
`ferrite eigenvalues` finds the interval. With --json, `direct` and `inverse` have the form that `ferrite rhmc --replay` reads
from functions.json.";

/// Arguments of `rational`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct RationalArguments {
    /// Power to approximate: P for x^P, where P is a fraction such as -1/4, or C:P for (x + C)^P; several factors are separated
    /// by commas
    #[arg(long, value_name = "P", value_parser = factor, value_delimiter = ',', required = true, allow_hyphen_values = true)]
    power: Vec<Factor>,
    /// Interval of x for the approximation
    #[arg(long, value_name = "A,B", value_parser = interval, allow_hyphen_values = true)]
    interval: Interval,
    /// Maximum relative error; the lowest order that reaches this error is used
    #[arg(long, value_name = "TOL", allow_hyphen_values = true)]
    tol: Option<f64>,
    /// Number of poles, instead of --tol
    #[arg(long, value_name = "N", conflicts_with = "tol", allow_hyphen_values = true)]
    order: Option<usize>,
    /// Print the rational functions under this name in the format of MILC's code, instead of a table
    #[arg(long, value_name = "NAME", value_enum)]
    milc: Option<MilcName>,
}

/// Purpose of a function in MILC's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MilcName {
    /// Molecular dynamics
    #[value(name = "MD")]
    Md,
    /// Heat bath (Gaussian random)
    #[value(name = "GR")]
    Gr,
    /// Fermion action
    #[value(name = "FA")]
    Fa,
}

fn factor(text: &str) -> Result<Factor, String> {
    let (shift, power) = text.split_once(':').unwrap_or(("0", text));
    let power: Fraction = power.parse().map_err(|why: rational::Error| why.to_string())?;
    match shift.trim().parse::<f64>() {
        Ok(shift) if shift >= 0.0 && shift.is_finite() => Ok(Factor { shift, power }),
        _ => Err(format!("'{shift}' is not a finite number of at least 0; write C:P for (x + C)^P")),
    }
}

fn interval(text: &str) -> Result<Interval, String> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|x| x.trim().parse().ok()).collect();
    let [low, high] = numbers.as_deref().unwrap_or_default() else {
        return Err(format!("'{text}' is not of the form A,B, such as 1e-6,6"));
    };
    Interval::new(*low, *high).map_err(|why| why.to_string())
}

/// Computes the rational approximation, and prints it.
pub fn run(args: &RationalArguments, context: &Context) -> Outcome {
    context.comm.only_one("ferrite rational")?;
    let function = Power::product(args.power.iter().copied()).map_err(Failure::refused)?;
    let found = match (args.order, args.tol) {
        (Some(order), _) => approximate(&function, args.interval, order),
        (None, Some(tol)) => approximate_to(&function, args.interval, tol),
        (None, None) => return Err(Failure::refused("specify the accuracy: give --tol TOL or --order N")),
    };
    let found = found.map_err(Failure::refused)?;
    let milc = args.milc.map(|name| milc(name, &found)).transpose()?;
    let record = record(&found, milc.as_deref());
    match &milc {
        Some(lines) => context.output.document(&record, lines),
        None => context.output.record(&record, || text(&found)),
    }
}

fn record(found: &Approximation, milc: Option<&str>) -> RationalRecord {
    let check = found.check();
    let factor = |one: &Factor| FactorOfFunction { shift: one.shift, power: one.power.to_string() };
    let of_poles = |function: &PartialFractions| FunctionOfPoles {
        constant: function.constant,
        poles: function.poles.iter().map(|pole| PoleOfFunction { residue: pole.residue, shift: pole.shift }).collect(),
    };
    let form = |form: &PartialFractionAccuracy| RationalCheck {
        error: form.error,
        error_in_double: form.error_in_double,
        condition: form.condition,
    };
    RationalRecord {
        function: found.function().factors().iter().map(factor).collect(),
        interval: [found.interval().low(), found.interval().high()],
        order: found.order(),
        error: found.error(),
        direct: of_poles(found.direct()),
        inverse: of_poles(found.inverse()),
        check: RationalChecks { direct: form(&check.direct), inverse: form(&check.inverse) },
        milc: milc.map(String::from),
    }
}

fn text(found: &Approximation) -> String {
    let poles = count(found.order(), "pole");
    let mut text = format!("R(x) ~ {} on {}: {poles}\n", found.function(), found.interval());
    let check = found.check();
    for (name, function, form) in [("R", found.direct(), check.direct), ("1/R", found.inverse(), check.inverse)] {
        let _ = writeln!(
            text,
            "{name}: maximum relative error {:.3e}, or {:.3e} if evaluated in double precision",
            form.error, form.error_in_double
        );
        let _ = writeln!(text, "{:>24} {:>24}", "residue", "shift");
        let _ = writeln!(text, "{:>24.16e} {:>24}", function.constant, "constant");
        for pole in &function.poles {
            let _ = writeln!(text, "{:>24.16e} {:>24.16e}", pole.residue, pole.shift);
        }
    }
    text
}

/// Number of factors that a function in MILC's files always has.
const OF_MILC: usize = 4;

/// Returns the lines for a function in a file that MILC's `ks_imp_rhmc` reads. The function is Π (x + 4 m_k²)^(y_k/z_k) with four factors.
fn milc(name: MilcName, found: &Approximation) -> Outcome<String> {
    let name = match name {
        MilcName::Md => "MD",
        MilcName::Gr => "GR",
        MilcName::Fa => "FA",
    };
    let factors = found.function().factors();
    if factors.len() > OF_MILC {
        let why = format!(
            "--milc: MILC's code reads at most {OF_MILC} factors, but this function has {}: give at most {OF_MILC} in \
             --power, or remove --milc",
            factors.len()
        );
        return Err(Failure::refused(why));
    }
    let list = |of: &dyn Fn(Option<&Factor>) -> String| -> String {
        (0..OF_MILC).map(|k| format!(" {}", of(factors.get(k)))).collect()
    };
    let tops = list(&|factor| factor.map_or(0, |one| one.power.numerator()).to_string());
    let bottoms = list(&|factor| factor.map_or(1, |one| one.power.denominator()).to_string());
    let masses = list(&|factor| format!("{:?}", factor.map_or(1.0, |one| 0.5 * one.shift.sqrt())));
    let order = found.order();
    let mut text = format!("# {} on {}, error {:.6e}\n", found.function(), found.interval(), found.error());
    let _ = writeln!(text, "y_{name}{tops}\nz_{name}{bottoms}\nm_{name}{masses}\norder_{name} {order}\n");
    let _ = writeln!(text, "res_{name} {:.16e}", found.constant());
    for pole in found.poles() {
        let _ = writeln!(text, "res_{name} {:.16e}", pole.residue);
    }
    // MILC also expects a pole for the constant; this value is a placeholder.
    let _ = writeln!(text, "\npole_{name} 99.9");
    for pole in found.poles() {
        let _ = writeln!(text, "pole_{name} {:.16e}", pole.shift);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_intervals_as_typed() {
        assert_eq!(factor("-1/4").unwrap(), Factor { shift: 0.0, power: Fraction::new(-1, 4).unwrap() });
        assert_eq!(factor("4e-4:3/8").unwrap(), Factor { shift: 4e-4, power: Fraction::new(3, 8).unwrap() });
        for wrong in ["", "0.25", "-1:1/2", "nan:1/2", "1:2:3"] {
            assert!(factor(wrong).is_err(), "{wrong}");
        }
        assert_eq!(interval("1e-6, 6").unwrap(), Interval::new(1e-6, 6.0).unwrap());
        for wrong in ["", "1", "0,1", "2,1", "1,2,3", "1,inf"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
