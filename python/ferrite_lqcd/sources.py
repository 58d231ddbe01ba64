"""Sources of propagators. Each source makes a field for every component: 12 with spin and colour, or 3 with colour only.

Sites and profiles refer to the whole lattice; with several processes, fields hold this process's part.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from . import _native
from ._arrays import given
from ._checks import BOUNDS, MOST_SEED, extents, fits_memory, numbers, positive, whole
from ._checks import momentum as checked_momentum
from ._checks import site as checked_site
from .device import Device, _on, _shared, local_part
from .errors import InputError
from .gauge import Gauge

__all__ = ["Array", "Momentum", "Noise", "Point", "Shell", "Source", "Wall"]


class Source:
    """Base class of sources. ``origin`` is the site x, y, z, t from which correlators count. A subclass only needs to define ``profile``.
    ``fields`` takes ``device=`` if there are several processes."""

    origin: "tuple[int, int, int, int]" = (0, 0, 0, 0)
    #: Whether the profile is zero on all time slices except that of ``origin``, so that a solve needs only this time slice.
    _at_one_time = False

    def profile(self, lattice: Sequence[int]) -> np.ndarray:
        """Returns the value of every component at each site of the lattice: ``[T, Z, Y, X]``."""
        raise NotImplementedError

    def fields(self, lattice: Sequence[int], staggered: bool = False, *, device: Optional[Device] = None) -> np.ndarray:
        """Returns all components: ``[12, T, Z, Y, X, 4, 3]``, component 3 spin + colour, or ``[3, T, Z, Y, X, 3]``."""
        components = (3,) if staggered else (4, 3)
        profile = local_part(self.profile(lattice), device=device)
        count = int(np.prod(components))
        fields = np.zeros((count, *profile.shape, count), dtype=np.complex128)
        for component in range(count):
            fields[component, ..., component] = profile
        return fields.reshape(count, *profile.shape, *components)

    def field(
        self, lattice: Sequence[int], *, spin: Optional[int] = None, colour: int = 0, device: Optional[Device] = None
    ) -> np.ndarray:
        """Returns one component: ``[T, Z, Y, X, 4, 3]`` with a spin, ``[T, Z, Y, X, 3]`` without."""
        colour = whole("colour", colour, 0, 2)
        if spin is None:
            return np.asarray(self.fields(lattice, True, device=device)[colour])
        spin = whole("spin", spin, 0, 3)
        return np.asarray(self.fields(lattice, False, device=device)[3 * spin + colour])

    def _shell(self) -> "Optional[Shell]":
        """Returns the smearing of the source, or ``None``."""
        return None

    def _one_time(
        self, lattice: Sequence[int], device: Optional[Device]
    ) -> "Optional[tuple[int, Optional[np.ndarray]]]":
        """Returns the time slice of a source on one time slice, and its profile ``[z, y, x]`` on this process's part, which is ``None``
        if the process lacks the time slice. Returns ``None`` for other sources."""
        if not self._at_one_time or type(self).fields not in (Source.fields, Shell.fields):
            return None
        time = self.origin[3]
        profile = local_part(self.profile(lattice), device=device)
        native = _shared(device)
        first = 0 if native is None else native.part(extents(lattice))[0][3]
        here = 0 <= time - first < profile.shape[0]
        return time, given(profile[time - first]) if here else None


def _empty(lattice: Sequence[int]) -> np.ndarray:
    return np.zeros(tuple(reversed(extents(lattice))), dtype=np.complex128)


def _place(origin: Sequence[int], lattice: Sequence[int]) -> "tuple[int, int, int, int]":
    x, y, z, t = origin
    if not all(0 <= place < extent for place, extent in zip((x, y, z, t), lattice)):
        raise InputError(f"the site {tuple(origin)} is outside the lattice {tuple(lattice)}")
    return t, z, y, x


def _time(t: int, lattice: Sequence[int]) -> int:
    if not 0 <= t < lattice[3]:
        raise InputError(f"t = {t} is outside the lattice {tuple(lattice)}")
    return t


class Point(Source):
    """Point source: 1 at a site x, y, z, t."""

    _at_one_time = True

    def __init__(self, site: Sequence[int]):
        self.origin = checked_site("site", site)

    def profile(self, lattice: Sequence[int]) -> np.ndarray:
        field = _empty(lattice)
        field[_place(self.origin, lattice)] = 1
        return field


class Wall(Source):
    """Wall source: 1 at all sites of a time slice, for links in Coulomb gauge."""

    _at_one_time = True

    def __init__(self, t: int):
        self.origin = (0, 0, 0, whole("t", t))

    def profile(self, lattice: Sequence[int]) -> np.ndarray:
        field = _empty(lattice)
        field[_time(self.origin[3], lattice)] = 1
        return field


class Momentum(Source):
    """Momentum source: e^{i p x} at all sites of a time slice, with p in units of 2π/L."""

    _at_one_time = True

    def __init__(self, t: int, p: Sequence[int]):
        self.origin = (0, 0, 0, whole("t", t))
        self.p = checked_momentum("p", p)

    def profile(self, lattice: Sequence[int]) -> np.ndarray:
        field = _empty(lattice)
        x, y, z = (np.arange(extent) / extent for extent in lattice[:3])
        turns = self.p[2] * z[:, None, None] + self.p[1] * y[:, None] + self.p[0] * x
        field[_time(self.origin[3], lattice)] = np.exp(2j * np.pi * turns)
        return field


class Noise(Source):
    """Noise source with ⟨η η*⟩ = 1, at all sites or on the time slice ``t``, equal for all components. It depends on the global site only.

    ``kind`` is ``"z2"`` (±1), ``"z4"`` ((±1 ± i)/√2) or ``"gaussian"``. ``number``, below 2²⁴, distinguishes noise vectors of one seed.
    """

    def __init__(self, seed: int, *, t: Optional[int] = None, kind: str = "z4", number: int = 0):
        if kind not in ("z2", "z4", "gaussian"):
            raise InputError(f"kind = '{kind}': expected 'z2', 'z4' or 'gaussian'")
        if kind == "gaussian" and number:
            raise InputError("number applies to 'z2' and 'z4' only: choose another seed for Gaussian noise")
        self.seed, self.number = whole("seed", seed, 0, MOST_SEED), whole("number", number, 0, BOUNDS["noise_sources"] - 1)
        self.t, self.kind = None if t is None else whole("t", t), kind
        self._at_one_time = t is not None
        self.origin = (0, 0, 0, self.t or 0)

    def profile(self, lattice: Sequence[int]) -> np.ndarray:
        fits_memory(extents(lattice))
        noise = _native.noise(extents(lattice), True, self.kind, self.seed, self.number)[..., 0]
        if self.kind == "gaussian":
            noise = noise / np.sqrt(np.mean(np.abs(noise) ** 2))
        if self.kind == "z2":
            noise = np.sign(noise.real).astype(np.complex128)
        if self.t is not None:
            there = np.zeros_like(noise)
            there[_time(self.t, lattice)] = noise[self.t]
            noise = there
        return noise


class Shell(Source):
    """Gaussian-smeared point source, (1 + w² Δ/(4 n))ⁿ in space (Güsken 1990), optionally with a momentum (Bali et al. 2016).

    Parameters
    ----------
    site : four int
        Source position x, y, z, t.
    width, steps : float, int
        Width w above 0, and number of steps n from 1 to 10000.
    gauge : Gauge
        Links of the smearing, such as ``U.ape(0.6, 20, spatial=True)``.
    momentum : three float
        Momentum of the quarks, in units of 2π/L.
    device : Device, optional
        Device that smears; default: that of ``fe.init``.
    """

    def __init__(
        self,
        site: Sequence[int],
        width: float,
        steps: int,
        gauge: Gauge,
        *,
        momentum: Sequence[float] = (0.0, 0.0, 0.0),
        device: Optional[Device] = None,
    ):
        self.momentum = numbers("momentum", momentum)
        if len(self.momentum) != 3:
            raise InputError(f"momentum = {tuple(momentum)}: expected three numbers, in units of 2π/L")
        if not isinstance(gauge, Gauge):
            raise InputError(f"gauge = {gauge!r}: expected a fe.Gauge")
        self.origin = checked_site("site", site)
        self._at_one_time = True
        self.width, self.steps = positive("width", width), whole("steps", steps, 1, BOUNDS["shell_steps"])
        self.gauge, self.device = gauge, device

    def fields(self, lattice: Sequence[int], staggered: bool = False, *, device: Optional[Device] = None) -> np.ndarray:
        points = Point(self.origin).fields(lattice, staggered, device=self.device or device)
        return np.asarray(self.smeared(points, device=device))

    def profile(self, lattice: Sequence[int]) -> np.ndarray:
        """Returns the profile of the point before smearing."""
        return Point(self.origin).profile(lattice)

    def _shell(self) -> "Optional[Shell]":
        return self

    def _native(self) -> "tuple[_native.Links, float, int, list[float]]":
        return self.gauge._links, self.width, self.steps, self.momentum

    def smeared(self, fields: Any, *, device: Optional[Device] = None) -> Any:
        """Smears fields as the source is smeared, for example a propagator at the sink. A ``Propagator`` stays on its device."""
        from .spectrum import Propagator

        if isinstance(fields, Propagator):
            return fields._smeared(self, device)
        fields = given(fields)
        staggered = fields.shape[-2:] != (4, 3)
        return _native.gaussian(_on(self.device or device), fields, staggered, self._native())


class Array(Source):
    """Source from an array: fields ``[12, T, Z, Y, X, 4, 3]`` or ``[3, T, Z, Y, X, 3]``, with several processes this process's part; or a
    profile ``[T, Z, Y, X]`` of all components on the whole lattice, the same on every process."""

    def __init__(self, array: Any, origin: Sequence[int] = (0, 0, 0, 0)):
        self.array, self.origin = given(array), checked_site("origin", origin)

    def profile(self, lattice: Sequence[int]) -> np.ndarray:
        expected = tuple(reversed(extents(lattice)))
        if self.array.shape != expected:
            raise InputError(f"an array of shape {self.array.shape} is not a source on this lattice: expected {expected}")
        return self.array

    def fields(self, lattice: Sequence[int], staggered: bool = False, *, device: Optional[Device] = None) -> np.ndarray:
        if self.array.ndim == 4:
            return super().fields(lattice, staggered, device=device)
        return self.array
