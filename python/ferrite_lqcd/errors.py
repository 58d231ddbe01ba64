"""Exceptions. Each carries one or several sentences that say what is wrong and what to do."""

from ._native import DeviceError, FerriteError, FileError, InputError, SolverError

__all__ = ["DeviceError", "FerriteError", "FileError", "InputError", "SolverError"]
