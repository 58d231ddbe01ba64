//! Types for memory, streams and events, independent of the backend that made them.
#![allow(unsafe_code)]

use std::any::Any;
use std::sync::Arc;

/// Memory of a device: an address, and an owner that frees the memory.
pub struct DeviceBuffer {
    address: *mut u8,
    bytes: usize,
    /// Owner of the memory, which frees it when dropped.
    _owner: Box<dyn Any + Send + Sync>,
}
// SAFETY: the address is that of memory which the owner keeps. Kernels that use it are launched through a backend, which
// orders them, and write disjoint elements (contract of `Kernel`).
unsafe impl Send for DeviceBuffer {}
// SAFETY: as above.
unsafe impl Sync for DeviceBuffer {}

impl DeviceBuffer {
    /// Makes a buffer at `address`. The buffer owns `owner`, which keeps the memory alive. Only backends call this.
    pub(super) fn new(address: *mut u8, bytes: usize, owner: impl Any + Send + Sync) -> Self {
        DeviceBuffer { address, bytes, _owner: Box::new(owner) }
    }
    /// Returns the buffer with an additional value `more`, which is dropped with the buffer.
    #[must_use]
    pub fn with(self, more: impl Any + Send + Sync) -> Self {
        let (address, bytes) = (self.address, self.bytes);
        DeviceBuffer::new(address, bytes, (self, more))
    }
    /// Returns the size of the buffer in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Returns the address of the memory, for the arguments of kernels. The address is aligned to 128 bytes on a GPU, and to a cache line
    /// on a CPU.
    pub fn address(&self) -> *mut u8 {
        self.address
    }
}

/// Memory that another library owns, on a device or on the host.
pub struct ForeignMemory {
    address: usize,
    bytes: usize,
}

impl ForeignMemory {
    /// Describes `bytes` bytes at `address`.
    ///
    /// # Safety
    /// The memory is there as long as the description is used, and nothing else writes to it meanwhile; for a description that is written
    /// to, nothing else reads it either.
    pub unsafe fn new(address: usize, bytes: usize) -> Self {
        ForeignMemory { address, bytes }
    }
    /// Returns the address of the first `bytes` bytes.
    pub(super) fn start(&self, bytes: usize) -> usize {
        assert!(bytes <= self.bytes, "memory of another library is too short");
        self.address
    }
}

/// Host memory that a device reads and writes directly, for messages to other processes. Clones share the memory. Backends make such memory
/// only if the caller gives the promise [`Ordered`](super::Ordered).
#[derive(Clone)]
pub struct Pinned(Arc<DeviceBuffer>);

impl Pinned {
    /// Makes pinned memory from a buffer that the host can read and write.
    pub(super) fn new(memory: DeviceBuffer) -> Self {
        Pinned(Arc::new(memory))
    }
    /// Returns the size of the memory in bytes.
    pub fn size(&self) -> usize {
        self.0.bytes
    }
    pub(super) fn address(&self) -> *mut u8 {
        self.0.address
    }
}

impl comms::Buffer for Pinned {
    fn bytes(&self) -> &[u8] {
        // SAFETY: inside the memory; nothing writes to it meanwhile (contract of `Ordered`).
        unsafe { std::slice::from_raw_parts(self.0.address, self.0.bytes) }
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: inside the memory; nothing else uses it meanwhile (contract of `Ordered`).
        unsafe { std::slice::from_raw_parts_mut(self.0.address, self.0.bytes) }
    }
}

/// Defines types for objects of a backend. Only a backend of the type that made an object can use it.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident: $bounds:path;)*) => {$(
        $(#[$doc])*
        pub struct $name(Box<dyn $bounds>);
        impl $name {
            #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "a CPU has no peers"))]
            pub(super) fn new(inner: impl $bounds) -> Self {
                $name(Box::new(inner))
            }
            /// Returns the object that a backend made, as its type `T`.
            ///
            /// # Panics
            /// Panics if another type of backend made the object.
            #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "a CPU's streams hold nothing"))]
            pub(super) fn get<T: 'static>(&self) -> &T {
                let inner: &dyn Any = &*self.0;
                inner.downcast_ref().expect("made by a backend of this kind")
            }
        }
    )*};
}
/// Types that threads may share.
pub(super) trait Shareable: Any + Send + Sync {}
impl<T: Any + Send + Sync> Shareable for T {}
/// Types that may be moved to another thread.
pub(super) trait Movable: Any + Send {}
impl<T: Any + Send> Movable for T {}

opaque! {
    /// A stream: work that runs beside the main stream of a backend.
    Stream: Shareable;
    /// An event: a point in the work of a stream, for which other work can wait.
    Event: Movable;
    /// Memory of another process's device on this machine, to which this process can write.
    Peer: Movable;
}
