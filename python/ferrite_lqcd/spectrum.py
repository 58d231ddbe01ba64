"""Quark propagators and hadron correlators."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import _native, plots
from ._arrays import given
from ._checks import momenta as checked_momenta
from ._checks import site, whole
from ._pickles import Pickled
from .device import Device, _known, _on, _shared, _whole
from .errors import InputError
from .plots import Plot
from .reports import Report

if TYPE_CHECKING:
    from .sources import Shell

__all__ = ["Correlators", "Propagator", "effective_mass", "gamma", "mesons", "nucleon", "read_fermions", "write_fermions"]

#: The 16 products of γ matrices by name: ``1``, ``gx``, …, ``g5``.
GAMMA_NAMES: "list[str]" = _native.gamma_names()

#: Matrices Γ over which mesons with these usual names are averaged.
MESONS: "dict[str, tuple[str, ...]]" = {
    "pion": ("g5",),
    "rho": ("gx", "gy", "gz"),
    "a0": ("1",),
    "a1": tuple(GAMMA_NAMES[15 - n] for n in (1, 2, 4)),
    "b1": ("gxgy", "gxgz", "gygz"),
}


def gamma(name: str) -> np.ndarray:
    """Returns a product of γ matrices in the DeGrand–Rossi basis, ``[row, column]``: ``gamma("g5")``, ``gamma("gxgt")``.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> np.allclose(fe.gamma("gx") @ fe.gamma("gt"), fe.gamma("gxgt"))
    True
    """
    return _native.gamma_matrix(_number(name))


def _number(name: str) -> int:
    if name not in GAMMA_NAMES:
        raise InputError(f"'{name}' is not a product of γ matrices: choose one of {', '.join(GAMMA_NAMES)}")
    return GAMMA_NAMES.index(name)


class Propagator(Pickled):
    """Quark propagator: the solutions for all components of a source.

    A pickle holds the columns, which are in host memory after unpickling.

    Attributes
    ----------
    columns : array
        ``[12, T, Z, Y, X, 4, 3]``, where the first axis is 3 spin + colour of the source; ``[3, T, Z, Y, X, 3]`` for staggered quarks. If
        the propagator is on a device, this is a copy, made at the first access.
    origin : four int
        Source position x, y, z, t.
    antiperiodic : bool
        Whether quarks are antiperiodic in t.
    report : Report or None
        Report of the solve.
    phases : str
        Phases of staggered quarks: ``milc`` or ``lexicographic``.
    lattice : four int
        Extents x, y, z, t of the whole lattice.
    """

    def __init__(
        self,
        columns: Any,
        origin: Sequence[int] = (0, 0, 0, 0),
        antiperiodic: bool = True,
        report: Optional[Report] = None,
        phases: str = "milc",
        *,
        device: Optional[Device] = None,
    ):
        self._device = _known(device)
        self.phases = phases
        # The columns are on a device, on the host, or on both.
        self._there: "Optional[_native.DevicePropagator]" = None
        self._columns: Optional[np.ndarray] = None
        if isinstance(columns, _native.DevicePropagator):
            self._there, shape = columns, tuple(columns.shape)
        else:
            self._columns = given(columns)
            shape = self._columns.shape
        self._shape = shape
        self.origin = site("origin", origin)
        self.antiperiodic = antiperiodic
        self.report = report
        count = {7: 12, 6: 3}.get(len(shape))
        if count is None or shape[0] != count:
            raise InputError(
                f"an array of shape {shape} is not a propagator: expected [12, T, Z, Y, X, 4, 3] or [3, T, Z, Y, X, 3]"
            )
        self.lattice = _whole(tuple(reversed(shape[1:5])), device)

    def _pickled(self) -> "dict[str, Any]":
        if self._device is not None and self._device.comm is not None:
            raise TypeError(
                "a propagator of several processes cannot be pickled, because each process has a part of it: write a file with S.write, or "
                "pickle the array that fe.gather(S.columns, axis=1) returns"
            )
        return {**self.__dict__, "_columns": self.columns, "_there": None, "_device": None}

    def __deepcopy__(self, memo: Any) -> Propagator:
        copied: Propagator = copy.copy(self)
        # A propagator on a device never changes, so a copy may share it.
        copied._columns, copied.report = copy.deepcopy(self._columns, memo), copy.deepcopy(self.report, memo)
        return copied

    @property
    def columns(self) -> np.ndarray:
        if self._columns is None:
            assert self._there is not None
            self._columns = self._there.numpy()
        return self._columns

    def _on(self, native: _native.Device) -> Any:
        """Returns the propagator for the compiled part: the object on the device, or the array."""
        if self._there is not None and self._there.device is native:
            return self._there
        return self.columns

    def _smeared(self, shell: "Shell", device: Optional[Device]) -> "Propagator":
        """Returns the propagator with smearing at the sink."""
        native = _on(shell.device or device or self._device)
        columns: Any = self._on(native)
        if isinstance(columns, _native.DevicePropagator):
            columns = columns.gaussian(*shell._native())
        else:
            columns = shell.smeared(columns, device=device or self._device)
        return Propagator(
            columns, self.origin, self.antiperiodic, self.report, self.phases, device=device or self._device
        )

    @property
    def staggered(self) -> bool:
        """Whether the quarks are staggered."""
        return len(self._shape) == 6

    def array(self) -> np.ndarray:
        """Returns a view with the source indices last: ``[T, Z, Y, X, sink spin, source spin, sink colour, source colour]``, or
        ``[T, Z, Y, X, sink colour, source colour]``."""
        if self.staggered:
            return np.moveaxis(self.columns, 0, -1)
        shape = self.columns.shape
        split = self.columns.reshape(4, 3, *shape[1:])
        return split.transpose(2, 3, 4, 5, 6, 0, 7, 1)

    def write(self, path: "str | os.PathLike[str]", *, title: str = "quark propagator") -> None:
        """Writes all columns into a file whose name determines the format: ``.npy``, or ``.lime`` for SciDAC."""
        write_fermions(path, self.columns, title=title, device=self._device)

    def __repr__(self) -> str:
        size = "×".join(str(extent) for extent in self.lattice)
        return f"<ferrite_lqcd.Propagator on {size} from {self.origin}>"


class Correlators(Pickled, Mapping[str, np.ndarray]):
    """Correlators by name: ``c["pion"]`` is ``[momentum, time]``, complex, with the time counted from the source.

    Attributes
    ----------
    momenta : list of three int
        Momenta in units of 2π/L.
    """

    def __init__(self, values: "dict[str, np.ndarray]", momenta: "list[tuple[int, int, int]]", baryons: bool = False):
        self._values, self.momenta, self._baryons = values, momenta, baryons

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"'{name}' does not exist: choose one of {', '.join(self._values)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def effective_mass(self, name: str, momentum: int = 0) -> np.ndarray:
        """Returns effective masses between t and t + 1, from a cosh for mesons and an exponential for baryons; NaN if there is none."""
        return effective_mass(self._of(name, momentum), "exp" if self._baryons else "cosh")

    def _of(self, name: str, momentum: int) -> np.ndarray:
        """Returns the real part of a correlator with one of the momenta, by time."""
        real: np.ndarray = np.real(self[name][whole("momentum", momentum, 0, len(self.momenta) - 1)])
        return real

    def plot(self, *names: str, momentum: int = 0) -> Plot:
        """Returns a plot of |C(t)| on a logarithmic axis, for these names or for all."""
        def points(name: str) -> "list[tuple[float, float]]":
            return [(t, abs(float(c))) for t, c in enumerate(self._of(name, momentum))]

        curves = {name: points(name) for name in names or tuple(self)}
        title = f"Correlators, p = {self.momenta[whole('momentum', momentum, 0, len(self.momenta) - 1)]}"
        return plots.lines(title, "time counted from the source", ("t", "|C(t)|"), curves, logarithmic=True)

    def _repr_svg_(self) -> str:
        return self.plot().svg

    def __repr__(self) -> str:
        return f"<ferrite_lqcd.Correlators: {', '.join(self)}; {len(self.momenta)} momenta>"


def _contracted(
    device: Optional[Device],
    hadron: "dict[str, Any]",
    momenta: "Sequence[Sequence[int]]",
    quark: Propagator,
    other: Optional[Propagator] = None,
    links: "Optional[_native.Links]" = None,
) -> np.ndarray:
    """Returns correlators of one or two propagators. The axes are those of the compiled part for this hadron."""
    native = _on(device or quark._device)
    request = {**hadron, "origin": list(quark.origin), "momenta": [list(p) for p in momenta]}
    return _native.contract(native, request, quark._on(native), None if other is None else other._on(native), links)


def mesons(
    quark: Propagator,
    antiquark: Optional[Propagator] = None,
    momenta: Sequence[Sequence[int]] = ((0, 0, 0),),
    *,
    gammas: Optional[Sequence[Union[str, "tuple[str, str]"]]] = None,
    device: Optional[Device] = None,
) -> Correlators:
    """Returns correlators of mesons of a quark and an antiquark, with equal or different masses, without the disconnected part.

    C(t, p) = −Σ_x e^{−i p (x−x₀)} tr [Γ S₁(x) Γ̄' γ_5 S₂†(x) γ_5] with Γ̄ = γ_t Γ† γ_t. For equal masses, the pion has C = Σ |S|².

    Parameters
    ----------
    quark : Propagator
        Propagator of the quark. For staggered quarks, the result has the four local mesons: ``pion``, ``scalar``, ``vector``,
        ``pseudovector``.
    antiquark : Propagator, optional
        Propagator of the quark whose antiquark is in the meson, from the same source; default: ``quark``.
    momenta : list of three int
        Momenta in units of 2π/L.
    gammas : list of names
        Matrices such as ``"g5"``, or pairs ``(sink, source)``; default: all 16, and the averages pion, rho, a0, a1 and b1.
    device : Device, optional
        Device that computes the sums; default: that of ``quark``.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> U = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1)
    >>> S = fe.Wilson(U, mass=0.1).propagator(fe.Point((0, 0, 0, 0)), tol=1e-8)
    >>> pion = fe.mesons(S)["pion"][0]
    >>> np.allclose(pion, fe.contract("t z y x s s1 c c1, t z y x s s1 c c1 -> t", S.array(), S.array().conj()))
    True
    """
    list_of_momenta = checked_momenta("momenta", momenta)
    if antiquark is not None:
        if not isinstance(antiquark, Propagator):
            raise InputError("antiquark is not a Propagator; to give momenta, write momenta=[(0, 0, 0)]")
        if antiquark.staggered != quark.staggered or antiquark.origin != quark.origin:
            raise InputError("quark and antiquark must be of the same kind and from the same source")
    if quark.staggered:
        if gammas is not None:
            raise InputError("gammas does not apply to staggered quarks, which have four local mesons: remove gammas")
        found = _contracted(device, {"hadron": "staggered-mesons"}, list_of_momenta, quark, antiquark)
        return Correlators(dict(zip(_native.staggered_names(), found)), list_of_momenta)
    pairs = [pair if isinstance(pair, tuple) else (pair, pair) for pair in (gammas or GAMMA_NAMES)]
    numbers = [(_number(sink), _number(source)) for sink, source in pairs]
    found = _contracted(device, {"hadron": "mesons", "pairs": numbers}, list_of_momenta, quark, antiquark)
    values = {sink if sink == source else f"{sink}-{source}": found[:, k] for k, (sink, source) in enumerate(pairs)}
    if gammas is None:
        for name, own in MESONS.items():
            values[name] = np.mean([values[one] for one in own], axis=0)
    return Correlators(values, list_of_momenta)


def nucleon(
    propagator: Propagator,
    momenta: Sequence[Sequence[int]] = ((0, 0, 0),),
    *,
    device: Optional[Device] = None,
) -> Correlators:
    """Returns correlators of the nucleon ε_abc (u_a C γ_5 d_b) u_c with equal u and d masses, ``"nucleon"``, and of its partner of
    negative parity, ``"partner"``.

    The sign of antiperiodic quarks is removed: correlators are those of a source at t = 0. For staggered quarks it is the local nucleon,
    whose partner alternates in time. Sums are computed on ``device``, or on the device of the propagator.
    """
    list_of_momenta, boundary = checked_momenta("momenta", momenta), {"antiperiodic": propagator.antiperiodic}
    if propagator.staggered:
        hadron = {"hadron": "staggered-nucleon", "milc_phases": propagator.phases == "milc", **boundary}
        local = _contracted(device, hadron, list_of_momenta, propagator)
        return Correlators({"nucleon": local}, list_of_momenta, baryons=True)
    found = _contracted(device, {"hadron": "nucleon", **boundary}, list_of_momenta, propagator)
    return Correlators({"nucleon": found[:, 0], "partner": found[:, 1]}, list_of_momenta, baryons=True)


def effective_mass(correlator: Sequence[float], form: str = "cosh") -> np.ndarray:
    """Returns effective masses m between t and t + 1 from C(t)/C(t+1); NaN if no m gives that ratio.

    ``form`` is ``"cosh"`` for correlators that are symmetric in time, ``"sinh"`` for antisymmetric ones, or ``"exp"``.
    ``fe.effective_masses`` gives errors from many configurations.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> np.allclose(fe.effective_mass(np.cosh(0.3 * (np.arange(16) - 8))), 0.3)
    True
    """
    array = np.real(np.asarray(correlator))
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise InputError(f"correlator: expected an array of numbers by time, not one of shape {array.shape} and type {array.dtype}")
    values = [float(value) for value in array]
    return np.array(_native.effective_masses(values, form))


def read_fermions(
    path: "str | os.PathLike[str]",
    *,
    staggered: bool = False,
    verify: bool = True,
    record: int = 0,
    device: Optional[Device] = None,
) -> np.ndarray:
    """Reads fermion fields from a SciDAC, MILC or ``.npy`` file: ``[T, Z, Y, X, 4, 3]``, or ``[12, T, Z, Y, X, 4, 3]`` for a propagator;
    without the spin axis if ``staggered``. With several processes, each process reads its part."""
    return _native.read_fermions(os.fspath(path), staggered, verify, whole("record", record), _shared(device))


def write_fermions(
    path: "str | os.PathLike[str]", fields: Any, *, title: str = "written by Ferrite", device: Optional[Device] = None
) -> None:
    """Writes fermion fields, completely or not at all; the name of the file determines the format: ``.npy``, ``.lime`` for SciDAC, or
    ``.milc`` for a propagator of staggered quarks, in single precision. With several processes, each process writes its part of the
    file."""
    _native.write_fermions(os.fspath(path), given(fields), title, _shared(device))
