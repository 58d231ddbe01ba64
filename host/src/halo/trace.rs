//! Timeline of an exchange, as in figure 4 of Babich et al. 2011.
use crate::backend::{Backend, Event, Stream};
use crate::domain::Result;
use std::cell::RefCell;
use std::time::Instant;

/// A piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Name of the work: `pack`, `interior`, `exterior x`, `copy`, `message`, `wait`.
    pub name: String,
    /// Stream or messages: `main` for the main stream, `x-` to `t+` for the stream and the messages of an end.
    pub track: String,
    /// Seconds since all processes started the timeline together.
    pub start: f64,
    /// Seconds from the start of the timeline to the end of the work.
    pub end: f64,
}

/// Names of the ends of directions: `[μ][forward]`.
const ENDS: [[&str; 2]; 4] = [["x-", "x+"], ["y-", "y+"], ["z-", "z+"], ["t-", "t+"]];

/// The stream of a piece of work.
#[derive(Clone, Copy)]
pub(super) enum Track {
    Main,
    /// End of direction μ, forward if 1.
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

/// Returns the name of a direction.
pub(super) fn direction(mu: usize) -> &'static str {
    ["x", "y", "z", "t"][mu]
}

/// Recorder of what is done, while a timeline is requested.
pub(super) struct Recorder {
    start: Event,
    started: Instant,
    device: RefCell<Vec<(String, Track, Event, Event)>>,
    host: RefCell<Vec<(String, Track, Instant, Instant)>>,
}

impl Recorder {
    /// Waits until the device is idle and starts recording.
    pub fn start(backend: &dyn Backend) -> Result<Self> {
        backend.synchronize()?;
        Ok(Recorder {
            start: backend.record()?,
            started: Instant::now(),
            device: RefCell::default(),
            host: RefCell::default(),
        })
    }
    /// Waits for the device and returns all recorded spans.
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

/// A recorder, if there is one.
#[derive(Clone, Copy)]
pub(super) struct Trace<'a>(Option<&'a Recorder>);

impl<'a> Trace<'a> {
    pub fn new(recorder: Option<&'a Recorder>) -> Self {
        Trace(recorder)
    }
    /// Does work of a stream, the main one by default, and records how long it takes on the device.
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
    /// Returns the time, if a timeline is requested.
    pub fn now(&self) -> Option<Instant> {
        self.0.map(|_| Instant::now())
    }
    /// Records what the host has done since `from`.
    pub fn host(&self, track: Track, name: &str, from: Option<Instant>) {
        if let (Some(recorder), Some(from)) = (self.0, from) {
            recorder.host.borrow_mut().push((name.into(), track, from, Instant::now()));
        }
    }
}
