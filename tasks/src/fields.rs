//! Sources, and files of fields by name.
use super::communicator::RunCommunicator;
use super::failure::{ReadBy, describe};
use super::layout::Layout;
use super::{Failure, Outcome, text};
use ferrite::backend::{Backend, Cpu};
use ferrite::field::host::HostGauge;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::files::formats::{self, OnlyPrecision};
use ferrite::files::{
    self, FileError, FileFormat, FilePrecision, GaugeFile, Header, Problem, ReadOptions, SharedFile, WriteOptions,
};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::observables::quantity::{LINK_TRACE, PLAQUETTE};
use ferrite_inputs::none_of;
use std::path::{Path, PathBuf};

/// Options for reading a gauge field.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Options for the library's reader.
    pub options: ReadOptions,
    /// Whether users give the options as flags or as keys.
    pub by: ReadBy,
}

impl Reading {
    /// Returns the options for links that need not be in SU(3).
    #[must_use]
    pub fn of_any_links(&self) -> Self {
        Reading { options: ReadOptions { allow_non_unitary: true, ..self.options }, by: self.by }
    }
}

/// Source of one right-hand side: a point, noise, or a field in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Field that is 1 at one site (x, y, z, t) and component (spin and colour, or colour), and 0 elsewhere.
    Point([usize; 4], Vec<usize>),
    /// Field of normal random numbers: the seed, and the number of the field among those of the seed.
    Random(u64, u32),
    /// Field in a file: its path, and the number of the field in the file.
    File(PathBuf, usize),
}

/// Reason why sources are refused, by the key at fault.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceFault {
    /// The source is invalid.
    Source(String),
    /// The number of sources does not fit the source.
    Number(String),
}

impl From<String> for SourceFault {
    fn from(why: String) -> Self {
        Self::Source(why)
    }
}

impl Source {
    /// Reads `point:x,y,z,t,spin,colour` (without spin for colour vectors), `random:SEED`, `random:SEED,NUMBER` or `file:PATH`.
    pub fn parse<T: Fermion>(text: &str) -> Result<Self, String> {
        let point = format!("point:x,y,z,t,{}", T::AXES.join(","));
        let expected = format!("expected {point}, random:SEED or file:PATH");
        let refused = || format!("'{text}': {expected}{}", other_source(text));
        let (kind, rest) = text.split_once(':').ok_or_else(refused)?;
        let noise = generate::NOISE_SOURCES;
        match kind {
            "point" => {
                let numbers: Option<Vec<usize>> = rest.split(',').map(|n| n.trim().parse().ok()).collect();
                match numbers.as_deref() {
                    Some(&[x, y, z, t, ref component @ ..]) if component.len() == T::SHAPE.len() => {
                        Ok(Source::Point([x, y, z, t], component.to_vec()))
                    }
                    _ => {
                        let (numbers, all) = (4 + T::SHAPE.len(), T::COMPONENTS);
                        Err(format!(
                            "'{text}': expected {point} with {numbers} whole numbers; for all {all} components, give \
                             point:x,y,z,t and {all} sources"
                        ))
                    }
                }
            }
            "random" => {
                let (seed, number) = rest.split_once(',').unwrap_or((rest, "0"));
                match (seed.trim().parse(), number.trim().parse()) {
                    (Ok(seed), Ok(number)) if number < noise => Ok(Source::Random(seed, number)),
                    _ => Err(format!(
                        "'{text}': expected random:SEED with a seed from 0 to 2^64 - 1, or random:SEED,NUMBER with a \
                         number from 0 to {}",
                        noise - 1
                    )),
                }
            }
            "file" if !rest.is_empty() => Ok(Source::File(rest.into(), 0)),
            _ => Err(refused()),
        }
    }
    /// Returns `n` sources, of which the first is `text`: further components of a point, spin by spin, or noise with consecutive numbers. A
    /// point without components starts with the first one.
    pub fn several<T: Fermion>(text: &str, n: usize) -> Result<Vec<Self>, SourceFault> {
        let is_bare = text.starts_with("point:") && text.split(',').count() == 4;
        let first = match is_bare {
            true => Self::parse::<T>(&format!("{text}{}", ",0".repeat(T::SHAPE.len())))?,
            false => Self::parse::<T>(text)?,
        };
        match first {
            Source::Point(site, component) => {
                components_exist::<T>(&component)?;
                let begin = component.iter().zip(T::SHAPE).fold(0, |index, (k, extent)| index * extent + k);
                let (there, all) = (T::COMPONENTS - begin, T::COMPONENTS);
                if n > there {
                    return Err(SourceFault::Number(match begin {
                        0 => format!(
                            "{n} right-hand sides are requested, but a point has {all} components: give at most {all}"
                        ),
                        _ => format!(
                            "{n} right-hand sides are requested, but from the component of the source on, a point has \
                             only {}: give at most {there}, or name the point without a component",
                            text::count(there, "component")
                        ),
                    }));
                }
                let component = |mut index: usize| {
                    let mut numbers: Vec<usize> = Vec::new();
                    for extent in T::SHAPE.iter().rev() {
                        numbers.push(index % extent);
                        index /= extent;
                    }
                    numbers.reverse();
                    numbers
                };
                Ok((begin..begin + n).map(|index| Source::Point(site, component(index))).collect())
            }
            Source::Random(seed, number) => {
                let last = u32::try_from(n).ok().and_then(|n| number.checked_add(n));
                match last.filter(|last| *last <= generate::NOISE_SOURCES) {
                    Some(last) => Ok((number..last).map(|number| Source::Random(seed, number)).collect()),
                    None => {
                        let (last, rest) = (generate::NOISE_SOURCES - 1, generate::NOISE_SOURCES - number);
                        Err(SourceFault::Number(format!(
                            "{n} noise vectors are requested from number {number} on, but the noise vectors of a seed \
                             have the numbers 0 to {last}: request at most {rest}, or begin at a smaller number"
                        )))
                    }
                }
            }
            Source::File(..) => {
                let why = format!(
                    "{n} sources can be made from a point or a random source only; a file has a fixed number of \
                     fields: remove the number of sources"
                );
                Err(SourceFault::Number(why))
            }
        }
    }
    /// Checks the source against the lattice. A file with several fields becomes several sources.
    pub fn check<T: Fermion>(self, lattice: Lattice) -> Result<Vec<Self>, String> {
        match self {
            Source::Point(site, ref component) => {
                if site.iter().zip(lattice.size()).any(|(&x, extent)| x >= extent) {
                    return Err(format!(
                        "site (x, y, z, t) = {site:?} is outside the lattice {lattice}; coordinates start at 0"
                    ));
                }
                components_exist::<T>(component)?;
                Ok(vec![self])
            }
            Source::Random(..) => Ok(vec![self]),
            Source::File(path, _) => {
                let block = files::inspect_block::<T>(&path, &ReadOptions::default())
                    .map_err(|e| describe(&e, ReadBy::Convert))?;
                let single = || files::inspect(&path, &ReadOptions::default());
                let of_another_kind = |n: usize| {
                    let (path, kind, needed) = (path.display(), T::NAME, T::COMPONENTS);
                    format!(
                        "{path}: the file holds {n} complex numbers per site, but a {kind} field has {needed}: name \
                         another file"
                    )
                };
                match block {
                    None => {
                        let header = single().map_err(|e| describe(&e, ReadBy::Convert))?;
                        match (header.values_per_site(), header.lattice) {
                            (n, l) if n == T::COMPONENTS && l == lattice => Ok(vec![Source::File(path, 0)]),
                            (n, l) if n == T::COMPONENTS => Err(format!(
                                "{}: the file holds a field on {l}, but the gauge field is on {lattice}: name another \
                                 file",
                                path.display()
                            )),
                            (n, _) => Err(of_another_kind(n)),
                        }
                    }
                    Some(block) if block.lattice == lattice => {
                        Ok((0..block.fields).map(|i| Source::File(path.clone(), i)).collect())
                    }
                    Some(block) => match single() {
                        // One spinor field has the same shape as several colour vectors on another lattice.
                        Ok(header) if header.lattice == lattice => Err(of_another_kind(header.values_per_site())),
                        _ => {
                            let (path, l) = (path.display(), block.lattice);
                            Err(format!(
                                "{path}: the file holds fields on {l}, but the gauge field is on {lattice}: name \
                                 another file"
                            ))
                        }
                    },
                }
            }
        }
    }
    /// *Collective.* Returns this process's part of the source, generated or read.
    pub fn field<T: Fermion>(&self, layout: &Layout) -> Outcome<HostField<T>> {
        let section = layout.section;
        match self {
            Source::Point(site, component) => generate::point(section, *site, component).ok_or_else(|| {
                let lattice = section.global;
                let why = format!(
                    "site {site:?} is outside the lattice {lattice}, or component {component:?} does not exist"
                );
                Failure::refused(why).shared()
            }),
            Source::Random(seed, number) => Ok(generate::noise_source(section, *seed, *number)),
            Source::File(path, number) => {
                let file = layout.share(path);
                let read = match files::inspect_block::<T>(file, &ReadOptions::default()) {
                    Ok(Some(_)) => files::read_block(file, *number),
                    Ok(None) => files::read_fermion(file, &ReadOptions::default()),
                    Err(error) => Err(error),
                };
                // Options for reading files apply to links, not to sources.
                read.map(|file| file.field).map_err(|error| Failure::reading(&error, ReadBy::Convert))
            }
        }
    }
}

/// Returns advice on a source that other programs have under the same name, such as `; walls are sources of ferrite spectrum`.
fn other_source(text: &str) -> String {
    let kind = text.split(':').next().unwrap_or(text).trim().to_lowercase();
    let advice = match kind.as_str() {
        "wall" | "shell" | "smeared" | "gaussian" | "gauss" | "wuppertal" => {
            "wall and Gaussian-smeared sources are available in `ferrite spectrum` only"
        }
        "noise" | "z2" | "z4" | "u1" | "stochastic" | "rand" | "random" | "gauss-noise" => {
            "random:1 is noise with the seed 1"
        }
        "pt" | "delta" | "origin" | "point" => {
            "point:0,0,0,0 with --sources 12, or 3 for staggered quarks, gives all components of a point"
        }
        _ if FileFormat::of_fermion_file(Path::new(text)).is_some() => return format!("; did you mean 'file:{text}'?"),
        _ => return String::new(),
    };
    format!("; {advice}")
}

/// *Collective.* Returns this process's part of each source, generated or read. A file is read once for all of its fields.
pub fn all_fields<T: Fermion>(sources: &[Source], layout: &Layout) -> Outcome<Vec<HostField<T>>> {
    let mut fields = Vec::with_capacity(sources.len());
    while let Some(next) = sources.get(fields.len()) {
        let of_file = |path: &Path, first: usize| {
            let its =
                |(k, source): (usize, &Source)| matches!(source, Source::File(p, n) if p == path && *n == first + k);
            sources[fields.len()..].iter().enumerate().take_while(|entry| its(*entry)).count()
        };
        match next {
            Source::File(path, 0) if of_file(path, 0) > 1 => {
                let read = files::read_fermions(layout.share(path), &ReadOptions::default());
                let file = read.map_err(|error| Failure::reading(&error, ReadBy::Convert))?;
                let count = of_file(path, 0).min(file.fields.len());
                fields.extend(file.fields.into_iter().take(count));
            }
            source => fields.push(source.field(layout)?),
        }
    }
    Ok(fields)
}

fn components_exist<T: Fermion>(component: &[usize]) -> Result<(), String> {
    for ((value, extent), axis) in component.iter().zip(T::SHAPE).zip(T::AXES) {
        if value >= extent {
            return Err(format!("{axis} {value} does not exist: {axis}s are 0 to {}", extent - 1));
        }
    }
    Ok(())
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Point(site, component) => {
                let numbers: Vec<_> = site.iter().chain(component).map(usize::to_string).collect();
                write!(f, "point:{}", numbers.join(","))
            }
            Source::Random(seed, 0) => write!(f, "random:{seed}"),
            Source::Random(seed, number) => write!(f, "random:{seed},{number}"),
            Source::File(path, 0) => write!(f, "file:{}", path.display()),
            Source::File(path, n) => write!(f, "file:{} (field {n})", path.display()),
        }
    }
}

/// Returns the format of a gauge file, from the ending of its name.
pub fn gauge_format(path: &Path) -> Result<&'static FileFormat, String> {
    match FileFormat::of_gauge_file(path) {
        Some(format) => built_in(path, format),
        None => Err(unclear(path, &formats::endings_of_gauge_files())),
    }
}

/// Returns the help text of an output file for links: `what` it holds, and the endings that choose its format.
pub fn help_of_output(what: &str) -> String {
    format!("{what}: {}", formats::endings_of_gauge_files())
}

fn unclear(path: &Path, endings: &str) -> String {
    format!("{}: the name does not determine the format; end it in {endings}", path.display())
}

/// Returns `format` if this build of the program supports it.
pub fn built_in(path: &Path, format: &'static FileFormat) -> Result<&'static FileFormat, String> {
    match format.missing_feature {
        None => Ok(format),
        Some(feature) => Err(format!(
            "{}: this build does not include {format}: build Ferrite with --features {feature}, or end the name in \
             .npy",
            path.display()
        )),
    }
}

/// Number of fermion fields to write into one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// A single field.
    One,
    /// A propagator: as many fields as a field has components, 12 or 3.
    Propagator(usize),
    /// Any other number of fields, also the fields of several systems.
    Several(usize),
}

impl Stack {
    /// Returns the stack of fields with `components` numbers on a site and with `axes` before the axes of the lattice.
    pub fn of(axes: &[usize], components: usize) -> Self {
        match axes {
            [] => Stack::One,
            [count] if *count == components => Stack::Propagator(components),
            _ => Stack::Several(axes.iter().product()),
        }
    }
    /// Returns the stack of `count` right-hand sides.
    pub fn of_sources(count: usize, components: usize) -> Self {
        Self::of(if count > 1 { std::slice::from_ref(&count) } else { &[] }, components)
    }
    /// Returns whether a file in the format `format` can hold the fields of this stack.
    pub fn is_held_by(self, format: &FileFormat) -> bool {
        match self {
            Stack::One => format.holds_fermions(0, &[]),
            Stack::Propagator(components) => format.holds_fermions(components, &[components]),
            Stack::Several(count) => format.holds_fermions(0, &[count]),
        }
    }
}

/// Returns the format of a file of fermion fields, from the ending of its name.
pub fn spinor_format(path: &Path, stack: Stack) -> Result<&'static FileFormat, String> {
    let named = FileFormat::of_fermion_file(path).and_then(|format| Some((format, format.fermions.as_ref()?)));
    let Some((format, fermions)) = named else {
        return Err(unclear(path, &formats::endings_of_fermion_files()));
    };
    let (shown, limits) = (path.display(), fermions.limits);
    match stack {
        _ if stack.is_held_by(format) => built_in(path, format),
        Stack::Several(count) => {
            Err(format!("{shown}: {limits}; end the name in .npy to write {count} fields into one file"))
        }
        _ => Err(format!("{shown}: {limits}; end the name in {}", formats::endings_of_fermion_files())),
    }
}

/// *Collective.* Writes fermion fields. One field has the format of the file's name; several fields need `.npy`, where the right-hand side
/// is the leading axis.
pub fn write_fermions<T: Fermion>(path: &Path, fields: &[HostField<T>], title: &str, layout: &Layout) -> Outcome {
    let all: Vec<_> = fields.iter().collect();
    let axes = if fields.len() > 1 { vec![fields.len()] } else { Vec::new() };
    write_block(path, &all, &axes, title, layout)
}

/// *Collective.* Writes fermion fields with the leading axes `axes`, whose product is the number of fields; without axes, one field.
pub fn write_block<T: Fermion>(
    path: &Path,
    fields: &[&HostField<T>],
    axes: &[usize],
    title: &str,
    layout: &Layout,
) -> Outcome {
    let format = spinor_format(path, Stack::of(axes, T::COMPONENTS)).map_err(|why| Failure::refused(why).shared())?;
    let precision = format.only_precision().unwrap_or(FilePrecision::Double);
    let endian = format.fermions.map_or(files::Endian::Little, |fermions| fermions.endian);
    let options = WriteOptions { format, precision, title: title.into(), endian, ..Default::default() };
    let file = layout.share(path);
    let written = match (fields, axes) {
        ([field], []) => files::write_fermion(file, field, &options),
        _ => files::write_block(file, fields, axes, &options),
    };
    written.map_err(Failure::writing)
}

/// Returns the precision in which to write a gauge file: the requested one, which the format must support. Without a request, the precision
/// is that of the links, or the only one that the format supports.
pub fn gauge_precision(
    asked: Option<FilePrecision>,
    at_hand: FilePrecision,
    format: &FileFormat,
) -> Result<FilePrecision, String> {
    let Some(OnlyPrecision { precision: only, whose, others }) = format.only else {
        return Ok(asked.unwrap_or(at_hand));
    };
    match asked {
        Some(asked) if asked != only => Err(format!(
            "--precision {asked}: {whose} hold {only} precision only; remove --precision, or choose {others}"
        )),
        _ => {
            if (asked, only, at_hand) == (None, FilePrecision::Single, FilePrecision::Double) {
                tracing::info!("{whose} hold single precision only: numbers in double precision are rounded");
            }
            Ok(only)
        }
    }
}

/// *Collective.* Returns the lattice of a file. Fails if an extent is odd, because devices need even extents.
pub fn lattice_of(path: &Path, read: &Reading, comm: &RunCommunicator) -> Outcome<Lattice> {
    let lattice = any_lattice_of(path, read, comm)?;
    require_even(path, lattice).map_err(|why| Failure::refused(why).shared())?;
    Ok(lattice)
}

/// *Collective.* Returns the lattice of a file, whose extents must be even, and the number of complex numbers per site.
pub fn shape_of(path: &Path, read: &Reading, comm: &RunCommunicator) -> Outcome<(Lattice, usize)> {
    let header = files::inspect(SharedFile::new(path, &*comm.network()), &read.options);
    let header = header.map_err(|error| Failure::reading(&error, read.by))?;
    require_even(path, header.lattice).map_err(|why| Failure::refused(why).shared())?;
    Ok((header.lattice, header.values_per_site()))
}

/// *Collective.* Returns the lattice of a file, whose extents may be odd.
pub fn any_lattice_of(path: &Path, read: &Reading, comm: &RunCommunicator) -> Outcome<Lattice> {
    let header = files::inspect(SharedFile::new(path, &*comm.network()), &read.options);
    Ok(header.map_err(|error| Failure::reading(&error, read.by))?.lattice)
}

/// Fails if a lattice has odd extents. The message names the commands that accept the file.
pub fn require_even(path: &Path, lattice: Lattice) -> Result<(), String> {
    lattice.require_even().map_err(|why| {
        format!("{}: {why}; `ferrite verify`, `plaquette` and `convert` accept any extents", path.display())
    })
}

/// Type of the fields in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// One gauge field.
    Links,
    /// One or several spinor fields.
    Spinors,
    /// One or several fields of colour vectors.
    ColourVectors,
    /// Fields of another type, with this many numbers per site.
    Other(usize),
}

impl Content {
    fn of(header: &Header) -> Self {
        match header.values_per_site() {
            36 => Content::Links,
            12 | 144 => Content::Spinors,
            3 | 9 => Content::ColourVectors,
            n => Content::Other(n),
        }
    }
    /// Returns the name of the type in messages and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Content::Spinors => Spinor::NAME,
            Content::ColourVectors => ColourVector::NAME,
            Content::Links | Content::Other(_) => "gauge",
        }
    }
}

/// Header of a file, and how the file is to be read.
pub struct Inspected {
    /// Header of the first field that is read.
    pub header: Header,
    /// Type of the fields in the file.
    pub content: Content,
    /// Whether all fermion fields of the file are read, not only one.
    pub block: bool,
}

/// *Collective.* Reads the header of a file of which all fermion fields will be read, or a single field if `one` is true.
pub fn inspect(path: &Path, read: &Reading, one: bool, comm: &RunCommunicator) -> Result<Inspected, FileError> {
    let network = comm.network();
    let file = SharedFile::new(path, &*network);
    let found = files::inspect(file, &read.options);
    let several = match &found {
        Ok(header) => {
            !one && (header.fields > 1 || matches!(header.components, 144 | 9)) && header.values_per_site() != 36
        }
        // Several fields in an .npy file have one more axis. A LIME file may begin with a field of another type.
        Err(FileError { problem: Problem::Field { field: "shape" | "recordtype" | "globaldata", .. }, .. }) => !one,
        Err(_) => false,
    };
    if several {
        for (content, block) in [
            (Content::Spinors, files::inspect_block::<Spinor>(file, &read.options)),
            (Content::ColourVectors, files::inspect_block::<ColourVector>(file, &read.options)),
        ] {
            if let Some(header) = block? {
                return Ok(Inspected { header, content, block: true });
            }
        }
    }
    let header = found?;
    let block = matches!(header.components, 144 | 9);
    Ok(Inspected { content: Content::of(&header), header, block })
}

/// *Collective.* Reads this process's part of a gauge field. Fails if host memory does not suffice.
pub fn read_gauge(path: &Path, read: &Reading, layout: &Layout, comm: &RunCommunicator) -> Outcome<GaugeFile> {
    require_host_memory(comm, layout.local(), 576, &path.display().to_string())?;
    let file = files::read_gauge(layout.share(path), &read.options);
    let file = file.map_err(|error| Failure::reading(&error, read.by))?;
    note_header(path, &file.header, &file.checksum, Some(read.options.record));
    note_values(path, &file);
    warn_of_open_boundary(path, &file);
    Ok(file)
}

/// Logs the notes of a file's reader, the number of the field if the file has several and one was read, and a wrong checksum that was
/// accepted.
pub fn note_header(path: &Path, header: &Header, checksum: &files::Checksum, record: Option<usize>) {
    let shown = path.display();
    header.notes.iter().for_each(|note| tracing::info!("{shown}: {note}"));
    if header.fields > 1 && record == Some(0) {
        let fields = header.fields;
        tracing::info!("{shown}: the file holds {fields} fields; the first one is read; --record selects another one");
    }
    if let files::Checksum::Mismatch { kind, .. } = checksum {
        tracing::info!("{shown}: the {} checksum does not match the data; the file is accepted", kind.name());
    }
}

/// Logs a plaquette or a link trace that differs from the header.
fn note_values(path: &Path, file: &GaugeFile) {
    let (shown, header) = (path.display(), &file.header);
    let values = [
        (PLAQUETTE.name, header.plaquette, file.plaquette.mean),
        (LINK_TRACE.name, header.link_trace, file.link_trace),
    ];
    for (name, stored, computed) in values {
        if let Some(stored) = stored.filter(|stored| !stored.agrees(computed, header.precision)) {
            tracing::info!(
                "{shown}: the {name} is {computed:.10}, but the header has {}; the file is accepted",
                stored.value
            );
        }
    }
}

/// Warns of open boundary conditions in t. Every command that reads links calls this function.
pub fn warn_of_open_boundary(path: &Path, file: &GaugeFile) {
    if file.open_boundary {
        tracing::warn!(
            "{}: open boundary conditions in t: the links U_t at t = T - 1 are zero. Measurements assume a periodic \
             lattice: plaquettes and the energy density, and with them t0 and w0, are means over all time slices, \
             including those at the boundary; the charge is the sum over all time slices. No quark hops between t = T \
             - 1 and t = 0",
            path.display()
        );
    }
}

/// *Collective.* Writes a gauge field; each process writes its part.
pub fn write_gauge(path: &Path, gauge: &HostGauge, options: &WriteOptions, layout: &Layout) -> Outcome {
    files::write_gauge(layout.share(path), gauge, options).map_err(Failure::writing)
}

/// *Collective.* Fails if a field does not fit in host memory, where each process on the host has a part of it. Without this check, the
/// system could end the program without a message.
pub fn require_host_memory(comm: &RunCommunicator, lattice: Lattice, site_bytes: usize, what: &str) -> Outcome {
    let sharers = if comm.size() == 1 { 1 } else { comm.alike("")? };
    let enough = || {
        let (needed, free) = (lattice.volume() * site_bytes, Cpu::new(Some(1)).memory()?.free / sharers);
        if needed <= free {
            return Ok(());
        }
        let (needed, free) = (text::bytes(needed), text::bytes(free));
        let share = if sharers > 1 { format!(" for each of {sharers} processes") } else { String::new() };
        Err(Failure::refused(format!(
            "{what}: a field on {lattice} needs {needed} of this machine's memory, but {free} are free{share}; use a \
             smaller lattice or more machines"
        )))
    };
    comm.agree(enough())
}

/// Parses the precision of a file, `single` or `double`.
pub fn file_precision(text: &str) -> Result<FilePrecision, String> {
    match text {
        "single" => Ok(FilePrecision::Single),
        "double" => Ok(FilePrecision::Double),
        other => Err(none_of("precision", other, &["single", "double"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn several<T: Fermion>(text: &str, n: usize) -> Result<Vec<String>, String> {
        let found = Source::several::<T>(text, n).map_err(|fault| match fault {
            SourceFault::Source(why) | SourceFault::Number(why) => why,
        });
        found.map(|all| all.iter().map(Source::to_string).collect())
    }

    #[test]
    fn sources_count_on() {
        let all = several::<Spinor>("point:1,2,3,4", 12).unwrap();
        assert_eq!((all[0].as_str(), all[11].as_str()), ("point:1,2,3,4,0,0", "point:1,2,3,4,3,2"));
        assert_eq!(several::<Spinor>("point:1,2,3,4,0,2", 2).unwrap(), ["point:1,2,3,4,0,2", "point:1,2,3,4,1,0"]);
        assert_eq!(several::<ColourVector>("point:0,0,0,1", 3).unwrap()[2], "point:0,0,0,1,2");
        assert_eq!(several::<Spinor>("random:7", 2).unwrap(), ["random:7", "random:7,1"]);
        assert_eq!(several::<Spinor>("random:7,5", 2).unwrap(), ["random:7,5", "random:7,6"]);
        assert_eq!(Source::parse::<Spinor>("random:7,1"), Ok(Source::Random(7, 1)));
    }

    #[test]
    fn there_are_no_more_than_there_are() {
        for (text, n, part) in [
            ("point:0,0,0,0", 13, "13 right-hand sides are requested, but a point has 12 components: give at most 12"),
            (
                "point:0,0,0,0,3,1",
                3,
                "from the component of the source on, a point has only 2 components: give at most 2",
            ),
            ("point:0,0,0,0,4,0", 1, "spins are 0 to 3"),
            ("point:0,0,0", 12, "6 whole numbers"),
            ("random:1,16777215", 2, "have the numbers 0 to 16777215: request at most 1"),
            ("random:1,16777216", 1, "expected random:SEED"),
            ("file:b.npy", 2, "a fixed number of fields"),
        ] {
            let why = several::<Spinor>(text, n).expect_err(text);
            assert!(why.contains(part), "{why}");
        }
    }
}
