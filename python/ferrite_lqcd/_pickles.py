"""Pickles and copies of objects. They contain the object's arrays and settings, and the number of their format."""

from __future__ import annotations

import copy
from typing import Any

from . import _native
from .errors import InputError

#: Number of the format of pickles, which changes with their contents.
FORMAT = 1


class Pickled:
    """Base class of objects that can be pickled and copied. ``_pickled`` returns the state of the object.

    The pickle holds the class, the number of the format, the package's version and the state. An object that needs a device uses, when
    it is unpickled, the device of ``fe.init`` in the process that unpickles it.
    """

    def __reduce__(self) -> Any:
        return _restored, (type(self), FORMAT, _native.__version__, self._pickled())

    def __copy__(self) -> Any:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: "dict[int, Any]") -> Any:
        copied = type(self).__new__(type(self))
        copied._unpickled(copy.deepcopy(self._pickled(), memo))
        return copied

    def _pickled(self) -> "dict[str, Any]":
        """Returns the arrays and settings of the object, by name."""
        return dict(self.__dict__)

    def _unpickled(self, state: "dict[str, Any]") -> None:
        """Fills a new object with the state that ``_pickled`` returned."""
        self.__dict__.update(state)


def _restored(kind: type, number: int, version: str, state: "dict[str, Any]") -> Any:
    """Returns the object that a pickle describes."""
    if number != FORMAT:
        raise InputError(
            f"a pickled {kind.__name__} has format {number}, of ferrite-lqcd {version}, but ferrite-lqcd {_native.__version__} reads format "
            f"{FORMAT}: write it again with this version, or read it with version {version}"
        )
    made = kind.__new__(kind)
    made._unpickled(state)
    return made
