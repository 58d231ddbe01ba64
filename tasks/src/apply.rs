//! Applications of operators to fields in files.
use crate::device::DeviceChoice;
use crate::host_links::LinksRead;
use crate::layout::Cut;
use crate::plan::{FermionPlan, PRECISIONS, RECONSTRUCTIONS, are_together, name_of};
use crate::session::Session;
use crate::solve::note_storage;
use crate::{Failure, Outcome, fields, target};
use ferrite::FermionKind;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::operators::OperatorForm;
use ferrite::solve::apply_memory;
use ferrite_inputs::Input;
use ferrite_records::operator::ApplyRecord;
use std::path::PathBuf;

/// Request to apply an operator to fields in files.
pub struct ApplyRequest {
    plan: FermionPlan,
    form: OperatorForm,
    /// Whether the Schur complement is applied instead of M.
    complement: bool,
    device: DeviceChoice,
    output: PathBuf,
}

impl ApplyRequest {
    /// Reads the request from an input. Fails with a list of all mistakes in the input. `complement` requests the Schur complement instead
    /// of M.
    ///
    /// # Errors
    /// All mistakes of the input; storage of links in temporal gauge.
    pub fn read(input: &mut Input, form: OperatorForm, complement: bool) -> Outcome<Self> {
        let device = DeviceChoice::of(input);
        let plan = FermionPlan::for_apply(input);
        let staggered = plan.as_ref().is_some_and(|plan| plan.operator.kind() == FermionKind::Staggered);
        if complement && staggered {
            let [schur, normal] = ["schur", "normal"].map(|key| input.spelled(key, ""));
            input.missing(format!(
                "{schur} applies only to Wilson-like operators: remove it; {normal} applies M^+ M, which is the Schur \
                 complement of a staggered operator on each parity"
            ));
        }
        are_together(input, plan.as_ref().map_or(0, |plan| plan.sources.len()));
        input.finish("the command line")?;
        let Some(plan) = plan else {
            return Err(Failure::refused(
                "the settings of the operator are incomplete: `ferrite apply --help` lists the flags",
            ));
        };
        let Some(output) = plan.output.clone() else { return Err(Failure::refused("no output file")) };
        if let Some(storage) = plan.reconstruction.filter(|storage| storage.temporal) {
            let reconstruct = plan.read.by.spelled("reconstruct", name_of(&RECONSTRUCTIONS, storage));
            let why = format!(
                "{reconstruct}: links in temporal gauge are available for solve and bench only; use 18, 12 or 8"
            );
            return Err(Failure::refused(why));
        }
        Ok(ApplyRequest { plan, form, complement, device, output })
    }
    /// *Collective.* Applies the operator to the sources and writes the resulting fields. Returns the record, and a text that names the
    /// operator and the lattice.
    ///
    /// # Errors
    /// Files that cannot be read or written, too little memory, and failures of the device.
    pub fn apply(&self, session: &Session) -> Outcome<(ApplyRecord, String)> {
        match self.plan.operator.kind() {
            FermionKind::Wilson => self.apply_to::<Spinor>(session),
            FermionKind::Staggered => self.apply_to::<ColourVector>(session),
        }
    }
    fn apply_to<F: Fermion>(&self, session: &Session) -> Outcome<(ApplyRecord, String)> {
        let (comm, plan) = (&session.comm, &self.plan);
        target::claim(comm, &plan.inputs(&[]), &[&self.output])?;
        let device = self.device.open(comm)?;
        let layout = plan.cut(&self.device.layout, comm)?;
        let Cut { local, grid } = layout.cut();
        let storage = plan.largest_storage();
        let needs = apply_memory(&plan.operator, local, &grid, plan.sources.len(), plan.precision, storage);
        let needs = plan.with_smearing(layout.cut(), needs);
        device.require_all(comm, &needs, &format!("the operator on {}", plan.lattice))?;
        let links = LinksRead::of(plan, &layout, comm)?.smeared(plan, &device, &layout, session)?;
        let sources = plan.fields::<F>(&plan.sources, &layout)?;
        let (images, used) = {
            let domain = layout.domain(device.backend())?;
            let configuration = links.links.on(&domain)?;
            let LinksRead { operator, storage, .. } = &links;
            configuration
                .apply(self.form, self.complement, &sources, operator, plan.precision, *storage)
                .map_err(Failure::from)
        }?;
        note_storage(plan.reconstruction.unwrap_or(used), used);
        let title = format!("image under the {} operator", plan.definition().title);
        fields::write_fermions(&self.output, &images, &title, &layout)?;
        let mut norms: Vec<f64> = images.iter().map(HostField::norm2).collect();
        comm.sum(&mut norms)?;
        let record = ApplyRecord {
            system: plan.record(&links.operator),
            mass: plan.operator.mass(),
            dagger: self.form == OperatorForm::Dagger,
            normal: self.form == OperatorForm::Normal,
            schur: self.complement,
            precision: name_of(&PRECISIONS, plan.precision).into(),
            reconstruct: name_of(&RECONSTRUCTIONS, used).into(),
            output: self.output.clone(),
            norm2: norms,
            place: device.record(&layout),
        };
        Ok((record, plan.headline(&links.operator)))
    }
}
