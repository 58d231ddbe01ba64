"""Ensembles by hybrid Monte Carlo, one trajectory at a time. Links and momenta stay on the device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Sequence, Union

import numpy as np

from . import _native
from ._checks import BOUNDS, MOST, MOST_SEED, number, numbers, positive, whole
from .device import Device
from .dirac import _text
from .errors import InputError
from .gauge import Gauge

__all__ = ["GaugeAction", "HMC", "OneFlavour", "StaggeredQuarks", "Trajectory", "TwoFlavours"]


class GaugeAction:
    """A gauge action by name: ``wilson``, ``symanzik-tree``, ``luscher-weisz``, ``iwasaki`` or ``dbw2``.

    Parameters
    ----------
    beta : float
        Coupling β in the convention of ``docs/conventions.md``, at least 0.
    u0, xi, flavours, plaquette, rectangle, parallelogram : float, optional
        Tadpole factor and anisotropy, above 0; number of quarks in the coefficients of ``luscher-weisz``, at least 0; and coefficients
        that replace those of the named action.
    """

    def __init__(self, name: str, beta: float, **coefficients: float):
        known = ("u0", "xi", "flavours", "plaquette", "rectangle", "parallelogram")
        for key in coefficients:
            if key not in known:
                raise InputError(f"{key}: a gauge action has no such parameter; its parameters are beta, {', '.join(known)}")
        self._spec: "dict[str, Any]" = {"name": name, "beta": _not_negative("beta", beta)}
        for key, value in coefficients.items():
            check = {"u0": positive, "xi": positive, "flavours": _not_negative}.get(key, number)
            self._spec[key] = check(key, value)


def _not_negative(name: str, value: Any) -> float:
    return number(name, value, "a number of at least 0", lambda x: x >= 0)


def _residual(name: str, value: Any) -> Optional[float]:
    return None if value is None else number(name, value, "a number of at least 1e-18 and below 1", lambda x: 1e-18 <= x < 1)


class _Quarks:
    def __init__(self, kind: str, operator: str, level: int, parameters: "dict[str, Any]", **more: Any):
        rho, levels = parameters.pop("stout_rho", None), parameters.pop("stout_levels", 1)
        if rho is not None:
            rho = number("stout_rho", rho, "a number from 0 to 0.25", lambda x: 0 <= x <= 0.25)
        stout = {"stout_rho": rho, "stout_levels": whole("stout_levels", levels, 1, BOUNDS["smearing_levels"])}
        texts = {key: _text(value) for key, value in parameters.items() if value is not None}
        level = whole("level", level, 0, BOUNDS["levels"] - 1)
        self._spec = {"kind": kind, "operator": operator, "level": level, "parameters": texts, **stout, **more}


class TwoFlavours(_Quarks):
    """Two degenerate Wilson-like quarks, without a rational function.

    Parameters
    ----------
    operator : str
        ``wilson``, ``clover``, ``exp-clover``, ``twisted``, ``twisted-clover`` or ``twisted-exp-clover``.
    heavier : list of float
        Masses of the heavier quarks of Hasenbusch's mass preconditioning, from light to heavy; each adds a pseudofermion.
    twists : list of float
        Twisted masses of the heavier quarks, instead of ``heavier``.
    method : str
        Solver: ``cg``, ``bicgstab`` or ``multigrid``.
    guesses : int
        Number of previous solutions of a trajectory from which initial guesses are made, at most 32.
    level : int
        Level of the integrator; 0 is the outermost.
    **parameters
        Parameters of the operator, and ``stout_rho``, ``stout_levels``.
    """

    def __init__(
        self,
        operator: str,
        *,
        heavier: Sequence[float] = (),
        twists: Sequence[float] = (),
        method: str = "cg",
        guesses: int = 0,
        level: int = 0,
        **parameters: Any,
    ):
        more = {
            "heavier": numbers("heavier", heavier),
            "twists": numbers("twists", twists, "numbers above 0", lambda mu: mu > 0),
            "guesses": whole("guesses", guesses, 0, BOUNDS["guesses"]),
        }
        if more["heavier"] and more["twists"]:
            raise InputError("give heavier or twists, not both")
        super().__init__("two", operator, level, parameters, method=method, **more)


class OneFlavour(_Quarks):
    """One Wilson-like quark, with a rational function whose interval follows the spectrum."""

    def __init__(self, operator: str, *, level: int = 0, **parameters: Any):
        super().__init__("one", operator, level, parameters)


class StaggeredQuarks(_Quarks):
    """Staggered quarks with rational functions for fractional flavours; all masses share the pseudofermions.

    Parameters
    ----------
    operator : str
        ``staggered``, ``asqtad`` or ``hisq``.
    masses : list of float
        Quark masses, above 0.
    flavours : list of int or str
        Number of quarks of each mass; negative numbers put the determinant into the denominator, fractions are texts such as ``"1/2"``.
    pseudofermions : int
        Number of pseudofermions that share the action, 1 to 64.
    """

    def __init__(
        self,
        operator: str,
        masses: Sequence[float],
        flavours: Sequence[Union[int, str]],
        *,
        pseudofermions: int = 1,
        level: int = 0,
        **parameters: Any,
    ):
        if isinstance(flavours, str) or not hasattr(flavours, "__iter__"):
            raise InputError(f"flavours = {flavours}: expected a list with the number of quarks of each mass")
        counts = [n if isinstance(n, str) else str(whole(f"flavours[{k}]", n, -MOST)) for k, n in enumerate(flavours)]
        more = {
            "masses": numbers("masses", masses, "numbers above 0", lambda m: m > 0),
            "flavours": counts,
            "pseudofermions": whole("pseudofermions", pseudofermions, 1, BOUNDS["pseudofermions"]),
        }
        super().__init__("staggered", operator, level, parameters, **more)


@dataclass(frozen=True)
class Trajectory:
    """Outcome of a trajectory.

    ``delta_h`` is ΔH. ``plaquette`` is the mean plaquette of the links after the Metropolis step. ``iterations`` counts solver iterations
    for each monomial of the quarks, in heat bath and Metropolis step, and in molecular dynamics. ``irreversibility`` is the
    deviation of links and momenta from the start after a reversibility check. ``failure`` is the reason why a solver failed, which rejects
    the trajectory; otherwise ``None``.
    """

    number: int
    delta_h: float
    accepted: bool
    plaquette: float
    seconds: float
    iterations: "list[list[int]]"
    start: "dict[str, float]"
    end: "dict[str, float]"
    irreversibility: "Optional[list[float]]"
    failure: Optional[str]


#: Largest number that a trajectory can have.
_MOST_TRAJECTORIES = 2**32 - 2


def _steps(steps: Any, gauge_steps: Any) -> "dict[str, Any]":
    """Returns the number of steps of each level of the integrator, and that of the gauge action within the innermost level."""
    most = BOUNDS["trajectory_steps"]
    several = isinstance(steps, (list, tuple)) or np.ndim(steps) == 1
    listed = [whole("steps", count, 1, most) for count in (steps if several else [steps])]
    if not 1 <= len(listed) <= BOUNDS["levels"]:
        raise InputError(f"steps = {listed}: expected one to {BOUNDS['levels']} levels")
    inner = None if gauge_steps is None else whole("gauge_steps", gauge_steps, 1, most)
    all_steps = math.prod(listed) * (inner or 1)
    if all_steps > most:
        raise InputError(f"steps = {listed} and gauge_steps = {inner} make {all_steps} steps, but a trajectory has at most {most}")
    return {"steps": listed, "gauge_steps": inner}


class HMC:
    """A Markov chain of hybrid Monte Carlo.

    Parameters
    ----------
    gauge : Gauge
        Initial links.
    action : GaugeAction
        Gauge action.
    quarks : list of TwoFlavours, OneFlavour, StaggeredQuarks
        Dynamical quarks; none by default.
    length : float
        Length τ of a trajectory.
    steps : int or list of int
        Number of steps of each level of the integrator, outermost first. There are at most 16 levels, and a trajectory has at most
        10⁶ steps on all levels together.
    gauge_steps : int, optional
        Number of steps of the gauge action within each drift of the innermost level.
    integrator, gauge_integrator : str
        Integrator: ``leapfrog``, ``omelyan``, ``omelyan-links-first`` or ``force-gradient``.
    seed : int
        Seed of all random numbers, which depend on seed, trajectory and site.
    thermalise : int
        Number of trajectories at the start without a Metropolis step.
    precision : str
        ``double``, or ``single`` for solvers and forces in molecular dynamics.
    dynamics_tol, action_tol : float
        Requested tolerances of solvers in molecular dynamics, and in heat bath and Metropolis step.
    friction : float, optional
        Friction γ of momenta that are partly kept between trajectories; by default each trajectory draws new momenta.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> hmc = fe.HMC(
    ...     fe.Gauge.random((4, 4, 4, 4), seed=1),
    ...     fe.GaugeAction("iwasaki", beta=1.95),
    ...     [fe.TwoFlavours("clover", kappa=0.12, csw=1.5)],
    ...     steps=4, gauge_steps=3, seed=1, thermalise=1,
    ... )
    >>> [trajectory.accepted for trajectory in hmc.run(1)]
    [True]
    """

    def __init__(
        self,
        gauge: Gauge,
        action: GaugeAction,
        quarks: "Sequence[_Quarks]" = (),
        *,
        length: float = 1.0,
        steps: "int | Sequence[int]" = 10,
        gauge_steps: Optional[int] = None,
        integrator: str = "omelyan",
        gauge_integrator: Optional[str] = None,
        seed: int,
        thermalise: int = 0,
        precision: str = "double",
        dynamics_tol: Optional[float] = None,
        action_tol: Optional[float] = None,
        friction: Optional[float] = None,
        device: Optional[Device] = None,
    ):
        if precision not in ("double", "single"):
            raise InputError(f"precision = '{precision}': expected 'double' or 'single'")
        if not isinstance(quarks, (list, tuple)) or not all(isinstance(one, _Quarks) for one in quarks):
            raise InputError(f"quarks = {quarks!r}: expected a list of TwoFlavours, OneFlavour or StaggeredQuarks")
        specs: "list[dict[str, Any]]" = []
        for quark in quarks:
            title = f"{quark._spec['operator']} quarks {len(specs) + 1}"
            specs.append({**quark._spec, "title": title})
        if not isinstance(gauge, Gauge) or not isinstance(action, GaugeAction):
            raise InputError("a chain needs a fe.Gauge as initial links, and a fe.GaugeAction")
        spec = {
            "gauge": action._spec,
            "quarks": specs,
            "length": positive("length", length),
            **_steps(steps, gauge_steps),
            "integrator": integrator,
            "gauge_integrator": gauge_integrator or integrator,
            "seed": whole("seed", seed, 0, MOST_SEED),
            "thermalise": whole("thermalise", thermalise, 0, _MOST_TRAJECTORIES),
            "precision": precision,
            "dynamics_tol": _residual("dynamics_tol", dynamics_tol),
            "action_tol": _residual("action_tol", action_tol),
            "friction": None if friction is None else positive("friction", friction),
        }
        self._device = gauge._home(device)
        self._chain = _native.Chain.of(self._device._native, gauge._links, spec)
        self.number = 0

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Markov chain is in the memory of its device and cannot be pickled: pickle hmc.gauge, or write it with hmc.gauge.write(path), "
            "and start another chain from these links"
        )

    def __copy__(self) -> HMC:
        raise TypeError("a Markov chain cannot be copied: start another one from hmc.gauge")

    def __deepcopy__(self, memo: Any) -> HMC:
        return self.__copy__()

    def trajectory(self, *, reverse: bool = False) -> Trajectory:
        """Generates the next trajectory. With ``reverse``, it is also run back to its start, as a reversibility check.

        With one process, Ctrl-C ends the trajectory at the next solver iteration or step of molecular dynamics with
        ``KeyboardInterrupt``, and leaves the chain unchanged: the next call generates the same trajectory, bit for bit.
        """
        said = self._chain.trajectory(self.number + 1, reverse)
        self.number += 1
        return Trajectory(**said)

    def run(self, count: int) -> Iterator[Trajectory]:
        """Returns an iterator over ``count`` trajectories. Each trajectory is generated when it is requested."""
        count = whole("count", count, 0, _MOST_TRAJECTORIES - self.number)
        return (self.trajectory() for _ in range(count))

    @property
    def gauge(self) -> Gauge:
        """Current links of the chain."""
        return Gauge._of(self._chain.links(), self._device, {"trajectory": self.number})
