//! Checked flags of `ferrite-studies model`.
use super::{ModelBenchArguments, read};
use crate::formats::choose;
use crate::model::predictions::{FormatFilter, PredictionRequest};
use crate::model::{Cluster, MOST_GPUS, Machine, MeasuredPoint, Wire, points_from_json};
use crate::plan::{PRECISIONS, RECONSTRUCTIONS};
use crate::{Failure, Outcome};
use ferrite::FermionKind;
use ferrite::lattice::Lattice;
use ferrite::operators::{Definition, operator_named};
use ferrite::{LinkStorage, Precision};
use ferrite_cli::bench::{NO_SUCH_KERNELS, exist, operator};

/// Checked flags of `ferrite-studies model`.
pub struct Asked {
    /// Source of the machine's times.
    pub source: MachineSource,
    /// Formats for which times are predicted.
    shown: FormatFilter,
    /// Requested lattices of strong and of weak scaling; `None` for the default.
    given: [Option<Lattice>; 2],
    /// Numbers of GPUs for which times are predicted.
    gpus: Vec<usize>,
    /// Number of GPUs of a host, and the network between hosts.
    pub cluster: Cluster,
    /// Measured points that are compared with predictions.
    pub points: Vec<MeasuredPoint>,
}

/// Source of the machine's times.
pub enum MachineSource {
    /// Machine that was read from a file.
    File(Machine),
    /// The processes of this run, which measure these formats.
    Processes(ModelFormats),
}

/// Operator and formats that are measured.
pub struct ModelFormats {
    /// Operator that is measured.
    pub definition: &'static Definition,
    /// Precisions of the fields.
    pub precisions: Vec<Precision>,
    /// Storages of the links.
    pub reconstructions: Vec<LinkStorage>,
}

impl Asked {
    /// Checks the flags of a run of `processes` processes.
    pub fn new(args: &ModelBenchArguments, processes: usize) -> Outcome<Self> {
        let refused = |why: String| Err(Failure::refused(why));
        let gpus = args.gpus.clone().unwrap_or_else(|| (0..=10).map(|k| 1 << k).collect());
        if gpus.is_empty() || gpus.iter().any(|n| !(1..=MOST_GPUS).contains(n)) {
            let typed = gpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            return refused(format!("--gpus {typed}: expected numbers from 1 to {MOST_GPUS}, separated by commas"));
        }
        if !(1..=MOST_GPUS).contains(&args.gpus_per_host) {
            return refused(format!("--gpus-per-host {}: expected a number from 1 to {MOST_GPUS}", args.gpus_per_host));
        }
        let Wire { latency, bandwidth } = Cluster::ASSUMED.network;
        let latency = args.network_latency_us.map_or(latency, |us| 1e-6 * us);
        let bandwidth = args.network_gbps.map_or(bandwidth, |gbps| 1e9 * gbps);
        if !(latency >= 0.0 && latency.is_finite()) {
            return refused(format!(
                "--network-latency-us {}: expected a finite number of at least 0, in microseconds",
                args.network_latency_us.unwrap_or_default()
            ));
        }
        if !(bandwidth > 0.0 && bandwidth.is_finite()) {
            return refused(format!(
                "--network-gbps {}: expected a finite number above 0, in 10^9 bytes per second",
                args.network_gbps.unwrap_or_default()
            ));
        }
        let cluster = Cluster { gpus_per_host: args.gpus_per_host, network: Wire { latency, bandwidth } };
        let points = match &args.measured {
            None => Vec::new(),
            Some(path) => {
                let wrong = |why: String| Failure::refused(format!("{}: {why}", path.display()));
                let points = points_from_json(&read(path)?).map_err(|why| wrong(why.to_string()))?;
                if points.is_empty() {
                    Err(wrong(
                        "the file contains no points to compare with predictions: name a file in the format \
                         ferrite.scaling-points/1 (docs/output.md), or output of `ferrite bench dslash --json` for one \
                         right-hand side"
                            .into(),
                    ))
                } else {
                    Ok(points)
                }?
            }
        };
        let shown = shown(args)?;
        let source = match &args.machine {
            Some(path) => {
                let wrong = |why: String| Failure::refused(format!("{}: {why}", path.display()));
                let machine = Machine::from_json(&read(path)?).map_err(|why| wrong(why.to_string()))?;
                MachineSource::File(fitting(machine, args.operator.as_ref(), &shown).map_err(wrong)?)
            }
            None if processes == 1 => {
                let why = "ferrite-studies model measures exchanges between processes, but only one process runs: \
                           start several, for example with mpirun -n 2 ferrite-studies model, or name a file of \
                           measurements with --machine";
                return refused(why.into());
            }
            None => MachineSource::Processes(ModelFormats::new(args)?),
        };
        Ok(Asked { source, shown, given: [args.lattice, args.local], gpus, cluster, points })
    }
    /// Returns the lattices of strong and of weak scaling for an operator, with the defaults for GPUs.
    pub fn lattices(&self, operator: &str) -> [Lattice; 2] {
        let staggered = operator_named(operator).is_some_and(|definition| definition.kind == FermionKind::Staggered);
        let strong = if staggered { [64, 64, 64, 192] } else { [32, 32, 32, 256] };
        self.lattices_or([strong, [32; 4]])
    }
    /// Returns the lattices of strong and of weak scaling, with `defaults` for those that were not requested.
    pub fn lattices_or(&self, defaults: [[usize; 4]; 2]) -> [Lattice; 2] {
        let standard = |size| Lattice::new(size).expect("standard lattices have even extents");
        let [strong, weak] = defaults.map(standard);
        [self.given[0].unwrap_or(strong), self.given[1].unwrap_or(weak)]
    }
    /// Returns the request for predictions on the lattices of strong and of weak scaling.
    pub fn request(&self, [strong, weak]: [Lattice; 2]) -> PredictionRequest {
        PredictionRequest {
            strong: strong.size(),
            weak: weak.size(),
            gpus: self.gpus.clone(),
            cluster: self.cluster,
            formats: self.shown.clone(),
        }
    }
}

impl ModelFormats {
    fn new(args: &ModelBenchArguments) -> Outcome<Self> {
        let definition = operator(args.operator.as_deref().unwrap_or("clover"))?;
        let links = if definition.is_improved() { "8" } else { "12" };
        let precisions =
            choose("precision", Some(args.precision.as_deref().unwrap_or("double,single,half")), &PRECISIONS)?;
        let reconstructions =
            choose("reconstruct", Some(args.reconstruct.as_deref().unwrap_or(links)), &RECONSTRUCTIONS)?;
        if !exist(definition, &precisions, &reconstructions) {
            return Err(Failure::refused(NO_SUCH_KERNELS));
        }
        Ok(ModelFormats { definition, precisions, reconstructions })
    }
    /// Returns the name of the operator that is measured.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }
}

/// Returns the formats for which times are predicted.
fn shown(args: &ModelBenchArguments) -> Outcome<FormatFilter> {
    fn names(flag: &str, text: Option<&String>, known: &[&'static str]) -> Outcome<Option<Vec<&'static str>>> {
        let choices: Vec<_> = known.iter().map(|name| (*name, *name)).collect();
        text.map(|text| choose(flag, Some(text), &choices)).transpose()
    }
    Ok(FormatFilter {
        precisions: names("precision", args.precision.as_ref(), &PRECISIONS.map(|(name, _)| name))?,
        links: names("reconstruct", args.reconstruct.as_ref(), &RECONSTRUCTIONS.map(|(name, _)| name))?,
    })
}

/// Returns the machine if it has this operator and these formats, otherwise the reason why it does not fit.
fn fitting(machine: Machine, operator: Option<&String>, shown: &FormatFilter) -> Result<Machine, String> {
    if let Some(operator) = operator.filter(|operator| **operator != machine.operator) {
        return Err(format!(
            "the file describes the operator {}, but --operator requests {operator}: remove --operator, or name a file \
             of measurements of {operator} with --machine",
            machine.operator
        ));
    }
    if machine.operations.iter().any(|operation| shown.has(&operation.format)) {
        Ok(machine)
    } else {
        Err("the file contains no measurements in the formats of --precision and --reconstruct: choose other formats, \
             or name another file of measurements with --machine"
            .into())
    }
}
