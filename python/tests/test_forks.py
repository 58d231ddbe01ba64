"""Forked processes, in which threads of the parent do not run."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def said(script):
    """What a script prints; three minutes are enough for any of them, and none may wait forever."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_objects_of_the_parent_are_refused():
    """Each that needs the device: with a sentence, where it waited forever. Memory of the host can be read."""
    script = """
import multiprocessing, ferrite_lqcd as fe, numpy as np
fe.init("cpu", threads=2)
U = fe.Gauge.random((4, 4, 4, 4), seed=1, noise=0.1)
D = fe.Clover(U, mass=0.5, csw=1.0)
b = np.ones((4, 4, 4, 4, 4, 3))
S = D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-6)
there, hmc = fe.to_device(b), fe.HMC(U, fe.GaugeAction("wilson", 6.0), seed=1, steps=1)
device = fe.device()
calls = {
    "apply": lambda: D.apply(b), "solve": lambda: D.solve(b), "propagator": lambda: D.propagator(fe.Point((0, 0, 0, 0))),
    "setup": lambda: D.setup(), "stout": lambda: U.stout(0.1, device=device), "flow": lambda: U.flow(0.1, device=device),
    "loops": lambda: U.loops(device=device), "columns": lambda: S.columns, "mesons": lambda: fe.mesons(S, device=device),
    "numpy": lambda: there.numpy(), "dlpack": lambda: np.from_dlpack(there), "trajectory": lambda: hmc.trajectory(),
    "links": lambda: hmc.gauge, "memory": lambda: device.memory(), "on device": lambda: D.apply(there),
}
def child(name):
    try:
        calls[name]()
    except fe.FerriteError as error:
        return str(error)
def rest(_):
    global D, S, there, hmc
    import gc
    del D, S, there, hmc
    gc.collect()
    return U.lattice, np.asarray(U).shape
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for name, why in zip(calls, pool.map(child, calls)):
            assert "was opened in the parent process" in why and "'spawn' or 'forkserver'" in why, (name, why)
        print(pool.map(rest, [0]))
    # The parent goes on.
    print(D.apply(b).shape, S.columns.shape)
"""
    assert said(script) == "[((4, 4, 4, 4), (4, 4, 4, 4, 4, 3, 3))]\n(4, 4, 4, 4, 4, 3) (12, 4, 4, 4, 4, 4, 3)\n"


def test_a_fork_has_objects_of_its_own():
    """Made in it, on a device and with threads of its own, beside links of the parent; what the host computes, too."""
    script = """
import multiprocessing, ferrite_lqcd as fe, numpy as np
fe.init("cpu")
U = fe.Gauge.random((4, 4, 4, 8), seed=1, noise=0.1)
b = fe.Noise(1).field(U.lattice, spin=0)
def work(seed):
    V = fe.Gauge.random((4, 4, 4, 8), seed=seed, noise=0.1)
    D = fe.Wilson(V, mass=0.5)
    x = D.solve(b, solver=D.setup(vectors=8, blocks=[(2, 2, 2, 2)]), tol=1e-8).x
    smeared = U.hyp().flow(0.1, 0.05).gauge.plaquette().mean
    fit = fe.fit(np.cosh(0.4 * (np.arange(8) - 4)) * np.linspace(0.99, 1.01, 12)[:, None], window=(0, 4), covariance="diagonal")
    return np.linalg.norm(x), smeared, fit.energy.value, V.unitarity() < 1e-12
if __name__ == "__main__":
    here = work(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        there = pool.map(work, [1, 1])
    print(np.allclose(there, [here, here], rtol=1e-6))
"""
    assert said(script) == "True\n"
