"""Fits of correlators from many configurations, and effective masses with errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _native, plots
from ._checks import MOST_SEED, whole, wholes
from ._pickles import Pickled
from .errors import InputError
from .plots import Plot
from .spectrum import Correlators

__all__ = ["Average", "Estimate", "Estimates", "Fit", "effective_masses", "fit"]

#: Correlators of many configurations: an array ``[configuration, time]``, or ``Correlators`` of each configuration.
Samples = Union[np.ndarray, Sequence[Any]]


class Estimate(NamedTuple):
    """A number with its error of one standard deviation; NaN if the error is unknown.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> fe.Estimate(0.45123, 0.0023)
    0.4512 ± 0.0023
    """

    value: float
    error: float

    def __repr__(self) -> str:
        if not (math.isfinite(self.error) and self.error > 0):
            return f"{self.value:.6g}"
        digits = max(0, 1 - math.floor(math.log10(self.error)))
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"


class Average(NamedTuple):
    """Mean over fit windows, weighted by their probabilities, with its statistical error and the spread over the windows."""

    value: float
    statistical: float
    systematic: float


class Estimates(NamedTuple):
    """Values at each time, with their errors: ``m, dm = fe.effective_masses(...)``. A notebook shows them as a plot."""

    values: np.ndarray
    errors: np.ndarray

    def plot(self, name: str = "a m(t)") -> Plot:
        """Returns a plot of the values with error bars against the time."""
        values, errors = ([float(x) for x in one] for one in self)
        return Plot(_native.error_bars_svg("Effective masses", "time counted from the source", ["t", name], values, errors))

    def _repr_svg_(self) -> str:
        return self.plot().svg


class Fit(Pickled):
    """A fit of a correlator, C(t) = Σ_n A_n (e^{−E_n t} ± e^{−E_n (T−t)}). A notebook shows it with the data on a logarithmic axis.

    Attributes
    ----------
    energy, amplitude : Estimate
        E_0 in lattice units, and A_0.
    excited_energy, excited_amplitude : Estimate or None
        Energy and amplitude of the second state, if two are fitted.
    window : (int, int)
        First and last time of the fit.
    chi2, dof, expected_chi2, p_value : float, int, float, float
        Quality of the fit. ``expected_chi2`` is ⟨χ²⟩, which equals ``dof`` if χ² uses the full covariance.
    average : Average or None
        E_0 averaged over all windows that were tried; ``None`` if ``window`` was given.
    windows : list of dict
        Fits in all windows, the most probable first: ``window``, ``chi2``, ``dof``, ``p_value``, ``probability``, ``parameters``.
    covariance : str
        ``full``, ``shrunk`` or ``diagonal``; ``shrinkage`` is the amount of shrinkage.
    correlator : Estimates
        Mean correlator with errors.
    form : str
        ``cosh``, ``sinh`` or ``exp``.
    """

    def __init__(self, said: "dict[str, Any]", svg: str):
        self._data = said
        self._svg = svg
        data = self._data
        self.name: str = data["hadron"]
        self.form: str = data["form"]
        self.states: int = data["states"]
        self.window = (int(data["window"][0]), int(data["window"][1]))
        self.chi2, self.dof = float(data["chi2"]), int(data["dof"])
        self.expected_chi2, self.p_value = _number(data["expected_chi2"]), _number(data["p_value"])
        self.covariance, self.shrinkage = str(data["covariance"]), float(data["shrinkage"])
        self.energy = self._required("energy")
        self.amplitude = self._required("amplitude")
        self.excited_energy = _estimate(data.get("excited_energy"))
        self.excited_amplitude = _estimate(data.get("excited_amplitude"))
        average = (data["average"] or {}).get("energy")
        self.average = None if average is None else Average(*(_number(average[key]) for key in Average._fields))
        self.windows: "list[dict[str, Any]]" = data["windows"]
        means = [_estimate(one) or Estimate(math.nan, math.nan) for one in data["correlator"]]
        self.correlator = Estimates(np.array([mean.value for mean in means]), np.array([mean.error for mean in means]))

    def _required(self, key: str) -> Estimate:
        found = _estimate(self._data[key])
        return Estimate(math.nan, math.nan) if found is None else found

    def __call__(self, t: Any) -> np.ndarray:
        """Returns the fitted C(t) at any times."""
        times, parameters = np.asarray(t, dtype=float), self._data["parameters"]
        energies = [parameters[1]]
        if self.states == 2:
            energies.append(parameters[1] + math.exp(parameters[3]))
        sign = {"cosh": 1.0, "sinh": -1.0, "exp": 0.0}[self.form]
        total = np.zeros_like(times)
        for amplitude, energy in zip(parameters[::2], energies):
            back = sign * np.exp(-energy * (self._data["extent"] - times)) if sign else 0.0
            total = total + amplitude * (np.exp(-energy * times) + back)
        return total

    def plot(self) -> Plot:
        """Returns a plot of log₁₀ |C(t)| with errors, the fit, and its window in grey."""
        return Plot(self._svg)

    def as_dict(self) -> "dict[str, Any]":
        """Returns all entries, as ``ferrite fit --json`` prints them (docs/output.md)."""
        return dict(self._data)

    def _repr_svg_(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        first, last = self.window
        chi2 = f"chi2/dof = {self.chi2:.2f}/{self.dof}, p = {self.p_value:.2f}"
        return f"<ferrite_lqcd.Fit: {self.name}, E = {self.energy!r}, t = {first} to {last}, {chi2}>"


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _estimate(value: Any) -> Optional[Estimate]:
    return None if value is None else Estimate(_number(value["value"]), _number(value["error"]))


def _samples(data: Samples, name: Optional[str], momentum: int) -> "tuple[list[list[float]], bool]":
    """Returns the correlator of each configuration, and whether it is a baryon's."""
    if isinstance(data, Correlators):
        raise InputError("errors need several configurations: give a list of Correlators, one for each configuration")
    if not isinstance(data, np.ndarray) and len(data) > 0 and all(isinstance(one, Correlators) for one in data):
        if name is None:
            raise InputError(f"give the name of a correlator: {', '.join(data[0])}")
        momentum = whole("momentum", momentum, 0, min(len(one.momenta) for one in data) - 1)
        rows = [np.real(one[name][momentum]) for one in data]
        return [row.tolist() for row in rows], bool(data[0]._baryons)
    try:
        array = np.real(np.asarray(data))
    except ValueError:
        raise InputError("data: expected an array [configuration, time], but rows have different lengths") from None
    if array.ndim != 2:
        raise InputError(f"an array of shape {array.shape}: expected [configuration, time]")
    if array.dtype.kind not in "iuf":
        raise InputError(f"an array of type {array.dtype}: expected numbers")
    return array.astype(float).tolist(), False


def _errors(bin: Any, bootstrap: Any, seed: Any) -> "dict[str, Optional[int]]":
    """Returns the settings of the errors by name: size of a bin, number of bootstrap samples, and their seed."""
    if bootstrap is not None:
        bootstrap = whole("bootstrap", bootstrap)
    return {"bin": whole("bin", bin), "bootstrap": bootstrap, "seed": whole("seed", seed, 0, MOST_SEED)}


def fit(
    data: Samples,
    name: Optional[str] = None,
    *,
    momentum: int = 0,
    form: Optional[str] = None,
    window: "Optional[tuple[int, int]]" = None,
    states: "int | Sequence[int]" = 1,
    covariance: Optional[str] = None,
    bin: int = 1,
    bootstrap: Optional[int] = None,
    seed: int = 1,
) -> Fit:
    """Fits a correlator of many configurations by correlated least squares, as ``ferrite fit`` does (docs/analysis.md).

    Parameters
    ----------
    data : array or list of Correlators
        Array ``[configuration, time]``, whose real part is used, or results of ``fe.mesons`` or ``fe.nucleon`` on each configuration.
    name : str
        Name of the correlator, such as ``"pion"``; for an array, only its name in messages.
    momentum : int
        Number of the momentum in the list of momenta, from 0.
    form : str
        ``cosh`` (default for mesons), ``sinh`` or ``exp`` (default for nucleons). The first two are folded about T/2.
    window : (int, int), optional
        First and last time. By default all windows are tried; the fit is the most probable one by the Akaike criterion of Jay and
        Neil (2020), and ``average`` is over all windows.
    states : int or list of int
        Number of states: 1, 2, or ``[1, 2]`` to try both.
    covariance : str, optional
        ``full``, ``shrunk`` or ``diagonal``; default: ``full`` if there are at least four bins for each time, otherwise ``shrunk``.
    bin : int
        Number of configurations in a bin, which form one sample.
    bootstrap : int, optional
        Number of bootstrap samples, 10 to 100000, drawn with ``seed``; by default the jackknife gives the errors.

    Raises
    ------
    InputError
        If there are fewer than four bins, the window has too few times, or the data do not determine the parameters.
    KeyboardInterrupt
        On Ctrl-C, at once; a thread of the package completes the fit, and its result is discarded.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> rng, t = np.random.default_rng(1), np.arange(16)
    >>> truth = np.exp(-0.4 * t) + np.exp(-0.4 * (16 - t))
    >>> pion = fe.fit(truth * (1 + 0.01 * rng.standard_normal((200, 16))), window=(2, 8))
    >>> abs(pion.energy.value - 0.4) < 4 * pion.energy.error < 0.004
    True
    >>> pion.window, pion.dof, pion.plot().svg.startswith("<svg")
    ((2, 8), 5, True)
    """
    rows, baryons = _samples(data, name, momentum)
    counts = list(states) if isinstance(states, (list, tuple, np.ndarray)) and np.ndim(states) == 1 else [states]
    request = {
        "form": form or ("exp" if baryons else "cosh"),
        "name": name or "correlator",
        "window": None if window is None else wholes("window", window, "the first and the last time", 2),
        "states": [whole("states", count, 1, 2) for count in counts],
        "covariance": covariance,
        **_errors(bin, bootstrap, seed),
    }
    said, svg = _native.fit(rows, request)
    return Fit(said, svg)


def effective_masses(
    data: Samples,
    name: Optional[str] = None,
    *,
    momentum: int = 0,
    form: Optional[str] = None,
    bin: int = 1,
    bootstrap: Optional[int] = None,
    seed: int = 1,
) -> Estimates:
    """Returns effective masses between t and t + 1 of the mean over configurations, with errors from the jackknife or the bootstrap.

    Parameters are those of ``fe.fit``. A mass that does not exist is NaN. An error is NaN if a jackknife mean has no mass. There are
    T/2 times for ``cosh`` and ``sinh``, T − 1 for ``exp``.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> rng, t = np.random.default_rng(1), np.arange(16)
    >>> samples = np.cosh(0.4 * (t - 8)) * (1 + 0.001 * rng.standard_normal((100, 16)))
    >>> m, dm = fe.effective_masses(samples)
    >>> bool(np.all(abs(m - 0.4)[:6] < 5 * dm[:6]))
    True
    """
    rows, baryons = _samples(data, name, momentum)
    chosen = form or ("exp" if baryons else "cosh")
    found = np.array(_native.effective_estimates(rows, chosen, _errors(bin, bootstrap, seed)))
    return Estimates(found[:, 0], found[:, 1])
