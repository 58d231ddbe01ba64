"""The Dirac operators, one class each, made from the registry of operators when the package is imported.

``operators.pyi`` has their signatures for editors and type checkers; ``python -m ferrite_lqcd._generate`` writes it.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Any, Optional

from . import _native
from .device import Device
from .dirac import Operator
from .gauge import Gauge


def operators() -> "list[dict[str, Any]]":
    """All operators: ``name``, ``title``, ``formula``, ``staggered``, and ``parameters`` with name, type, help and default."""
    return _native.operators()


def _class_name(name: str) -> str:
    """``twisted-clover`` becomes ``TwistedClover``."""
    return "".join(part.capitalize() for part in name.split("-"))


def _docstring(operator: "dict[str, Any]") -> str:
    """The title, formula and parameters of an operator, in NumPy's form."""

    def paragraph(text: str, indent: str = "") -> "list[str]":
        return textwrap.wrap(text + ".", 116, initial_indent=indent, subsequent_indent=indent)

    lines = [f"The {operator['title']} operator.", "", *paragraph(operator["formula"])]
    lines += ["", "Parameters", "----------", "gauge : Gauge", "    Links of the configuration."]
    for one in operator["parameters"]:
        lines += [f"{one['name']} : {one['type']}", *paragraph(one["help"], "    ")]
    return "\n".join([*lines, "device : Device, optional", "    Device of the operator; default: that of ``fe.init``.", ""])


def _made(operator: "dict[str, Any]") -> "type[Operator]":
    """The class of an operator of the registry."""
    title, parameters = _class_name(operator["name"]), operator["parameters"]
    names = {one["name"] for one in parameters}

    def __init__(self: Operator, gauge: Gauge, *, device: Optional[Device] = None, **given: Any) -> None:
        for name in given:
            if name not in names:
                raise TypeError(f"{title}() has no parameter {name!r}; its parameters are {', '.join(sorted(names))}")
        Operator.__init__(self, operator["name"], gauge, device=device, **given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    listed = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", "gauge")]
    listed += [inspect.Parameter(one["name"], keyword, default=None, annotation=f"Optional[{one['type']}]") for one in parameters]
    listed.append(inspect.Parameter("device", keyword, default=None, annotation="Optional[Device]"))
    __init__.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{title}.__init__"
    return type(title, (Operator,), {"__init__": __init__, "__doc__": _docstring(operator), "__module__": __name__})


_classes = {_class_name(operator["name"]): _made(operator) for operator in operators()}
globals().update(_classes)
__all__ = [*sorted(_classes), "operators"]
