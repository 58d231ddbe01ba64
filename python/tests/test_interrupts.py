"""Ctrl-C: KeyboardInterrupt comes soon, whatever is being computed, and objects can be used afterwards."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

#: Each of these works for minutes at least, unless it is interrupted.
SCRIPT = """
import ferrite_lqcd as fe, numpy as np, signal, sys
# A process that a shell has put into the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
fe.init("cpu", threads=1)
U = fe.Gauge.random((8, 8, 8, 8), seed=1, noise=0.3)
D, naive = fe.Wilson(U, mass=0.5), fe.Staggered(U, mass=0.01)
before = np.array(U)
b = fe.Noise(1).field(U.lattice, spin=0)
image = D.apply(b)
apart = fe.Wilson(U, mass=0.1, device=fe.Device("cpu", threads=1))
rng = np.random.default_rng(1)
data = np.cosh(0.1 * (np.arange(64) - 32)) * (1 + 0.01 * rng.standard_normal((2000, 64)))
works = {
    "solve": lambda: fe.Wilson(U, kappa=0.3).solve(np.stack([b] * 64), solver="cg", batch=1, max_iterations=10**9, escalate=False),
    "masses": lambda: naive.solve_masses(fe.Noise(1).field(U.lattice), [1e-9, 1e-8], tol=1e-15, max_iterations=10**9),
    "heat bath": lambda: fe.Gauge.quenched(U.lattice, 6.0, 1, sweeps=1, overrelax=10**8),
    "stout": lambda: U.stout(0.01, 65535),
    "ape": lambda: U.ape(0.5, 65535),
    "hyp": lambda: U.hyp(steps=65535),
    "flow": lambda: U.flow(1000.0, 0.001),
    "gauge fixing": lambda: U.fix("landau", tol=1e-28, overrelax=1.0, max_sweeps=10**9),
    "shell": lambda: fe.Shell((0, 0, 0, 0), 1.0, 10_000, U, device=apart._device).smeared(np.stack([b] * 64)),
    "setup": lambda: fe.Wilson(U, mass=0.1, device=fe.Device("cpu", threads=1)).setup(vectors=8, blocks=[(4, 4, 4, 4)], improvements=1000),
    "fit": lambda: fe.fit(data, states=[1, 2], bootstrap=100_000),
    "effective masses": lambda: fe.effective_masses(data, bootstrap=100_000),
}
for name in works:
    if sys.argv[1] not in ("all", name):
        continue
    print(name, flush=True)
    try:
        works[name]()
    except KeyboardInterrupt:
        # The device takes other work.
        print("interrupted", np.array_equal(D.apply(b), image), np.array_equal(U, before), flush=True)
"""


def test_control_c_ends_everything():
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = subprocess.Popen([sys.executable, "-c", SCRIPT, "all"], env=environment, **pipes)
    names = []
    for name in running.stdout:
        names.append(name.strip())
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        assert running.stdout.readline() == "interrupted True True\n", (name, running.stderr.read())
    assert running.wait() == 0, running.stderr.read()
    assert len(names) == 12


def test_what_goes_on_is_waited_for():
    """Work that does not look for Ctrl-C is finished by the device, which then does the next; what it made is dropped."""
    script = """
import ferrite_lqcd as fe, numpy as np, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
fe.init("cpu", threads=1)
U = fe.Gauge.random((8, 8, 8, 8), seed=1, noise=0.3)
D, b = fe.Wilson(U, mass=0.1), fe.Noise(1).field((8, 8, 8, 8), spin=0)
first = D.setup(vectors=8, blocks=[(4, 4, 4, 4)])
print("begins", flush=True)
try:
    # For a few seconds.
    fe.Shell((0, 0, 0, 0), 1.0, 50, U).smeared(np.stack([b] * 12))
except KeyboardInterrupt:
    print("interrupted", flush=True)
x, report = D.solve(b, solver=first)
print(report.converged, np.linalg.norm(b - D.apply(x)) < 1e-9 * np.linalg.norm(b))
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = subprocess.Popen([sys.executable, "-c", script], env=environment, **pipes)
    assert running.stdout.readline() == "begins\n"
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=120) == ("interrupted\nTrue True\n", "")
