//! `ferrite apply`.
use super::device::{DeviceChoice, on_device};
use super::plan::{PRECISIONS, Plan, RECONSTRUCTIONS, name_of};
use super::solve::{OperatorFlags, inputs, reconstruction};
use super::{Context, Failure, Outcome, fields};
use crate::config::Settings;
use clap::Args;
use ferrite::backend::Backend;
use ferrite::dirac::{EvenOdd, EvenOddClover, EvenOddWilson, Wilson};
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::field::{DeviceClover, DeviceGauge, DeviceSpinor, FullSpinor, SpinorSpace, ThinGauge};
use ferrite::solve::{IterationPrecision, Operator, Reconstruction};
use gpu_kernels::storage::{CloverFormat, Double, Fp16, Half, LinkFormat, Recon8, Recon12, Recon18, Single};
use serde_json::json;
use solvers::LinearOperator;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  ferrite apply --gauge weak.ildg --mass 0.05 --source file:solution.npy -o b.npy
  ferrite apply --gauge weak.ildg --kappa 0.12 --source random:1 --dagger -o out.lime

Writes M x, or M^dagger x with --dagger; with --schur the even-odd preconditioned operator on the even sites and zero on
the odd ones. That is 1 - kappa^2 D_eo D_oe for Wilson; for clover, whose term is A, it is 1 - A^-1 D_eo A^-1 D_oe / 4
(symmetric, the default) or A - D_eo A^-1 D_oe / 4 (asymmetric).";

/// Arguments of `apply`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    operator: OperatorFlags,
    /// The Hermitian conjugate of the operator
    #[arg(long)]
    dagger: bool,
    /// The Schur complement on the even sites; for clover, symmetric or asymmetric [default: symmetric]
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    schur: Option<Option<String>>,
}

/// Applies the operator once.
pub fn run(args: Box<Arguments>, context: &Context) -> Outcome {
    let mut settings = Settings::default();
    context.add_to(&mut settings);
    args.operator.add_to(&mut settings);
    settings.flag("schur", args.schur.as_ref().and_then(Option::as_deref));
    let schur = args.schur.is_some();
    if settings.get("output").is_none() {
        settings.missing("no output: give -o FILE");
    }
    let choice = DeviceChoice::from_settings(&mut settings);
    let plan = Plan::from_settings(&mut settings);
    settings.finish("the command line")?;
    let Some(plan) = plan else { return Err(Failure::refused("the command line is incomplete")) };
    let Some(output) = &plan.output else { return Err(Failure::refused("no output: give -o FILE")) };
    if plan.reconstruction.is_some_and(Reconstruction::is_temporal) {
        return Err(Failure::refused("--reconstruct: temporal gauge is for solve and bench; use 18, 12 or 8"));
    }
    let device = choice.open()?;
    device.require(&memory(&plan), &format!("the operator on {}", plan.lattice()))?;
    let (file, sources) = inputs(&plan)?;
    let reconstruction = reconstruction(&plan, &file)?;
    let job = Job { operator: plan.operator, dagger: args.dagger, schur };
    let fields = on_device!(&device, backend => {
        let domain = Domain::single(backend.clone(), plan.lattice())?;
        if reconstruction == Reconstruction::Eight && ThinGauge::upload(&domain, &file.gauge)?.singular_links()? > 0 {
            let path = plan.gauge.display();
            return Err(Failure::refused(format!(
                "{path}: eight reals do not tell some of these links, unit ones for example; use --reconstruct 12"
            )));
        }
        job.with_formats(&domain, &file.gauge, &sources, plan.precision, reconstruction)
    })?;
    let title = format!("image under the {} operator", plan.operator.name());
    fields::write_fermions(output, &fields, &title).map_err(Failure::failed)?;
    let norms: Vec<f64> = fields.iter().map(HostSpinor::norm2).collect();
    let operator = plan.operator.wilson();
    let object = json!({
        "output": output,
        "lattice": plan.lattice().size(),
        "operator": plan.operator_name(),
        "mass": operator.mass,
        "kappa": operator.kappa(),
        "xi": operator.anisotropy.xi,
        "nu": operator.anisotropy.nu,
        "clover": plan.clover(),
        "dagger": args.dagger,
        "schur": schur,
        "precision": name_of(&PRECISIONS, plan.precision),
        "reconstruct": name_of(&RECONSTRUCTIONS, reconstruction),
        "norm2": norms,
        "backend": device.name(),
        "device": device.describe(),
    });
    context.output.result("ferrite.apply/1", object, || {
        let what = match (schur, args.dagger) {
            (false, false) => "M x",
            (false, true) => "M^dagger x",
            (true, false) => "Schur complement",
            (true, true) => "conjugate of the Schur complement",
        };
        let lines = plan.sources.iter().zip(&norms);
        let lines: String = lines.map(|(source, norm)| format!("  {source}: norm squared {norm:.12e}\n")).collect();
        format!("{}: {what} on {}\n{lines}", output.display(), plan.lattice())
    })
}

/// What the device has to hold at most.
fn memory(plan: &Plan) -> Vec<(&'static str, usize)> {
    let (sites, nrhs) = (plan.lattice().half_volume(), plan.sources.len());
    let links = 2 * DeviceGauge::<ferrite::backend::Cpu, Double, Recon18>::bytes_for(sites);
    let field = DeviceSpinor::<ferrite::backend::Cpu, Double>::bytes_for(sites, nrhs);
    let mut parts = vec![
        ("links as read from the host", 1152 * sites),
        ("links", links),
        ("fields", 6 * field),
        ("transfer of a spinor field", 384 * sites * nrhs),
    ];
    if let Operator::Clover(..) = plan.operator {
        // Both are made in double before they are rounded.
        parts.push(("links in double", links));
        let term = 4 * DeviceClover::<ferrite::backend::Cpu, Double>::bytes_for(sites);
        parts.push(("clover term and its inverse", 2 * term));
    }
    parts
}

/// Which operator.
struct Job {
    operator: Operator,
    dagger: bool,
    schur: bool,
}

impl Job {
    fn with_formats<B: Backend>(
        &self,
        domain: &Domain<B>,
        gauge: &HostGauge,
        sources: &[HostSpinor],
        precision: IterationPrecision,
        reconstruction: Reconstruction,
    ) -> Result<Vec<HostSpinor>> {
        use {IterationPrecision as P, Reconstruction as R};
        match (precision, reconstruction) {
            (P::Double, R::Eighteen) => self.apply::<B, Double, Recon18>(domain, gauge, sources),
            (P::Double, R::Twelve) => self.apply::<B, Double, Recon12>(domain, gauge, sources),
            (P::Single, R::Eighteen) => self.apply::<B, Single, Recon18>(domain, gauge, sources),
            (P::Single, R::Twelve) => self.apply::<B, Single, Recon12>(domain, gauge, sources),
            (P::Half, R::Eighteen) => self.apply::<B, Half, Recon18>(domain, gauge, sources),
            (P::Half, R::Twelve) => self.apply::<B, Half, Recon12>(domain, gauge, sources),
            (P::Double, R::Eight) => self.apply::<B, Double, Recon8>(domain, gauge, sources),
            (P::Single, R::Eight) => self.apply::<B, Single, Recon8>(domain, gauge, sources),
            (P::Half, R::Eight) => self.apply::<B, Half, Recon8>(domain, gauge, sources),
            (P::Fp16, R::Eighteen) => self.apply::<B, Fp16, Recon18>(domain, gauge, sources),
            (P::Fp16, R::Twelve) => self.apply::<B, Fp16, Recon12>(domain, gauge, sources),
            (P::Fp16, R::Eight) => self.apply::<B, Fp16, Recon8>(domain, gauge, sources),
            (_, _) => unreachable!("refused before"),
        }
    }
    fn apply<B: Backend, P: CloverFormat, R: LinkFormat<P>>(
        &self,
        domain: &Domain<B>,
        gauge: &HostGauge,
        sources: &[HostSpinor],
    ) -> Result<Vec<HostSpinor>> {
        let staged = ThinGauge::upload(domain, gauge)?;
        let wilson = Wilson::new(Arc::new(staged.pack::<P, R>()?), self.operator.wilson());
        let mut x = FullSpinor::<B, P>::zero(domain, sources.len())?;
        x.upload(sources)?;
        let mut out = FullSpinor::<B, P>::zero(domain, sources.len())?;
        match self.operator {
            Operator::Wilson(_) if !self.schur => wilson.full(self.dagger, &x, &mut out)?,
            Operator::Wilson(_) => self.complement(&EvenOddWilson::new(wilson, sources.len())?, &x, &mut out)?,
            Operator::Clover(params, schur) => {
                let term = Arc::new(params.term(&staged)?.convert::<P>()?);
                drop(staged);
                let clover = EvenOddClover::new(wilson, term, schur, sources.len())?;
                if self.schur {
                    self.complement(&clover, &x, &mut out)?;
                } else {
                    for parity in 0..2 {
                        clover.row(parity, self.dagger, &x, out.parity_mut(parity))?;
                    }
                }
            }
        }
        out.download()
    }
    /// The Schur complement, or its conjugate.
    fn complement<B: Backend, P: CloverFormat>(
        &self,
        schur: &impl LinearOperator<SpinorSpace<B, P>>,
        x: &FullSpinor<B, P>,
        out: &mut FullSpinor<B, P>,
    ) -> Result {
        if self.dagger { schur.apply_dagger(&x.even, &mut out.even) } else { schur.apply(&x.even, &mut out.even) }
    }
}
