//! Random numbers and rational functions from files, to repeat the run of another program.
//!
//! | file | content |
//! |---|---|
//! | `momenta.N` | momenta at the start of trajectory N; the traceless anti-Hermitian parts of the matrices are used |
//! | `pseudofermions.N.K` | ξ of pseudofermion K, counted from 0 over all quark groups; odd sites are ignored |
//! | `noise.N.K` | noise vector K of the condensates, counted over quark groups, masses with condensates, and vectors; without the file, Ferrite's own |
//! | `functions.json` | rational functions of −D² for each quark group; without the file, Ferrite's own |
//!
//! Fields are `.npy` files, or have another format that `ferrite` reads.
use super::input::EnsembleInput;
use crate::communicator::RunCommunicator;
use crate::fields::{self, Reading, Source};
use crate::layout::Layout;
use crate::{Failure, Outcome, text};
use ferrite::field::host::{ColourVector, HostColour, HostGauge};
use ferrite::files::ReadOptions;
use ferrite::hmc::fermions::RationalFunctions;
use ferrite::hmc::trajectory::Noise;
use ferrite_records::rational::{FunctionOfPoles, GroupFunctions, PoleOfFunction};
use ferrite_records::read::read;
use rational::{PartialFractions, Pole};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// File name endings that are tried, in order.
const ENDINGS: [&str; 4] = ["npy", "ildg", "scidac", "lime"];

/// Folder with the momenta, noise and rational functions of another run.
pub struct Replay {
    folder: PathBuf,
}

/// Momenta and noise that a trajectory takes from files.
pub struct GivenNumbers {
    momenta: HostGauge,
    pseudofermions: Vec<HostColour>,
}

/// Name of the file with the rational functions.
const FUNCTIONS: &str = "functions.json";

fn pseudofermions(input: &EnsembleInput) -> usize {
    input.groups.iter().map(|group| group.pseudofermions()).sum()
}

impl GivenNumbers {
    /// Returns the momenta and the noise in the form that a chain takes.
    pub fn noise(&self) -> Noise<'_> {
        Noise { momenta: &self.momenta, pseudofermions: &self.pseudofermions }
    }
}

impl Replay {
    /// Opens a folder. Fails if it does not exist.
    pub fn open(folder: &Path) -> Outcome<Self> {
        if folder.is_dir() {
            return Ok(Replay { folder: folder.into() });
        }
        Err(Failure::refused(format!(
            "{} is not a folder: --replay needs a folder with momenta and noise",
            folder.display()
        )))
    }
    /// Returns the path of the folder as typed.
    pub fn folder(&self) -> String {
        self.folder.display().to_string()
    }
    fn find(&self, name: &str) -> Option<PathBuf> {
        ENDINGS.iter().map(|ending| self.folder.join(format!("{name}.{ending}"))).find(|path| path.is_file())
    }
    fn needed(&self, name: &str) -> Outcome<PathBuf> {
        self.find(name).ok_or_else(|| {
            let why = format!("{}: the file {name}.npy, which --replay needs, is missing", self.folder.display());
            Failure::refused(why)
        })
    }
    /// Fails unless the folder has all files that trajectory `number` needs.
    pub fn has(&self, number: u32, input: &EnsembleInput) -> Outcome {
        self.needed(&format!("momenta.{number}"))?;
        (0..pseudofermions(input)).try_for_each(|k| self.needed(&format!("pseudofermions.{number}.{k}")).map(drop))
    }
    /// Returns whether the folder has rational functions.
    pub fn has_functions(&self) -> bool {
        self.folder.join(FUNCTIONS).is_file()
    }
    /// *Collective.* Reads the momenta and noise of trajectory `number`.
    pub fn trajectory(
        &self,
        number: u32,
        input: &EnsembleInput,
        layout: &Layout,
        comm: &RunCommunicator,
    ) -> Outcome<GivenNumbers> {
        let options = ReadOptions { allow_non_unitary: true, verify: false, ..Default::default() };
        let read = Reading { options, ..Default::default() };
        let path = comm.agree(self.needed(&format!("momenta.{number}")))?;
        let lattice = fields::lattice_of(&path, &read, comm)?;
        if lattice != layout.lattice() {
            let (path, own) = (path.display(), layout.lattice());
            let why = format!("{path} is on {lattice}, but the run is on {own}: name another folder");
            return Err(Failure::refused(why).shared());
        }
        let momenta = fields::read_gauge(&path, &read, layout, comm)?.gauge;
        let one = |k: usize| {
            let path = comm.agree(self.needed(&format!("pseudofermions.{number}.{k}")))?;
            self.colour(&path, layout, comm)
        };
        Ok(GivenNumbers { momenta, pseudofermions: (0..pseudofermions(input)).map(one).collect::<Outcome<_>>()? })
    }
    /// *Collective.* Returns noise vector `which` of the condensates after trajectory `number`; `None` if the folder does not have it.
    pub fn noise(
        &self,
        number: u32,
        which: usize,
        layout: &Layout,
        comm: &RunCommunicator,
    ) -> Outcome<Option<HostColour>> {
        let name = format!("noise.{number}.{which}");
        let found = self.find(&name);
        // If one process finds the file, all processes must read it. A process that does not find the file then fails, and so the run fails
        // on all processes.
        let somewhere = comm.largest(f64::from(u8::from(found.is_some())))? > 0.0;
        let path = if somewhere { Some(comm.agree(found.map_or_else(|| self.needed(&name), Ok))?) } else { None };
        path.map(|path| self.colour(&path, layout, comm)).transpose()
    }
    fn colour(&self, path: &Path, layout: &Layout, comm: &RunCommunicator) -> Outcome<HostColour> {
        let source = Source::File(path.into(), 0);
        comm.agree(source.clone().check::<ColourVector>(layout.lattice()).map_err(Failure::refused))?;
        source.field(layout)
    }
    /// Returns the rational functions of all quark groups; `None` if the folder does not have them.
    pub fn functions(&self, groups: usize) -> Outcome<Option<Vec<RationalFunctions>>> {
        let path = self.folder.join(FUNCTIONS);
        if !path.is_file() {
            return Ok(None);
        }
        let refused = |why: String| Failure::refused(format!("{}: {why}", path.display()));
        let text = fs::read_to_string(&path).map_err(|why| refused(format!("the file cannot be read: {why}")))?;
        let all: Value = serde_json::from_str(&text).map_err(|why| refused(format!("the file is not JSON: {why}")))?;
        let all: Vec<GroupFunctions> = read(&all).map_err(refused)?;
        if all.len() != groups {
            let (there, tables) = (text::count(all.len(), "object"), text::count(groups, "table"));
            return Err(refused(format!(
                "the file has {there}, but the input has {tables} [[fermion]]: give one object for each table"
            )));
        }
        let function = |FunctionOfPoles { constant, poles }: FunctionOfPoles| {
            let poles = poles.into_iter().map(|PoleOfFunction { residue, shift }| Pole { residue, shift }).collect();
            PartialFractions { constant, poles }
        };
        let one = |(number, GroupFunctions { dynamics, heat_bath, action }): (usize, GroupFunctions)| {
            for (name, of) in [("dynamics", &dynamics), ("heat_bath", &heat_bath), ("action", &action)] {
                if let Some(pole) = of.poles.iter().find(|pole| pole.shift <= 0.0) {
                    return Err(refused(format!(
                        "object {number}, counted from 0: the shift {} in {name} is not above 0; correct the shift, or \
                         remove the file to use Ferrite's own functions",
                        pole.shift
                    )));
                }
            }
            let [dynamics, heat_bath, action] = [dynamics, heat_bath, action].map(function);
            Ok(RationalFunctions { dynamics, heat_bath, action })
        };
        all.into_iter().enumerate().map(one).collect::<Outcome<Vec<_>>>().map(Some)
    }
}
