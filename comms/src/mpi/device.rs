//! Messages from and to memory that is owned elsewhere, such as that of a GPU.

use super::Mpi;
use super::channel::Channel;
use super::request::Side;
use crate::communicator::{CommError, Communicator, Tag};

/// Message from or to memory that is owned elsewhere. The functions are those of [`Transfer`](crate::Transfer) without
/// the buffer.
pub trait DeviceTransfer {
    /// Starts the message without waiting. The device must have finished its work on the memory, because MPI does not
    /// support streams.
    fn start(&mut self) -> Result<(), CommError>;
    /// Returns whether the message has completed; true when idle.
    fn test(&mut self) -> Result<bool, CommError>;
    /// Waits until the message completes.
    fn wait(&mut self) -> Result<(), CommError>;
}

/// Communicator that can send and receive at raw addresses, for example addresses of a device.
pub trait DeviceChannels: Communicator {
    /// Type of a message in either direction.
    type Device: DeviceTransfer;

    /// Returns whether addresses of CUDA devices are supported. If not, only memory that the host can address may be
    /// passed.
    fn reaches_devices(&self) -> bool;

    /// Prepares a message to rank `to` from `length` bytes at `address`.
    ///
    /// # Safety
    /// The memory must stay valid, and no code may write to it, from each start of the message to its end. A transfer
    /// that is dropped under way does not wait, and its message ends only with the run: the memory must stay valid
    /// until then.
    unsafe fn send_from(&self, to: usize, tag: Tag, address: u64, length: usize) -> Result<Self::Device, CommError>;

    /// Prepares the reception of exactly `length` bytes from rank `from` at `address`.
    ///
    /// # Safety
    /// The memory must stay valid, and no other code may read or write it, from each start of the message to its end,
    /// or until the transfer is dropped on the thread of its communicator, which abandons the message.
    unsafe fn receive_at(&self, from: usize, tag: Tag, address: u64, length: usize) -> Result<Self::Device, CommError>;
}

/// Message of [`Mpi`] from or to memory that is owned elsewhere.
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
        // A send under way continues on its own: `free` does nothing while its request is active.
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
    /// Prepares a message in either direction on memory that is owned elsewhere.
    ///
    /// # Safety
    /// The contract of [`send_from`](DeviceChannels::send_from) or [`receive_at`](DeviceChannels::receive_at) holds.
    unsafe fn device(&self, side: Side, tag: Tag, address: u64, length: usize) -> Result<MpiDeviceTransfer, CommError> {
        let (Side::Sends { to: rank } | Side::Receives { from: rank }) = side;
        self.known(rank)?;
        let address = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: guaranteed by the caller; the rank exists.
        unsafe { Channel::new(&self.job, side, tag, address, length, self.largest) }.map(MpiDeviceTransfer)
    }
}

impl DeviceChannels for Mpi {
    type Device = MpiDeviceTransfer;

    fn reaches_devices(&self) -> bool {
        self.is_cuda_aware()
    }

    unsafe fn send_from(&self, to: usize, tag: Tag, address: u64, length: usize) -> Result<Self::Device, CommError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.device(Side::Sends { to }, tag, address, length) }
    }

    unsafe fn receive_at(&self, from: usize, tag: Tag, address: u64, length: usize) -> Result<Self::Device, CommError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.device(Side::Receives { from }, tag, address, length) }
    }
}
