"""Where calculations run: a GPU, or the CPU.

Nothing has to be opened by hand: the first calculation takes a GPU if there is one that can be used, else the CPU. ``init``
chooses, and every function takes ``device=`` for a device of its own.
"""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from . import _native
from .errors import DeviceError, InputError

__all__ = ["Device", "device", "info", "init"]


class Device:
    """A GPU, or the CPU.

    Parameters
    ----------
    kind : "auto", "cpu", "cuda" or "cuda:N"
        ``auto`` is the first GPU that can be used, else the CPU; N is a number of ``fe.info()["gpus"]``.
    threads : int, optional
        Threads of the CPU. Results do not depend on them.

    Raises
    ------
    DeviceError
        Without a driver, a GPU of this number, or kernels for it.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> fe.Device("cpu", threads=2).name
    'cpu'
    """

    def __init__(self, kind: str = "auto", *, threads: Optional[int] = None):
        name, _, number = kind.partition(":")
        if name not in ("auto", "cpu", "cuda") or (number and (name != "cuda" or not number.isdigit())):
            raise InputError(f"'{kind}' is no device: there are 'auto', 'cpu', 'cuda' and 'cuda:N'")
        if name == "auto":
            self._native = _first(threads)
        else:
            self._native = _native.Device(name, int(number or 0), threads)

    @property
    def name(self) -> str:
        """``cpu`` or ``cuda``."""
        return self._native.name

    @property
    def description(self) -> str:
        """The GPU's name, or the CPU's threads and instructions."""
        return self._native.description

    def memory(self) -> tuple[int, int]:
        """Free and total memory in bytes."""
        return self._native.memory()

    def __repr__(self) -> str:
        return f"<ferrite_lqcd.Device: {self.description}>"


def _first(threads: Optional[int]) -> _native.Device:
    names, _ = _native.gpus()
    if names and threads is None:
        try:
            return _native.Device("cuda", 0, None)
        except DeviceError:
            # Such as a driver that is too old: info() says why.
            pass
    return _native.Device("cpu", 0, threads)


_default: Optional[Device] = None
_process = None


def init(device: Union[Device, str] = "auto", *, threads: Optional[int] = None) -> Device:
    """Chooses the device of all functions that are not given one, and returns it.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> fe.init("cpu", threads=2).name
    'cpu'
    """
    global _default, _process
    _default = device if isinstance(device, Device) else Device(device, threads=threads)
    _process = os.getpid()
    return _default


def device() -> Device:
    """The device of functions that are not given one."""
    # A process that was forked has none of its parent's threads.
    if _default is None or _process != os.getpid():
        return init()
    return _default


def _on(chosen: Optional[Device]) -> _native.Device:
    return (chosen or device())._native


def info() -> "dict[str, Any]":
    """Version, GPUs, and why there are none.

    Returns
    -------
    dict
        ``version``, ``gpus`` (names), ``driver`` (``None``, or a sentence on what is wrong), ``cpus``.
    """
    names, why = _native.gpus()
    return {"version": _native.__version__, "gpus": names, "driver": why, "cpus": os.cpu_count()}
