//! Files of fat and long links of improved staggered fermions.
use crate::device::DeviceChoice;
use crate::fields::{Reading, gauge_format, lattice_of, read_gauge, write_gauge};
use crate::host_links::with_tadpole;
use crate::session::Session;
use crate::{Failure, Outcome, target};
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::files::{FileFormat, FilePrecision, WriteOptions};
use ferrite::halo::Exchanges;
use ferrite::operators::fat_links::{self, Improvement, with_phases};
use ferrite::operators::{Smearing, StaggeredOperator, StaggeredPhases, Tadpole, TimeBoundary};
use ferrite_records::links::LinksRecord;
use std::path::{Path, PathBuf};

/// Request to make fat and long links from a configuration.
pub struct ImprovedLinksRequest {
    /// File of the configuration.
    pub input: PathBuf,
    /// Options for reading the configuration.
    pub reading: Reading,
    /// File of fat links.
    pub fat: PathBuf,
    /// File of long links.
    pub long: PathBuf,
    /// Precision of the numbers in the files.
    pub precision: FilePrecision,
    /// Operator for which the links are made.
    pub operator: StaggeredOperator,
    /// Boundary condition of fermions in t, whose sign the links contain.
    pub boundary: TimeBoundary,
    /// Device that computes the links.
    pub device: DeviceChoice,
}

impl ImprovedLinksRequest {
    /// *Collective.* Reads a configuration, and writes its fat and long links. Returns the record, and a title for people.
    ///
    /// # Errors
    /// Files that cannot be read or written, too little memory, and failures of the device.
    pub fn make(&self, session: &Session) -> Outcome<(LinksRecord, String)> {
        let comm = &session.comm;
        let formats = format_of(&self.fat).and_then(|fat| Ok([fat, format_of(&self.long)?]));
        let [fat_format, long_format] = comm.agree(formats)?;
        target::claim(comm, &[&self.input], &[&self.fat, &self.long])?;
        let device = self.device.open(comm)?;
        let lattice = lattice_of(&self.input, &self.reading, comm)?;
        let layout = self.device.layout.cut(comm, lattice, 3)?;
        let file = read_gauge(&self.input, &self.reading, &layout, comm)?;
        let part = Part::new(layout.local(), layout.grid());
        // Memory is needed for three gauge fields: thin, fat and long links. HISQ also needs the fat links of the first level and their
        // projection to U(3).
        let fields = if matches!(self.operator.smearing, Smearing::Hisq(_)) { 5 } else { 3 };
        let mut needs = vec![
            ("thin, fat and long links in double precision", fields * part.links_bytes(Precision::Double)),
            ("staples", fat_links::workspace_bytes(part.bordered_sites())),
        ];
        needs.extend(Exchanges::of(part).border(Precision::Double).needs());
        device.require_all(comm, &needs, &format!("fat links on {lattice}"))?;
        let operator = with_tadpole(&self.operator.into(), &self.input, file.plaquette.mean, self.reading.by)?;
        let smearing = operator.smearing();
        let (mut fat, mut long) = {
            let backend = device.backend();
            let domain = layout.domain(backend)?;
            let links = Improvement::of(&GaugeField::upload(&domain, &file.gauge)?, smearing)?;
            Ok::<_, Failure>((links.fat.download()?, links.long.download()?))
        }?;
        for (links, steps) in [(&mut fat, 1), (&mut long, 3)] {
            with_phases(links, layout.section, steps, StaggeredPhases::Milc, self.boundary);
        }
        let title = |what: &str| match smearing {
            Smearing::Asqtad(Tadpole::Given(u0)) => format!("{what} asqtad links, u0 = {u0}"),
            Smearing::Hisq(epsilon) => format!("{what} HISQ links, epsilon = {epsilon}"),
            _ => format!("{what} links"),
        };
        let write = |path: &Path, links: &HostGauge, format, what| {
            let options = WriteOptions { format, precision: self.precision, title: title(what), ..Default::default() };
            write_gauge(path, links, &options, &layout)
        };
        write(&self.fat, &fat, fat_format, "fat")?;
        write(&self.long, &long, long_format, "long")?;
        let largest = |links: &HostGauge| {
            comm.largest(links.links().iter().flatten().flatten().map(|z| z.norm()).fold(0.0, f64::max))
        };
        let (largest_fat, largest_long) = (largest(&fat)?, largest(&long)?);
        let record = LinksRecord {
            input: self.input.clone(),
            fat: self.fat.clone(),
            long: self.long.clone(),
            operator: operator.definition().name.into(),
            smearing: operator.describe_smearing(false),
            bc_time: if self.boundary == TimeBoundary::Periodic { "periodic" } else { "antiperiodic" }.into(),
            largest_fat,
            largest_long,
            lattice: lattice.size(),
            place: device.record(&layout),
        };
        Ok((record, title("fat and long")))
    }
}

/// Returns the format of a file for links that are not in SU(3). Fails if the format holds only SU(3).
fn format_of(path: &Path) -> Outcome<&'static FileFormat> {
    let format = gauge_format(path).map_err(Failure::refused)?;
    if format.links.is_some_and(|links| links.off_su3) {
        return Ok(format);
    }
    let why = format!(
        "{}: this format ({format}) holds only links in SU(3), but fat and long links are not in SU(3); end the name \
         in .scidac or .npy",
        path.display()
    );
    Err(Failure::refused(why))
}
