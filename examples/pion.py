#!/usr/bin/env python3
"""The pion of a spectrum: reads what `ferrite spectrum` wrote and draws its effective mass. Of staggered quarks it is
Goldstone's.

    ferrite spectrum run.toml cfg.*.ildg --out spectrum
    python3 examples/pion.py spectrum

Needs NumPy; with Matplotlib it also writes pion.png.
"""
import json
import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "spectrum")

# Axes: configuration, correlator, time. The names along the second one are beside it.
values = np.load(folder / "correlators.npy")
names = json.loads((folder / "correlators.json").read_text())["correlators"]
at_rest = [c["name"] if c["momentum"] == [0, 0, 0] else None for c in names]
name = next((name for name in ("g5", "pion") if name in at_rest), None)
if name is None:
    sys.exit(f"{folder / 'correlators.json'}: there is no pion, neither g5 nor pion")
pion = values[:, at_rest.index(name), :].real
configurations, extent = pion.shape


def effective_mass(correlator):
    """m with C(t)/C(t+1) = cosh m(T/2 − t) / cosh m(T/2 − t − 1), for t below T/2."""
    masses = []
    for t in range(extent // 2):
        ratio, distance = correlator[t] / correlator[t + 1], extent / 2 - t
        low, high = 0.0, 20.0
        for _ in range(80):
            m = 0.5 * (low + high)
            small = np.cosh(m * distance) / np.cosh(m * (distance - 1)) < ratio
            low, high = (m, high) if small else (low, m)
        masses.append(0.5 * (low + high))
    return np.array(masses)


mean = effective_mass(pion.mean(axis=0))
if configurations > 1:
    # The jackknife: means that leave out one configuration each.
    others = np.array([effective_mass(np.delete(pion, k, axis=0).mean(axis=0)) for k in range(configurations)])
    error = np.sqrt((configurations - 1) * others.var(axis=0))
else:
    error = np.full_like(mean, np.nan)

one = configurations == 1
print(f"{name}: {configurations} configuration{'' if one else 's'}, T = {extent}{', no errors' if one else ''}")
for t, (m, e) in enumerate(zip(mean, error)):
    print(f"{t:3d}  {m:.5f}" + ("" if one else f" ± {e:.5f}"))

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit(0)
plt.errorbar(range(len(mean)), mean, None if one else error, fmt="o", capsize=3)
plt.xlabel("t")
plt.ylabel("effective mass of the pion")
plt.savefig("pion.png", dpi=150)
print("pion.png")
