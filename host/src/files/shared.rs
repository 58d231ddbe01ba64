//! A file that several processes read or write together.
use crate::lattice::Section;
use crate::network::Network;
use std::path::Path;

/// A file that many processes read or write together. Each process has a section of the field, and the sections make up the lattice.
///
/// Use it in place of a path: `read_gauge(SharedFile::new(&path, network).part(&section), &options)`.
#[derive(Clone, Copy)]
pub struct SharedFile<'a> {
    pub(super) path: &'a Path,
    pub(super) network: &'a dyn Network,
    /// Section of this process; `None` for the whole field on a single process.
    pub(super) section: Option<Section>,
}

impl<'a> SharedFile<'a> {
    /// Makes a shared file from a path and the network of all processes; the path must be the same on all processes. No section is needed
    /// for [`inspect`](super::inspect).
    pub fn new(path: &'a (impl AsRef<Path> + ?Sized), network: &'a dyn Network) -> Self {
        SharedFile { path: path.as_ref(), network, section: None }
    }
    /// Sets the section of the field that this process reads or writes. A file that is read must be on the lattice `section.global`.
    #[must_use]
    pub fn part(self, section: &Section) -> Self {
        SharedFile { section: Some(*section), ..self }
    }
}
