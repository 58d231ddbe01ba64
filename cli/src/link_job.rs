//! What commands have in common that read links, change them on the device and write them: `smear` and `fix-gauge`.
use super::device::Device;
use super::fields::{gauge_format, gauge_precision, lattice_of, read_gauge, require_host_memory, write_gauge};
use super::layout::Layout;
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, target};
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::host::HostGauge;
use ferrite::files::{FileFormat, FilePrecision, GaugeFile, WriteOptions};
use ferrite::halo::{Exchanges, Needs};
use ferrite::lattice::Lattice;
use ferrite_records::links::ChangedLinks;
use std::path::{Path, PathBuf};

/// Links that were read, and what they are to be changed and written with.
pub struct LinkJob {
    /// The lattice.
    pub lattice: Lattice,
    /// How it is cut.
    pub layout: Layout,
    /// The device, which has the memory.
    pub device: Device,
    /// The links.
    pub file: GaugeFile,
    input: PathBuf,
    output: PathBuf,
    format: &'static FileFormat,
    precision: FilePrecision,
}

impl LinkJob {
    /// *Collective.* Claims the files, reads this process's part of the links and opens the device. `needs` says what the work, called
    /// `what`, takes there beside messages, for a part of the lattice.
    pub fn begin(
        [input, output]: [&Path; 2],
        read: &ReadFlags,
        what: &str,
        needs: impl FnOnce(Part) -> Needs,
        context: &Context,
    ) -> Outcome<Self> {
        let (choice, comm) = (context.device_choice()?, &context.comm);
        let reading = read.reading();
        let format = comm.agree(gauge_format(output).map_err(Failure::refused))?;
        target::claim(comm, &[input], &[output])?;
        let lattice = lattice_of(input, &reading, comm)?;
        let layout = choice.layout.cut(comm, lattice, 1)?;
        let part = Part::new(layout.local(), layout.grid());
        require_host_memory(comm, layout.local(), 2 * 576, &input.display().to_string())?;
        let device = choice.open(comm)?;
        let mut needs = needs(part);
        needs.push(("their way to the host", 576 * layout.local().volume()));
        needs.extend(Exchanges::of(part).border(Precision::Double).needs());
        device.require_all(comm, &needs, what)?;
        let file = read_gauge(input, &reading, &layout, comm)?;
        let precision = comm.agree(gauge_precision(None, file.header.precision, format).map_err(Failure::refused))?;
        Ok(LinkJob { lattice, layout, device, file, input: input.into(), output: output.into(), format, precision })
    }
    /// *Collective.* Writes links, called `title` and where they are from.
    pub fn write(&self, links: &HostGauge, title: &str) -> Outcome {
        let title = format!("{title}, from {}", self.input.display());
        let options = WriteOptions { format: self.format, precision: self.precision, title, ..Default::default() };
        write_gauge(&self.output, links, &options, &self.layout)
    }
    /// Returns the record of files and device.
    pub fn record(&self) -> ChangedLinks {
        ChangedLinks {
            input: self.input.clone(),
            output: self.output.clone(),
            lattice: self.lattice.size(),
            format: self.format.name.into(),
            precision: self.precision.to_string(),
            place: self.device.record(&self.layout),
        }
    }
}
