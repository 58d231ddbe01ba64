"""Guards every entry into the compiled part: a panic of the library becomes an exception that ``except Exception`` catches.

``__init__`` imports this module before any other, so that all modules use guarded functions only.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable

from . import _native


def guarded(function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Wraps a function of the compiled part, so that a panic raises ``FerriteError``."""

    @functools.wraps(function)
    def entry(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except _native.PanicException as panic:
            # The panic is not set as the cause, so that a traceback shows the message only once.
            raise _native.FerriteError(_native.internal_error(str(panic))) from None

    return entry


def _guard_class(native_class: type) -> None:
    for name, member in list(vars(native_class).items()):
        if isinstance(member, staticmethod):
            setattr(native_class, name, staticmethod(guarded(member.__func__)))
        elif isinstance(member, types.MethodDescriptorType):
            setattr(native_class, name, guarded(member))
        elif isinstance(member, types.GetSetDescriptorType):
            setattr(native_class, name, property(guarded(member.__get__), doc=member.__doc__))


for _name, _member in list(vars(_native).items()):
    if isinstance(_member, types.BuiltinFunctionType):
        setattr(_native, _name, guarded(_member))
    elif isinstance(_member, type) and not issubclass(_member, BaseException):
        _guard_class(_member)
