//! `ferrite apply`.
use super::device::DeviceChoice;
use super::host_links::LinksRead;
use super::keys::FieldFlags;
use super::keys::SOLVE;
use super::layout::Cut;
use super::named::NamedFiles;
use super::plan::{FermionPlan, PRECISIONS, RECONSTRUCTIONS, are_together, name_of};
use super::{Context, Failure, Outcome, fields, target, text};
use clap::Args;
use ferrite::FermionKind;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::operators::OperatorForm;
use ferrite::solve::apply_memory;
use ferrite_inputs::Input;
use ferrite_records::operator::ApplyRecord;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite apply weak.ildg --mass 0.05 --source file:solution.npy -o b.npy
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
pub struct ApplyArguments {
    /// The configuration, as with --gauge
    #[arg(value_name = "CONFIGURATION")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: FieldFlags,
    /// The Hermitian conjugate of the operator
    #[arg(long)]
    dagger: bool,
    /// The operator and then its Hermitian conjugate, as in the normal equations
    #[arg(long, conflicts_with = "dagger")]
    normal: bool,
    /// The Schur complement on the even sites; for clover, symmetric or asymmetric [default: symmetric]
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    schur: Option<Option<String>>,
}

/// What is applied.
struct Application {
    plan: FermionPlan,
    form: OperatorForm,
    /// The Schur complement, and not M.
    complement: bool,
    output: PathBuf,
}

impl Application {
    fn new(args: &ApplyArguments, input: &mut Input) -> Outcome<Self> {
        let form = match (args.dagger, args.normal) {
            (false, false) => OperatorForm::Plain,
            (true, _) => OperatorForm::Dagger,
            (false, true) => OperatorForm::Normal,
        };
        let complement = args.schur.is_some();
        if let Some(Some(name)) = &args.schur {
            input.flag("schur", Some(name));
        }
        if input.get("output").is_none() {
            input.missing("no output: give -o FILE");
        }
        let plan = FermionPlan::for_apply(input);
        let staggered = plan.as_ref().is_some_and(|plan| plan.operator.kind() == FermionKind::Staggered);
        if complement && staggered {
            input.missing("--schur: belongs to Wilson-like operators; of staggered ones it is M^+ M, --normal");
        }
        are_together(input, plan.as_ref().map_or(0, |plan| plan.sources.len()));
        input.finish("the command line")?;
        let Some(plan) = plan else { return Err(Failure::refused("the command line is incomplete")) };
        let Some(output) = plan.output.clone() else { return Err(Failure::refused("no output: give -o FILE")) };
        if plan.reconstruction.is_some_and(|storage| storage.temporal) {
            return Err(Failure::refused("--reconstruct: temporal gauge is for solve and bench; use 18, 12 or 8"));
        }
        Ok(Application { plan, form, complement, output })
    }
    /// For people.
    fn what(&self) -> &'static str {
        match (self.complement, self.form) {
            (false, OperatorForm::Plain) => "M x",
            (false, OperatorForm::Dagger) => "M^dagger x",
            (false, OperatorForm::Normal) => "M^dagger M x",
            (true, OperatorForm::Plain) => "Schur complement",
            (true, OperatorForm::Dagger) => "conjugate of the Schur complement",
            (true, OperatorForm::Normal) => "Schur complement and its conjugate",
        }
    }
}

/// Applies the operator once.
pub fn run(args: Box<ApplyArguments>, context: &Context) -> Outcome {
    let mut input = Input::new(&SOLVE);
    context.add_to(&mut input);
    args.flags.add_to(&mut input);
    let files = context.comm.agree(NamedFiles::of(&args.files, "apply"))?;
    if let Some(file) = &files.input {
        let why = format!("{}: apply has no input file: name a configuration, and give flags", file.display());
        return Err(Failure::refused(why).shared());
    }
    input.configuration(files.configuration.as_deref());
    let choice = DeviceChoice::of(&mut input);
    let job = context.comm.agree(Application::new(&args, &mut input))?;
    match job.plan.operator.kind() {
        FermionKind::Wilson => run_on::<Spinor>(&job, &choice, context),
        FermionKind::Staggered => run_on::<ColourVector>(&job, &choice, context),
    }
}

/// The same on fields of a kind.
fn run_on<F: Fermion>(job: &Application, choice: &DeviceChoice, context: &Context) -> Outcome {
    let (comm, plan) = (&context.comm, &job.plan);
    target::claim(comm, &plan.inputs(&[]), &[&job.output])?;
    let device = choice.open(comm)?;
    let layout = plan.cut(&choice.layout, comm)?;
    let Cut { local, grid } = layout.cut();
    let storage = plan.largest_storage();
    let needs = apply_memory(&plan.operator, local, &grid, plan.sources.len(), plan.precision, storage);
    let needs = plan.with_smearing(layout.cut(), needs);
    device.require_all(comm, &needs, &format!("the operator on {}", plan.lattice))?;
    let links = LinksRead::of(plan, &layout, comm)?.smeared(plan, &device, &layout, &context.session)?;
    let sources = plan.fields::<F>(&plan.sources, &layout)?;
    let (images, used) = {
        let domain = layout.domain(device.backend())?;
        let configuration = links.links.on(&domain)?;
        let LinksRead { operator, storage, .. } = &links;
        configuration
            .apply(job.form, job.complement, &sources, operator, plan.precision, *storage)
            .map_err(Failure::from)
    }?;
    if let Some(asked) = plan.reconstruction.filter(|asked| *asked != used) {
        let [asked, used] = [asked, used].map(|storage| name_of(&RECONSTRUCTIONS, storage));
        tracing::info!("some links cannot be reconstructed from {asked} real numbers: {used} are stored");
    }
    let title = format!("image under the {} operator", plan.definition().title);
    fields::write_fermions(&job.output, &images, &title, &layout)?;
    let mut norms: Vec<f64> = images.iter().map(HostField::norm2).collect();
    comm.sum(&mut norms)?;
    let record = ApplyRecord {
        system: plan.record(&links.operator),
        mass: plan.operator.mass(),
        dagger: job.form == OperatorForm::Dagger,
        normal: job.form == OperatorForm::Normal,
        schur: job.complement,
        precision: name_of(&PRECISIONS, plan.precision).into(),
        reconstruct: name_of(&RECONSTRUCTIONS, used).into(),
        output: job.output.clone(),
        norm2: norms.clone(),
        place: device.record(&layout),
    };
    context.output.record(&record, || {
        let lines = plan.sources.iter().zip(&norms);
        let lines: String = lines.map(|(source, norm)| format!("  {source}: norm squared {norm:.12e}\n")).collect();
        let (what, headline) = (job.what(), plan.headline(&links.operator));
        format!(
            "{}: {what} of the {headline}, m = {}\n{lines}",
            job.output.display(),
            text::rounded(plan.operator.mass(), 6)
        )
    })
}
