//! Command `ferrite apply`.
use super::keys::FieldFlags;
use super::keys::SOLVE;
use super::named::NamedFiles;
use super::{Context, Failure, Outcome, text};
use clap::Args;
use ferrite::operators::OperatorForm;
use ferrite_inputs::Input;
use ferrite_tasks::apply::ApplyRequest;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite apply weak.ildg --mass 0.05 --source file:solution.npy -o b.npy
  ferrite apply --gauge weak.ildg --kappa 0.12 --source random:1 --dagger -o out.lime
  ferrite apply --gauge lat.milc --operator asqtad --u0 plaquette --mass 0.02 --source file:column.npy -o b.npy
  ferrite apply --operator hisq --fat fat.scidac --long long.scidac --mass 0.1 --source random:1 --normal -o out.npy

Writes M x, M^dagger x with --dagger, or M^dagger M x with --normal. With --schur, M is the even-odd preconditioned
operator on the even sites, and the result is zero on the odd ones. For Wilson it is 1 - kappa^2 D_eo D_oe; for clover
with the clover term A it is 1 - A^-1 D_eo A^-1 D_oe / 4 (symmetric, the default) or A - D_eo A^-1 D_oe / 4 (asymmetric).
Staggered operators are M = m + D/2, half of MILC's 2m + D, and M^dagger M = m^2 - D^2/4 does not mix even and odd
sites. Any mass is allowed; mass 0 gives D/2.";

/// Arguments of `apply`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ApplyArguments {
    /// Gauge configuration, in any supported format, instead of --gauge
    #[arg(value_name = "CONFIGURATION")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: FieldFlags,
    /// Apply the Hermitian conjugate of the operator
    #[arg(long)]
    dagger: bool,
    /// Apply the operator and then its Hermitian conjugate, as in the normal equations
    #[arg(long, conflicts_with = "dagger")]
    normal: bool,
    /// Apply the Schur complement on the even sites; its form for clover is symmetric or asymmetric [default: symmetric]
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    schur: Option<Option<String>>,
}

/// Applies the operator to the sources, writes the results and prints the record.
pub fn run(args: &ApplyArguments, context: &Context) -> Outcome {
    let mut input = Input::new(&SOLVE);
    context.add_to(&mut input);
    args.flags.add_to(&mut input);
    let files = context.comm.agree(NamedFiles::of(&args.files, "apply"))?;
    if let Some(file) = &files.input {
        let why = format!(
            "{} is not a gauge configuration, and `ferrite apply` reads no input file: name a configuration, and give \
             the settings as flags",
            file.display()
        );
        return Err(Failure::refused(why).shared());
    }
    input.configuration(files.configuration.as_deref());
    if let Some(Some(name)) = &args.schur {
        input.flag("schur", Some(name));
    }
    if input.get("output").is_none() {
        input.missing("no output file: give -o FILE");
    }
    let form = match (args.dagger, args.normal) {
        (false, false) => OperatorForm::Plain,
        (true, _) => OperatorForm::Dagger,
        (false, true) => OperatorForm::Normal,
    };
    let request = context.comm.agree(ApplyRequest::read(&mut input, form, args.schur.is_some()))?;
    let (record, headline) = request.apply(&context.session)?;
    context.output.record(&record, || {
        let lines = record.system.sources.iter().zip(&record.norm2);
        let lines: String =
            lines.map(|(source, norm)| format!("  {source}: squared norm of the result {norm:.12e}\n")).collect();
        let what = match (record.schur, form) {
            (false, OperatorForm::Plain) => "M x",
            (false, OperatorForm::Dagger) => "M^dagger x",
            (false, OperatorForm::Normal) => "M^dagger M x",
            (true, OperatorForm::Plain) => "S x with the Schur complement S",
            (true, OperatorForm::Dagger) => "S^dagger x with the Schur complement S",
            (true, OperatorForm::Normal) => "S^dagger S x with the Schur complement S",
        };
        let (output, mass) = (record.output.display(), text::rounded(record.mass, 6));
        format!("{output}: {what} of the {headline}, m = {mass}\n{lines}")
    })
}
