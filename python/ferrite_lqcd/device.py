"""Devices on which calculations run, a GPU or the CPU, and the processes that share them.

A device need not be opened explicitly: the first calculation uses a GPU if one works, otherwise the CPU. ``init`` chooses a device for all
functions; every function also accepts ``device=``.

With an mpi4py communicator, each lattice is partitioned among its processes. Each process runs the same script, and its arrays hold its
part of each field. ``[t, z, y, x]`` are extents of the part, while ``lattice``, source positions and correlators refer to the whole
lattice.
"""

from __future__ import annotations

import atexit
import os
from typing import Any, Optional, Sequence, Union

import numpy as np

from . import _native
from ._checks import extents, whole, wholes
from .errors import DeviceError, FerriteError, InputError

__all__ = ["Device", "device", "gather", "info", "init", "local_part"]


class Device:
    """A GPU, or the CPU.

    Parameters
    ----------
    kind : "auto", "cpu", "cuda" or "cuda:N"
        ``auto`` is the first usable GPU, otherwise the CPU; N is an index of ``fe.info()["gpus"]``. If there are several processes, each
        uses the GPU of its rank among the processes of ``comm`` on its machine; with a number, they share that GPU.
    threads : int, optional
        Number of CPU threads. Results do not depend on it.
    comm : mpi4py.MPI.Comm, optional
        Communicator of the processes among which lattices are partitioned. All of them must call every function that computes, reads
        or writes, in the same order. The device stays open until the process ends. ``comm`` needs a wheel with MPI
        (``cargo xtask wheel --mpi``).
    grid : four int, optional
        Number of processes in x, y, z, t; default: all in t.

    Raises
    ------
    DeviceError
        If the driver, the GPU of this number, or kernels for it are missing.
    InputError
        If the grid does not match the number of processes of ``comm``, or the build has no MPI.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> fe.Device("cpu", threads=2).name
    'cpu'
    """

    def __init__(
        self,
        kind: str = "auto",
        *,
        threads: Optional[int] = None,
        comm: Any = None,
        grid: Optional[Sequence[int]] = None,
    ):
        name, colon, number = kind.partition(":") if isinstance(kind, str) else (kind, "", "")
        numbered = number.isascii() and number.isdecimal() and len(number) < 10
        if name not in ("auto", "cpu", "cuda") or (colon and not (name == "cuda" and numbered)):
            raise InputError(f"'{kind}' is not a device: choose 'auto', 'cpu', 'cuda' or 'cuda:N'")
        if threads is not None:
            threads = whole("threads", threads, 1, 1024)
        if grid is not None and comm is None:
            raise InputError("grid needs comm, the communicator of the processes that share lattices")
        self.comm: Any = None
        index = int(number) if number else None
        if comm is not None:
            address = _address(comm)
            dims = None if grid is None else wholes("grid", grid, "four numbers of processes in x, y, z, t", 4, 1)
            if name == "auto":
                # All processes use the same value.
                name = "cuda" if all(comm.allgather(bool(_native.gpus()[0]))) else "cpu"
            self._native = _native.Device.open(name, index, threads, address, dims)
            # A copy of the communicator separates the package's messages from those of the script.
            self.comm = comm.Dup()
            # This must run before mpi4py ends MPI. Functions that are registered last run first.
            atexit.register(_leave, self._native, os.getpid())
        elif name == "auto":
            self._native = _first(threads)
        else:
            self._native = _native.Device.open(name, index or 0, threads)

    @property
    def name(self) -> str:
        """``cpu`` or ``cuda``."""
        return self._native.name

    @property
    def description(self) -> str:
        """Name of the GPU, or threads and instructions of the CPU."""
        return self._native.description

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return self._native.rank

    @property
    def grid(self) -> "tuple[int, int, int, int]":
        """Number of processes in x, y, z, t."""
        x, y, z, t = self._native.grid
        return x, y, z, t

    def memory(self) -> tuple[int, int]:
        """Returns the free and the total memory in bytes."""
        return self._native.memory()

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: Any) -> Device:
        # A copy is the same device.
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Device belongs to its process and cannot be pickled: open one in the other process with fe.init; objects that are "
            "unpickled there use it"
        )

    def __repr__(self) -> str:
        if self.comm is None:
            return f"<ferrite_lqcd.Device: {self.description}>"
        grid = "×".join(str(parts) for parts in self.grid)
        return f"<ferrite_lqcd.Device: {self.description}, rank {self.rank} of {grid}>"


def _leave(native: _native.Device, process: int) -> None:
    """Leaves MPI at the end of the process that joined it; does nothing in a forked process."""
    if os.getpid() == process:
        native.leave()


def _address(comm: Any) -> int:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise InputError(f"comm must be an mpi4py communicator, but mpi4py cannot be imported: {error}") from error
    if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
        raise InputError(f"comm must be an mpi4py communicator such as MPI.COMM_WORLD, not {type(comm).__name__}")
    if not _native.has_mpi:
        raise InputError(
            "this build does not include MPI: build a wheel with `cargo xtask wheel --mpi` on a machine with the MPI library, and install it"
        )
    return int(MPI._addressof(comm))


def _first(threads: Optional[int]) -> _native.Device:
    names, _ = _native.gpus()
    if names and threads is None:
        try:
            return _native.Device.open("cuda", 0, None)
        except DeviceError:
            # For example, the driver is too old. info() states the reason.
            pass
    return _native.Device.open("cpu", 0, threads)


_default: Optional[Device] = None
_process = None


def init(
    device: Union[Device, str] = "auto",
    *,
    threads: Optional[int] = None,
    comm: Any = None,
    grid: Optional[Sequence[int]] = None,
) -> Device:
    """Opens the device that functions use if they are called without one, and returns it. Parameters are those of ``Device``.

    ``fe.init(comm=MPI.COMM_WORLD, grid=(1, 1, 2, 2))`` partitions lattices among four processes, which
    ``mpirun -n 4 python -m mpi4py script.py`` starts: an exception in one of them then ends all.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> fe.init("cpu", threads=2).name
    'cpu'
    """
    global _default, _process
    if not isinstance(device, (Device, str)):
        raise InputError(f"device = {device}: expected a fe.Device, or 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if isinstance(device, Device) and (threads is not None or comm is not None or grid is not None):
        raise InputError("threads, comm and grid apply to a new device only: remove them, or give the name of a device")
    made = device if isinstance(device, Device) else Device(device, threads=threads, comm=comm, grid=grid)
    _default = made
    _process = os.getpid()
    return _default


def device() -> Device:
    """Returns the device that functions use if they are called without one; opens it at the first call."""
    # A forked process has none of its parent's threads, so it needs a device of its own.
    if _default is None or _process != os.getpid():
        return init()
    return _default


def _on(chosen: Optional[Device]) -> _native.Device:
    return (_checked(chosen) or device())._native


def _known(chosen: Optional[Device]) -> Optional[Device]:
    """Returns the chosen device or the one of ``init``, without opening a device."""
    return _checked(chosen) or (_default if _process == os.getpid() else None)


def _checked(chosen: Optional[Device]) -> Optional[Device]:
    if chosen is not None and not isinstance(chosen, Device):
        raise InputError(f"device = {chosen!r}: expected a fe.Device, such as fe.Device('cpu')")
    return chosen


def _slices(native: _native.Device, rank: int, lattice: Sequence[int], axis: int) -> "tuple[slice, ...]":
    dims, places = native.grid, []
    for parts in dims:
        rank, place = divmod(rank, parts)
        places.append(place)
    local = [extent // parts for extent, parts in zip(lattice, dims)]
    there = [slice(place * extent, (place + 1) * extent) for place, extent in zip(places, local)]
    return (slice(None),) * axis + tuple(reversed(there))


def _whose(chosen: Optional[Device]) -> Optional[Device]:
    """Returns the device if several processes partition its lattices, otherwise ``None``."""
    found = _known(chosen)
    return None if found is None or found.comm is None else found


def _shared(chosen: Optional[Device]) -> Optional[_native.Device]:
    """Returns the compiled object of the device if several processes partition its lattices, otherwise ``None``."""
    found = _whose(chosen)
    return None if found is None else found._native


def _whole(local: Sequence[int], chosen: Optional[Device]) -> "tuple[int, int, int, int]":
    """Returns the extents x, y, z, t of the whole lattice from those of this process's part."""
    native = _shared(chosen)
    x, y, z, t = local if native is None else [extent * parts for extent, parts in zip(local, native.grid)]
    return x, y, z, t


def _ahead(array: np.ndarray, mu: int, device: Optional[Device]) -> np.ndarray:
    """Returns a field ``[t, z, y, x, …]`` shifted so that x holds its value at x + μ̂, also across the processes of a device."""
    axis = 3 - mu
    rolled = np.roll(array, -1, axis=axis)
    if device is None or device.grid[mu] == 1:
        return rolled
    parts, step = device.grid[mu], int(np.prod(device.grid[:mu]))
    place = device.rank // step % parts

    def there(by: int) -> int:
        return device.rank + ((place + by) % parts - place) * step

    first = np.ascontiguousarray(array.take(0, axis=axis))
    theirs = np.empty_like(first)
    device.comm.Sendrecv(first, dest=there(-1), recvbuf=theirs, source=there(1))
    rolled[(slice(None),) * axis + (-1,)] = theirs
    return rolled


def _with_lattice(array: Any, axis: int) -> "tuple[np.ndarray, int]":
    """Returns an array whose axes ``[t, z, y, x]`` begin at ``axis``, and that axis; refuses arrays with too few axes."""
    found: np.ndarray = np.asarray(array)
    axis = whole("axis", axis)
    if found.ndim < axis + 4:
        raise InputError(f"an array of shape {found.shape} does not have the axes t, z, y, x from axis = {axis} on")
    return found, axis


def local_part(array: Any, *, axis: int = 0, device: Optional[Device] = None) -> np.ndarray:
    """Returns this process's part of an array of the whole lattice, as a view; with one process the whole array. The axes
    ``[t, z, y, x]`` begin at ``axis``.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> fe.local_part(np.zeros((8, 4, 4, 4))).shape
    (8, 4, 4, 4)
    """
    array, axis = _with_lattice(array, axis)
    native = _shared(device)
    if native is None:
        return array
    lattice = extents(tuple(reversed(array.shape[axis : axis + 4])))
    # Raises an exception if the lattice cannot be partitioned.
    native.part(lattice)
    part: np.ndarray = array[_slices(native, native.rank, lattice, axis)]
    return part


def gather(array: Any, *, axis: int = 0, root: int = 0, device: Optional[Device] = None) -> Optional[np.ndarray]:
    """Collects the parts of all processes and returns the array of the whole lattice on the process ``root``, ``None`` on the others.
    The axes ``[t, z, y, x]`` begin at ``axis``.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> fe.gather(np.zeros((12, 8, 4, 4, 4, 4, 3)), axis=1).shape
    (12, 8, 4, 4, 4, 4, 3)
    """
    part, axis = _with_lattice(np.ascontiguousarray(array), axis)
    chosen = _whose(device)
    size = 1 if chosen is None else chosen.comm.Get_size()
    root = whole("root", root, 0, size - 1)
    if chosen is None:
        return part
    native = chosen._native
    comm, grid = chosen.comm, chosen.grid
    if native.rank != root:
        comm.Send(part, dest=root)
        return None
    lattice = [extent * parts for extent, parts in zip(reversed(part.shape[axis : axis + 4]), grid)]
    gathered = np.empty(part.shape[:axis] + tuple(reversed(lattice)) + part.shape[axis + 4 :], dtype=part.dtype)
    for rank in range(size):
        if rank != root:
            there = np.empty_like(part)
            comm.Recv(there, source=rank)
        gathered[_slices(native, rank, lattice, axis)] = part if rank == root else there
    return gathered


def info() -> "dict[str, Any]":
    """Returns the version, the GPUs, and the reason if there are none.

    Returns
    -------
    dict
        ``version``, ``gpus`` (names), ``driver`` (``None``, or a description of the problem), ``cpus``, ``mpi`` (whether this build
        includes MPI).
    """
    try:
        names, why = _native.gpus()
    except FerriteError as error:
        # The parent process started the driver before it forked this process.
        names, why = [], str(error)
    return {
        "version": _native.__version__,
        "gpus": names,
        "driver": why,
        "cpus": os.cpu_count(),
        "mpi": _native.has_mpi,
    }
