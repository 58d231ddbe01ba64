//! `ferrite bench`.
use super::device::on_device;
use super::plan::PRECISIONS;
use super::text::lattice;
use super::{Context, Failure, Outcome};
use clap::{Args, ValueEnum};
use ferrite::backend::{Cpu, REDUCTION_SLOTS};
use ferrite::bench::{self, Links, Options, Row};
use ferrite::field::{DeviceClover, DeviceGauge, DeviceSpinor};
use ferrite::lattice::Lattice;
use ferrite::solve::Reconstruction;
use gpu_kernels::storage::{Double, Recon18};
use serde_json::json;
use std::fmt::Write;

/// Names of what `--reconstruct` selects.
const LINKS: [(&str, Links); 5] = [
    ("18", Links::Plain(Reconstruction::Eighteen)),
    ("12", Links::Plain(Reconstruction::Twelve)),
    ("8", Links::Plain(Reconstruction::Eight)),
    ("12t", Links::Temporal(Reconstruction::Twelve)),
    ("8t", Links::Temporal(Reconstruction::Eight)),
];

const EXAMPLES: &str = "\
Examples:
  ferrite bench dslash --lattice 32,32,32,32
  ferrite bench dslash --precision single,half --reconstruct 12 --nrhs 4 --json
  ferrite bench dslash --operator clover --precision half
  ferrite bench dslash --precision single --reconstruct 12,12t
  ferrite bench copy --backend cpu

GFLOP/s count 1320 operations per site of the Wilson hopping term and 504 of the clover term, reconstruction not
counted. clover_dslash is A^-1 D psi, clover_matrix the symmetric even-odd operator. GB/s count every link and
every spinor once; in temporal gauge (12t, 8t) the links in t, which are 1 and not read, do not count. The share of copy
is GB/s over the bandwidth of a plain copy, measured in the same run.";

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The Wilson hopping term, by itself and as a x + b D psi, or its products with the clover term
    Dslash,
    /// Linear algebra of the solvers
    Blas,
    /// A copy in the device's memory
    Copy,
}

/// Arguments of `bench`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to time
    #[arg(value_enum)]
    what: What,
    /// For dslash: wilson, clover or all [default: wilson]
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// Extents [default: 32,32,32,32 on a GPU, 16,16,16,16 on a CPU]
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice)]
    lattice: Option<Lattice>,
    /// all, or some of double, single, half, fp16, joined with commas
    #[arg(long, value_name = "NAMES", default_value = "all")]
    precision: String,
    /// all, or some of 18, 12, 8, and 12t, 8t in temporal gauge, joined with commas; 8t in double and single only
    #[arg(long, value_name = "NUMBERS", default_value = "all")]
    reconstruct: String,
    /// Right-hand sides in one call
    #[arg(long, value_name = "N", default_value_t = 1)]
    nrhs: usize,
}

/// The values that a list names.
fn choose<T: Copy>(flag: &str, text: &str, choices: &[(&str, T)]) -> Outcome<Vec<T>> {
    if text == "all" {
        return Ok(choices.iter().map(|(_, value)| *value).collect());
    }
    let find = |name: &str| choices.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
    let found: Option<Vec<T>> = text.split(',').map(|name| find(name.trim())).collect();
    found.ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        Failure::refused(format!(
            "--{flag} '{text}': expected all, or some of {}, joined with commas",
            names.join(", ")
        ))
    })
}

/// Times and prints a table.
pub fn run(args: Arguments, context: &Context) -> Outcome {
    let precisions = choose("precision", &args.precision, &PRECISIONS)?;
    let links = choose("reconstruct", &args.reconstruct, &LINKS)?;
    if args.what == What::Dslash && !precisions.iter().any(|&p| links.iter().any(|links| links.exist_in(p))) {
        return Err(Failure::refused("--reconstruct 8t is there in double and single precision only"));
    }
    let (wilson, clover) = match (args.what, args.operator.as_deref()) {
        (What::Dslash, None | Some("wilson")) => (true, false),
        (What::Dslash, Some("clover")) => (false, true),
        (What::Dslash, Some("all")) => (true, true),
        (What::Dslash, Some(other)) => {
            return Err(Failure::refused(format!("--operator '{other}' is none of wilson, clover, all")));
        }
        (_, None) => (false, false),
        (_, Some(_)) => return Err(Failure::refused("--operator belongs to bench dslash")),
    };
    let most = REDUCTION_SLOTS / 4;
    if !(1..=most).contains(&args.nrhs) {
        return Err(Failure::refused(format!("--nrhs {}: between 1 and {most} right-hand sides", args.nrhs)));
    }
    let device = context.device_choice()?.open()?;
    let extent = if device.name() == "cpu" { 16 } else { 32 };
    let lattice = match args.lattice {
        Some(lattice) => lattice,
        None => Lattice::new([extent; 4]).map_err(Failure::refused)?,
    };
    let sites = lattice.half_volume();
    let mut needs = vec![("buffers of the copy", if device.name() == "cpu" { 1 << 28 } else { 1 << 31 })];
    if args.what != What::Copy {
        let fields = 7 * DeviceSpinor::<Cpu, Double>::bytes_for(sites, args.nrhs) + 384 * sites * args.nrhs;
        needs.push(("fields", fields));
    }
    if args.what == What::Dslash {
        let links = 2 * DeviceGauge::<Cpu, Double, Recon18>::bytes_for(sites);
        needs.push(("links", links + 1152 * sites));
        if clover {
            // The term and its inverse on both parities, in double and in the precision that is timed.
            let term = 8 * DeviceClover::<Cpu, Double>::bytes_for(sites);
            needs.push(("links in double", links));
            needs.push(("clover term and its inverse", term));
        }
    }
    device.require(&needs, &format!("the benchmark on {lattice}"))?;
    let options = Options { lattice, precisions, links, nrhs: args.nrhs };
    let rows = on_device!(&device, backend => match args.what {
        What::Dslash => {
            let mut rows = if wilson { bench::dslash(backend, &options)? } else { Vec::new() };
            if clover {
                rows.extend(bench::clover(backend, &options)?);
            }
            Ok(rows)
        }
        What::Blas => bench::blas(backend, &options),
        What::Copy => bench::copy(backend),
    })?;
    let object = json!({
        "backend": device.name(),
        "device": device.describe(),
        "rows": rows.iter().map(|row| json!({
            "operator": row.operator,
            "precision": row.precision,
            "reconstruct": row.reconstruct,
            "lattice": row.lattice,
            "nrhs": row.nrhs,
            "microseconds": row.microseconds,
            "gflops": row.gflops,
            "gbps": row.gbps,
            "fraction_of_copy": row.fraction_of_copy,
        })).collect::<Vec<_>>(),
    });
    context.output.result("ferrite.bench/1", object, || table(&rows, lattice, &device.describe()))
}

fn table(rows: &[Row], lattice: Lattice, device: &str) -> String {
    let on = if rows.iter().all(|row| row.operator == "copy") { String::new() } else { format!(", {lattice}") };
    let mut text = format!("{device}{on}\n");
    let _ = writeln!(
        text,
        "{:<20} {:<9} {:>5} {:>4} {:>12} {:>10} {:>9} {:>8}",
        "operator", "precision", "recon", "nrhs", "us", "GFLOP/s", "GB/s", "of copy"
    );
    for r in rows {
        let _ = writeln!(
            text,
            "{:<20} {:<9} {:>5} {:>4} {:>12.2} {:>10.1} {:>9.1} {:>7.1}%",
            r.operator,
            r.precision,
            r.reconstruct,
            r.nrhs,
            r.microseconds,
            r.gflops,
            r.gbps,
            100.0 * r.fraction_of_copy
        );
    }
    text
}
