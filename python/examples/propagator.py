"""Clover propagators from walls at all times of a configuration; the pion, averaged over them."""
import sys

import numpy as np

import ferrite_lqcd as fe

U = fe.Gauge.read(sys.argv[1]).stout(0.125)
D = fe.Clover(U, mass=0.1, csw=1.16)
pion = np.array([fe.mesons(D.propagator(fe.Wall(t)))["pion"][0].real for t in range(U.lattice[3])])
fe.Correlators({"pion": pion.mean(0)[None]}, [(0, 0, 0)]).plot().save("pion_2pt.svg")
np.save("pion.npy", pion)
