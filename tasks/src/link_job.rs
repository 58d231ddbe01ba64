//! Tasks that read links from a file, change them on the device, and write them to another file.
use crate::device::{Device, DeviceChoice};
use crate::fields::{Reading, gauge_format, gauge_precision, lattice_of, read_gauge, require_host_memory, write_gauge};
use crate::layout::Layout;
use crate::session::Session;
use crate::{Failure, Outcome, target};
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::host::HostGauge;
use ferrite::files::{FileFormat, FilePrecision, GaugeFile, WriteOptions};
use ferrite::halo::{Exchanges, Needs};
use ferrite::lattice::Lattice;
use ferrite_records::links::ChangedLinks;
use std::path::PathBuf;

/// Input and output file of a command that changes links, and the device that it uses.
pub struct LinkFilesRequest {
    /// File that is read.
    pub input: PathBuf,
    /// File that is written.
    pub output: PathBuf,
    /// Options for reading the input file.
    pub reading: Reading,
    /// Choice of the device that changes the links.
    pub device: DeviceChoice,
}

/// Links that were read, with the open device that will change them.
pub(crate) struct LinkJob<'a> {
    files: &'a LinkFilesRequest,
    /// The whole lattice.
    pub lattice: Lattice,
    /// Partition of the lattice among the processes.
    pub layout: Layout,
    /// Open device, whose memory suffices.
    pub device: Device,
    /// This process's part of the links, as read.
    pub file: GaugeFile,
    format: &'static FileFormat,
    precision: FilePrecision,
}

impl<'a> LinkJob<'a> {
    /// *Collective.* Checks that the output can be written and is not the input, reads this process's part of the links, and opens the
    /// device. `needs` returns the memory that the work `what` needs on a part of the lattice, by name, without the memory for messages.
    pub fn begin(
        files: &'a LinkFilesRequest,
        what: &str,
        needs: impl FnOnce(Part) -> Needs,
        session: &Session,
    ) -> Outcome<Self> {
        let (comm, LinkFilesRequest { input, output, reading, device: choice }) = (&session.comm, files);
        let format = comm.agree(gauge_format(output).map_err(Failure::refused))?;
        target::claim(comm, &[input], &[output])?;
        let lattice = lattice_of(input, reading, comm)?;
        let layout = choice.layout.cut(comm, lattice, 1)?;
        let part = Part::new(layout.local(), layout.grid());
        require_host_memory(comm, layout.local(), 2 * 576, &input.display().to_string())?;
        let device = choice.open(comm)?;
        let mut needs = needs(part);
        needs.push(("transfer of links to the host", 576 * layout.local().volume()));
        needs.extend(Exchanges::of(part).border(Precision::Double).needs());
        device.require_all(comm, &needs, what)?;
        let file = read_gauge(input, reading, &layout, comm)?;
        let precision = comm.agree(gauge_precision(None, file.header.precision, format).map_err(Failure::refused))?;
        Ok(LinkJob { files, lattice, layout, device, file, format, precision })
    }
    /// *Collective.* Writes the links. The title in the file is `title`, followed by the name of the input file.
    pub fn write(&self, links: &HostGauge, title: &str) -> Outcome {
        let title = format!("{title}, from {}", self.files.input.display());
        let options = WriteOptions { format: self.format, precision: self.precision, title, ..Default::default() };
        write_gauge(&self.files.output, links, &options, &self.layout)
    }
    /// Returns the record of the files and the device.
    pub fn record(&self) -> ChangedLinks {
        ChangedLinks {
            input: self.files.input.clone(),
            output: self.files.output.clone(),
            lattice: self.lattice.size(),
            format: self.format.name.into(),
            precision: self.precision.to_string(),
            place: self.device.record(&self.layout),
        }
    }
}
