//! How many right-hand sides are solved together: as many as memory allows, or as many as was asked for.
use super::communicator::RunCommunicator;
use super::device::Device;
use super::text;
use super::{Failure, Outcome};
use crate::config::Settings;
use ferrite::backend::MAX_RHS_PER_LAUNCH;
use ferrite::solve::{BATCH_SIZES, batches, largest_batch};
use serde_json::{Value, json};

/// Device memory, with names for what takes it.
pub use ferrite::halo::Needs;

/// What is solved for.
pub const RIGHT_HAND_SIDE: &str = "right-hand side";

/// `--batch`, or a key for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchChoice {
    /// `None`: by memory.
    asked: Option<usize>,
}

/// Why right-hand sides are not solved all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// As asked for.
    Asked,
    /// What the device holds.
    Memory,
    /// There are more than is good at once, or another number than the sizes of batches.
    Size,
    /// As they were split before.
    Before,
}

/// How right-hand sides are split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batches {
    /// How many are solved at once, one after the other.
    pub sizes: Vec<usize>,
    limit: Option<Limit>,
}

impl BatchChoice {
    /// From a key of the settings.
    pub fn from_settings(settings: &mut Settings, key: &str) -> Self {
        BatchChoice { asked: settings.count(key, 1..=MAX_RHS_PER_LAUNCH) }
    }
    /// For `n` right-hand sides where batches of up to `fits` fit the memory; with `None` not even one does.
    fn split(self, n: usize, fits: Option<usize>) -> Batches {
        if let Some(asked) = self.asked {
            let sizes = (0..n).step_by(asked).map(|begin| asked.min(n - begin)).collect::<Vec<_>>();
            return Batches { limit: (sizes.len() > 1).then_some(Limit::Asked), sizes };
        }
        let (sizes, unlimited) = (batches(n, fits.unwrap_or(1)), batches(n, BATCH_SIZES[0]));
        let limit = match sizes.len() {
            0 | 1 => None,
            _ if sizes == unlimited => Some(Limit::Size),
            _ => Some(Limit::Memory),
        };
        Batches { sizes, limit }
    }
    /// For `n` right-hand sides, batches of which need so much memory, where so much is free; batches of one where even
    /// that is too much.
    pub fn within(self, free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> Batches {
        self.split(n, fitting(free, n, needs))
    }
    /// The same, with what the largest batch needs.
    pub fn split_with_needs(self, free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> (Batches, Needs) {
        let batches = self.within(free, n, &needs);
        let needs = needs(batches.largest());
        (batches, needs)
    }
    /// *Collective.* [`on`](Self::on), but as they were split `before` if nothing else is asked for, their number is that, and
    /// it still fits all devices; with a warning if it does not.
    pub fn on_as(
        self,
        task: &BatchTask<'_>,
        n: usize,
        before: &[usize],
        needs: impl Fn(usize) -> Needs,
    ) -> Outcome<Batches> {
        if self.asked.is_some() || n == 0 || before.iter().sum::<usize>() != n {
            return self.on(task, n, needs);
        }
        let kept = Batches { sizes: before.into(), limit: (before.len() > 1).then_some(Limit::Before) };
        let (device, comm, noun) = (task.device, task.comm, task.noun);
        let free = comm.agree(device.memory())?.free;
        let needed: usize = needs(kept.largest()).iter().map(|(_, bytes)| bytes).sum();
        if comm.largest(f64::from(u8::from(needed > free)))? == 0.0 {
            return Ok(kept);
        }
        let found = self.on(task, n, needs)?;
        if found.sizes != kept.sizes {
            let (now, then) = (found.describe_as(noun), kept.describe_as(noun));
            tracing::warn!("{now}, not as before ({then}): the last digits of results differ");
        }
        Ok(found)
    }
    /// *Collective.* For `n` right-hand sides of a task, on the devices of all processes.
    ///
    /// # Errors
    /// Too little memory for a batch of one, or for what was asked for.
    pub fn on(self, task: &BatchTask<'_>, n: usize, needs: impl Fn(usize) -> Needs) -> Outcome<Batches> {
        let BatchTask { device, comm, name, noun } = *task;
        let free = comm.agree(device.memory())?.free;
        let mine = fitting(free, n, &needs).unwrap_or(0) as f64;
        // What all devices hold.
        let fits = -comm.largest(-mine)? as usize;
        let found = self.split(n, (fits > 0).then_some(fits));
        let together = found.largest();
        let task = match together {
            0 => name.into(),
            _ => format!("{name} with {}", text::count(together, noun)),
        };
        device.require_all(comm, &needs(together), &task).map_err(|mut refusal: Failure| {
            if fits > 0 && fits < together {
                refusal.message += &format!("; batches of {fits} fit");
            }
            refusal
        })?;
        Ok(found)
    }
}

/// A task that solves in batches.
#[derive(Clone, Copy)]
pub struct BatchTask<'a> {
    /// The device of this process.
    pub device: &'a Device,
    /// All processes.
    pub comm: &'a RunCommunicator,
    /// What it is called where it needs too much memory.
    pub name: &'a str,
    /// What it calls one right-hand side.
    pub noun: &'a str,
}

/// The largest batch that fits.
fn fitting(free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> Option<usize> {
    largest_batch(n, |size| needs(size).iter().map(|(_, bytes)| bytes).sum::<usize>() <= free)
}

impl Batches {
    /// Whether more memory would make larger ones.
    pub fn are_limited_by_memory(&self) -> bool {
        self.limit == Some(Limit::Memory)
    }
    /// The number of right-hand sides in the largest batch.
    pub fn largest(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
    /// `12 right-hand sides in batches of 6: memory`
    pub fn describe(&self) -> String {
        self.describe_as(RIGHT_HAND_SIDE)
    }
    /// The same with another noun.
    pub fn describe_as(&self, noun: &str) -> String {
        let all = text::count(self.sizes.iter().sum(), noun);
        let mut different = self.sizes.clone();
        different.dedup();
        let different: Vec<String> = different.iter().map(usize::to_string).collect();
        let split = format!("{all} in batches of {}", different.join(" and "));
        match self.limit {
            None => all,
            Some(Limit::Asked) => format!("{split}: as asked for"),
            Some(Limit::Memory) => format!("{split}: memory"),
            Some(Limit::Before) => format!("{split}: as before"),
            Some(Limit::Size) => split,
        }
    }
    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.sizes.len() > 1
    }
    /// Keys for `--json`.
    pub fn json(&self) -> Value {
        let limit = self.limit.map(|limit| match limit {
            Limit::Asked => "asked",
            Limit::Memory => "memory",
            Limit::Size => "size",
            Limit::Before => "before",
        });
        json!({ "batches": self.sizes, "batches_limited_by": limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(n: usize) -> Needs {
        vec![("links", 1000), ("vectors", 100 * n)]
    }

    #[test]
    fn memory_decides_how_many_go_together() {
        let of = |free, n| BatchChoice::default().within(free, n, needs).describe();
        assert_eq!(of(2200, 12), "12 right-hand sides");
        assert_eq!(of(2199, 12), "12 right-hand sides in batches of 6: memory");
        assert_eq!(of(1500, 12), "12 right-hand sides in batches of 4: memory");
        assert_eq!(of(1000, 3), "3 right-hand sides in batches of 1: memory");
        assert_eq!(of(9999, 24), "24 right-hand sides in batches of 12");
        assert_eq!(of(9999, 13), "13 right-hand sides in batches of 12 and 1");
        assert_eq!(of(9999, 1), "1 right-hand side");
        let json = BatchChoice::default().within(1600, 12, needs).json();
        assert_eq!(json, json!({ "batches": [6, 6], "batches_limited_by": "memory" }));
    }

    #[test]
    fn what_is_asked_for_is_done() {
        let of = |asked, n| BatchChoice { asked: Some(asked) }.within(0, n, needs);
        assert_eq!(of(5, 12).sizes, [5, 5, 2]);
        assert_eq!(of(5, 12).describe(), "12 right-hand sides in batches of 5 and 2: as asked for");
        assert_eq!(of(12, 12).describe(), "12 right-hand sides");
        assert_eq!(of(64, 3).sizes, [3]);
        assert_eq!(of(64, 3).json(), json!({ "batches": [3], "batches_limited_by": null }));
    }
}
