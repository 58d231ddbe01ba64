//! Times of the kernels in a run.
use std::collections::BTreeMap;

/// Number and total time of the launches of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTime {
    /// Name of the kernel, including its formats.
    pub name: String,
    /// Number of launches of the kernel.
    pub launches: u64,
    /// Total time of all launches in seconds.
    pub seconds: f64,
}

/// Number of launches and total seconds for each name of a kernel.
#[derive(Debug, Default)]
pub(super) struct Totals(BTreeMap<String, (u64, f64)>);

impl Totals {
    pub fn add(&mut self, name: &str, seconds: f64) {
        match self.0.get_mut(name) {
            Some((launches, sum)) => (*launches, *sum) = (*launches + 1, *sum + seconds),
            None => drop(self.0.insert(name.into(), (1, seconds))),
        }
    }
    /// Returns the number of launches and the total time of each kernel; the kernel with the longest total time is first.
    pub fn sorted(self) -> Vec<KernelTime> {
        let time = |(name, (launches, seconds))| KernelTime { name, launches, seconds };
        let mut all: Vec<_> = self.0.into_iter().map(time).collect();
        all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        all
    }
}
