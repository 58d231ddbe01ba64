//! Prints a best rational approximation as JSON, and how good it is: `rational-approximation POWER LOW HIGH ORDER`,
//! `POWER` being a fraction such as -1/4, or several, each with a shift: `-1/2+4e-4,-1/4+1e-2` is
//! (x + 4e-4)^(-1/2) (x + 1e-2)^(-1/4).

use rational::{Error, Factor, Interval, Power, approximate};
use std::time::Instant;

fn run(args: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [power, low, high, order] = args else {
        return Err("usage: rational-approximation POWER LOW HIGH ORDER".into());
    };
    let factor = |text: &str| -> Result<Factor, Box<dyn std::error::Error>> {
        let (power, shift) = text.split_once('+').unwrap_or((text, "0"));
        Ok(Factor { shift: shift.parse()?, power: power.parse().map_err(|error: Error| error.to_string())? })
    };
    let function = Power::product(power.split(',').map(factor).collect::<Result<Vec<_>, _>>()?)?;
    let interval = Interval::new(low.parse()?, high.parse()?)?;
    let start = Instant::now();
    let approximation = approximate(&function, interval, order.parse()?)?;
    let seconds = start.elapsed().as_secs_f64();
    let check = approximation.check();
    println!("{}", serde_json::to_string_pretty(&approximation)?);
    eprintln!("{function} on {interval}, order {order}: error {:.6e}, {seconds:.3} s", approximation.error());
    for (name, form) in [("direct", check.direct), ("inverse", check.inverse)] {
        eprintln!(
            "{name:>8}: {:.6e} with rounded coefficients, {:.6e} evaluated in double precision, condition {:.1e}",
            form.error, form.error_in_double, form.condition
        );
    }
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&args) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
