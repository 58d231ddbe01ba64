//! Profile of a run: the launches of each kernel and their times.
use std::collections::BTreeMap;

/// The launches of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTime {
    /// Name of the kernel, with formats.
    pub name: String,
    /// Number of launches.
    pub launches: u64,
    /// Total seconds of all launches.
    pub seconds: f64,
}

/// Number of launches and seconds, by name.
#[derive(Debug, Default)]
pub(super) struct Totals(BTreeMap<String, (u64, f64)>);

impl Totals {
    pub fn add(&mut self, name: &str, seconds: f64) {
        match self.0.get_mut(name) {
            Some((launches, sum)) => (*launches, *sum) = (*launches + 1, *sum + seconds),
            None => drop(self.0.insert(name.into(), (1, seconds))),
        }
    }
    /// Returns the totals, the kernel that took longest first.
    pub fn sorted(self) -> Vec<KernelTime> {
        let time = |(name, (launches, seconds))| KernelTime { name, launches, seconds };
        let mut all: Vec<_> = self.0.into_iter().map(time).collect();
        all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        all
    }
}
