"""The ratio of axial current and pion that gives the PCAC mass."""
import sys

import numpy as np

import ferrite_lqcd as fe

U = fe.Gauge.read(sys.argv[1]).stout(0.125)
S = fe.Clover(U, mass=0.1, csw=1.16).propagator(fe.Wall(0))
c = fe.mesons(S, gammas=["g5", ("gxgygz", "g5")])
pion, axial = c["g5"][0].real, c["gxgygz-g5"][0].real
# γ_xγ_yγ_z is -γ_tγ_5.
mass = (np.roll(axial, 1) - np.roll(axial, -1)) / (4 * pion)
print("PCAC mass", mass[1:-1])
np.savez("pcac.npz", pion=pion, axial=axial)
