//! Helpers for tests of files that many ranks, here threads, read and write.
use comms::{Communicator, ProcessGrid, Threads};
use ferrite::field::host::{Fermion, HostField};
use ferrite::files::FileError;
use ferrite::lattice::{Lattice, Section};
use ferrite::network::Network;
use std::fs;
use std::path::PathBuf;

/// Returns the results of `work` on every rank of a grid.
pub fn on<T: Send>(grid: [usize; 4], lattice: Lattice, work: impl Fn(&dyn Network, &Section) -> T + Sync) -> Vec<T> {
    let grid = ProcessGrid::new(grid).unwrap();
    // Parts of a lattice with odd extents may have any.
    grid.check(lattice.size(), usize::from(lattice.require_even().is_ok())).unwrap();
    let rank = |world: Threads| {
        let origin = grid.origin(Communicator::rank(&world), lattice.size());
        let local = Lattice::of_any_extents(grid.local_extents(lattice.size())).map_err(|e| e.to_string())?;
        Ok::<_, String>(work(&world, &Section { global: lattice, origin, local }))
    };
    Threads::run(grid.size(), rank).unwrap()
}

/// The sections of all ranks of a grid.
pub fn sections(grid: [usize; 4], lattice: Lattice) -> Vec<Section> {
    on(grid, lattice, |_, section| *section)
}

pub fn field_of<T: Fermion>(section: &Section, field: &HostField<T>) -> HostField<T> {
    let sites = (0..section.local.volume()).map(|site| field.sites()[section.global_index(site)]);
    HostField::from_sites(section.local, sites.collect())
}

/// A folder whose files are known.
pub struct FileRoom(tempfile::TempDir);

impl FileRoom {
    pub fn new() -> Self {
        FileRoom(tempfile::tempdir().unwrap())
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    pub fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// One sentence, the same on all ranks.
pub fn sentence<T>(results: Vec<Result<T, FileError>>) -> String {
    let ranks = results.len();
    let sentences: Vec<String> = results.into_iter().filter_map(Result::err).map(|e| e.to_string()).collect();
    assert_eq!(sentences.len(), ranks, "some ranks succeed: {sentences:?}");
    assert!(sentences.iter().all(|s| *s == sentences[0]), "{sentences:#?}");
    sentences[0].clone()
}
