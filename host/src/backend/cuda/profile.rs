//! Times of single launches, between two events each.
use super::{Cuda, CudaEvent, lock};
use crate::backend::profile::Totals;
use crate::backend::{Backend, KernelTime, Result};
use cust::stream::Stream;

/// Launches whose times are still on the device.
const PENDING: usize = 4096;

/// What was launched since profiling began.
#[derive(Default)]
pub(super) struct Profile {
    totals: Totals,
    pending: Vec<(&'static str, CudaEvent, CudaEvent)>,
    /// Events to use again.
    free: Vec<CudaEvent>,
}

impl Cuda {
    /// Runs a launch between two events, if launches are timed.
    pub(super) fn timed(&self, name: &'static str, stream: &Stream, launch: impl FnOnce() -> Result) -> Result {
        if !self.shared.profiles.load(std::sync::atomic::Ordering::Relaxed) {
            return launch();
        }
        let mut profile = lock(&self.shared.profile);
        if profile.pending.len() >= PENDING {
            self.collect(&mut profile)?;
        }
        let event = |free: &mut Vec<CudaEvent>| free.pop().map_or_else(|| self.event(true), Ok);
        let (from, to) = (event(&mut profile.free)?, event(&mut profile.free)?);
        self.mark(&from, Some(stream))?;
        launch()?;
        self.mark(&to, Some(stream))?;
        profile.pending.push((name, from, to));
        Ok(())
    }
    fn collect(&self, profile: &mut Profile) -> Result {
        for (name, from, to) in std::mem::take(&mut profile.pending) {
            profile.totals.add(name, self.seconds_between(&from, &to)?);
            profile.free.extend([from, to]);
        }
        Ok(())
    }
    pub(super) fn begin_profile(&self) {
        *lock(&self.shared.profile) = Profile::default();
        self.shared.profiles.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    pub(super) fn finish_profile(&self) -> Result<Vec<KernelTime>> {
        self.shared.profiles.store(false, std::sync::atomic::Ordering::Relaxed);
        let mut profile = lock(&self.shared.profile);
        self.collect(&mut profile)?;
        // Events keep the backend, which keeps the profile.
        Ok(std::mem::take(&mut *profile).totals.sorted())
    }
}
