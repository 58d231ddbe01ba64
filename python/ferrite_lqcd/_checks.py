"""Checks of arguments. Each check returns the value in the form that the package uses, or raises an ``InputError`` that names the
argument."""

from __future__ import annotations

import math
import operator
import os
from typing import Any, Callable, Optional, Sequence

from . import _native
from .errors import InputError

#: Largest seed of random numbers.
MOST_SEED = 2**64 - 1
#: Largest value of arguments without another limit.
MOST = 2**31 - 1
#: Largest numbers of steps, sweeps and levels in one call, by name. The program has the same bounds.
BOUNDS: "dict[str, int]" = _native.most
#: Physical memory in bytes.
_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
#: Bytes of the four links of a site in double precision.
LINKS = 576


def _index(value: Any) -> Optional[int]:
    """Returns the integer that a value represents, or ``None``; truth values represent none."""
    if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", None) == "b":
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def whole(name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """Returns an integer of Python or NumPy, or of another object with ``__index__``, from ``least`` to ``most``. Numbers with a decimal
    point raise an ``InputError``."""
    found = _index(value)
    if found is None:
        raise InputError(f"{name} = {value}: expected a whole number, not a value of type {type(value).__name__}")
    if not least <= found <= most:
        raise InputError(f"{name} = {found}: expected a whole number from {least} to {most}")
    return found


def wholes(name: str, values: Any, what: str, count: int, least: int = 0, most: int = MOST) -> "list[int]":
    """Returns ``count`` integers, which ``what`` describes, such as ``four extents x, y, z, t``."""
    try:
        found = [_index(value) for value in values]
    except TypeError:
        found = []
    if len(found) != count or not all(value is not None and least <= value <= most for value in found):
        shown = tuple(values) if found else values
        raise InputError(f"{name} = {shown}: expected {what}, whole numbers from {least} to {most}")
    return [value for value in found if value is not None]


def number(
    name: str, value: Any, expected: str = "a finite number", fits: Optional[Callable[[float], bool]] = None
) -> float:
    """Returns a finite real number for which ``fits`` holds; ``expected`` describes such numbers in the message."""
    try:
        found = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found) or (fits is not None and not fits(found)):
        raise InputError(f"{name} = {value}: expected {expected}")
    return found


def numbers(
    name: str, values: Any, expected: str = "finite numbers", fits: Optional[Callable[[float], bool]] = None
) -> "list[float]":
    """Returns a list of finite real numbers for each of which ``fits`` holds."""
    try:
        listed = list(values)
    except TypeError:
        raise InputError(f"{name} = {values}: expected a list of {expected}") from None
    return [number(f"{name}[{place}]", value, f"{expected} only", fits) for place, value in enumerate(listed)]


def positive(name: str, value: Any) -> float:
    """Returns a finite number above 0."""
    return number(name, value, "a number above 0", lambda x: x > 0)


def extents(lattice: Any) -> "list[int]":
    """Returns extents x, y, z, t, each above 0."""
    return wholes("lattice", lattice, "four extents x, y, z, t", 4, 1)


def momenta(name: str, given: Any) -> "list[tuple[int, int, int]]":
    """Returns a list of at least one momentum, each of three whole numbers in units of 2π/L."""
    try:
        listed = list(given)
    except TypeError:
        raise InputError(f"{name} = {given}: expected a list of momenta, each of three whole numbers") from None
    if not listed:
        raise InputError(f"{name} = {given}: expected at least one momentum of three whole numbers")
    return [momentum(f"{name}[{place}]", one) for place, one in enumerate(listed)]


def momentum(name: str, given: Any) -> "tuple[int, int, int]":
    """Returns a momentum of three whole numbers in units of 2π/L."""
    x, y, z = wholes(name, given, "a momentum of three components in units of 2π/L", 3, -MOST)
    return x, y, z


def site(name: str, given: Any) -> "tuple[int, int, int, int]":
    """Returns a site x, y, z, t, without a check that it is on a lattice."""
    x, y, z, t = wholes(name, given, "a site with four coordinates x, y, z, t", 4)
    return x, y, z, t


def fits_memory(lattice: Sequence[int], processes: int = 1) -> None:
    """Raises an ``InputError`` if links do not fit into this machine's memory."""
    needed = math.prod(lattice) * LINKS // processes
    if needed > _MEMORY:
        size = "×".join(str(extent) for extent in lattice)
        raise InputError(
            f"links on a lattice of {size} need {needed * 1e-9:.1f} GB of memory in each process, but this machine has "
            f"{_MEMORY * 1e-9:.1f} GB: use a smaller lattice, or more processes"
        )
