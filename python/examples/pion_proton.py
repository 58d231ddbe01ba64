"""Pion and proton from a smeared source, with effective masses."""
import sys

import numpy as np

import ferrite_lqcd as fe

U = fe.Gauge.read(sys.argv[1])
S = fe.Wilson(U, kappa=0.11).propagator(fe.Shell((0, 0, 0, 0), width=2.0, steps=5, gauge=U.ape(4 / 6.5, spatial=True)))
pion, proton = fe.mesons(S), fe.nucleon(S)
pion.plot("pion", "rho").save("pion_2pt.svg")
proton.plot().save("proton_2pt.svg")
print("pion  ", pion.effective_mass("pion"))
print("proton", proton.effective_mass("nucleon"))
np.savez("hadrons.npz", pion=pion["pion"], proton=proton["nucleon"])
