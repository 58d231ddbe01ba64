//! Messages from and to memory that belongs to somebody else, such as a GPU's.

use super::Mpi;
use super::channel::Channel;
use super::request::Side;
use crate::communicator::{CommError, Communicator, Tag};

/// A message on foreign memory. As [`Transfer`](crate::Transfer), without the buffer.
pub trait DeviceTransfer {
    /// Starts the message; does not wait. Work of the device on the memory has to be finished: MPI knows no streams.
    fn start(&mut self) -> Result<(), CommError>;
    /// Whether the message has come to its end. True when idle.
    fn test(&mut self) -> Result<bool, CommError>;
    /// Waits for the end.
    fn wait(&mut self) -> Result<(), CommError>;
}

/// Communicators that send from addresses, which may be those of a device.
pub trait DeviceChannels: Communicator {
    /// A message in either direction.
    type Device: DeviceTransfer;

    /// Whether addresses of CUDA devices are understood. If not, only memory that the host can address may be given.
    fn reaches_devices(&self) -> bool;

    /// Prepares a message to rank `to` from `length` bytes at `address`.
    ///
    /// # Safety
    /// The memory exists, and nobody writes to it, from each start of the message to its end. A transfer that is dropped
    /// under way does not wait, and its message has ended only with the run: until then the memory stays.
    unsafe fn send_from(&self, to: usize, tag: Tag, address: u64, length: usize) -> Result<Self::Device, CommError>;

    /// Prepares the reception of exactly `length` bytes from rank `from` at `address`.
    ///
    /// # Safety
    /// The memory exists, and nobody else reads or writes it, from each start of the message to its end, or until the
    /// transfer is dropped on the thread of its communicator, which gives the message up.
    unsafe fn receive_at(&self, from: usize, tag: Tag, address: u64, length: usize) -> Result<Self::Device, CommError>;
}

/// A message of [`Mpi`] on foreign memory.
#[derive(Debug)]
pub struct MpiDeviceTransfer(Channel);

impl DeviceTransfer for MpiDeviceTransfer {
    fn start(&mut self) -> Result<(), CommError> {
        self.0.start()
    }
    fn test(&mut self) -> Result<bool, CommError> {
        self.0.test()
    }
    fn wait(&mut self) -> Result<(), CommError> {
        self.0.wait()
    }
}

impl Drop for MpiDeviceTransfer {
    fn drop(&mut self) {
        // A send under way is left to itself; its request is never freed.
        let may_be_freed = match &self.0 {
            Channel::Receives(reception) => reception.cancel().is_ok(),
            Channel::Sends(..) => true,
        };
        if may_be_freed {
            self.0.free();
        }
    }
}

impl Mpi {
    /// # Safety
    /// As [`DeviceChannels`] says for either side.
    unsafe fn device(&self, side: Side, tag: Tag, address: u64, length: usize) -> Result<MpiDeviceTransfer, CommError> {
        let (Side::Sends { to: rank } | Side::Receives { from: rank }) = side;
        self.known(rank)?;
        let address = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: as the caller promises; the rank is known.
        unsafe { Channel::new(&self.job, side, tag, address, length, self.largest) }.map(MpiDeviceTransfer)
    }
}

impl DeviceChannels for Mpi {
    type Device = MpiDeviceTransfer;

    fn reaches_devices(&self) -> bool {
        self.is_cuda_aware()
    }

    unsafe fn send_from(&self, to: usize, tag: Tag, address: u64, length: usize) -> Result<Self::Device, CommError> {
        // SAFETY: as the caller promises.
        unsafe { self.device(Side::Sends { to }, tag, address, length) }
    }

    unsafe fn receive_at(&self, from: usize, tag: Tag, address: u64, length: usize) -> Result<Self::Device, CommError> {
        // SAFETY: as the caller promises.
        unsafe { self.device(Side::Receives { from }, tag, address, length) }
    }
}
