//! Headers and trailers around the data of a file that is written.
use super::collective;
use super::error::Problem;
use super::parts::FileParts;
use super::payload::{self, PartialChecksum, StoredForm};
use super::{Arrangement, arrangement, columns};
use crate::lattice::Lattice;
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Function that returns the bytes of a header or trailer, which may contain the checksum of the data.
pub(crate) type Text = Box<dyn Fn(PartialChecksum) -> Vec<u8>>;

/// All parts of a file except its data.
pub(crate) struct Frame {
    /// Extents of the whole field.
    pub lattice: Lattice,
    /// Storage of the numbers. In a file with a record for each direction, it describes one record.
    pub form: StoredForm,
    /// Arrangement of the numbers in the file.
    pub arrangement: Arrangement,
    /// Bytes before the data, as a function of the checksum. Their length does not depend on the checksum.
    pub head: Text,
    /// Bytes between two consecutive records of data, one entry for each gap, as functions of the checksum of the record before. Their
    /// length does not depend on the checksum.
    pub between: Vec<Text>,
    /// Bytes after the data, as a function of the checksum.
    pub tail: Text,
}

impl Frame {
    /// Makes the frame of a file with the header `head`, the data site by site, and no bytes after the data.
    pub fn headed(lattice: Lattice, form: StoredForm, head: impl Fn(PartialChecksum) -> Vec<u8> + 'static) -> Self {
        let arrangement = Arrangement::Sites;
        Self { lattice, form, arrangement, head: Box::new(head), between: Vec::new(), tail: Box::new(|_| Vec::new()) }
    }
    /// Returns the number of records of data.
    fn records(&self) -> usize {
        self.between.len() + 1
    }
    /// Returns the bytes after the record with this number.
    fn after(&self, record: usize) -> &Text {
        self.between.get(record).unwrap_or(&self.tail)
    }
    /// Writes a file from its beginning to its end, with several fields one after another. Fields are encoded twice, because the checksum
    /// may precede the data. Only formats without a checksum support several fields.
    pub fn write_to(&self, writer: &mut dyn Write, fields: &[&[Complex64]]) -> Result<(), Problem> {
        let first = self.encode(0, fields, &mut |_| Ok(()))?;
        let mut put = |bytes: &[u8]| writer.write_all(bytes).map_err(Problem::io("write"));
        put(&(self.head)(first))?;
        (0..self.records()).try_for_each(|record| {
            let sum = self.encode(record, fields, &mut put)?;
            put(&(self.after(record))(sum))
        })
    }
    /// Passes the data of one record to the sink, and returns their checksum.
    fn encode(
        &self,
        record: usize,
        fields: &[&[Complex64]],
        sink: &mut dyn FnMut(&[u8]) -> Result<(), Problem>,
    ) -> Result<PartialChecksum, Problem> {
        let (form, mut sum) = (&self.form, PartialChecksum::default());
        match self.arrangement {
            Arrangement::Columns(order) => sum = columns::encode(self.lattice, form, order, fields, sink)?,
            Arrangement::Own(own) => (own.encode)(self.lattice, form, fields, sink)?,
            Arrangement::Directions(_) => {
                for values in fields {
                    sum = payload::encode(&arrangement::direction(values, record), form, 0, &mut *sink)?;
                }
            }
            Arrangement::Sites => {
                for values in fields {
                    sum = payload::encode(values, form, 0, &mut *sink)?;
                }
            }
        }
        Ok(sum)
    }
    /// *Collective.* Writes a file with several fields one after another; each process writes its part of every field. Only formats without
    /// a checksum support several fields.
    pub fn write_parts(&self, path: &Path, fields: &[&[Complex64]], parts: &FileParts) -> Result<(), Problem> {
        let form = &self.form;
        let offset = (self.head)(PartialChecksum::default()).len() as u64;
        let field = self.lattice.volume() as u64 * form.site_bytes() as u64;
        let count = match self.arrangement {
            Arrangement::Columns(_) | Arrangement::Own(_) => 1,
            _ => fields.len(),
        };
        // `ends` contains the offset at which the data of each record end.
        let ends = match self.arrangement {
            Arrangement::Directions(offsets) => offsets.map(|offset| offset + field).to_vec(),
            _ => vec![offset + count as u64 * field],
        };
        let (end, section) = (ends[ends.len() - 1], parts.mine());
        let fill = |file: &File| {
            let mut sums = vec![PartialChecksum::default(); ends.len()];
            match self.arrangement {
                Arrangement::Columns(order) => sums[0] = columns::write(file, offset, form, order, section, fields)?,
                Arrangement::Own(own) => (own.write)(file, offset, form, section, fields)?,
                Arrangement::Directions(offsets) => {
                    for (mu, offset) in offsets.into_iter().enumerate() {
                        for values in fields {
                            let links = arrangement::direction(values, mu);
                            sums[mu] = payload::write(file, offset, &links, form, &section.into())?;
                        }
                    }
                }
                Arrangement::Sites => {
                    for (number, values) in fields.iter().enumerate() {
                        sums[0] = payload::write(file, offset + number as u64 * field, values, form, &section.into())?;
                    }
                }
            }
            Ok(sums.into_iter().flat_map(PartialChecksum::to_bytes).collect())
        };
        let finish = |file: &File, answers: Vec<Vec<u8>>| {
            let of_record = |record: usize| {
                let sums = answers.iter().map(|sums| sums.chunks_exact(8).nth(record).unwrap_or_default());
                sums.map(PartialChecksum::from_bytes).fold(PartialChecksum::default(), |a, b| form.combine(a, b))
            };
            let put = |bytes: &[u8], offset: u64| file.write_all_at(bytes, offset).map_err(SystemError::of("write"));
            put(&(self.head)(of_record(0)), 0)?;
            let mut after = ends.iter().enumerate();
            after.try_for_each(|(record, end)| put(&(self.after(record))(of_record(record)), *end))
        };
        collective::write_parts(path, end, parts.network, fill, finish)
    }
}
