//! Timeline of a halo exchange, as in figure 4 of Babich et al. 2011.
use crate::backend::{Backend, Event, Stream};
use crate::domain::Result;
use std::cell::RefCell;
use std::time::Instant;

/// A piece of work in a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Name of the work, such as `pack`, `interior`, `exterior x`, `copy to the neighbour` or `message`.
    pub name: String,
    /// Track of the timeline: `main` for the main stream, `x-` to `t+` for the stream and the messages of an end.
    pub track: String,
    /// Seconds from the common start of all processes to the start of the work.
    pub start: f64,
    /// Seconds from the common start of all processes to the end of the work.
    pub end: f64,
}

/// Names of the ends of directions, indexed by `[μ][forward]`.
const ENDS: [[&str; 2]; 4] = [["x-", "x+"], ["y-", "y+"], ["z-", "z+"], ["t-", "t+"]];

/// Track of a piece of work.
#[derive(Clone, Copy)]
pub(super) enum Track {
    Main,
    /// Track of the end of direction μ; the second value is 1 for the forward end and 0 for the backward end.
    End(usize, usize),
}

impl Track {
    fn name(self) -> &'static str {
        match self {
            Track::Main => "main",
            Track::End(mu, forward) => ENDS[mu][forward],
        }
    }
}

/// Returns the letter of direction μ.
pub(super) fn direction(mu: usize) -> &'static str {
    ["x", "y", "z", "t"][mu]
}

/// Recorder of a timeline, with events of the device and times of the host.
pub(super) struct Recorder {
    start: Event,
    started: Instant,
    device: RefCell<Vec<(String, Track, Event, Event)>>,
    host: RefCell<Vec<(String, Track, Instant, Instant)>>,
}

impl Recorder {
    /// Waits until the device is idle, and starts a timeline.
    pub fn start(backend: &dyn Backend) -> Result<Self> {
        backend.synchronize()?;
        Ok(Recorder {
            start: backend.record()?,
            started: Instant::now(),
            device: RefCell::default(),
            host: RefCell::default(),
        })
    }
    /// Waits for the device, and returns all recorded pieces of work in the order of their start.
    pub fn spans(self, backend: &dyn Backend) -> Result<Vec<Span>> {
        backend.synchronize()?;
        let mut spans = Vec::new();
        for (name, track, from, to) in self.device.into_inner() {
            let start = backend.seconds_between(&self.start, &from)?;
            let end = backend.seconds_between(&self.start, &to)?;
            spans.push(Span { name, track: track.name().into(), start, end });
        }
        for (name, track, from, to) in self.host.into_inner() {
            let at = |time: Instant| time.duration_since(self.started).as_secs_f64();
            spans.push(Span { name, track: track.name().into(), start: at(from), end: at(to) });
        }
        spans.sort_by(|a, b| a.start.total_cmp(&b.start));
        Ok(spans)
    }
}

/// A recorder, or `None` if no timeline is requested.
#[derive(Clone, Copy)]
pub(super) struct Trace<'a>(Option<&'a Recorder>);

impl<'a> Trace<'a> {
    pub fn new(recorder: Option<&'a Recorder>) -> Self {
        Trace(recorder)
    }
    /// Runs `work`, and records how long it takes on the device. `work` must use `stream`, or the main stream if `stream` is `None`.
    pub fn device(
        &self,
        backend: &dyn Backend,
        track: Track,
        stream: Option<&Stream>,
        name: &dyn Fn() -> String,
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let Some(recorder) = self.0 else { return work() };
        let (from, to) = (backend.event(true)?, backend.event(true)?);
        backend.mark(&from, stream)?;
        work()?;
        backend.mark(&to, stream)?;
        recorder.device.borrow_mut().push((name(), track, from, to));
        Ok(())
    }
    /// Returns the present time; `None` if no timeline is requested.
    pub fn now(&self) -> Option<Instant> {
        self.0.map(|_| Instant::now())
    }
    /// Records a piece of work of the host that began at `from` and ends now.
    pub fn host(&self, track: Track, name: &str, from: Option<Instant>) {
        if let (Some(recorder), Some(from)) = (self.0, from) {
            recorder.host.borrow_mut().push((name.into(), track, from, Instant::now()));
        }
    }
}
