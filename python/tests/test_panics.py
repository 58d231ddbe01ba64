"""Panics of the library reach Python as exceptions that programs expect."""

import pytest

import ferrite_lqcd as fe
from ferrite_lqcd import _guard, _native


def test_panics_are_exceptions():
    """A panic on a thread of the library, on one of a device, and on that of the interpreter."""
    said = "internal error of Ferrite .*: "
    assert not issubclass(_native.PanicException, Exception) and issubclass(fe.FerriteError, Exception)
    # What the package refuses before: the library asserts it.
    with pytest.raises(fe.FerriteError, match=said + "noise of NaN"):
        _native.Links.random([2, 2, 2, 2], 1, float("nan"), None)
    with pytest.raises(fe.FerriteError, match=said + "of the thread of a device"):
        fe.device()._native.panic("of the thread of a device")
    # The library checks requests of its own, too.
    with pytest.raises(fe.InputError, match="beta = -1: expected a number from 0"):
        _native.quenched(fe.device()._native, [2, 2, 2, 2], {"beta": -1.0, "seed": 1, "sweeps": 1})
    # The device goes on.
    assert fe.Gauge.unit((2, 2, 2, 2)).stout(0.1).plaquette().mean == 1

    def panicking():
        raise _native.PanicException("of the thread that called")

    with pytest.raises(fe.FerriteError, match=said + "of the thread that called"):
        _guard.guarded(panicking)()


def test_no_entry_is_without_a_guard():
    classes = [one for one in vars(_native).values() if isinstance(one, type) and not issubclass(one, BaseException)]
    entries = [one for one in vars(_native).values() if callable(one) and not isinstance(one, type)]
    for one in classes:
        with pytest.raises(TypeError):
            one()
        for name, member in vars(one).items():
            if isinstance(member, property):
                entries.append(member.fget)
            elif not name.startswith("__") or name in ("__dlpack__", "__dlpack_device__", "__array_interface__"):
                entries.append(getattr(one, name))
    assert len(classes) == 6 and len(entries) > 60
    assert all(hasattr(entry, "__wrapped__") for entry in entries), [e for e in entries if not hasattr(e, "__wrapped__")]
