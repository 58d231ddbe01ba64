"""Pions with momentum: effective energies."""
import sys

import numpy as np

import ferrite_lqcd as fe

momenta = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1), (0, 0, 2), (0, 1, 2), (1, 1, 2), (0, 2, 2), (1, 2, 2)]
U = fe.Gauge.read(sys.argv[1]).stout(0.125)
c = fe.mesons(fe.Clover(U, mass=0.1, csw=1.16).propagator(fe.Point((0, 0, 0, 0))), momenta=momenta)
for k, p in enumerate(momenta):
    print(p, c.effective_mass("pion", k))
np.save("dispersion.npy", c["pion"])
