//! A timeline of what an exchange does, as in figure 4 of Babich et al. 2011.
use crate::backend::{Backend, Event, Stream};
use crate::domain::Result;
use std::cell::RefCell;
use std::time::Instant;

/// A piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The work: `pack`, `interior`, `exterior x`, `copy`, `message`, `wait`.
    pub name: String,
    /// The place: `main` for the main stream, `x-` to `t+` for the stream and the messages of an end.
    pub track: String,
    /// Seconds since all processes started the timeline together.
    pub start: f64,
    /// Seconds at its end.
    pub end: f64,
}

/// The ends of directions: `[μ][forward]`.
const ENDS: [[&str; 2]; 4] = [["x-", "x+"], ["y-", "y+"], ["z-", "z+"], ["t-", "t+"]];

/// The stream of a piece of work.
#[derive(Clone, Copy)]
pub(super) enum Track {
    Main,
    /// μ, forward
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

/// The name of a direction.
pub(super) fn direction(mu: usize) -> &'static str {
    ["x", "y", "z", "t"][mu]
}

/// Takes down what is done, when it is asked to.
pub(super) struct Recorder {
    start: Event,
    started: Instant,
    device: RefCell<Vec<(String, Track, Event, Event)>>,
    host: RefCell<Vec<(String, Track, Instant, Instant)>>,
}

impl Recorder {
    /// From now on, when the device has nothing to do.
    pub fn start(backend: &dyn Backend) -> Result<Self> {
        backend.synchronize()?;
        Ok(Recorder {
            start: backend.record()?,
            started: Instant::now(),
            device: RefCell::default(),
            host: RefCell::default(),
        })
    }
    /// All that was done.
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
    /// Does work of a stream, the main one by default, and takes down how long the device is at it.
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
    /// The time, where it is asked for.
    pub fn now(&self) -> Option<Instant> {
        self.0.map(|_| Instant::now())
    }
    /// Takes down what the host has done since `from`.
    pub fn host(&self, track: Track, name: &str, from: Option<Instant>) {
        if let (Some(recorder), Some(from)) = (self.0, from) {
            recorder.host.borrow_mut().push((name.into(), track, from, Instant::now()));
        }
    }
}
