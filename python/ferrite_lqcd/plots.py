"""Plots that a notebook displays."""

from __future__ import annotations

import os
from typing import Mapping, Sequence

from . import _native
from ._pickles import Pickled

__all__ = ["Plot"]


class Plot(Pickled):
    """Plot that a notebook displays. ``save`` writes it as SVG, and ``svg`` is the text of the SVG."""

    def __init__(self, svg: str):
        self.svg = svg

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the plot, completely or not at all."""
        path = os.fspath(path)
        whole = f"{path}.{os.getpid()}.part"
        with open(whole, "w", encoding="utf-8") as file:
            file.write(self.svg)
        os.replace(whole, path)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<ferrite_lqcd.Plot: {len(self.svg)} bytes of SVG>"


def lines(
    title: str,
    subtitle: str,
    axes: "tuple[str, str]",
    curves: "Mapping[str, Sequence[tuple[float, float]]]",
    logarithmic: bool = False,
) -> Plot:
    """Returns a plot of curves with a legend."""
    points = [(name, [(float(x), float(y)) for x, y in curve]) for name, curve in curves.items()]
    return Plot(_native.lines_svg(title, subtitle, list(axes), logarithmic, points))
