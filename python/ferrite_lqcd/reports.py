"""What a solve did."""

from __future__ import annotations

import json
from typing import Any

from . import _native
from .plots import Plot

__all__ = ["Report"]

_SHOWN = ("converged", "iterations", "true_residual", "seconds", "gflops", "solver", "precision", "reconstruct")


class Report:
    """What a solve did.

    Attributes
    ----------
    converged : bool
        Whether every true residual is at or below the tolerance.
    true_residuals : list of float
        ‖b − M x‖ / ‖b‖ of each right-hand side, computed from the solution in double precision.
    iterations : int
        Of the slowest right-hand side; ``iterations_per_source`` has all.
    seconds, total_seconds : float
        Of the iteration, and with transfers.
    gflops : float
        Operator applications only, over ``seconds``.
    solver, precision, reconstruct : str
        Those at the end.
    escalations : list of dict
        Where the solve went on in higher precision, and why.
    """

    def __init__(self, text: str, title: str = ""):
        self._data: dict[str, Any] = json.loads(text)
        self._title = title

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_data"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def true_residual(self) -> float:
        """The largest of the true residuals."""
        if "systems" in self._data:
            return float(max(residual for system in self._data["systems"] for residual in system["true_residuals"]))
        return float(max(self._data["true_residuals"]))

    def as_dict(self) -> "dict[str, Any]":
        """All of it."""
        return dict(self._data)

    def plot(self) -> Plot:
        """Residuals against the iteration; circles are true residuals."""
        subtitle = f"{self.solver}, {self.precision} precision, recon {self.reconstruct}"
        history, updates = ([(k, residuals) for k, residuals in self._data[key]] for key in ("history", "updates"))
        return Plot(_native.convergence_svg(self._title, subtitle, history, updates, self.tol))

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
