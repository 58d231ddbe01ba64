"""Arrays in the memory of a device, which other libraries can use without a copy."""

from __future__ import annotations

import math
import sys
from typing import Any, Optional

import numpy as np

from . import _native
from ._arrays import given
from ._pickles import Pickled
from .device import Device, _on

__all__ = ["DeviceArray", "to_device"]


class DeviceArray(Pickled):
    """Array of complex numbers in double precision in device memory. On a GPU, CuPy, PyTorch, JAX and Numba can share it.

    ``to_device`` makes such an array. Operators that are applied to one return one. ``cupy.from_dlpack(x)``, ``torch.from_dlpack(x)`` and
    ``cupy.asarray(x)`` use the same memory, without a copy, and keep it alive. Ferrite's work on the array is complete when a function
    returns it; wait for work of other libraries (``cupy.cuda.Device().synchronize()``) before you pass it to Ferrite. A pickle holds a
    copy of the numbers, which goes to the device of ``fe.init`` in the process that unpickles it.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> x = fe.to_device(np.arange(6).reshape(2, 3))
    >>> x.shape, x.numpy()[1].real.tolist()
    ((2, 3), [3.0, 4.0, 5.0])
    """

    def __init__(self, shared: _native.Shared):
        self._shared = shared

    @property
    def shape(self) -> "tuple[int, ...]":
        """Lengths of the axes."""
        return self._shared.shape

    @property
    def dtype(self) -> np.dtype:
        """``complex128``"""
        return np.dtype(np.complex128)

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda``."""
        return self._shared.device.name

    def numpy(self) -> np.ndarray:
        """Returns a copy in host memory."""
        return self._shared.numpy()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        if copy is False:
            raise ValueError("NumPy cannot use an array of a device without a copy; on a CPU, numpy.from_dlpack can")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __getattr__(self, name: str) -> Any:
        # Only arrays on GPUs have this attribute. Libraries check whether it exists.
        if name == "__cuda_array_interface__":
            return self.__dict__["_shared"].__cuda_array_interface__
        raise AttributeError(name)

    def __dlpack__(self, **request: Any) -> Any:
        return self._shared.__dlpack__(**request)

    def __dlpack_device__(self) -> "tuple[int, int]":
        return self._shared.__dlpack_device__()

    def _pickled(self) -> "dict[str, Any]":
        if math.prod(self._shared.device.grid) > 1:
            raise TypeError(
                "an array of several processes cannot be pickled, because each process has a part of it: pickle the array that "
                "fe.gather(x.numpy()) returns"
            )
        return {"numbers": self.numpy()}

    def _unpickled(self, state: "dict[str, Any]") -> None:
        self._shared = _native.Shared.copy_of(_on(None), given(state["numbers"]))

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return DeviceArray(_native.Shared.copy_of(self._shared.device, self.numpy()))

    def __repr__(self) -> str:
        return f"<ferrite_lqcd.DeviceArray of shape {self.shape} on {self.device}>"


def to_device(array: Any, *, device: Optional[Device] = None) -> DeviceArray:
    """Copies an array to the memory of a device.

    Parameters
    ----------
    array
        NumPy array, or CuPy array, which is copied within the GPU.
    device : Device, optional
        Target device; default: that of ``fe.init``.
    """
    native = _on(device)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(array, cupy.ndarray) and native.name == "cuda":
        made = DeviceArray(_native.Shared.zeros(native, list(array.shape)))
        cupy.asarray(made)[...] = array
        cupy.cuda.Device().synchronize()
        return made
    return DeviceArray(_native.Shared.copy_of(native, given(array)))
