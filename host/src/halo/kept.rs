//! Streams and exchanges that a domain shares with its clones.
use super::exchange::{Exchange, Streams};
use super::trace::{Recorder, Span, Track};
use crate::backend::Stream;
use crate::domain::{Domain, Result, Transport};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Streams of the ends of a domain, and its exchanges with the neighbours.
pub(crate) struct Halo {
    cut: u32,
    pub(super) streams: Streams,
    exchanges: Mutex<KeptExchanges>,
    recorder: Mutex<Option<Recorder>>,
}

/// Exchanges that a domain has made so far.
#[derive(Default)]
pub(super) struct KeptExchanges {
    /// Exchanges by the size of their zones in bytes. Fields whose zones have equal sizes share one exchange.
    by_bytes: HashMap<[usize; 4], Exchange>,
    /// Whether a warning was printed that the requested transport is not available.
    warned: bool,
}

impl KeptExchanges {
    /// *Collective.* Returns the exchange of zones of `bytes[μ]` bytes; makes it if it does not exist.
    pub fn exchange(&mut self, domain: &Domain, bytes: [usize; 4]) -> Result<&mut Exchange> {
        Ok(match self.by_bytes.entry(bytes) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => free.insert(Exchange::new(domain, bytes, &mut self.warned)?),
        })
    }
}

impl Halo {
    fn new(domain: &Domain) -> Result<Self> {
        let mut streams = [None, None, None, None];
        for (mu, slot) in streams.iter_mut().enumerate() {
            if domain.grid().is_partitioned(mu) {
                *slot = Some([domain.backend().stream()?, domain.backend().stream()?]);
            }
        }
        Ok(Halo { cut: domain.cut(), streams, exchanges: Mutex::default(), recorder: Mutex::new(None) })
    }
    /// Returns the partitioned directions as bits: bit μ is set if direction μ is partitioned.
    pub fn cut(&self) -> u32 {
        self.cut
    }
    pub(super) fn exchanges(&self) -> MutexGuard<'_, KeptExchanges> {
        lock(&self.exchanges)
    }
    pub(super) fn recorder(&self) -> MutexGuard<'_, Option<Recorder>> {
        lock(&self.recorder)
    }
    /// Returns the stream that packs faces: that of the backward end of the first partitioned direction.
    pub(super) fn packing(&self) -> (Track, &Stream) {
        let first = self.streams.iter().enumerate().find_map(|(mu, ends)| Some((mu, ends.as_ref()?)));
        let (mu, [backward, _]) = first.expect("something is cut where there is a halo");
        (Track::End(mu, 0), backward)
    }
    /// Returns the transports by which faces have left this process so far.
    pub(super) fn transports(&self) -> Vec<Transport> {
        self.exchanges().by_bytes.values().flat_map(Exchange::transports).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Domain {
    /// Returns the halo of the domain; `None` if no direction is partitioned.
    pub(crate) fn halo(&self) -> Result<Option<&Halo>> {
        if self.cut() == 0 { Ok(None) } else { self.kept(|| Halo::new(self)).map(Some) }
    }
    /// *Collective.* Frees the ghost zones after all processes have closed them; later exchanges allocate them again. Call this before the
    /// last clone of a domain is dropped. Otherwise a process could free memory that another one has open, which CUDA does not allow.
    ///
    /// # Errors
    /// Fails if the device or the communication fails.
    pub fn release(&self) -> Result {
        let Some(halo) = self.halo()? else { return Ok(()) };
        let exchanges = std::mem::take(&mut halo.exchanges().by_bytes);
        // Writes into the memory of other processes must end before the memory is closed.
        self.backend().synchronize()?;
        let own: Vec<_> = exchanges.into_values().map(Exchange::release_peers).collect();
        self.network().barrier()?;
        drop(own);
        Ok(())
    }
    /// *Collective.* Runs `work`, and returns the timeline of its exchanges, with times from the common start of all processes. The
    /// timeline is empty if there is only one process. Recording makes the work slower.
    ///
    /// # Errors
    /// Fails if the work, the device or the communication fails.
    pub fn timeline(&self, work: impl FnOnce() -> Result) -> Result<Vec<Span>> {
        let Some(halo) = self.halo()? else { return work().map(|()| Vec::new()) };
        self.backend().synchronize()?;
        self.network().barrier()?;
        *halo.recorder() = Some(Recorder::start(self.backend())?);
        let done = work();
        let recorder = halo.recorder().take();
        let spans = recorder.map_or(Ok(Vec::new()), |recorder| recorder.spans(self.backend()))?;
        done.map(|()| spans)
    }
}
