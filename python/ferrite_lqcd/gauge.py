"""Gauge fields.

A gauge field never changes: smearing and gauge fixing return new ones, and a flow returns an object ``Flow`` with a new
one. U_μ(x) connects x to x+μ̂ and is stored at x; arrays have the axes ``[t, z, y, x, mu, row, column]``. With several
processes (``fe.init(comm=…)``), each process has the links of its part of the lattice.
"""

from __future__ import annotations

import copy
import math
import os
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Union

import numpy as np

from . import _native, plots
from ._arrays import given
from ._checks import BOUNDS, MOST_SEED, extents, fits_memory, number, numbers, positive, whole
from ._pickles import Pickled
from .device import Device, _ahead, _checked, _on, _shared, _whose
from .device import device as current_device
from .errors import InputError
from .plots import Plot

__all__ = ["Flow", "FlowPoint", "Gauge", "Loops", "Plaquette"]

Path = Union[str, "os.PathLike[str]"]

#: Largest number of sweeps. The random numbers of links count sweeps in 32 bits.
_U32 = 2**32 - 1


@dataclass(frozen=True)
class Plaquette:
    """Means of Re tr P / 3 (1 for unit links) over all planes, the spatial planes and the temporal planes."""

    mean: float
    spatial: float
    temporal: float


@dataclass(frozen=True)
class Loops:
    """Observables of links.

    ``plaquette`` and ``rectangle`` are means of Re tr / 3 over the loops, and ``polyakov`` is the mean of tr / 3. ``energy`` is the
    energy density E and ``charge`` the topological charge, both from the clover-leaf field strength.
    """

    plaquette: Plaquette
    rectangle: float
    polyakov: complex
    energy: float
    charge: float


@dataclass(frozen=True)
class FlowPoint:
    """Observables at a flow time t, in units of the lattice spacing squared.

    ``energy`` is E from the clover-leaf field strength, ``plaquette_energy`` is E from plaquettes, ``charge`` is the topological charge.
    """

    time: float
    energy: float
    plaquette_energy: float
    charge: float


class Gauge(Pickled):
    """Links of a configuration, in double precision in host memory.

    ``numpy.asarray(U)`` is a read-only view of the links without a copy, of the shape ``[T, Z, Y, X, 4, 3, 3]``. Links can be pickled and
    copied, unless several processes share them.

    Parameters
    ----------
    array : array of complex numbers ``[T, Z, Y, X, 4, 3, 3]``
        Links, all finite; with several processes, the links of this process's part. Other constructors: ``Gauge.read``, ``Gauge.unit``,
        ``Gauge.random``, ``Gauge.quenched``.
    device : Device, optional
        Device whose processes have the other parts; default: that of ``fe.init``.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> U = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1)
    >>> U.lattice, np.asarray(U).shape
    ((4, 4, 4, 8), (8, 4, 4, 4, 4, 3, 3))
    >>> round(U.plaquette().mean, 6)
    0.898804
    """

    def __init__(self, array: Any, *, device: Optional[Device] = None):
        self._links = _native.Links.from_array(given(array), _shared(device))
        # Device whose processes have the other parts, or None.
        self._device = _whose(device)
        self.file: "dict[str, Any]" = {}

    @classmethod
    def _of(
        cls, links: _native.Links, device: Optional[Device], file: "Optional[dict[str, Any]]" = None
    ) -> Gauge:
        gauge = cls.__new__(cls)
        gauge._links, gauge.file = links, file or {}
        gauge._device = _whose(device)
        return gauge

    @classmethod
    def read(
        cls,
        path: Path,
        *,
        verify: bool = True,
        allow_non_unitary: bool = False,
        reunitarise: bool = False,
        lattice: Optional[Sequence[int]] = None,
        record: int = 0,
        device: Optional[Device] = None,
    ) -> Gauge:
        """Reads NERSC, ILDG, SciDAC, MILC, openQCD or ``.npy`` files; the first bytes determine the format.

        The checksum, the plaquette and the link trace of the header are compared with the links, which must be finite and unitary.
        ``U.file`` contains the header.

        Parameters
        ----------
        verify : bool
            Whether to refuse a file whose data disagrees with its header.
        allow_non_unitary : bool
            Whether to accept links off SU(3), such as fat links.
        reunitarise : bool
            Whether to project links to SU(3) after all checks.
        lattice : four int, optional
            Extents x, y, z, t, for a file that does not contain them.
        record : int
            Number of the field in a LIME file that contains several, from 0.
        device : Device, optional
            Device whose processes read their parts together; default: that of ``fe.init``.

        Raises
        ------
        FileError
            If the file cannot be read; the message names the file, the place in it and what to do.
        """
        sizes = None if lattice is None else extents(lattice)
        record = whole("record", record)
        links, said = _native.Links.read(
            os.fspath(path), verify, allow_non_unitary, reunitarise, sizes, record, _shared(device)
        )
        return cls._of(links, device, said)

    @classmethod
    def unit(cls, lattice: Sequence[int], *, device: Optional[Device] = None) -> Gauge:
        """Returns links that are all unit matrices. ``lattice`` has the extents x, y, z, t."""
        native = _shared(device)
        return cls._of(_native.Links.unit(_sizes(lattice, native), native), device)

    @classmethod
    def random(
        cls, lattice: Sequence[int], seed: int, *, noise: Optional[float] = None, device: Optional[Device] = None
    ) -> Gauge:
        """Returns independent links distributed with the Haar measure; with ``noise``, links near 1 for tests of solvers.

        The random numbers depend on the seed, from 0 to 2⁶⁴ − 1, and the site. ``noise``, from 0 to 10⁶, is the standard deviation of
        real and imaginary parts that are added to the unit matrix before it is projected to SU(3).
        """
        seed, native = whole("seed", seed, 0, MOST_SEED), _shared(device)
        if noise is not None:
            noise = number("noise", noise, "a number from 0 to 1e6", lambda x: 0 <= x <= 1e6)
        return cls._of(_native.Links.random(_sizes(lattice, native), seed, noise, native), device)

    @classmethod
    def quenched(
        cls,
        lattice: Sequence[int],
        beta: float,
        seed: int,
        *,
        sweeps: int = 100,
        overrelax: int = 4,
        start: Union[str, Gauge] = "cold",
        passes: int = 0,
        device: Optional[Device] = None,
    ) -> Gauge:
        """Generates a configuration of SU(3) gauge theory with the Wilson action −(β/3) Σ Re tr P.

        Parameters
        ----------
        sweeps : int
            Number of sweeps. Each consists of one heat-bath update and ``overrelax`` over-relaxation updates of all links. One call
            makes at most 10⁹ such updates.
        start : "cold", "hot" or Gauge
            Initial links. With a ``Gauge``, ``passes`` is the number of sweeps that made it with the same seed, so that the chain
            continues with new random numbers.

        Returns
        -------
        Gauge
            The last configuration; ``U.file["plaquettes"]`` has the mean plaquette after each sweep.

        Examples
        --------
        >>> import ferrite_lqcd as fe
        >>> U = fe.Gauge.quenched((4, 4, 4, 4), beta=6.0, seed=1, sweeps=10)
        >>> len(U.file["plaquettes"]), 0.5 < U.plaquette().mean < 0.7
        (10, True)
        """
        beta = number("beta", beta, "a number from 0 to 1e6", lambda x: 0 <= x <= 1e6)
        seed, sweeps = whole("seed", seed, 0, MOST_SEED), whole("sweeps", sweeps, 0, _U32)
        overrelax, passes = whole("overrelax", overrelax, 0, _U32), whole("passes", passes, 0, _U32)
        if sweeps * (1 + overrelax) > BOUNDS["passes"]:
            raise InputError(
                f"{sweeps} sweeps of {1 + overrelax} passes over all links are {sweeps * (1 + overrelax)} passes, but one call makes "
                f"at most {BOUNDS['passes']}: request fewer sweeps, and continue from the last configuration with start and passes"
            )
        if sweeps + passes > _U32:
            raise InputError(f"passes + sweeps = {sweeps + passes}: expected at most {_U32}; start with another seed")
        if not isinstance(start, Gauge) and start not in ("cold", "hot"):
            raise InputError(f"start = {start!r}: expected 'cold', 'hot' or a Gauge")
        first, native = start._links if isinstance(start, Gauge) else None, _on(device)
        request = {"beta": beta, "seed": seed, "sweeps": sweeps, "overrelax": overrelax, "passes": passes}
        request["hot"] = first is None and start == "hot"
        links, plaquettes = _native.quenched(native, _sizes(lattice, native), request, first)
        return cls._of(links, device, {"plaquettes": plaquettes})

    @property
    def lattice(self) -> "tuple[int, int, int, int]":
        """Extents x, y, z, t of the whole lattice."""
        x, y, z, t = self._links.lattice
        return x, y, z, t

    @property
    def __array_interface__(self) -> "dict[str, Any]":
        return self._links.__array_interface__

    def array(self) -> np.ndarray:
        """Returns a writable copy of the links, ``[T, Z, Y, X, 4, 3, 3]``."""
        return np.array(self)

    def write(
        self, path: Path, *, title: str = "written by Ferrite", metadata: "Optional[dict[str, str]]" = None, single: bool = False
    ) -> None:
        """Writes a file completely or not at all; its name determines the format: .ildg, .lime, .scidac, .nersc, .nersc3x3, .milc,
        .openqcd or .npy. ``single`` stores 32 bits of each number."""
        self._links.write(os.fspath(path), title, list((metadata or {}).items()), single)

    def plaquette(self) -> Plaquette:
        """Returns the mean plaquettes."""
        mean, spatial, temporal, _ = self._links.plaquette()
        return Plaquette(mean, spatial, temporal)

    def link_trace(self) -> float:
        """Returns the mean of Re tr U / 3."""
        return self._links.plaquette()[3]

    def unitarity(self) -> float:
        """Returns the largest violation of unitarity, the maximum over links of ‖U U† − 1‖ and |det U − 1|."""
        return self._links.unitarity()

    def loops(self, *, device: Optional[Device] = None) -> Loops:
        """Measures plaquette, rectangle, Polyakov loop, energy density and topological charge."""
        found = self._links.loops(self._where(device))
        plaquette = found["plaquette"]
        return Loops(
            Plaquette(plaquette["mean"], plaquette["spatial"], plaquette["temporal"]),
            found["rectangle"],
            complex(*found["polyakov_loop"]),
            found["energy"]["space"] + found["energy"]["time"],
            found["charge"],
        )

    def stout(self, rho: float, steps: int = 1, *, spatial: bool = False, device: Optional[Device] = None) -> Gauge:
        """Returns stout links exp(iQ) U (Morningstar and Peardon 2004) after ``steps`` steps, at most 65535, with the weight ρ of a staple.

        Examples
        --------
        >>> import ferrite_lqcd as fe
        >>> U = fe.Gauge.random((4, 4, 4, 4), seed=1, noise=0.3)
        >>> U.stout(0.1, 3).plaquette().mean > U.plaquette().mean
        True
        """
        rho = number("rho", rho, "a number from 0 to 0.25", lambda x: 0 <= x <= 0.25)
        return self._smeared("stout", [rho], steps, spatial, device)

    def ape(self, alpha: float, steps: int = 1, *, spatial: bool = False, device: Optional[Device] = None) -> Gauge:
        """Returns APE-smeared links: the projection of (1 − α) U + α times the mean of the staples."""
        alpha = number("alpha", alpha, "a number from 0 to 1", _is_share)
        return self._smeared("ape", [alpha], steps, spatial, device)

    def hyp(
        self,
        alpha: "tuple[float, float, float]" = (0.75, 0.6, 0.3),
        steps: int = 1,
        *,
        spatial: bool = False,
        device: Optional[Device] = None,
    ) -> Gauge:
        """Returns HYP-smeared links (Hasenfratz and Knechtli 2001) with α₁, α₂, α₃."""
        shares = numbers("alpha", alpha, "numbers from 0 to 1", _is_share)
        if len(shares) != 3:
            raise InputError(f"alpha = {tuple(shares)}: expected three numbers from 0 to 1")
        return self._smeared("hyp", shares, steps, spatial, device)

    def _smeared(self, kind: str, weights: "list[float]", steps: int, spatial: bool, device: Optional[Device]) -> Gauge:
        steps = whole("steps", steps, 0, BOUNDS["smearing_levels"])
        request = {"kind": kind, "weights": weights, "levels": steps, "spatial": bool(spatial)}
        links = self._links.smear(self._where(device), request)
        return Gauge._of(links, self._home(device))

    def flow(self, time: float, step: float = 0.02, *, action: str = "wilson", device: Optional[Device] = None) -> Flow:
        """Integrates the gradient flow of the action ``"wilson"`` or ``"symanzik"``, or the flow ``"zeuthen"`` (Ramos and Sint 2016), up to
        ``time``, in at most 10⁶ steps of Lüscher's third-order scheme.

        Examples
        --------
        >>> import ferrite_lqcd as fe
        >>> flow = fe.Gauge.random((4, 4, 4, 4), seed=1, noise=0.3).flow(0.2, 0.05)
        >>> [round(point.time, 2) for point in flow.points]
        [0.0, 0.05, 0.1, 0.15, 0.2]
        """
        time, step = positive("time", time), positive("step", step)
        steps, most = time / step, BOUNDS["flow_steps"]
        if steps - 1e-9 > most:
            raise InputError(
                f"a flow to time = {time:g} in steps of {step:g} takes {steps:.2g} steps of three forces each, but at most {most} are allowed: "
                f"give an earlier time, or a step of at least {time / most:.3g}"
            )
        links, said = self._links.flow(self._where(device), {"action": action, "time": time, "step": step})
        return Flow(Gauge._of(links, self._home(device)), said, action)

    def fix(
        self,
        gauge: str = "coulomb",
        *,
        tol: float = 1e-12,
        overrelax: Optional[float] = None,
        max_sweeps: int = 20_000,
        device: Optional[Device] = None,
    ) -> Gauge:
        """Returns links in ``"coulomb"`` or ``"landau"`` gauge, by over-relaxation until θ = Σ tr Δ Δ† / (3 V) falls to ``tol``, at least
        1e-28.

        ``file`` of the result has ``theta``, ``functional`` and ``sweeps``.
        """
        if overrelax is not None:
            overrelax = number("overrelax", overrelax, "a number of at least 1 and below 2", lambda x: 1 <= x < 2)
        tol = number("tol", tol, "a number of at least 1e-28, the smallest value that double precision can reach", lambda x: x >= 1e-28)
        max_sweeps = whole("max_sweeps", max_sweeps, 1, _U32)
        request = {"gauge": gauge, "tol": tol, "overrelax": overrelax, "max_sweeps": max_sweeps}
        links, ((theta, functional), sweeps) = self._links.fix(self._where(device), request)
        return Gauge._of(links, self._home(device), {"gauge": gauge, "theta": theta, "functional": functional, "sweeps": sweeps})

    def transform(self, g: Any) -> Gauge:
        """Returns the links g(x) U_μ(x) g†(x+μ̂) after a gauge transformation ``g``, ``[T, Z, Y, X, 3, 3]``.

        Examples
        --------
        >>> import ferrite_lqcd as fe, numpy as np
        >>> U = fe.Gauge.random((2, 4, 4, 4), seed=1)
        >>> g = np.asarray(fe.Gauge.random(U.lattice, seed=2))[..., 0, :, :]
        >>> abs(U.transform(g).plaquette().mean - U.plaquette().mean) < 1e-14
        True
        """
        links, g = np.asarray(self), given(g)
        if g.shape != links.shape[:4] + (3, 3):
            raise InputError(f"g has the shape {g.shape}: expected {links.shape[:4] + (3, 3)}")
        turned = np.empty(links.shape, dtype=np.complex128)
        for mu in range(4):
            ahead = _ahead(g, mu, self._device).conj().swapaxes(-1, -2)
            turned[..., mu, :, :] = g @ links[..., mu, :, :] @ ahead
        native = None if self._device is None else self._device._native
        gauge = Gauge.__new__(Gauge)
        gauge._links, gauge._device, gauge.file = _native.Links.from_array(given(turned), native), self._device, {}
        return gauge

    def _home(self, device: Optional[Device]) -> Device:
        """Returns the device for work with the links. With several processes, it is the device whose processes have the other parts."""
        return _checked(device) or self._device or current_device()

    def _pickled(self) -> "dict[str, Any]":
        if self._device is not None:
            raise TypeError(
                "links of several processes cannot be pickled, because each process has a part of them: write a file with U.write, or "
                "pickle the array that fe.gather(U) returns"
            )
        return {"links": np.asarray(self), "file": self.file}

    def _unpickled(self, state: "dict[str, Any]") -> None:
        self._links, self._device = _native.Links.from_array(given(state["links"]), None), None
        self.file = state["file"]

    def __deepcopy__(self, memo: Any) -> Gauge:
        # A copy of links is the same object, because links never change.
        copied: Gauge = copy.copy(self)
        copied.file = copy.deepcopy(self.file, memo)
        return copied

    def _where(self, device: Optional[Device]) -> _native.Device:
        return self._home(device)._native

    def __repr__(self) -> str:
        size = "×".join(str(extent) for extent in self.lattice)
        if self._device is not None:
            # The text must not contain the plaquette: one process may print, but a plaquette needs all processes.
            part = "×".join(str(extent) for extent in reversed(np.asarray(self).shape[:4]))
            return f"<ferrite_lqcd.Gauge on {size}, of which this process has {part}>"
        return f"<ferrite_lqcd.Gauge on {size}, plaquette {self.plaquette().mean:.10f}>"


def _is_share(alpha: float) -> bool:
    return 0 <= alpha <= 1


def _sizes(lattice: Sequence[int], native: Optional[_native.Device]) -> "list[int]":
    """Returns the extents of links to be made. Raises an exception if the links do not fit into memory."""
    sizes = extents(lattice)
    fits_memory(sizes, 1 if native is None else math.prod(native.grid))
    return sizes


class Flow(Pickled):
    """Result of a gradient flow.

    Attributes
    ----------
    gauge : Gauge
        Links at the end of the flow.
    points : list of FlowPoint
        Observables at the start and after each step.
    t0, w0 : float or None
        Flow time t at which t² E reaches 0.3, and √t at which t d/dt t² E reaches 0.3, in lattice units; ``None`` if the flow does not
        reach it.
    """

    def __init__(self, gauge: Gauge, said: "dict[str, Any]", action: str):
        self.gauge = gauge
        self.points = [FlowPoint(*point) for point in said["points"]]
        self.t0: Optional[float] = said["t0"]
        self.w0: Optional[float] = said["w0"]
        self.action = action

    def plot(self) -> Plot:
        """Returns a plot of t² E against t."""
        curves = {
            "clover leaf": [(point.time, point.time**2 * point.energy) for point in self.points],
            "plaquette": [(point.time, point.time**2 * point.plaquette_energy) for point in self.points],
        }
        size = "×".join(str(extent) for extent in self.gauge.lattice)
        return plots.lines("t² E of the gradient flow", f"{self.action} flow on {size}", ("t", "t² E"), curves)

    def _repr_svg_(self) -> str:
        return self.plot().svg

    def __repr__(self) -> str:
        return f"<ferrite_lqcd.Flow to t = {self.points[-1].time:g}, t0 = {self.t0}, w0 = {self.w0}>"
