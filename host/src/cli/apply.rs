//! `ferrite apply`.
use super::device::{Device, DeviceChoice};
use super::fields::Source;
use super::layout::{Cut, Layout};
use super::plan::{PRECISIONS, Plan, RECONSTRUCTIONS, are_together, name_of};
use super::solve::{OperatorFlags, inputs, reconstruction};
use super::{Context, Failure, Outcome, fields, staggered};
use crate::config::Settings;
use clap::Args;
use ferrite::dirac::{EvenOdd, EvenOddClover, EvenOddWilson, Form, Wilson};
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{Fermion, HostField, HostGauge, HostSpinor};
use ferrite::field::{DeviceClover, DeviceField, DeviceGauge, FullField, ThinGauge};
use ferrite::memory::{Exchanges, Needs, Part, Travelling};
use ferrite::solve::Operator;
use ferrite::{FermionKind, LinkStorage, Precision};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  ferrite apply --gauge weak.ildg --mass 0.05 --source file:solution.npy -o b.npy
  ferrite apply --gauge weak.ildg --kappa 0.12 --source random:1 --dagger -o out.lime
  ferrite apply --gauge lat.milc --operator asqtad --u0 plaquette --mass 0.02 --source file:column.npy -o b.npy
  ferrite apply --operator hisq --fat fat.scidac --long long.scidac --mass 0.1 --source random:1 --normal -o out.npy

Writes M x, M^dagger x with --dagger, or M^dagger M x with --normal. With --schur M is the even-odd preconditioned
operator on the even sites, and the result is zero on the odd ones. That is 1 - kappa^2 D_eo D_oe for Wilson; for clover,
whose term is A, it is 1 - A^-1 D_eo A^-1 D_oe / 4 (symmetric, the default) or A - D_eo A^-1 D_oe / 4 (asymmetric).
Staggered operators are M = m + D/2, half of MILC's 2m + D, and M^dagger M = m^2 - D^2/4 does not mix even and odd
sites; they take any mass, and 0 gives D/2.";

/// Arguments of `apply`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    operator: OperatorFlags,
    /// The Hermitian conjugate of the operator
    #[arg(long)]
    dagger: bool,
    /// The operator and then its Hermitian conjugate, as in the normal equations
    #[arg(long, conflicts_with = "dagger")]
    normal: bool,
    /// The Schur complement on the even sites; for clover, symmetric or asymmetric [default: symmetric]
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    schur: Option<Option<String>>,
    #[command(flatten)]
    links: staggered::LinkFlags,
}

/// Applies the operator once.
pub fn run(args: Box<Arguments>, context: &Context) -> Outcome {
    let mut settings = Settings::default();
    context.add_to(&mut settings);
    args.operator.add_to(&mut settings);
    args.links.add_to(&mut settings);
    if settings.get("output").is_none() {
        settings.missing("no output: give -o FILE");
    }
    let form = match (args.dagger, args.normal) {
        (false, false) => Form::Plain,
        (true, _) => Form::Dagger,
        (false, true) => Form::Normal,
    };
    let schur = args.schur.is_some();
    settings.flag("schur", args.schur.as_ref().and_then(Option::as_deref));
    if staggered::is_chosen(&settings) {
        if schur {
            // Which one it would be does not matter.
            settings.flag("schur", Some(""));
        }
        return staggered::apply(&mut settings, form, context);
    }
    let world = &context.world;
    let choice = DeviceChoice::from_settings(&mut settings);
    let (plan, output) = world.agree(checked(&mut settings))?;
    let output = &output;
    let device = choice.open(world)?;
    let layout = choice.layout.cut(world, plan.lattice(), 1)?;
    device.require_all(world, &memory(&plan, layout.cut()), &format!("the operator on {}", plan.lattice()))?;
    let (file, sources) = inputs(&plan, &layout, world)?;
    let reconstruction = reconstruction(&plan, &file)?;
    let job = Job { operator: plan.operator, form, schur };
    let fields = {
        let backend = device.backend();
        let domain = layout.domain(backend)?;
        if reconstruction == LinkStorage::of(8) && ThinGauge::upload(&domain, &file.gauge)?.singular_links()? > 0 {
            let path = plan.gauge.display();
            return Err(Failure::refused(format!(
                "{path}: eight reals do not tell some of these links, unit ones for example; use --reconstruct 12"
            ))
            .shared());
        }
        job.apply(&domain, &file.gauge, &sources, (plan.precision, reconstruction))
    }?;
    let operator = plan.operator.wilson();
    let object = json!({
        "lattice": plan.lattice().size(),
        "operator": plan.operator_name(),
        "mass": operator.mass,
        "kappa": operator.kappa(),
        "xi": operator.anisotropy.xi,
        "nu": operator.anisotropy.nu,
        "clover": plan.clover(),
        "schur": schur,
        "precision": name_of(&PRECISIONS, plan.precision),
        "reconstruct": name_of(&RECONSTRUCTIONS, reconstruction),
        "sources": plan.sources.iter().map(|s| s.to_string()).collect::<Vec<_>>(),
    });
    let what = match (schur, form) {
        (false, Form::Plain) => "M x",
        (false, Form::Dagger) => "M^dagger x",
        (false, Form::Normal) => "M^dagger M x",
        (true, Form::Plain) => "Schur complement",
        (true, Form::Dagger) => "conjugate of the Schur complement",
        (true, Form::Normal) => "Schur complement and its conjugate",
    };
    let images = Images {
        output,
        sources: &plan.sources,
        fields: &fields,
        title: format!("image under the {} operator", plan.operator.name()),
        what: format!("{what} on {}", plan.lattice()),
    };
    report(context, (&device, &layout), form, &images, object)
}

/// Operator, fields and where the images go.
fn checked(settings: &mut Settings) -> Outcome<(Plan, PathBuf)> {
    let plan = Plan::from_settings(settings);
    are_together(settings, plan.as_ref().map_or(0, |plan| plan.sources.len()));
    settings.finish("the command line")?;
    let Some(plan) = plan else { return Err(Failure::refused("the command line is incomplete")) };
    let Some(output) = plan.output.clone() else { return Err(Failure::refused("no output: give -o FILE")) };
    if plan.reconstruction.is_some_and(|storage| storage.temporal) {
        return Err(Failure::refused("--reconstruct: temporal gauge is for solve and bench; use 18, 12 or 8"));
    }
    Ok((plan, output))
}

/// What came out.
pub struct Images<'a, T> {
    /// Where it goes.
    pub output: &'a PathBuf,
    /// What it was made of.
    pub sources: &'a [Source],
    /// The images of these.
    pub fields: &'a [HostField<T>],
    /// For the file.
    pub title: String,
    /// For people.
    pub what: String,
}

/// Writes the images, and prints `object` with what is common to all operators.
pub fn report<T: Fermion>(
    context: &Context,
    (device, layout): (&Device, &Layout),
    form: Form,
    images: &Images<T>,
    object: Value,
) -> Outcome {
    let Images { output, sources, fields, title, what } = images;
    fields::write_fermions(output, fields, title, layout)?;
    let mut norms: Vec<f64> = fields.iter().map(HostField::norm2).collect();
    context.world.sum(&mut norms)?;
    let common = json!({
        "output": output,
        "dagger": form == Form::Dagger,
        "normal": form == Form::Normal,
        "norm2": norms,
        "layout": layout.describe(),
        "backend": device.name(),
        "device": device.describe(),
    });
    context.output.result("ferrite.apply/1", staggered::merged(object, [common]), || {
        let lines = sources.iter().zip(&norms);
        let lines: String = lines.map(|(source, norm)| format!("  {source}: norm squared {norm:.12e}\n")).collect();
        format!("{}: {what}\n{lines}", output.display())
    })
}

/// What the device has to hold at most.
fn memory(plan: &Plan, cut: Cut) -> Needs {
    let (part, sites, nrhs) = (Part::new(cut.local, &cut.grid), cut.local.half_volume(), plan.sources.len());
    let links = 2 * DeviceGauge::bytes_for(Precision::Double, LinkStorage::FULL, sites);
    let field = DeviceField::bytes_for(FermionKind::Wilson, Precision::Double, sites, nrhs);
    let mut parts = vec![
        ("links as read from the host", part.links_bytes(Precision::Double)),
        ("links", links),
        ("fields", 6 * field),
        ("transfer of a spinor field", 384 * sites * nrhs),
    ];
    if let Operator::Clover(..) = plan.operator {
        // Both are made in double before they are rounded.
        parts.push(("links in double", links));
        let term = 4 * DeviceClover::bytes_for(Precision::Double, sites);
        parts.push(("clover term and its inverse", 2 * term));
    }
    let exchanges = Exchanges::of(part).border(Precision::Double).hops(Travelling::Spinors, plan.precision, &[nrhs]);
    parts.extend(exchanges.needs());
    parts
}

/// Which operator.
struct Job {
    operator: Operator,
    form: Form,
    schur: bool,
}

impl Job {
    fn apply(
        &self,
        domain: &Domain,
        gauge: &HostGauge,
        sources: &[HostSpinor],
        (precision, storage): (Precision, LinkStorage),
    ) -> Result<Vec<HostSpinor>> {
        let storage = if Wilson::exists(precision, storage) { storage } else { storage.with_two_rows() };
        let staged = ThinGauge::upload(domain, gauge)?;
        let wilson = Wilson::new(Arc::new(staged.pack(precision, storage)?), self.operator.wilson());
        let field = || FullField::zero(domain, FermionKind::Wilson, precision, sources.len());
        let (mut x, mut out) = (field()?, field()?);
        x.upload(sources)?;
        match self.operator {
            Operator::Wilson(_) if !self.schur => {
                self.once_or_twice(&mut x, &mut out, |dagger, x, out| wilson.full(dagger, x, out))?;
            }
            Operator::Wilson(_) => {
                self.complement(&EvenOddWilson::new(wilson, sources.len())?, &mut x, &mut out)?;
            }
            Operator::Clover(params, schur) => {
                let term = Arc::new(params.term(&staged)?.convert(precision)?);
                drop(staged);
                let clover = EvenOddClover::new(wilson, term, schur, sources.len())?;
                if self.schur {
                    self.complement(&clover, &mut x, &mut out)?;
                } else {
                    self.once_or_twice(&mut x, &mut out, |dagger, x, out| {
                        (0..2).try_for_each(|parity| clover.row(parity, dagger, x, out.parity_mut(parity)))
                    })?;
                }
            }
        }
        out.download()
    }
    /// The Schur complement in the form asked for; odd sites stay as they are.
    fn complement(&self, schur: &dyn EvenOdd, x: &mut FullField, out: &mut FullField) -> Result {
        self.once_or_twice(&mut x.even, &mut out.even, |dagger, x, out| match dagger {
            true => schur.apply_dagger(x, out),
            false => schur.apply(x, out),
        })
    }
    /// `out` = M x, M† x or M†M x by `apply`, which is told whether to take M†. `x` is lost.
    fn once_or_twice<F>(&self, x: &mut F, out: &mut F, mut apply: impl FnMut(bool, &F, &mut F) -> Result) -> Result {
        apply(self.form == Form::Dagger, x, out)?;
        if self.form == Form::Normal {
            std::mem::swap(x, out);
            apply(true, x, out)?;
        }
        Ok(())
    }
}
