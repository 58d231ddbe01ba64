"""Dirac operators and solvers.

Fields are NumPy arrays: ``[t, z, y, x, spin, colour]`` for Wilson-like operators, in the DeGrand–Rossi basis, and
``[t, z, y, x, colour]`` for staggered operators. Leading axes number the right-hand sides, which are computed together. M is
(4 + m) − ½ D in lattice units.
"""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence

import numpy as np

from . import _native
from ._arrays import given
from ._checks import BOUNDS, number, numbers, whole, wholes
from ._pickles import Pickled
from .arrays import DeviceArray
from .device import Device, _on
from .errors import InputError, SolverError
from .gauge import Gauge
from .reports import Report

if TYPE_CHECKING:
    from .sources import Source
    from .spectrum import Propagator

__all__ = ["Multigrid", "Operator", "Solution", "solvers"]


def solvers() -> "list[dict[str, Any]]":
    """Returns all methods of ``solve``: ``name``, ``title``, ``help``, and whether the method applies to ``wilson`` and to ``staggered``
    operators.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> [solver["name"] for solver in fe.solvers() if solver["staggered"]]
    ['cg', 'block-cg']
    """
    return _native.solvers()


class Solution(NamedTuple):
    """Solution of a solve, with its report."""

    x: Any
    report: Report


class Multigrid:
    """Multigrid setup of an operator, to be passed as ``solver=`` to its solves. It stays on the device as long as the operator.

    Attributes
    ----------
    seconds : float
        Time of the setup, in seconds.
    levels : list of dict
        ``block`` and ``vectors`` of each level except the coarsest.
    """

    def __init__(self, operator: Operator, settings: "dict[str, Any]", found: "dict[str, Any]"):
        self.seconds: float = found["seconds"]
        self.levels: "list[dict[str, Any]]" = found["levels"]
        self._operator, self._settings = operator, settings
        self._number = operator._setups

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the near-null vectors of the finest level, with the operator and a checksum of its links.

        ``Operator.load_setup`` and ``ferrite solve --setup`` read the file (docs/formats.md).

        Raises
        ------
        InputError
            If another setup of the operator has replaced this one.
        FileError
            If the file cannot be written.
        """
        if self._operator._setups != self._number:
            raise InputError("the operator has a newer setup: save the newer setup, or make this setup again with D.setup()")
        self._operator._dirac.save_setup(os.fspath(path))

    def __reduce__(self) -> Any:
        raise TypeError(
            "a multigrid setup is in the memory of its device and cannot be pickled: write a file with save(path), and read it with "
            "load_setup(path) of an operator on the same links"
        )

    def __deepcopy__(self, memo: Any) -> Multigrid:
        raise TypeError("a multigrid setup cannot be copied: make another one with D.setup() of the other operator")

    def __repr__(self) -> str:
        levels = ", ".join(f"{level['vectors']} vectors on {level['block']}" for level in self.levels)
        return f"<ferrite_lqcd.Multigrid: {levels}; {self.seconds:.2f} s>"


def _setup_settings(
    counts: "dict[str, Optional[int]]", blocks: Optional[Sequence[Sequence[int]]]
) -> "dict[str, Any]":
    settings: "dict[str, Any]" = {key: whole(key, count) for key, count in counts.items() if count is not None}
    if blocks is not None:
        if not isinstance(blocks, (list, tuple, np.ndarray)):
            raise InputError(f"blocks = {blocks}: expected a list with four extents x, y, z, t for each level")
        of_levels = enumerate(blocks)
        settings["blocks"] = [wholes(f"blocks[{level}]", block, "four extents x, y, z, t", 4, 1) for level, block in of_levels]
    return settings


#: Defaults of the settings of ``Operator.solve``.
_USUAL: "dict[str, Any]" = {
    "tol": 1e-10,
    "solver": None,
    "precision": None,
    "outer": None,
    "reconstruct": None,
    "max_iterations": None,
    "batch": None,
    "escalate": True,
    "idr_s": None,
}


def _text(value: Any) -> str:
    """Returns a parameter as text for the registry of operators."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, (bool, str, int)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    try:
        return ",".join(_text(one) for one in value)
    except TypeError:
        raise InputError(f"{value!r} is not a parameter of an operator: expected a number, a text, or a list of these") from None


class Operator(Pickled):
    """Dirac operator on links; ``fe.operators()`` lists all operators. Classes such as ``fe.Wilson`` have the parameters of one operator.

    The operator owns its links: no other calculation changes them. Its memory is freed with this object. A pickle holds the links and
    the parameters, but no multigrid setup.

    Parameters
    ----------
    name : str
        Name of the operator, such as ``"clover"``.
    gauge : Gauge
        Links of the operator; smear them first if the operator needs smeared links.
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    **parameters
        Parameters of the operator, as listed by ``fe.operators()``.

    Raises
    ------
    InputError
        If parameters are wrong; the message lists all mistakes.
    """

    def __init__(self, name: str, gauge: Gauge, *, device: Optional[Device] = None, **parameters: Any):
        texts = {key: _text(value) for key, value in parameters.items() if value is not None}
        if not isinstance(gauge, Gauge):
            raise InputError(f"an operator needs a Gauge, not {type(gauge).__name__}: make one with fe.Gauge(array)")
        # The operator keeps this device, even if init chooses another one later.
        self._device = gauge._home(device)
        self._dirac = _native.Dirac.of(self._device._native, gauge._links, name, texts)
        # Number of multigrid setups so far. Only the last one exists.
        self._setups = 0
        self.name = name
        self.gauge = gauge
        self._texts = texts
        self.parameters: "dict[str, Any]" = self._dirac.description

    def _pickled(self) -> "dict[str, Any]":
        return {"name": self.name, "gauge": self.gauge, "parameters": self._texts, "more": self._more()}

    def _unpickled(self, state: "dict[str, Any]") -> None:
        Operator.__init__(self, state["name"], state["gauge"], **state["parameters"])
        self.__dict__.update(state["more"])

    def _more(self) -> "dict[str, Any]":
        """Returns the attributes that a subclass has added to the object."""
        own = ("_device", "_dirac", "_setups", "_texts", "name", "gauge", "parameters")
        return {key: value for key, value in self.__dict__.items() if key not in own}

    def __copy__(self) -> Operator:
        return self._copied(self.gauge, self._more())

    def __deepcopy__(self, memo: Any) -> Operator:
        return self._copied(copy.deepcopy(self.gauge, memo), copy.deepcopy(self._more(), memo))

    def _copied(self, gauge: Gauge, more: "dict[str, Any]") -> Operator:
        copied: Operator = type(self).__new__(type(self))
        Operator.__init__(copied, self.name, gauge, device=self._device, **self._texts)
        copied.__dict__.update(more)
        return copied

    @property
    def staggered(self) -> bool:
        """Whether the operator is staggered, so that fields have no spin axis."""
        return bool(self.parameters["staggered"])

    @property
    def antiperiodic(self) -> bool:
        """Whether fermions are antiperiodic in t."""
        return bool(self.parameters["antiperiodic"])

    @property
    def mass(self) -> float:
        """Bare mass."""
        return float(self.parameters["mass"])

    def apply(self, psi: Any) -> Any:
        """Returns M ψ in double precision, for one or several fields; for a ``DeviceArray`` it returns a ``DeviceArray``."""
        return self._image(psi, "plain")

    def dagger(self, psi: Any) -> Any:
        """Returns M† ψ in double precision, for one or several fields; for a ``DeviceArray`` it returns a ``DeviceArray``."""
        return self._image(psi, "dagger")

    def normal(self, psi: Any) -> Any:
        """Returns M† M ψ in double precision, for one or several fields; for a ``DeviceArray`` it returns a ``DeviceArray``."""
        return self._image(psi, "normal")

    def _image(self, psi: Any, form: str) -> Any:
        if isinstance(psi, DeviceArray):
            return DeviceArray(self._dirac.apply_on_device(psi._shared, form))
        return self._dirac.apply(given(psi), form)

    def setup(
        self,
        *,
        vectors: Optional[int] = None,
        levels: Optional[int] = None,
        blocks: Optional[Sequence[Sequence[int]]] = None,
        improvements: Optional[int] = None,
    ) -> Multigrid:
        """Creates a multigrid setup and returns it, to be passed as ``solver=`` to solves.

        Parameters
        ----------
        vectors : int
            Number of near-null vectors on each level except the coarsest, a multiple of 8.
        levels : int
            Maximum number of levels, including the finest.
        blocks : list of four int
            Extents x, y, z, t of the aggregates of each level except the coarsest.
        improvements : int
            Number of setup iterations that improve the near-null vectors by the cycle.
        """
        settings = _setup_settings({"vectors": vectors, "levels": levels, "improvements": improvements}, blocks)
        return Multigrid(self, settings, self._set_up(lambda: self._dirac.set_up(settings)))

    def _set_up(self, make: "Callable[[], dict[str, Any]]") -> "dict[str, Any]":
        """Counts a new setup, which replaces the previous one, and returns it."""
        try:
            found = make()
        except KeyboardInterrupt:
            # The device may complete the setup even after an exception such as KeyboardInterrupt.
            self._setups += 1
            raise
        self._setups += 1
        return found

    def load_setup(
        self,
        path: "str | os.PathLike[str]",
        *,
        levels: Optional[int] = None,
        blocks: Optional[Sequence[Sequence[int]]] = None,
    ) -> Multigrid:
        """Creates a multigrid setup from the near-null vectors in a file that ``Multigrid.save`` or ``ferrite solve --setup`` wrote.

        The links and the operator must be those for which the file was written; mass and coefficients may differ. ``levels`` and
        ``blocks`` have the same meaning as in ``setup``; files do not contain them.

        Raises
        ------
        FileError
            If the file is damaged, or the setup is for other links or another operator.

        Examples
        --------
        >>> import ferrite_lqcd as fe, pathlib, tempfile
        >>> U, blocks = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1), [(2, 2, 2, 2)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "wilson.setup"
        ...     fe.Wilson(U, mass=0.1).setup(vectors=8, blocks=blocks).save(path)
        ...     mg = fe.Wilson(U, mass=0.05).load_setup(path, blocks=blocks)
        >>> mg.levels[0]["vectors"]
        8
        """
        settings = _setup_settings({"levels": levels}, blocks)
        found = self._set_up(lambda: self._dirac.load_setup(os.fspath(path), settings))
        return Multigrid(self, {**settings, "vectors": found["vectors"]}, found)

    def solve(
        self,
        b: Any,
        *,
        tol: float = 1e-10,
        solver: "str | Multigrid | None" = None,
        precision: Optional[str] = None,
        outer: Optional[str] = None,
        reconstruct: "str | int | None" = None,
        max_iterations: Optional[int] = None,
        guess: Any = None,
        batch: Optional[int] = None,
        escalate: bool = True,
        idr_s: Optional[int] = None,
    ) -> Solution:
        """Solves M x = b.

        Parameters
        ----------
        b : array
            One source, or several along leading axes; up to 16 in a ``DeviceArray``. All numbers must be finite.
        tol : float
            Requested tolerance of ‖b − M x‖ / ‖b‖ of the full system.
        solver : str or Multigrid
            Result of ``setup``, or name of a method; ``fe.solvers()`` lists them. The default is ``auto``, or ``cg`` for staggered
            operators.
        precision : str
            Precision of the iteration: ``double``, ``single``, ``half`` or ``fp16``. By default, it is ``half`` for Wilson-like
            operators on a GPU and otherwise ``single``. Solutions are always in double precision.
        outer : str
            Precision of the solution and of true residuals: ``double`` (default) or ``single``.
        reconstruct : str or int
            Number of reals stored for a link in the iteration: 18, 12 (default), 8, …
        max_iterations : int
            Maximum number of iterations, at most 10⁹ (default: 10,000, and more for light staggered quarks).
        guess : array
            Initial guess, with the shape of ``b``.
        batch : int
            Number of right-hand sides to solve together; default: as many as memory allows, up to 16.
        escalate : bool
            Whether a solve that stagnates continues in higher precision.
        idr_s : int
            Dimension s of the shadow space of ``solver="idr"``, 1 to 16 (default: 4).

        Returns
        -------
        Solution
            ``x``, with the shape of ``b`` and on the same device, and ``report``.

        Raises
        ------
        SolverError
            If a true residual exceeds ``tol``; the exception has the best iterate as ``x`` and its ``report``.

        Examples
        --------
        >>> import ferrite_lqcd as fe, numpy as np
        >>> U = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1)
        >>> D = fe.Wilson(U, mass=0.1)
        >>> b = fe.Point((0, 0, 0, 0)).field(U.lattice, spin=0, colour=0)
        >>> x, report = D.solve(b, precision="single")
        >>> bool(np.linalg.norm(b - D.apply(x)) < 1e-10 * np.linalg.norm(b)), report.converged
        (True, True)
        """
        settings = self._settings(tol, solver, precision, outer, reconstruct, max_iterations, batch, escalate, idr_s)
        if isinstance(b, DeviceArray):
            if guess is not None and not isinstance(guess, DeviceArray):
                raise InputError("guess is an array of the host, but b is on a device: convert guess with fe.to_device")
            first_on_device = None if guess is None else guess._shared
            solution, report = self._dirac.solve_on_device(b._shared, first_on_device, settings)
            return self._checked(DeviceArray(solution), report)
        b = given(b)
        first = None if guess is None else given(guess)
        if first is not None and first.shape != b.shape:
            raise InputError(f"guess has the shape {first.shape}, but b has {b.shape}")
        x, report = self._dirac.solve(b, first, settings)
        return self._checked(x, report)

    def solve_masses(
        self,
        b: Any,
        masses: Sequence[float],
        *,
        tol: float = 1e-10,
        precision: Optional[str] = None,
        reconstruct: "str | int | None" = None,
        max_iterations: Optional[int] = None,
        batch: Optional[int] = None,
    ) -> Solution:
        """Solves M(m) x = b of a staggered operator for several masses at once, by multi-shift CG.

        The operator's own mass is not used. ``x`` has a leading axis for the masses, followed by the axes of ``b``.
        """
        return self._series(b, False, masses, tol, precision, reconstruct, max_iterations, batch)

    def solve_shifts(
        self,
        b: Any,
        shifts: Sequence[float],
        *,
        tol: float = 1e-10,
        precision: Optional[str] = None,
        reconstruct: "str | int | None" = None,
        max_iterations: Optional[int] = None,
        batch: Optional[int] = None,
    ) -> Solution:
        """Solves (M†M + σ) x = b of a staggered operator for several shifts σ at once, by multi-shift CG.

        ``x`` has a leading axis for the shifts, followed by the axes of ``b``.
        """
        return self._series(b, True, shifts, tol, precision, reconstruct, max_iterations, batch)

    def propagator(self, source: "Source", **settings: Any) -> "Propagator":
        """Solves for all components of a source together: 12 for Wilson-like operators, 3 for staggered operators.

        If the source is on one time slice and memory allows, the solutions stay on the device until the propagator is deleted, and
        hadrons are computed there; ``S.columns`` copies them.

        Parameters
        ----------
        source : Source
            ``fe.Point``, ``fe.Wall``, ``fe.Noise``, ``fe.Shell``, ``fe.Momentum`` or ``fe.Array``.
        **settings
            Settings of ``solve``.

        Examples
        --------
        >>> import ferrite_lqcd as fe
        >>> U = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1)
        >>> S = fe.Wilson(U, mass=0.1).propagator(fe.Point((0, 0, 0, 0)), tol=1e-8)
        >>> S.array().shape
        (8, 4, 4, 4, 4, 4, 3, 3)
        """
        from .spectrum import Propagator

        columns: Any
        phases = str(self.parameters.get("phases") or "milc")
        shell, place = source._shell(), None
        if "guess" not in settings and (shell is None or _on(shell.device or self._device) is _on(self._device)):
            place = source._one_time(self.gauge.lattice, self._device)
        kept = self._keeps(settings) if place is not None else None
        if place is not None and kept is not None:
            time, profile = place
            smearing = None if shell is None else shell._native()
            columns, report = self._kept(*self._dirac.propagate(time, profile, smearing, kept))
        else:
            # Sources that do not accept ``device`` still work with one process.
            shared = {} if self._device.comm is None else {"device": self._device}
            fields = source.fields(self.gauge.lattice, self.staggered, **shared)
            columns, report = self.solve(fields, **settings)
        return Propagator(columns, source.origin, self.antiperiodic, report, phases, device=self._device)

    def _settings(
        self,
        tol: float,
        solver: "str | Multigrid | None",
        precision: Optional[str],
        outer: Optional[str],
        reconstruct: "str | int | None",
        max_iterations: Optional[int],
        batch: Optional[int],
        escalate: bool,
        idr_s: Optional[int] = None,
    ) -> "dict[str, Any]":
        settings: "dict[str, Any]" = {
            "tol": number("tol", tol, "a number above 0 and below 1", lambda x: 0 < x < 1),
            "escalate": bool(escalate),
        }
        if max_iterations is not None:
            settings["max_iterations"] = whole("max_iterations", max_iterations, 1, BOUNDS["iterations"])
        if batch is not None:
            batch = whole("batch", batch, 1)
        if idr_s is not None:
            settings["counts"] = {"idr_s": whole("idr_s", idr_s, 1)}
        if isinstance(solver, Multigrid):
            if solver._operator is not self:
                raise InputError("this multigrid setup belongs to another operator: make one for this operator with D.setup()")
            settings.update(solver._settings)
            solver = "multigrid"
        chosen = {"solver": solver, "precision": precision, "outer": outer, "batch": batch}
        settings.update({key: value for key, value in chosen.items() if value is not None})
        if reconstruct is not None:
            settings["reconstruct"] = reconstruct if isinstance(reconstruct, str) else str(whole("reconstruct", reconstruct))
        return settings

    def _series(
        self,
        b: Any,
        shifts: bool,
        values: Sequence[float],
        tol: float,
        precision: Optional[str],
        reconstruct: "str | int | None",
        max_iterations: Optional[int],
        batch: Optional[int],
    ) -> Solution:
        if not self.staggered:
            raise InputError("several masses or shifts need a staggered operator: solve them one by one")
        settings = self._settings(tol, None, precision, None, reconstruct, max_iterations, batch, True)
        listed = numbers("shifts" if shifts else "masses", values)
        x, report = self._dirac.solve_series(given(b), {"shifts" if shifts else "masses": listed}, settings)
        return self._checked(x, report)

    def _keeps(self, settings: "dict[str, Any]") -> "Optional[dict[str, Any]]":
        """Returns settings of ``solve`` if a propagator solved with them can stay on the device, otherwise ``None``."""
        given = self._settings(**{**_USUAL, **settings})
        return given if self._dirac.can_keep(given) else None

    def _kept(self, there: "_native.DevicePropagator", report: "dict[str, Any]") -> "tuple[Any, Report]":
        """Returns a propagator on the device with its report; raises an exception if the solve failed."""
        try:
            return self._checked(there, report)
        except SolverError as error:
            error.x = there.numpy()
            raise

    def _checked(self, x: Any, found: "dict[str, Any]") -> Solution:
        report = Report(found, repr(self)[1:-1])
        if report.converged and not report.failure:
            return Solution(x, report)
        why = f": {report.failure}" if report.failure else ""
        error = SolverError(
            f"the solve did not converge{why}; |b - Mx| / |b| = {report.true_residual:.3e}, requested {report.tol:g}"
        )
        error.x, error.report = x, report
        raise error

    def __repr__(self) -> str:
        size = "×".join(str(extent) for extent in self.gauge.lattice)
        return f"<{self.name} operator on {size}, m = {self.mass:g}>"
