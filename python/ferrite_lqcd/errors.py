"""Exceptions. Each has a message that states what is wrong and what to do."""

from ._native import DeviceError, FerriteError, FileError, InputError, SolverError

__all__ = ["DeviceError", "FerriteError", "FileError", "InputError", "SolverError"]
