"""Contractions over named indices."""

from __future__ import annotations

import string
import sys
from typing import Any

import numpy as np

from .errors import InputError

__all__ = ["contract"]


def contract(subscripts: str, *arrays: Any) -> Any:
    """A sum of products over named indices, as ``numpy.einsum`` with names in place of letters.

    Names are separated by blanks, arrays by commas; a name that is not behind ``->`` is summed over. The order of products is
    chosen so that it costs least. Arrays of CuPy are contracted where they are.

    Parameters
    ----------
    subscripts : str
        Such as ``"t z y x sink source a b, t z y x sink source a b -> t"``.
    *arrays
        One for each list of names.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> U = np.asarray(fe.Gauge.random((2, 2, 2, 4), seed=1))
    >>> norm = fe.contract("t z y x mu row column, t z y x mu row column -> t", U, U.conj())
    >>> np.allclose(norm, 3 * 4 * 8)
    True
    """
    # Arrays of other libraries stay where they are.
    arrays = tuple(array if hasattr(array, "ndim") else np.asarray(array) for array in arrays)
    left, arrow, right = subscripts.partition("->")
    operands = [operand.split() for operand in left.split(",")]
    result = right.split()
    if not arrow:
        raise InputError(f"'{subscripts}' has no '->', behind which the names stand that are not summed over")
    if len(operands) != len(arrays):
        raise InputError(f"{len(operands)} lists of names for {len(arrays)} arrays")
    letters: "dict[str, str]" = {}
    sizes: "dict[str, int]" = {}
    for names, array in zip(operands, arrays):
        if len(names) != array.ndim:
            raise InputError(f"'{' '.join(names)}' names {len(names)} axes of an array that has {array.ndim}")
        for name, size in zip(names, array.shape):
            if sizes.setdefault(name, size) != size:
                raise InputError(f"{name} has {sizes[name]} values in one array and {size} in another")
            letters.setdefault(name, string.ascii_letters[len(letters) % 52])
    if len(letters) > 52:
        raise InputError(f"{len(letters)} names are more than 52")
    for name in result:
        if name not in letters:
            raise InputError(f"{name}, behind '->', is an axis of no array")
    said = ",".join("".join(letters[name] for name in names) for names in operands)
    said += "->" + "".join(letters[name] for name in result)
    cupy = sys.modules.get("cupy")
    if cupy is not None and any(isinstance(array, cupy.ndarray) for array in arrays):
        return cupy.einsum(said, *arrays, optimize=True)
    return np.einsum(said, *arrays, optimize=True)
