//! Command `ferrite bench halo`.
use super::kernels::{KernelFlags, NO_SUCH_KERNELS, check_nrhs, exist, lattice_or_default, memory, names, operator};
use crate::layout::{Layout, TRANSPORTS};
use crate::{Context, Failure, Outcome, target};
use clap::Args;
use ferrite::backend::Backend;
use ferrite::bench::{self, BenchRow, timeline};
use ferrite::domain::Domain;
use ferrite::domain::Transport;
use ferrite::halo::{Span, transports as transports_of};
use ferrite::network::Reach;
use ferrite::operators::Definition;
use ferrite::workload::Options;
use ferrite::{LinkStorage, Precision};
use ferrite_records::bench::{BenchHaloRecord, CallAlone, CallWithHalo, TimelineEvent, TimelineFile, TimelineName};
use ferrite_records::object;
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 4 ferrite bench halo --lattice 64,64,64,64 --grid 1,1,2,2
  mpirun -n 2 ferrite bench halo --operator asqtad --precision single --trace asqtad.json

Applies an operator with every transport of faces, with and without overlap with the interior, and on the part of a
single process without neighbours, to which efficiencies refer. --trace records a timeline of two applications with the
transport of --transport, to be opened in a browser (ui.perfetto.dev, or chrome://tracing): one process for each rank,
one track for each stream. The recording itself takes some time.";

/// Arguments of `bench halo`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct HaloBenchArguments {
    #[arg(long, value_name = "NAME", default_value = "wilson", help = format!("Operator: {}", names()))]
    operator: String,
    #[command(flatten)]
    common: KernelFlags,
    /// Write a timeline of two applications of the operator in Chrome's trace format
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
}

/// Times of all formats with one transport, with or without overlap.
struct TransportRows {
    name: &'static str,
    /// Transports that faces used, which differ from the requested one if processes cannot access each other's memory.
    travelled: Vec<&'static str>,
    overlap: bool,
    rows: Vec<BenchRow>,
}

/// Operator and formats that are timed.
struct HaloPlan {
    definition: &'static Definition,
    precisions: Vec<Precision>,
    reconstructions: Vec<LinkStorage>,
}

impl HaloBenchArguments {
    fn plan(&self) -> Outcome<HaloPlan> {
        let definition = operator(&self.operator)?;
        let (precisions, reconstructions) = (self.common.formats.precisions()?, self.common.formats.reconstructions()?);
        check_nrhs(self.common.nrhs)?;
        if !exist(definition, &precisions, &reconstructions) {
            return Err(Failure::refused(NO_SUCH_KERNELS));
        }
        Ok(HaloPlan { definition, precisions, reconstructions })
    }
}

/// Times exchanges with each transport, and prints a table.
pub fn run(args: HaloBenchArguments, context: &Context) -> Outcome {
    let comm = &context.comm;
    let HaloPlan { definition, precisions, reconstructions } = comm.agree(args.plan())?;
    target::claim(comm, &[], &target::all(&args.trace))?;
    if comm.size() == 1 {
        let why = "bench halo times exchanges between processes, but only one process runs: start several, for \
                   example with mpirun -n 2 ferrite bench halo";
        return Err(Failure::refused(why));
    }
    let choice = context.device_choice()?;
    let device = choice.open(comm)?;
    let lattice = lattice_or_default(args.common.lattice, &device)?;
    let layout = choice.layout.cut(comm, lattice, definition.steps())?;
    let mut needs = memory(layout.local(), args.common.nrhs, &[definition]);
    needs.push(("buffers of the copy", if device.name() == "cpu" { 1 << 28 } else { 1 << 31 }));
    device.require_all(comm, &needs, &format!("the benchmark on the local lattice {}", layout.local()))?;
    let options = Options { lattice, precisions, reconstructions, nrhs: args.common.nrhs };
    let (alone, ways) = all_ways(device.backend(), &layout, definition, &options, context)?;
    if let Some(path) = &args.trace {
        let spans = timeline(&layout.domain(device.backend())?, definition, &options)?;
        let mine = serde_json::to_string(&events(comm.rank(), &spans)).map_err(Failure::failed)?;
        let all = comm.texts(&mine)?;
        comm.once(|| {
            let ranks = all.iter().filter_map(|text| serde_json::from_str::<Vec<TimelineEvent>>(text).ok());
            let file = TimelineFile { events: ranks.flatten().collect(), unit: "ns".into() };
            let text = Value::Object(object(&file)).to_string();
            target::write_text(path, &text).map_err(Failure::failed)
        })?;
    }
    let processes = comm.size() as f64;
    let record = BenchHaloRecord {
        place: device.record(&layout),
        local_lattice: layout.local().size(),
        alone: alone.iter().map(|row| CallAlone { gflops: processes * row.gflops, ..call(row) }).collect(),
        rows: ways.iter().flat_map(|way| rows_of(way, &alone)).collect(),
        trace: args.trace.clone(),
    };
    context.output.record(&record, || {
        let local = layout.local();
        let mut text = format!(
            "{} processes, each with a part {local} of the lattice {lattice}, on {}\n",
            comm.size(),
            device.describe()
        );
        table(&mut text, &alone, &ways, processes);
        for TransportRows { name, travelled, .. } in
            ways.iter().filter(|way| way.overlap && way.travelled != [way.name])
        {
            let _ = writeln!(
                text,
                "in the rows of the transport {name}, faces were in fact sent by {}",
                travelled.join(" and by ")
            );
        }
        if let Some(path) = &args.trace {
            let _ = writeln!(text, "timeline: {}", path.display());
        }
        text
    })
}

/// Times the part of one process alone, and with each transport of faces, with and without overlap.
fn all_ways(
    backend: &dyn Backend,
    layout: &Layout,
    definition: &'static Definition,
    options: &Options,
    context: &Context,
) -> Outcome<(Vec<BenchRow>, Vec<TransportRows>)> {
    let here = Domain::single(backend, layout.local())?;
    let mut alone = bench::operator(&here, definition, options)?;
    for row in &mut alone {
        // All processes report the time of the slowest one.
        let seconds = context.comm.largest(row.microseconds)?;
        row.gflops *= row.microseconds / seconds;
        row.microseconds = seconds;
    }
    let mut ways = Vec::new();
    let straight = layout.network().reach() == Reach::Devices || backend.name() == "cpu";
    for (name, transport) in TRANSPORTS.into_iter().filter(|(_, transport)| *transport != Transport::Mpi || straight) {
        for overlap in [true, false] {
            let domain = layout.clone().with(transport, overlap).domain(backend)?;
            let rows = bench::operator(&domain, definition, options)?;
            let travelled = transports_of(&domain)?.into_iter().map(Transport::name).collect();
            domain.release()?;
            ways.push(TransportRows { name, travelled, overlap, rows });
        }
    }
    Ok((alone, ways))
}

fn call(row: &BenchRow) -> CallAlone {
    CallAlone {
        operator: row.operator.to_string(),
        precision: row.precision.to_string(),
        reconstruct: row.reconstruct.to_string(),
        microseconds: row.microseconds,
        gflops: row.gflops,
    }
}

fn rows_of(way: &TransportRows, alone: &[BenchRow]) -> Vec<CallWithHalo> {
    let row = |(row, alone): (&BenchRow, &BenchRow)| CallWithHalo {
        call: call(row),
        nrhs: row.nrhs,
        transport: way.name.into(),
        travelled: way.travelled.iter().map(ToString::to_string).collect(),
        overlap: way.overlap,
        efficiency: alone.microseconds / row.microseconds,
    };
    way.rows.iter().zip(alone).map(row).collect()
}

fn table(text: &mut String, alone: &[BenchRow], ways: &[TransportRows], processes: f64) {
    let head = ["operator", "precision", "recon", "faces", "overlap", "us", "GFLOP/s", "efficiency"];
    let [a, b, c, d, e, f, g, h] = head;
    let _ = writeln!(text, "{a:<20} {b:<9} {c:>5} {d:>7} {e:>8} {f:>10} {g:>10} {h:>11}");
    for (k, one) in alone.iter().enumerate() {
        let name = format!("{:<20} {:<9} {:>5}", one.operator, one.precision, one.reconstruct);
        let gflops = processes * one.gflops;
        let _ = writeln!(text, "{name} {:>7} {:>8} {:>10.2} {gflops:>10.1}", "none", "", one.microseconds);
        for TransportRows { name: transport, overlap, rows, .. } in ways {
            let (row, overlap) = (&rows[k], if *overlap { "yes" } else { "no" });
            let efficiency = 100.0 * one.microseconds / row.microseconds;
            let (us, gflops) = (row.microseconds, row.gflops);
            let _ = writeln!(text, "{name} {transport:>7} {overlap:>8} {us:>10.2} {gflops:>10.1} {efficiency:>10.1}%");
        }
    }
}

/// Returns the events of a rank in Chrome's trace format: names of the rank and its tracks, and complete events in microseconds.
fn events(rank: usize, spans: &[Span]) -> Vec<TimelineEvent> {
    const TRACKS: [&str; 9] = ["main", "x-", "x+", "y-", "y+", "z-", "z+", "t-", "t+"];
    let track = |name: &str| TRACKS.iter().position(|track| *track == name).unwrap_or(0) as u64;
    let named = |what: &str, tid: Option<u64>, name: String| TimelineEvent {
        name: what.into(),
        ph: "M".into(),
        pid: rank as u64,
        tid,
        args: Some(TimelineName { name }),
        ..Default::default()
    };
    let tracks = (0..).zip(TRACKS).map(|(number, name)| named("thread_name", Some(number), name.into()));
    let complete = spans.iter().map(|span| TimelineEvent {
        name: span.name.clone(),
        ph: "X".into(),
        pid: rank as u64,
        tid: Some(track(&span.track)),
        ts: Some(1e6 * span.start),
        dur: Some(1e6 * (span.end - span.start)),
        args: None,
    });
    std::iter::once(named("process_name", None, format!("rank {rank}"))).chain(tracks).chain(complete).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_microseconds_on_their_track() {
        let span = Span { name: "copy".into(), track: "z+".into(), start: 1e-6, end: 3.5e-6 };
        let events = events(2, &[span]);
        let last = events.last().cloned().unwrap_or_default();
        assert_eq!((last.pid, last.tid, last.ph.as_str()), (2, Some(6), "X"));
        assert!((last.dur.unwrap_or(0.0) - 2.5).abs() < 1e-12, "{last:?}");
    }
}
