"""Arrays as the compiled part takes them."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from .errors import InputError


def given(array: Any) -> np.ndarray:
    """Complex numbers in double precision and C order, copied only where they are not so already."""
    return np.ascontiguousarray(np.asarray(array), dtype=np.complex128)


def extents(lattice: Sequence[int]) -> "list[int]":
    """Extents x, y, z, t."""
    sizes = [int(extent) for extent in lattice]
    if len(sizes) != 4 or any(extent < 1 for extent in sizes):
        raise InputError(f"lattice = {tuple(lattice)}: four extents are needed, x, y, z, t, each above 0")
    return sizes
