"""Ensembles by hybrid Monte Carlo, a trajectory at a time. Links and momenta stay on the device."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Sequence, Union

from . import _native
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
        β as ``docs/conventions.md`` has it.
    u0, xi, flavours, plaquette, rectangle, parallelogram : float, optional
        Tadpole factor, anisotropy, quarks in the coefficients of ``luscher-weisz``, and coefficients instead of those of the name.
    """

    def __init__(self, name: str, beta: float, **coefficients: float):
        known = ("u0", "xi", "flavours", "plaquette", "rectangle", "parallelogram")
        for key in coefficients:
            if key not in known:
                raise InputError(f"{key}: a gauge action has no such parameter; there are beta, {', '.join(known)}")
        self._spec = {"name": name, "beta": float(beta), **{key: float(value) for key, value in coefficients.items()}}


class _Quarks:
    def __init__(self, kind: str, operator: str, level: int, parameters: "dict[str, Any]", **more: Any):
        stout = {"stout_rho": parameters.pop("stout_rho", None), "stout_levels": parameters.pop("stout_levels", 1)}
        texts = {key: _text(value) for key, value in parameters.items()}
        self._spec = {"kind": kind, "operator": operator, "level": level, "parameters": texts, **stout, **more}


class TwoFlavours(_Quarks):
    """Two degenerate Wilson-like quarks, exactly.

    Parameters
    ----------
    operator : str
        ``wilson``, ``clover``, ``exp-clover``, ``twisted`` or ``twisted-clover``.
    heavier : list of float
        Masses of Hasenbusch's heavier quarks, from light to heavy; each adds a pseudofermion.
    twists : list of float
        Twisted masses instead of heavier ones.
    method : str
        ``cg``, ``bicgstab`` or ``multigrid``.
    guesses : int
        Solutions of a trajectory that first guesses are made of.
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
        if heavier and twists:
            raise InputError("give heavier or twists, not both")
        more = {"heavier": [float(m) for m in heavier], "twists": [float(mu) for mu in twists]}
        super().__init__("two", operator, level, parameters, method=method, guesses=guesses, **more)


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
    flavours : list of int or str
        How many quarks each mass has; negative ones divide, fractions are texts such as ``"1/2"``.
    pseudofermions : int
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
        more = {"masses": [float(m) for m in masses], "flavours": [str(n) for n in flavours]}
        super().__init__("staggered", operator, level, parameters, pseudofermions=pseudofermions, **more)


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
        Of each level of the integrator, the outermost first.
    gauge_steps : int, optional
        Steps of the gauge action inside the innermost of these.
    integrator, gauge_integrator : str
        ``leapfrog``, ``omelyan``, ``omelyan-links-first`` or ``force-gradient``.
    seed : int
        Of all random numbers, which depend on seed, trajectory and site.
    thermalise : int
        Trajectories at the start that are accepted as they are.
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
        specs: "list[dict[str, Any]]" = []
        for quark in quarks:
            title = f"{quark._spec['operator']} quarks {len(specs) + 1}"
            specs.append({**quark._spec, "title": title})
        spec = {
            "gauge": action._spec,
            "quarks": specs,
            "length": float(length),
            "steps": [int(steps)] if isinstance(steps, int) else [int(n) for n in steps],
            "gauge_steps": gauge_steps,
            "integrator": integrator,
            "gauge_integrator": gauge_integrator or integrator,
            "seed": int(seed),
            "thermalise": int(thermalise),
            "precision": precision,
            "dynamics_tol": dynamics_tol,
            "action_tol": action_tol,
            "friction": friction,
        }
        self._device = gauge._home(device)
        self._chain = _native.Chain.of(self._device._native, gauge._links, json.dumps(spec))
        self.number = 0

    def trajectory(self, *, reverse: bool = False) -> Trajectory:
        """Makes the next trajectory. With ``reverse`` it is also run backwards.

        Ctrl-C ends it, where there is one process, at the next iteration of a solver or step of molecular dynamics with ``KeyboardInterrupt``, and leaves the chain
        as it was: the next call makes the same trajectory, bit for bit.
        """
        said = self._chain.trajectory(self.number + 1, reverse)
        self.number += 1
        return Trajectory(**json.loads(said))

    def run(self, count: int) -> Iterator[Trajectory]:
        """Makes so many trajectories, one after the other as they are asked for."""
        for _ in range(count):
            yield self.trajectory()

    @property
    def gauge(self) -> Gauge:
        """The links as they are now."""
        return Gauge._of(self._chain.links(), self._device, {"trajectory": self.number})
