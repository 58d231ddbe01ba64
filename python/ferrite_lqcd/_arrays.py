"""Conversion of arrays to the form that the compiled part needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InputError


def given(array: Any) -> np.ndarray:
    """Returns complex numbers in double precision and C order, copied only if necessary."""
    try:
        return np.ascontiguousarray(np.asarray(array), dtype=np.complex128)
    except (TypeError, ValueError) as error:
        raise InputError(f"expected an array of complex numbers, not a value of type {type(array).__name__}: {error}") from None
