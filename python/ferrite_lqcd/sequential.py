"""Three-point functions of mesons and of the nucleon from sequential propagators through the sink.

A meson O = ψ̄₂ Γ ψ₁ is created at x₀ and annihilated at t_s with momentum p. A current of its quark, J = ψ̄₁ Γ_J ψ₁, acts in between:

C(τ, q) = Σ_{x,y} e^{−i p (x−x₀)} e^{−i q (y−x₀)} ⟨O(x, t_s) J(y, τ) O†(x₀)⟩,

without the disconnected part (Martinelli and Sachrajda 1989; docs/spectrum.md). For the nucleon
χ = ε_abc (u_aᵀ C γ_5 d_b) u_c with a projector Γ_p,

C(τ, q) = Σ_{x,y} e^{−i p (x−x₀)} e^{−i q (y−x₀)} tr Γ_p ⟨χ(x, t_s) J(y, τ) χ̄(x₀)⟩, J = q̄ Γ_J q of one flavour.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from . import _native
from ._checks import momenta as checked_momenta
from ._checks import momentum as checked_momentum
from ._checks import whole
from .device import Device, _on, _shared
from .dirac import Operator
from .errors import InputError
from .sources import Shell
from .spectrum import GAMMA_NAMES, Correlators, Propagator, _contracted, _number

__all__ = ["conserved_charge", "sequential", "sequential_nucleon", "three_point"]


def _of_wilson_quarks(*propagators: Propagator) -> None:
    if any(not isinstance(one, Propagator) or one.staggered for one in propagators):
        raise InputError("three-point functions need propagators of Wilson-like quarks")
    first = propagators[0]
    if any(one.origin != first.origin or one.lattice != first.lattice for one in propagators):
        raise InputError("the propagators are on different lattices or from different sources")


def sequential(
    operator: Operator,
    antiquark: Propagator,
    separation: int,
    *,
    sink: str = "g5",
    momentum: Sequence[int] = (0, 0, 0),
    shell: Optional[Shell] = None,
    **settings: Any,
) -> Propagator:
    """Returns the sequential propagator Σ through the sink: M₁ Σ = η, η(x) = δ_{t,t_s} e^{i p (x−x₀)} γ_5 Γ† γ_5 S₂(x). It needs 12 solves.

    Parameters
    ----------
    operator : Operator
        Wilson-like operator M₁ of the quark on which the current acts.
    antiquark : Propagator
        Propagator S₂ of the other quark, or of the same quark, from the source x₀.
    separation : int
        Time t_s of the sink minus the source time, 0 to T − 1.
    sink : str
        Matrix Γ at the sink, such as ``"g5"``.
    momentum : three int
        Momentum p at the sink, in units of 2π/L.
    shell : Shell, optional
        Gaussian smearing of the sink; default: a point.
    **settings
        Settings of ``Operator.solve``.

    Returns
    -------
    Propagator
        Propagator with the origin of ``antiquark``; for ``three_point`` and ``conserved_charge``.

    Raises
    ------
    InputError
        If the quarks are staggered, the separation exceeds the lattice, or the γ matrix does not exist.
    SolverError
        As in ``Operator.solve``.
    """
    place = _place(operator, antiquark, separation, momentum)
    return _through(operator, antiquark, _number(sink), place, shell, settings)


def sequential_nucleon(
    operator: Operator,
    quark: Propagator,
    separation: int,
    *,
    projector: str = "unpolarised",
    flavour: str = "u",
    momentum: Sequence[int] = (0, 0, 0),
    shell: Optional[Shell] = None,
    **settings: Any,
) -> Propagator:
    """Returns the sequential propagator Σ through the sink of a nucleon with equal quark masses, for a current of one flavour.

    The propagator needs 12 solves.

    M Σ = η, η_ij(x) = δ_{t,t_s} e^{i p (x−x₀)} (γ_5)_ii (L_ij(x))*, where L is the derivative of tr Γ_p ⟨χ χ̄⟩ by the propagators of
    the flavour. Call ``three_point`` and ``conserved_charge`` with the default of their parameter ``source``.

    Parameters
    ----------
    operator : Operator
        Wilson-like operator of ``quark``.
    quark : Propagator
        Propagator S of both flavours, from the source x₀.
    separation : int
        Time t_s of the sink minus the source time, 0 to T − 1.
    projector : str
        Projector Γ_p: ``"unpolarised"``, (1 + γ_t)/2, or ``"polarised-x"``, ``"polarised-y"``, ``"polarised-z"``, (1 + γ_t)/2 · i γ_5 γ_k.
    flavour : "u" or "d"
        Flavour of the current. The nucleon has two u; disconnected parts cancel in u minus d.
    momentum : three int
        Momentum p at the sink, in units of 2π/L.
    shell : Shell, optional
        Gaussian smearing of the sink; default: a point.
    **settings
        Settings of ``Operator.solve``.

    Returns
    -------
    Propagator
        Propagator with the origin of ``quark``. The boundary sign is that of a source at t = 0, as in ``nucleon``.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> U = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1)
    >>> D = fe.Wilson(U, mass=0.3)
    >>> S = D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-10)
    >>> Sigma = fe.sequential_nucleon(D, S, 5, flavour="u", tol=1e-10)
    >>> V = fe.conserved_charge(D, S, Sigma)[0]
    >>> bool(abs((V[2] - V[6]) / fe.nucleon(S)["nucleon"][0, 5] - 2) < 1e-7)
    True
    """
    place = _place(operator, quark, separation, momentum)
    return _through(operator, quark, (projector, flavour), place, shell, settings)


def _place(
    operator: Operator, propagator: Propagator, separation: int, momentum: Sequence[int]
) -> "tuple[list[int], list[int], int]":
    """Returns the momentum, the source position and the time of a sink."""
    _of_wilson_quarks(propagator)
    if operator.staggered:
        raise InputError("three-point functions need Wilson-like operators")
    extent = propagator.lattice[3]
    separation = whole("separation", separation, 0, extent - 1)
    return list(checked_momentum("momentum", momentum)), list(propagator.origin), (propagator.origin[3] + separation) % extent


def _through(
    operator: Operator,
    propagator: Propagator,
    sink: "int | tuple[str, str]",
    place: "tuple[list[int], list[int], int]",
    shell: Optional[Shell],
    settings: "dict[str, Any]",
) -> Propagator:
    """Returns the propagator through a sink. It stays on the device if the first propagator is there and memory allows."""
    native, (momentum, origin, time) = _on(operator._device), place
    there = {"sink": sink, "momentum": momentum, "origin": origin, "time": time, "antiperiodic": propagator.antiperiodic}
    columns: Any = propagator._on(native)
    at_once = isinstance(columns, _native.DevicePropagator) and "guess" not in settings
    if shell is not None and _on(shell.device or operator._device) is not native:
        at_once = False
    kept = operator._keeps(settings) if at_once else None
    solution: Any
    if kept is not None:
        smearing = None if shell is None else shell._native()
        found = operator._dirac.propagate_through(columns, there, smearing, kept)
        solution, report = operator._kept(*found)
    else:
        columns = propagator.columns
        if shell is not None:
            columns = shell.smeared(columns, device=operator._device)
        eta: Any = _native.sequential_source(_shared(operator._device), columns, there)
        if shell is not None:
            eta = shell.smeared(eta, device=operator._device)
        solution, report = operator.solve(eta, **settings)
    return Propagator(solution, propagator.origin, operator.antiperiodic, report, device=operator._device)


def three_point(
    quark: Propagator,
    through: Propagator,
    momenta: Sequence[Sequence[int]] = ((0, 0, 0),),
    *,
    currents: Optional[Sequence[str]] = None,
    source: str = "g5",
    device: Optional[Device] = None,
) -> Correlators:
    """Returns C(τ, q) of local currents J = ψ̄₁ Γ_J ψ₁, by name: ``[momentum, time]``, with the time counted from the source.

    Parameters
    ----------
    quark : Propagator
        Propagator S₁ from the source.
    through : Propagator
        Propagator Σ of ``sequential`` or ``sequential_nucleon``, with the operator of ``quark``.
    momenta : list of three int
        Momenta q of the current, in units of 2π/L.
    currents : list of str
        Matrices Γ_J; default: all 16.
    source : str
        Matrix Γ' at the source.
    device : Device, optional
        Device that computes the sums; default: that of ``quark``.

    Examples
    --------
    >>> import ferrite_lqcd as fe
    >>> U = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1)
    >>> D = fe.Clover(U, mass=0.3, csw=1.0)
    >>> S = D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-8)
    >>> Sigma = fe.sequential(D, S, 4, tol=1e-8)
    >>> fe.three_point(S, Sigma, currents=["gt", "1"])["gt"].shape
    (1, 8)
    """
    _of_wilson_quarks(quark, through)
    list_of_momenta = checked_momenta("momenta", momenta)
    names = list(GAMMA_NAMES if currents is None else currents)
    pairs = [(_number(name), _number(source)) for name in names]
    found = _contracted(device, {"hadron": "mesons", "pairs": pairs}, list_of_momenta, quark, through)
    return Correlators({name: found[:, k] for k, name in enumerate(names)}, list_of_momenta)


def conserved_charge(
    operator: Operator,
    quark: Propagator,
    through: Propagator,
    momenta: Sequence[Sequence[int]] = ((0, 0, 0),),
    *,
    source: str = "g5",
    device: Optional[Device] = None,
) -> np.ndarray:
    """Returns C(τ, q) with the conserved charge density of Wilson-like quarks instead of J: ``[momentum, time]``.

    V_t(y) = ½ [ψ̄(y+t̂) (1 + γ_t) U_t†(y) ψ(y) − ψ̄(y) (1 − γ_t) U_t(y) ψ(y+t̂)]. At q = 0 it is constant between source and sink,
    and constant elsewhere; the step at the sink equals the two-point function, so that the charge is 1 on each configuration.

    Parameters
    ----------
    operator : Operator
        Operator of ``quark``, whose links enter the density.
    quark, through, momenta, source, device
        As in ``three_point``.

    Examples
    --------
    >>> import ferrite_lqcd as fe, numpy as np
    >>> U = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1)
    >>> D = fe.Wilson(U, mass=0.3)
    >>> S = D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-10)
    >>> V = fe.conserved_charge(D, S, fe.sequential(D, S, 5, tol=1e-10))[0]
    >>> bool(abs((V[2] - V[6]) / fe.mesons(S)["pion"][0, 5] - 1) < 1e-7)
    True
    """
    _of_wilson_quarks(quark, through)
    if operator.gauge.lattice != quark.lattice:
        raise InputError("the operator is on another lattice than the propagators")
    theta = operator.parameters.get("theta")
    if theta and any(float(angle) != 0.0 for angle in np.ravel(theta)):
        raise InputError("the conserved charge is not available with twisted boundary conditions")
    charge = {"hadron": "charge", "source": _number(source), "antiperiodic": operator.antiperiodic}
    return _contracted(device, charge, checked_momenta("momenta", momenta), quark, through, operator.gauge._links)
