"""Several processes with a communicator of mpi4py: they find what one process finds."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import ferrite_lqcd as fe

SCRIPT = pathlib.Path(__file__).with_name("with_processes.py")
#: The package under test, wherever it was imported from.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])}


@pytest.fixture(scope="module")
def mpirun():
    """How processes are started."""
    if not fe.info()["mpi"]:
        pytest.skip("this build does not include MPI")
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun")
    help_of_it = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    more = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"] if "Open MPI" in help_of_it else []
    return lambda count: ["mpirun", *more, "-n", str(count)]


def found(command, out):
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.with_suffix(".json").read_text()), np.load(out.with_suffix(".npz"))


@pytest.fixture(scope="module")
def alone(mpirun, tmp_path_factory):
    """What one process finds."""
    out = tmp_path_factory.mktemp("alone") / "found"
    return found([sys.executable, str(SCRIPT), str(out), "1", "1", "1", "1"], out)


@pytest.mark.parametrize("grid", [(2, 1, 1, 1), (1, 1, 1, 4)])
def test_processes_find_what_one_finds(mpirun, alone, tmp_path, grid):
    out, count = tmp_path / "found", int(np.prod(grid))
    python = [sys.executable, "-m", "mpi4py", str(SCRIPT), str(out), *map(str, grid)]
    scalars, arrays = found([*mpirun(count), *python], out)
    assert alone[0].keys() - scalars.keys() == (set() if grid[3] == 1 else {"charge"})
    assert scalars.keys() <= alone[0].keys() and set(arrays) == set(alone[1])
    # Solutions are within tol = 1e-11 of each other; what is made by the same operations is the same but for the order of sums.
    for name, values in scalars.items():
        expected = alone[0][name]
        of = list(expected) if isinstance(expected, dict) else [None]
        for key in of:
            one, other = (expected, values) if key is None else (expected[key], values[key])
            scale = max(float(np.max(np.abs(np.asarray(one, dtype=float)))), 1e-3)
            np.testing.assert_allclose(np.asarray(other, float), np.asarray(one, float), atol=1e-8 * scale, err_msg=name)
    for name in alone[1]:
        np.testing.assert_allclose(arrays[name], alone[1][name], atol=1e-8, err_msg=name)
    for same in ("quenched", "read"):
        assert np.array_equal(arrays[same], alone[1][same]), same


def test_an_exception_of_one_process_ends_all(mpirun, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import ferrite_lqcd as fe\n"
        "from mpi4py import MPI\n"
        "fe.init('cpu', comm=MPI.COMM_WORLD)\n"
        "U = fe.Gauge.unit((4, 4, 4, 8))\n"
        "if fe.device().rank == 1: raise RuntimeError('of rank 1')\n"
        "U.plaquette()\n"
    )
    command = [*mpirun(2), sys.executable, "-m", "mpi4py", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False)
    assert done.returncode != 0 and "of rank 1" in done.stderr


def test_communicators_are_checked(mpirun):
    from mpi4py import MPI

    for comm in (MPI.COMM_NULL, 7):
        for kind in ("cpu", "auto"):
            with pytest.raises(fe.InputError, match="mpi4py communicator"):
                fe.Device(kind, comm=comm)
    with pytest.raises(fe.InputError, match="apply to a new device only"):
        fe.init(fe.device(), comm=MPI.COMM_SELF)
    with pytest.raises(fe.InputError, match="four numbers of processes"):
        fe.Device("cpu", comm=MPI.COMM_SELF, grid=(1, 1))
    with pytest.raises(fe.InputError, match="grid needs comm"):
        fe.Device("cpu", grid=(1, 1, 1, 1))
    # A communicator of one process is as good as none.
    device = fe.Device("cpu", comm=MPI.COMM_SELF)
    U = fe.Gauge.random((2, 2, 2, 4), seed=1, device=device)
    assert abs(U.plaquette().mean - fe.Gauge.random((2, 2, 2, 4), seed=1).plaquette().mean) < 1e-14
    g = np.asarray(fe.Gauge.random((2, 2, 2, 4), seed=2))[..., 0, :, :]
    assert abs(U.transform(g).plaquette().mean - U.plaquette().mean) < 1e-14
