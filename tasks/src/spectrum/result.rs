//! Folder of a spectrum: a line for each configuration, arrays of correlators, and effective masses.
use super::input::SpectrumInput;
use super::kept::{difference, sweep, written};
use crate::communicator::RunCommunicator;
use crate::configured::{Configured, Match};
use crate::plot::write_svg;
use crate::{Failure, Outcome, target};
use ferrite::files::npy;
use ferrite::lattice::Lattice;
use ferrite_records::spectrum::{CorrelatorAxes, CorrelatorLine, CorrelatorName};
use ferrite_records::{Record, object};
use ferrite_report::analysis::AnalysisChoice;
use ferrite_report::analysis::pcac::PcacFit;
use ferrite_report::plot::error_bars::{self, ErrorBarPlot};
use ferrite_report::records::correlators::{
    AXES, Correlator, Correlators, HadronChannel, LINES, correlator_line, hadrons, pcac_channels,
};
use ferrite_report::records::ensemble::streams_of;
use ferrite_report::text::extents;
use num_complex::Complex64;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracing::warn;

/// Correlators of all configurations in the folder of a spectrum.
pub struct File {
    folder: PathBuf,
    done: Vec<(Configured, Correlators)>,
    /// Time at which lines were last added before this run, on the first process.
    written: Option<SystemTime>,
    /// Lines as read, on the first process.
    lines: target::Lines,
    /// File that keeps other processes away while it is open, on rank 0; `None` before the folder exists.
    lock: Option<fs::File>,
}

impl File {
    /// *Collective.* Reads the correlators in a folder, if the folder exists. Fails if they belong to another input.
    pub fn read(folder: &Path, input: &SpectrumInput, comm: &RunCommunicator) -> Outcome<Self> {
        let path = folder.join(LINES);
        let (mut lock, mut lines) = (None, target::Lines::default());
        comm.once(|| {
            // The folder is locked before its file is read, because another process may be adding lines.
            if folder.is_dir() {
                lock = Some(target::lock(folder).map_err(Failure::refused)?);
            }
            // An incomplete last line belongs to a configuration that is not done.
            lines = target::lines(&path, "{\"").map_err(Failure::refused)?;
            Ok(())
        })?;
        // All processes continue with the lines that the first process read.
        let text = comm.texts(&lines.text)?.swap_remove(0);
        let mut file = File { folder: folder.into(), done: Vec::new(), written: written(&path), lines, lock };
        let asked = Value::Object(object(&input.of_correlators()));
        for (number, line) in text.lines().enumerate() {
            let at = |why: String| Failure::refused(format!("{}, line {}: {why}", path.display(), number + 1)).shared();
            let value: Value = serde_json::from_str(line).map_err(|why| at(format!("this is not JSON: {why}")))?;
            if let Some(what) = difference(&value["input"], &asked) {
                return Err(at(format!("the line was made with another value of {what}: name another folder")));
            }
            let line = correlator_line(&value).map_err(at)?;
            let found = Correlators::of(&line).map_err(at)?;
            let CorrelatorLine { configuration: typed, file: canonical, content, .. } = line;
            let configuration = Configured { typed, canonical, stamp: None, content };
            file.fits(&configuration, &found).map_err(at)?;
            file.done.push((configuration, found));
        }
        Ok(file)
    }
    /// Fails if a configuration occurs twice, or if its correlators differ in kind from those of the first configuration.
    fn fits(&self, configuration: &Configured, found: &Correlators) -> Result<(), String> {
        if self.done.iter().any(|(other, _)| other.is_same(configuration)) {
            return Err(format!("{} occurs twice; remove one of the lines", configuration.typed.display()));
        }
        match self.done.first() {
            Some((first, other)) if !found.is_like(other) => {
                let (this, first) = (configuration.typed.display(), first.typed.display());
                Err(format!(
                    "the correlators of {this} differ from those of {first} in names, momenta or lattice: name another \
                     folder"
                ))
            }
            _ => Ok(()),
        }
    }
    /// Fails if the folder has configurations on another lattice, because all configurations are averaged.
    pub fn is_on(&self, lattice: Lattice) -> Outcome {
        let Some(before) = self.first().map(|first| first.lattice).filter(|before| *before != lattice.size()) else {
            return Ok(());
        };
        let (path, before) = (self.folder.join(LINES), extents(before));
        let why = format!(
            "{} has configurations on {before}, but this run would add configurations on {lattice}: name another folder",
            path.display()
        );
        Err(Failure::refused(why).shared())
    }
    /// *Collective.* Creates the folder of results and the folder of propagators, and locks the former against other processes. Fails if
    /// the propagators `kept` cannot be written.
    pub fn open(&mut self, input: &SpectrumInput, kept: &[PathBuf], comm: &RunCommunicator) -> Outcome {
        let File { lock, folder, lines, .. } = self;
        comm.once(|| {
            for folder in [Some(&*folder), input.propagators.as_ref()].into_iter().flatten() {
                fs::create_dir_all(folder).map_err(|why| {
                    Failure::refused(format!("the folder {} cannot be created: {why}", folder.display()))
                })?;
            }
            if let Some(propagators) = &input.propagators {
                // Incomplete files that cannot be removed take space but do no harm.
                if let Err(why) = sweep(propagators) {
                    warn!("{}: half-written files could not be removed: {why}", propagators.display());
                }
            }
            if let Some(propagators) = input.propagators.as_ref().filter(|_| !kept.is_empty()) {
                target::check(&propagators.join("*.npy")).map_err(Failure::refused)?;
            }
            let path = folder.join(LINES);
            if lock.is_none() {
                *lock = Some(target::lock(folder).map_err(Failure::refused)?);
                if path.exists() {
                    let why = "was created by another process in the meantime: start the same command again";
                    return Err(Failure::refused(format!("{} {why}", path.display())));
                }
            }
            target::check_lines(&path).map_err(Failure::refused)?;
            target::mend_last_line(&path, lines).map_err(Failure::failed)
        })
    }
    /// *Collective.* Returns whether a configuration has a line. Fails if the file has a line for other links at the same path.
    pub fn has(&self, configuration: &mut Configured, comm: &RunCommunicator) -> Outcome<bool> {
        let mut mine = false;
        comm.once(|| {
            let path = self.folder.join(LINES);
            for (number, (other, _)) in self.done.iter().enumerate() {
                let known = other.content.as_ref();
                match configuration.compare(&other.canonical, known, self.written)? {
                    Match::Other => {}
                    Match::Same => {
                        if known.is_none() {
                            let (path, typed, line) = (path.display(), configuration.typed.display(), number + 1);
                            warn!(
                                "{path}, line {line} was written by an earlier version and does not record the \
                                 contents of {typed}: changes of the links cannot be detected; delete the line to \
                                 measure the configuration again"
                            );
                        }
                        mine = true;
                        return Ok(());
                    }
                    Match::Replaced => {
                        return Err(Failure::refused(format!(
                            "the links in {} have changed since line {} of {} was written: name another folder with \
                             --out, or delete the line to measure the configuration again",
                            configuration.typed.display(),
                            number + 1,
                            path.display()
                        )));
                    }
                }
            }
            Ok(())
        })?;
        Ok(comm.largest(f64::from(u8::from(mine)))? > 0.0)
    }
    /// *Collective.* Adds the line of a configuration.
    pub fn add(&mut self, configuration: &Configured, line: &CorrelatorLine, comm: &RunCommunicator) -> Outcome {
        let found = Correlators::of(line).map_err(Failure::failed)?;
        self.fits(configuration, &found).map_err(|why| Failure::refused(why).shared())?;
        let (line, path) = (line.with_schema(), self.folder.join(LINES));
        comm.once(|| target::append_line(&path, &line).map_err(Failure::failed))?;
        self.done.push((configuration.clone(), found));
        Ok(())
    }
    /// Returns the files of the configurations, as typed.
    pub fn names(&self) -> Vec<String> {
        self.done.iter().map(|(configuration, _)| configuration.typed.display().to_string()).collect()
    }
    /// Returns the correlators of the first configuration; `None` if there is none.
    pub fn first(&self) -> Option<&Correlators> {
        self.done.first().map(|(_, found)| found)
    }
    /// Returns the hadrons whose effective masses are shown; empty before the first configuration.
    pub fn channels(&self) -> Vec<HadronChannel> {
        self.done.first().map_or_else(Vec::new, |(_, found)| hadrons(found))
    }
    /// Returns the PCAC quark masses with bins of `bin` configurations; empty before the first configuration.
    pub fn pcac(&self, bin: usize) -> Vec<PcacFit> {
        let channels = self.done.first().map_or_else(Vec::new, |(_, found)| pcac_channels(found));
        if channels.is_empty() {
            return Vec::new();
        }
        let (order, choice) = self.chain(bin);
        let all: Vec<Correlators> = order.into_iter().map(|k| self.done[k].1.clone()).collect();
        channels.iter().filter_map(|channel| PcacFit::of(channel, &all, 0.0, &choice)).collect()
    }
    /// Returns the number of configurations.
    pub fn len(&self) -> usize {
        self.done.len()
    }
    /// Returns the order of the configurations in their chains, and analysis settings with bins of `bin` configurations that do not extend
    /// beyond the end of a chain.
    fn chain(&self, bin: usize) -> (Vec<usize>, AnalysisChoice) {
        let names: Vec<&str> = self.done.iter().map(|(configuration, _)| configuration.canonical.as_str()).collect();
        let (order, streams) = streams_of(&names);
        (order, AnalysisChoice { streams, ..AnalysisChoice::with_bin(bin) })
    }
    /// Returns the settings of the analysis of all configurations, with bins of `bin` configurations.
    pub fn choice(&self, bin: usize) -> AnalysisChoice {
        self.chain(bin).1
    }
    /// Returns the real part of the mean of the correlators `names` at zero momentum, by time, for each configuration in the order of
    /// chains; `None` if a correlator is missing.
    pub fn samples(&self, names: &[String]) -> Option<Vec<Vec<f64>>> {
        self.chain(1).0.into_iter().map(|k| self.done[k].1.mean(names)).collect()
    }
}

/// *Collective.* Writes the array of correlators, its axes and the plot of effective masses. Returns the paths of these files and of the
/// lines; empty before the first configuration.
pub fn write(
    folder: &Path,
    file: &File,
    input: &SpectrumInput,
    picture_of: impl FnOnce([usize; 4]) -> ErrorBarPlot,
    comm: &RunCommunicator,
) -> Outcome<Vec<PathBuf>> {
    let Some((_, first)) = file.done.first() else { return Ok(Vec::new()) };
    let times = first.all.first().map_or(0, |c| c.values.len());
    let [lines, array, names, picture] = files(folder);
    comm.once(|| {
        let values: Vec<Complex64> =
            file.done.iter().flat_map(|(_, found)| &found.all).flat_map(|c| c.values.iter().copied()).collect();
        let shape = [file.done.len(), first.all.len(), times];
        npy::write_complex(&array, &shape, &values)
            .map_err(|why| Failure::failed(format!("{}: {why}", array.display())))?;
        let name = |c: &Correlator| CorrelatorName { name: c.name.clone(), momentum: c.momentum };
        let axes = CorrelatorAxes {
            axes: ["configuration", "correlator", "time"].map(String::from).into(),
            bin: input.bin,
            configurations: file.names(),
            correlators: first.all.iter().map(name).collect(),
        };
        let axes = axes.with_schema();
        target::write_text(&names, &format!("{axes:#}\n")).map_err(Failure::failed)?;
        #[cfg(feature = "hdf5")]
        {
            let path = folder.join("correlators.h5");
            ferrite::files::hdf5::write_correlators(&path, shape, &values, &axes.to_string())
                .map_err(|why| Failure::failed(format!("{}: {why}", path.display())))?;
        }
        write_svg(&picture, error_bars::svg(&picture_of(first.lattice))).map_err(Failure::failed)
    })?;
    Ok(vec![lines, array, names, picture])
}

/// Returns the paths of the files in a folder of results: lines, array, axes and plot.
pub fn files(folder: &Path) -> [PathBuf; 4] {
    [LINES, "correlators.npy", AXES, "effective-masses.svg"].map(|name| folder.join(name))
}
