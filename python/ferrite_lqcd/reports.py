"""Reports of solves."""

from __future__ import annotations

import math
from typing import Any

from . import _native
from ._pickles import Pickled
from .plots import Plot

__all__ = ["Report"]

_SHOWN = ("converged", "iterations", "true_residual", "seconds", "gflops", "solver", "precision", "reconstruct")


class Report(Pickled):
    """Report of a solve. It can be pickled and copied.

    Attributes
    ----------
    converged : bool
        Whether every true residual is within the requested tolerance.
    true_residuals : list of float
        ‖b − M x‖ / ‖b‖ of each right-hand side, computed from the solution in double precision; NaN if it is not finite.
    iterations : int
        Number of iterations of the slowest right-hand side; ``iterations_per_source`` has the number of each.
    seconds, total_seconds : float
        Time of the iteration, and time including transfers, in seconds.
    gflops : float
        Floating-point operations of operator applications, in 10⁹ per second of ``seconds``.
    solver, precision, reconstruct : str
        Solver, precision and reconstruction at the end of the solve.
    escalations : list of dict
        Continuations of the solve in higher precision, each with its reason.
    history : list of list of float
        ‖r‖ / ‖b‖ of the even-odd preconditioned system: ``history[source][k]`` after k iterations.

    Other attributes have the names of the keys of ``ferrite.solve/1`` in docs/output.md.
    """

    def __init__(self, found: "dict[str, Any]", title: str = ""):
        self._data: "dict[str, Any]" = found
        self._title = title

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_data"][name]
        except KeyError:
            raise AttributeError(f"a Report has no attribute '{name}'") from None

    @property
    def true_residual(self) -> float:
        """Largest true residual; NaN if one of them is not finite."""
        residuals = self._data.get("true_residuals") or [
            residual for system in self._data["systems"] for residual in system["true_residuals"]
        ]
        return math.nan if any(math.isnan(residual) for residual in residuals) else float(max(residuals))

    def as_dict(self) -> "dict[str, Any]":
        """Returns all entries of the report by name."""
        return dict(self._data)

    def plot(self) -> Plot:
        """Returns a plot of the residuals against the iteration; circles are true residuals."""
        subtitle = f"{self.solver}, {self.precision} precision, recon {self.reconstruct}"
        return Plot(_native.convergence_svg(self._title, subtitle, self.history, self.updates, self.tol))

    def _rows(self) -> "list[tuple[str, str]]":
        def shown(value: Any) -> str:
            return f"{value:.3e}" if isinstance(value, float) and value < 1e-2 else (
                f"{value:.3f}" if isinstance(value, float) else str(value)
            )

        return [(name, shown(getattr(self, name))) for name in _SHOWN if hasattr(self, name)]

    def __repr__(self) -> str:
        return "Report(" + ", ".join(f"{name}={value}" for name, value in self._rows()) + ")"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{value}</td></tr>" for name, value in self._rows())
        return f"<table>{rows}</table>"
