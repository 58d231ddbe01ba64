//! The exchanges of a domain with its neighbours, and the streams that they use.
use super::exchange::{Exchange, Streams};
use super::trace::{Recorder, Span, Track};
use super::{Domain, Result, Transport};
use crate::backend::{Backend, Stream};
use comms::ProcessGrid;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a process keeps to talk to its neighbours about one domain.
pub(crate) struct Halo {
    cut: u32,
    pub(crate) streams: Streams,
    /// By bytes of the zones: kinds of fields whose zones are equally large share them.
    pub(crate) exchanges: Mutex<HashMap<[usize; 4], Exchange>>,
    pub(crate) transport: Transport,
    pub(crate) overlap: bool,
    /// Whether the user knows why faces go another way than was asked for.
    pub(crate) warned: AtomicBool,
    pub(crate) recorder: Mutex<Option<Recorder>>,
}

impl Halo {
    pub fn new(backend: &dyn Backend, grid: ProcessGrid, transport: Transport, overlap: bool) -> Result<Self> {
        let mut streams = [None, None, None, None];
        for (mu, slot) in streams.iter_mut().enumerate() {
            if grid.is_partitioned(mu) {
                *slot = Some([backend.stream()?, backend.stream()?]);
            }
        }
        let cut = (0..4).map(|mu| u32::from(grid.is_partitioned(mu)) << mu).sum();
        let (exchanges, warned, recorder) = (Mutex::default(), AtomicBool::new(false), Mutex::new(None));
        Ok(Halo { cut, streams, exchanges, transport, overlap, warned, recorder })
    }
    /// Directions that are cut, one bit each.
    pub fn cut(&self) -> u32 {
        self.cut
    }
    /// The stream that packs faces: that of the first end.
    pub fn packing(&self) -> (Track, &Stream) {
        let first = self.streams.iter().enumerate().find_map(|(mu, ends)| Some((mu, ends.as_ref()?)));
        let (mu, [backward, _]) = first.expect("something is cut where there is a halo");
        (Track::End(mu, 0), backward)
    }
    /// How faces have left this process so far, as bits of [`Route`](super::Route).
    pub fn routes(&self) -> u8 {
        lock(&self.exchanges).values().map(Exchange::routes).fold(0, |all, one| all | one)
    }
    /// All exchanges; they are made again where they are needed.
    pub fn take_exchanges(&self) -> HashMap<[usize; 4], Exchange> {
        std::mem::take(&mut *lock(&self.exchanges))
    }
    /// Takes down what exchanges do from now on.
    pub fn start_trace(&self, backend: &dyn Backend) -> Result {
        *lock(&self.recorder) = Some(Recorder::start(backend)?);
        Ok(())
    }
    /// What was done since [`start_trace`](Self::start_trace).
    pub fn end_trace(&self, backend: &dyn Backend) -> Result<Vec<Span>> {
        lock(&self.recorder).take().map_or(Ok(Vec::new()), |recorder| recorder.spans(backend))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// *Collective.* The exchange for zones of so many bytes, made when it is first needed.
pub(crate) fn exchange_of<'a>(
    transport: Transport,
    warned: &AtomicBool,
    exchanges: &'a mut HashMap<[usize; 4], Exchange>,
    domain: &Domain,
    bytes: [usize; 4],
) -> Result<&'a mut Exchange> {
    Ok(match exchanges.entry(bytes) {
        Entry::Occupied(there) => there.into_mut(),
        Entry::Vacant(free) => {
            free.insert(Exchange::new(domain.backend(), domain.grid(), domain.network(), transport, bytes, warned)?)
        }
    })
}
