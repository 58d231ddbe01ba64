"""Writes ``operators.py`` from the registry of operators: ``python -m ferrite_lqcd._generate > operators.py``."""

from __future__ import annotations

import json
import textwrap

from . import _native

HEAD = '''"""The Dirac operators, each with its parameters. Made from the registry by ``python -m ferrite_lqcd._generate``."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _native
from .device import Device
from .dirac import Operator
from .gauge import Gauge

__all__ = {names}


def operators() -> "list[dict[str, Any]]":
    """All operators: ``name``, ``title``, ``formula``, ``staggered``, and ``parameters`` with name, type, help and default."""
    return _native.operators()
'''


def class_name(name: str) -> str:
    """``twisted-clover`` becomes ``TwistedClover``."""
    return "".join(part.capitalize() for part in name.split("-"))


def source() -> str:
    """The text of ``operators.py``."""
    registry = _native.operators()
    names = [class_name(operator["name"]) for operator in registry] + ["operators"]
    text = [HEAD.format(names=json.dumps(sorted(names)))]
    for operator in registry:
        parameters = list(operator["parameters"])
        lines = [f"class {class_name(operator['name'])}(Operator):"]
        lines.append(f'    """The {operator["title"]} operator.\n')
        lines += textwrap.wrap(operator["formula"] + ".", 120, initial_indent="    ", subsequent_indent="    ")
        lines += ["", "    Parameters", "    ----------"]
        lines += ["    gauge : Gauge", "        Links of the configuration."]
        for one in parameters:
            lines.append(f"    {one['name']} : {one['type']}")
            lines += textwrap.wrap(one["help"] + ".", 116, initial_indent=" " * 8, subsequent_indent=" " * 8)
        lines += ["    device : Device, optional", "        Device of the operator; default: that of ``fe.init``.", '    """', ""]
        lines += ["    def __init__(", "        self,", "        gauge: Gauge,", "        *,"]
        lines += [f"        {one['name']}: \"Optional[{one['type']}]\" = None," for one in parameters]
        lines += ["        device: Optional[Device] = None,", "    ):"]
        lines += [f'        super().__init__(', f'            "{operator["name"]}",', "            gauge,", "            device=device,"]
        lines += [f"            {one['name']}={one['name']}," for one in parameters]
        lines += ["        )", ""]
        text.append("\n".join(lines))
    return "\n\n".join(text)


if __name__ == "__main__":
    print(source(), end="")
