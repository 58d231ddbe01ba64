"""Contractions over named indices."""

from __future__ import annotations

import string
import sys
from typing import Any

import numpy as np

from .errors import InputError

__all__ = ["contract"]


def contract(subscripts: str, *arrays: Any) -> Any:
    """Returns a sum of products over named indices, like ``numpy.einsum`` with names instead of letters.

    Names are separated by spaces, arrays by commas; names that do not follow ``->`` are summed over. The order of products minimises
    the cost. CuPy arrays are contracted on their GPU.

    Parameters
    ----------
    subscripts : str
        Names of the axes, such as ``"t z y x sink source a b, t z y x sink source a b -> t"``.
    *arrays
        One array for each list of names.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> U = np.asarray(fe.Gauge.random((2, 2, 2, 4), seed=1))
    >>> norm = fe.contract("t z y x mu row column, t z y x mu row column -> t", U, U.conj())
    >>> np.allclose(norm, 3 * 4 * 8)
    True
    """
    # Arrays of other libraries are not converted, so that they stay on their device.
    arrays = tuple(array if hasattr(array, "ndim") else np.asarray(array) for array in arrays)
    left, arrow, right = subscripts.partition("->")
    operands = [operand.split() for operand in left.split(",")]
    result = right.split()
    if not arrow:
        raise InputError(f"'{subscripts}' has no '->': write it before the names that are not summed over")
    if len(operands) != len(arrays):
        raise InputError(f"'{subscripts}' names the axes of {len(operands)} arrays, but {len(arrays)} arrays are given")
    letters: "dict[str, str]" = {}
    sizes: "dict[str, int]" = {}
    for names, array in zip(operands, arrays):
        if len(names) != array.ndim:
            raise InputError(f"'{' '.join(names)}' names {len(names)} axes, but the array has {array.ndim}")
        for name, size in zip(names, array.shape):
            if sizes.setdefault(name, size) != size:
                raise InputError(f"{name} has {sizes[name]} values in one array, but {size} in another")
            letters.setdefault(name, string.ascii_letters[len(letters) % 52])
    if len(letters) > 52:
        raise InputError(f"'{subscripts}' has {len(letters)} names of axes, but at most 52 are possible")
    for name in result:
        if name not in letters:
            raise InputError(f"{name} follows '->', but is not an axis of any array")
    said = ",".join("".join(letters[name] for name in names) for names in operands)
    said += "->" + "".join(letters[name] for name in result)
    cupy = sys.modules.get("cupy")
    if cupy is not None and any(isinstance(array, cupy.ndarray) for array in arrays):
        return cupy.einsum(said, *arrays, optimize=True)
    return np.einsum(said, *arrays, optimize=True)
