//! `ferrite apply` with staggered operators.
use super::links::read_links;
use super::result::{describe, headline, merged};
use super::{Kind, StaggeredPlan, on_links, refused};
use crate::cli::apply::{Images, report};
use crate::cli::device::DeviceChoice;
use crate::cli::layout::Cut;
use crate::cli::plan::{PRECISIONS, RECONSTRUCTIONS, are_together, name_of};
use crate::cli::{Context, Failure, Outcome};
use crate::config::Settings;
use ferrite::dirac::Form;
use ferrite::solve::{LinkStorage, staggered_apply_memory};
use serde_json::json;
use std::path::PathBuf;
use tracing::info;

/// Applies the operator once.
pub fn apply(settings: &mut Settings, form: Form, context: &Context) -> Outcome {
    let world = &context.world;
    let choice = DeviceChoice::from_settings(settings);
    let (plan, output) = world.agree(checked(settings))?;
    let output = &output;
    let device = choice.open(world)?;
    let layout = plan.cut(&choice, world)?;
    // As long as the links have not been seen: that of 18 reals, the most.
    let largest = plan.reconstruction.unwrap_or(LinkStorage::FULL);
    let (Cut { local, grid }, nrhs) = (layout.cut(), plan.sources.len());
    let needs = staggered_apply_memory(local, &grid, nrhs, plan.kind != Kind::Naive, plan.precision, largest);
    device.require_all(world, &needs, &format!("the operator on {}", plan.lattice))?;
    let (links, reconstruction, u0) = read_links(&plan, &layout, world)?;
    let sources = plan.fields(&plan.sources, &layout)?;
    let (fields, used) = {
        let backend = device.backend();
        let domain = layout.domain(backend)?;
        let configuration = on_links(&plan, &domain, &links, u0)?;
        configuration.apply(form, &sources, plan.params(), (plan.precision, reconstruction)).map_err(refused)
    }?;
    let kept = name_of(&RECONSTRUCTIONS, used);
    if let Some(asked) = plan.reconstruction.filter(|asked| *asked != used) {
        let asked = name_of(&RECONSTRUCTIONS, asked);
        info!("{asked} reals do not tell some of these links: {kept} were kept");
    }
    let object = json!({
        "mass": plan.params().mass,
        "schur": false,
        "precision": name_of(&PRECISIONS, plan.precision),
        "reconstruct": kept,
    });
    let images = Images {
        output,
        sources: &plan.sources,
        fields: &fields,
        title: format!("image under the {} operator", plan.kind.title()),
        what: format!("{} of the {}, m = {:.6}", text_of(form), headline(&plan, u0), plan.params().mass),
    };
    report(context, (&device, &layout), form, &images, merged(object, [describe(&plan, u0)]))
}

/// Operator, fields and where the images go.
fn checked(settings: &mut Settings) -> Outcome<(StaggeredPlan, PathBuf)> {
    let plan = StaggeredPlan::for_apply(settings);
    are_together(settings, plan.as_ref().map_or(0, |plan| plan.sources.len()));
    settings.finish("the command line")?;
    let Some(plan) = plan else { return Err(Failure::refused("the command line is incomplete")) };
    let Some(output) = plan.output.clone() else { return Err(Failure::refused("no output: give -o FILE")) };
    Ok((plan, output))
}

/// The form for people.
fn text_of(form: Form) -> &'static str {
    match form {
        Form::Plain => "M x",
        Form::Dagger => "M^dagger x",
        Form::Normal => "M^dagger M x",
    }
}
