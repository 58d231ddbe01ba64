"""Where reference data of other codes are; tests that need them say so where they are absent."""

import os
import pathlib

import pytest

import ferrite_lqcd as fe

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = pathlib.Path(os.environ.get("FERRITE_REFDATA", ROOT.parent / "shared" / "refdata"))


@pytest.fixture(scope="session", autouse=True)
def cpu():
    """Everything runs on the CPU, whatever the machine has; FERRITE_TEST_DEVICE=cuda chooses a GPU."""
    return fe.init(os.environ.get("FERRITE_TEST_DEVICE", "cpu"))


@pytest.fixture(scope="session")
def reference():
    """The folder of reference data."""
    if not REFERENCE.is_dir():
        pytest.skip(f"there are no reference data in {REFERENCE}")
    return REFERENCE


@pytest.fixture(scope="session")
def weak():
    """Links near 1 on 2·4·6·8."""
    return fe.Gauge.random((2, 4, 6, 8), seed=7, noise=0.2)
