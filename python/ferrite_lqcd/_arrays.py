"""Arrays as the compiled part takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InputError


def given(array: Any) -> np.ndarray:
    """Complex numbers in double precision and C order, copied only where they are not so already."""
    try:
        return np.ascontiguousarray(np.asarray(array), dtype=np.complex128)
    except (TypeError, ValueError) as error:
        raise InputError(f"an array of complex numbers is needed, not a value of type {type(array).__name__}: {error}") from None
