"""Ensembles by hybrid Monte Carlo, a trajectory at a time. Links and momenta stay on the device."""

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
        β as ``docs/conventions.md`` has it, not negative.
    u0, xi, flavours, plaquette, rectangle, parallelogram : float, optional
        Tadpole factor and anisotropy, above 0; quarks in the coefficients of ``luscher-weisz``, not negative; and coefficients instead of
        those of the name.
    """

    def __init__(self, name: str, beta: float, **coefficients: float):
        known = ("u0", "xi", "flavours", "plaquette", "rectangle", "parallelogram")
        for key in coefficients:
            if key not in known:
                raise InputError(f"{key}: a gauge action has no such parameter; there are beta, {', '.join(known)}")
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
    """Two degenerate Wilson-like quarks, exactly.

    Parameters
    ----------
    operator : str
        ``wilson``, ``clover``, ``exp-clover``, ``twisted``, ``twisted-clover`` or ``twisted-exp-clover``.
    heavier : list of float
        Masses of Hasenbusch's heavier quarks, from light to heavy; each adds a pseudofermion.
    twists : list of float
        Twisted masses instead of heavier ones.
    method : str
        ``cg``, ``bicgstab`` or ``multigrid``.
    guesses : int
        Solutions of a trajectory that initial guesses are made of, at most 32.
    level : int
        Of the integrator, 0 the outermost.
    **parameters
        Those of the operator, and ``stout_rho``, ``stout_levels``.
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
    """One Wilson-like quark, by a rational function whose interval follows the spectrum."""

    def __init__(self, operator: str, *, level: int = 0, **parameters: Any):
        super().__init__("one", operator, level, parameters)


class StaggeredQuarks(_Quarks):
    """Rooted staggered quarks that share pseudofermions, by a rational function.

    Parameters
    ----------
    operator : str
        ``staggered``, ``asqtad`` or ``hisq``.
    masses : list of float
        Masses, above 0.
    flavours : list of int or str
        How many quarks each mass has; negative ones divide, fractions are texts such as ``"1/2"``.
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
            raise InputError(f"flavours = {flavours}: expected a list, with the number of quarks of each mass")
        counts = [n if isinstance(n, str) else str(whole(f"flavours[{k}]", n, -MOST)) for k, n in enumerate(flavours)]
        more = {
            "masses": numbers("masses", masses, "numbers above 0", lambda m: m > 0),
            "flavours": counts,
            "pseudofermions": whole("pseudofermions", pseudofermions, 1, BOUNDS["pseudofermions"]),
        }
        super().__init__("staggered", operator, level, parameters, **more)


@dataclass(frozen=True)
class Trajectory:
    """What became of a trajectory.

    ``delta_h`` is ΔH, ``plaquette`` the mean plaquette of the links that are kept, ``iterations`` those of solvers for each part of
    the fermion action, in heat bath and Metropolis step, and in molecular dynamics; ``irreversibility`` how far the way back led from
    the start in links and momenta, where it was gone; ``failure`` why a solver gave up, with which it is rejected.
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


#: Largest number of a trajectory.
_MOST_TRAJECTORIES = 2**32 - 2


def _steps(steps: Any, gauge_steps: Any) -> "dict[str, Any]":
    """Returns the steps of each level of the integrator, and those of the gauge action inside the innermost."""
    most = BOUNDS["trajectory_steps"]
    several = isinstance(steps, (list, tuple)) or np.ndim(steps) == 1
    listed = [whole("steps", count, 1, most) for count in (steps if several else [steps])]
    if not 1 <= len(listed) <= BOUNDS["levels"]:
        raise InputError(f"steps = {listed}: expected one to {BOUNDS['levels']} levels")
    inner = None if gauge_steps is None else whole("gauge_steps", gauge_steps, 1, most)
    all_steps = math.prod(listed) * (inner or 1)
    if all_steps > most:
        raise InputError(f"steps = {listed} and gauge_steps = {inner} are {all_steps} steps, but a trajectory has at most {most}")
    return {"steps": listed, "gauge_steps": inner}


class HMC:
    """A Markov chain.

    Parameters
    ----------
    gauge : Gauge
        The first links.
    action : GaugeAction
    quarks : list of TwoFlavours, OneFlavour, StaggeredQuarks
    length : float
        τ of a trajectory.
    steps : int or list of int
        Number of steps of each level of the integrator, the outermost first; at most 16 levels. A trajectory has at most 10⁶ steps on all levels together.
    gauge_steps : int, optional
        Steps of the gauge action inside the innermost of these.
    integrator, gauge_integrator : str
        ``leapfrog``, ``omelyan``, ``omelyan-links-first`` or ``force-gradient``.
    seed : int
        Seed of all random numbers, which depend on seed, trajectory and site.
    thermalise : int
        Number of trajectories at the start that are accepted as they are.
    precision : str
        ``double``, or ``single`` for solvers and forces of molecular dynamics.
    dynamics_tol, action_tol : float
        Residuals of solvers in molecular dynamics, and in heat bath and Metropolis step.
    friction : float, optional
        γ of momenta that are kept in part.

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
            raise InputError("a chain needs a fe.Gauge, its first links, and a fe.GaugeAction")
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
            "and begin another chain from these links"
        )

    def __copy__(self) -> HMC:
        raise TypeError("a Markov chain cannot be copied: begin another one from hmc.gauge")

    def __deepcopy__(self, memo: Any) -> HMC:
        return self.__copy__()

    def trajectory(self, *, reverse: bool = False) -> Trajectory:
        """Makes the next trajectory. With ``reverse`` it is also run backwards.

        Ctrl-C ends it, where there is one process, at the next iteration of a solver or step of molecular dynamics with
        ``KeyboardInterrupt``, and leaves the chain as it was: the next call makes the same trajectory, bit for bit.
        """
        said = self._chain.trajectory(self.number + 1, reverse)
        self.number += 1
        return Trajectory(**said)

    def run(self, count: int) -> Iterator[Trajectory]:
        """Returns an iterator over so many trajectories, each of which is made when it is asked for."""
        count = whole("count", count, 0, _MOST_TRAJECTORIES - self.number)
        return (self.trajectory() for _ in range(count))

    @property
    def gauge(self) -> Gauge:
        """The links as they are now."""
        return Gauge._of(self._chain.links(), self._device, {"trajectory": self.number})
