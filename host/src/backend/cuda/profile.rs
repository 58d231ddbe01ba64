//! Times of single launches, each measured between two events.
use super::order::{Mark, Queue};
use super::{Cuda, lock};
use crate::backend::profile::Totals;
use crate::backend::{KernelTime, Result};

/// Largest number of launches whose times are still to be read from the device.
const PENDING: usize = 4096;

/// Times of launches since profiling began. It holds `Mark`s, because a `CudaEvent` would keep the backend that owns this timer alive.
#[derive(Default)]
pub(super) struct LaunchTimer {
    totals: Totals,
    pending: Vec<(&'static str, Mark, Mark)>,
    /// Marks that can be used again.
    free: Vec<Mark>,
}

impl Cuda {
    /// Runs a launch. If launches are timed, an event is recorded before and after it.
    pub(super) fn timed(&self, name: &'static str, queue: &Queue, launch: impl FnOnce() -> Result) -> Result {
        if !self.shared.profiles.load(std::sync::atomic::Ordering::Relaxed) {
            return launch();
        }
        let mut profile = lock(&self.shared.profile);
        if profile.pending.len() >= PENDING {
            self.collect(&mut profile)?;
        }
        let mark = |free: &mut Vec<Mark>| free.pop().map_or_else(|| self.new_mark(true), Ok);
        let (from, to) = (mark(&mut profile.free)?, mark(&mut profile.free)?);
        self.place(&from, queue)?;
        launch()?;
        self.place(&to, queue)?;
        profile.pending.push((name, from, to));
        Ok(())
    }
    fn collect(&self, profile: &mut LaunchTimer) -> Result {
        for (name, from, to) in std::mem::take(&mut profile.pending) {
            profile.totals.add(name, self.elapsed(&from, &to)?);
            profile.free.extend([from, to]);
        }
        Ok(())
    }
    pub(super) fn begin_profile(&self) {
        // The assignment destroys events of the driver, for which the context must be current.
        let _ = self.enter();
        *lock(&self.shared.profile) = LaunchTimer::default();
        self.shared.profiles.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    pub(super) fn finish_profile(&self) -> Result<Vec<KernelTime>> {
        self.shared.profiles.store(false, std::sync::atomic::Ordering::Relaxed);
        let _ = self.enter();
        let mut profile = lock(&self.shared.profile);
        self.collect(&mut profile)?;
        Ok(std::mem::take(&mut *profile).totals.sorted())
    }
}
