//! Batches of right-hand sides that are solved together on the devices of all processes.
use super::communicator::RunCommunicator;
use super::device::Device;
use super::text;
use super::{Failure, Outcome};
pub use crate::batches::{BatchChoice, Batches, RIGHT_HAND_SIDE, bytes};
use crate::batches::{LARGEST_BATCH, fitting};
pub use ferrite::halo::Needs;
use ferrite_inputs::Given;
use ferrite_inputs::values::Count;

/// Number of right-hand sides to solve together, as typed.
pub type BatchSize = Count<1, LARGEST_BATCH>;

/// Converts the value of the key `batch` to a choice of the batch size.
pub fn choice(size: &Given<BatchSize>) -> BatchChoice {
    BatchChoice { requested: size.value() }
}

/// Task that solves its right-hand sides in batches: its device, its processes, and the names that its messages use.
#[derive(Clone, Copy)]
pub struct BatchTask<'a> {
    /// Device of this process.
    pub device: &'a Device,
    /// Communicator of all processes of the run.
    pub comm: &'a RunCommunicator,
    /// Name of the task in the message that memory does not suffice.
    pub name: &'a str,
    /// Noun for one right-hand side of the task.
    pub noun: &'a str,
}

impl BatchTask<'_> {
    /// *Collective.* Splits `n` right-hand sides into batches. Returns the batches `before` of an earlier run if no batch size is requested
    /// and these batches have `n` right-hand sides in total and fit in the memory of all devices. Otherwise splits as
    /// [`split`](Self::split) does, and warns if `before` does not fit.
    pub fn split_as(
        &self,
        choice: BatchChoice,
        n: usize,
        before: &[usize],
        needs: impl Fn(usize) -> Needs,
    ) -> Outcome<Batches> {
        if choice.requested.is_some() || n == 0 || before.iter().sum::<usize>() != n {
            return self.split(choice, n, needs);
        }
        let kept = Batches::as_before(before);
        let BatchTask { device, comm, noun, .. } = *self;
        let free = comm.agree(device.memory())?.free;
        let needed = bytes(&needs(kept.largest()));
        if comm.largest(f64::from(u8::from(needed > free)))? == 0.0 {
            return Ok(kept);
        }
        let found = self.split(choice, n, needs)?;
        if found.sizes != kept.sizes {
            let (now, then) = (found.describe_as(noun), kept.describe_as(noun));
            tracing::warn!(
                "memory does not suffice for {then}; this run solves {now}, so that results may differ from those of \
                 the earlier run in the last digits"
            );
        }
        Ok(found)
    }
    /// *Collective.* Splits `n` right-hand sides of the task into batches that fit in the memory of all devices.
    ///
    /// # Errors
    /// Too little memory for a batch of one or for the requested batch size.
    pub fn split(&self, choice: BatchChoice, n: usize, needs: impl Fn(usize) -> Needs) -> Outcome<Batches> {
        let BatchTask { device, comm, name, noun } = *self;
        let free = comm.agree(device.memory())?.free;
        let mine = fitting(free, n, &needs).unwrap_or(0) as f64;
        // `fits` is the largest batch size that fits in the memory of every device.
        let fits = -comm.largest(-mine)? as usize;
        let found = choice.split(n, (fits > 0).then_some(fits));
        let together = found.largest();
        let task = match together {
            0 => name.into(),
            _ => format!("{name} with {}", text::count(together, noun)),
        };
        device.require_all(comm, &needs(together), &task).map_err(|mut refusal: Failure| {
            if fits > 0 && fits < together {
                let most = text::count(fits, noun);
                refusal.message += &format!("; batches of at most {most} fit into the memory: reduce the batch size");
            }
            refusal
        })?;
        Ok(found)
    }
}
