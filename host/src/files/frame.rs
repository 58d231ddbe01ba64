//! What stands around the data of a file that is written.
use super::collective;
use super::error::Problem;
use super::parts::FileParts;
use super::payload::{self, PartialChecksum, StoredForm};
use super::{Arrangement, columns, openqcd};
use crate::lattice::Lattice;
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that may tell the checksum of the data.
pub(crate) type Text = Box<dyn Fn(PartialChecksum) -> Vec<u8>>;

/// A file but for its data.
pub(crate) struct Frame {
    /// Extents of the whole field.
    pub lattice: Lattice,
    /// How its numbers are stored.
    pub form: StoredForm,
    /// How they lie in the file.
    pub arrangement: Arrangement,
    /// What comes before; as long whatever the checksum is.
    pub head: Text,
    /// What comes after.
    pub tail: Text,
}

impl Frame {
    /// For a format with nothing after the data.
    pub fn headed(lattice: Lattice, form: StoredForm, head: impl Fn(PartialChecksum) -> Vec<u8> + 'static) -> Self {
        let arrangement = Arrangement::Sites;
        Self { lattice, form, arrangement, head: Box::new(head), tail: Box::new(|_| Vec::new()) }
    }
    /// Writes the file from its first byte to the last, with fields that stand one after the other. They are encoded
    /// twice, first for the checksum, which may stand before them. Only formats without a checksum take several.
    pub fn write_to(&self, writer: &mut dyn Write, fields: &[&[Complex64]]) -> Result<(), Problem> {
        let sum = self.encode(fields, &mut |_| Ok(()))?;
        let mut put = |bytes: &[u8]| writer.write_all(bytes).map_err(Problem::io("write"));
        put(&(self.head)(sum))?;
        self.encode(fields, &mut put)?;
        put(&(self.tail)(sum))
    }
    /// Hands on the bytes of the data, and returns their checksum.
    fn encode(
        &self,
        fields: &[&[Complex64]],
        sink: &mut dyn FnMut(&[u8]) -> Result<(), Problem>,
    ) -> Result<PartialChecksum, Problem> {
        let (form, mut sum) = (&self.form, PartialChecksum::default());
        match self.arrangement {
            Arrangement::Columns(order) => sum = columns::encode(self.lattice, form, order, fields, sink)?,
            Arrangement::OpenQcd => {
                fields.iter().try_for_each(|values| openqcd::encode(self.lattice, form, values, &mut *sink))?;
            }
            Arrangement::Sites | Arrangement::Directions(_) => {
                for values in fields {
                    sum = payload::encode(values, form, 0, &mut *sink)?;
                }
            }
        }
        Ok(sum)
    }
    /// *Collective.* Writes the file, each process its part of the fields, which stand one after the other. Only formats
    /// without a checksum take several.
    pub fn write_parts(&self, path: &Path, fields: &[&[Complex64]], parts: &FileParts) -> Result<(), Problem> {
        let form = &self.form;
        let offset = (self.head)(PartialChecksum::default()).len() as u64;
        let field = self.lattice.volume() as u64 * form.site_bytes() as u64;
        let count = if let Arrangement::Columns(_) = self.arrangement { 1 } else { fields.len() };
        let (end, section) = (offset + count as u64 * field, parts.mine());
        let fill = |file: &File| {
            let mut sum = PartialChecksum::default();
            match self.arrangement {
                Arrangement::Columns(order) => sum = columns::write(file, offset, form, order, section, fields)?,
                Arrangement::OpenQcd => {
                    fields.iter().try_for_each(|values| openqcd::write(file, form, section, values))?;
                }
                Arrangement::Sites | Arrangement::Directions(_) => {
                    for (number, values) in fields.iter().enumerate() {
                        sum = payload::write(file, offset + number as u64 * field, values, form, &section.into())?;
                    }
                }
            }
            Ok(sum.to_bytes())
        };
        let finish = |file: &File, sums: Vec<Vec<u8>>| {
            let sums = sums.iter().map(|bytes| PartialChecksum::from_bytes(bytes));
            let sum = sums.fold(PartialChecksum::default(), |a, b| form.combine(a, b));
            let put = |bytes: &[u8], offset: u64| file.write_all_at(bytes, offset).map_err(SystemError::of("write"));
            put(&(self.head)(sum), 0)?;
            put(&(self.tail)(sum), end)
        };
        collective::write_parts(path, end, parts.network, fill, finish)
    }
}
