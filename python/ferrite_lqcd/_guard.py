"""Guards every entry into the compiled part: a panic of the library becomes an exception that ``except Exception`` catches.

``__init__`` imports this module before any other, so that all of them only ever see guarded functions.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable

from . import _native


def guarded(function: "Callable[..., Any]") -> "Callable[..., Any]":
    """A function of the compiled part, with ``FerriteError`` in place of the exception that a panic makes."""

    @functools.wraps(function)
    def entry(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except _native.PanicException as panic:
            # Not as the cause: a traceback shows the message once.
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
