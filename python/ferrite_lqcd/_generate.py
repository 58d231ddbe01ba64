"""Writes ``operators.pyi`` from the registry of operators: ``python -m ferrite_lqcd._generate > operators.pyi``."""

from __future__ import annotations

import json
import textwrap

from .operators import _class_name, operators

HEAD = '''"""Signatures of the classes that operators.py makes. Written by ``python -m ferrite_lqcd._generate``."""

from typing import Any, Optional, Sequence

from .device import Device
from .dirac import Operator
from .gauge import Gauge

__all__ = {names}

def operators() -> "list[dict[str, Any]]": ...
'''


def source() -> str:
    """The text of ``operators.pyi``."""
    names = [*sorted(_class_name(operator["name"]) for operator in operators()), "operators"]
    text = [HEAD.format(names=json.dumps(names))]
    for operator in operators():
        listed = [f"{one['name']}: Optional[{one['type']}] = ..." for one in operator["parameters"]]
        listed = ["self", "gauge: Gauge", "*", *listed, "device: Optional[Device] = ..."]
        # Lines break between parameters only.
        text_of_all = ", ".join(one.replace(" ", "\0") for one in listed)
        lines = textwrap.wrap(text_of_all, 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
        signature = "\n".join(lines).replace("\0", " ")
        text.append(f"class {_class_name(operator['name'])}(Operator):\n    def __init__(\n{signature}\n    ) -> None: ...\n")
    return "\n".join(text)


if __name__ == "__main__":
    print(source(), end="")
