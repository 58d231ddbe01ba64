"""Calls Ferrite through PyQUDA in several processes, and compares the results with those of one process.

Usage: pyquda_ranks.py FILE, in one process, writes the results to a file; `mpirun -n 2 pyquda_ranks.py FILE` compares with it.
"""

import sys

import numpy as np
from pyquda.action import CloverWilsonAction, GaugeAction, HISQAction
from pyquda.action.abstract import LoopParam, RationalParam
from pyquda.field import LatticeMom
from pyquda.hmc import HMC, O2Nf1Ng0V
from pyquda.quda import gaussMomQuda
from pyquda_comm import getGridCoord, getMPIComm
from pyquda_utils import core

LATTICE = [4, 4, 8, 12]
COMM = getMPIComm()
# t and z are cut, and the ranks of the application differ from those of the grid.
GRIDS = {1: [1, 1, 1, 1], 2: [1, 1, 1, 2], 4: [1, 1, 2, 2]}
core.init(GRIDS[COMM.Get_size()], LATTICE, backend="numpy", resource_path=".")
INFO = core.LatticeInfo(LATTICE, -1, 1.0)


def part(array, axis):
    """Returns the part of this process of an array whose axes t, z, y, x begin at `axis`."""
    for n in range(4):
        parts, place = INFO.grid_size[3 - n], getGridCoord()[3 - n]
        length = array.shape[axis + n] // parts
        array = np.take(array, range(place * length, (place + 1) * length), axis + n)
    return np.ascontiguousarray(array)


def numbers(seed, *shape):
    generator = np.random.default_rng(seed)
    return generator.normal(size=shape) + 1j * generator.normal(size=shape)


def gauge_field():
    h = 0.15 * numbers(1, 4, *LATTICE[::-1], 3, 3)
    h = h + np.swapaxes(h.conj(), -1, -2)
    h = h - np.trace(h, axis1=-2, axis2=-1)[..., None, None] / 3 * np.eye(3)
    value, vector = np.linalg.eigh(h)
    links = (vector * np.exp(1j * value)[..., None, :]) @ np.swapaxes(vector.conj(), -1, -2)
    return core.LatticeGauge(INFO, core.evenodd(part(links, 1), [1, 2, 3, 4]))


def results():
    """Returns parts of fields, whose axes t, z, y, x begin at a number, and numbers without axes."""
    gauge = gauge_field()
    found = {}
    psi = core.LatticeFermion(INFO, core.evenodd(part(numbers(2, *LATTICE[::-1], 4, 3), 0), [0, 1, 2, 3]))
    chi = core.LatticeStaggeredFermion(INFO, core.evenodd(part(numbers(3, *LATTICE[::-1], 3), 0), [0, 1, 2, 3]))
    operators = {
        "Wilson": (core.getWilson(INFO, 0.2, 1e-12, 1000), psi),
        "clover": (core.getClover(INFO, 0.2, 1e-12, 1000, 1.0, 1.1, 1.1), psi),
        "HISQ": (core.getHISQ(INFO, 0.1, 1e-12, 1000, 0.0), chi),
    }
    for name, (dirac, field) in operators.items():
        with dirac.useGauge(gauge):
            found[f"product, {name}"] = (0, dirac.mat(field).lexico())
            found[f"solution, {name}"] = (0, dirac.invert(field).lexico())
            found[f"hops, {name}"] = (0, dirac.dslash(field).lexico())
    with gauge.use() as dirac:
        found["covariant shift in t"] = (0, dirac.covDev(psi, 3).lexico())
        found["covariant shift in -z"] = (0, dirac.covDev(psi, 6).lexico())
        found["Laplace operator"] = (0, dirac.laplace(chi, 4).lexico())
    found["plaquettes"] = (None, np.array(gauge.plaquette()))
    found["Polyakov loop"] = (None, np.array(gauge.polyakovLoop()))
    found["topological charge"] = (None, np.array([gauge.qcharge(), *gauge.energy()]))
    bent = [0, 3, 2, 4, 7, 6]
    found["trace of a loop"] = (None, gauge.loopTrace([bent, [3, 3, 0, 7, 7, 4]]))
    for name, smear in {
        "stout links": lambda g: g.stoutSmear(2, 0.1, 4),
        "HYP links": lambda g: g.hypSmear(1, 0.75, 0.6, 0.3, 4),
        "flow": lambda g: g.wilsonFlow(2, 0.02),
        "Landau gauge": lambda g: g.fixingOVR(4, 20, 20, 1.5, 0.0, 1, 1),
    }.items():
        smeared = gauge.copy()
        smear(smeared)
        found[name] = (1, smeared.lexico())
    around = [[mu, nu, mu + 4, nu + 4] for nu in range(4) for mu in range(nu)]
    turns = [[a, a, b, a + 4, b + 4, a + 4] for a in range(4) for b in range(4) if b != a]
    one = RationalParam(0.0, [0.4, 0.7], [0.3, 1.1], 1.0, [0.2], [0.5], 1.0, [0.2], [0.5])
    two = RationalParam()
    monomials = {
        "gauge": GaugeAction(INFO, LoopParam(around + turns, [1.0] * 6 + [0.1] * 12), 5.5),
        "HISQ": HISQAction(INFO, one, 1e-12, 2000, 0.1),
        "clover": CloverWilsonAction(INFO, two, 0.3, 2, 1e-12, 2000, 1.1),
    }
    for name, monomial in monomials.items():
        hmc = HMC(INFO, [monomial], O2Nf1Ng0V(1))
        hmc.initialize(5, gauge)
        # One seed for all processes; those of PyQUDA depend on the process.
        gaussMomQuda(7, 1.0)
        hmc.seed = lambda state: state
        if name != "gauge":
            # The noise of PyQUDA depends on the process.
            monomial.sampleEta = (lambda m: lambda: setattr(m.eta, "data", (psi if name == "clover" else chi).data))(monomial)
            hmc.samplePhi()
            hmc.fermionAction()
            # PyQUDA subtracts a constant that depends on the part of a process.
            values = [monomial.invert_param.action[0], monomial.invert_param.trlogA[1] if name == "clover" else 0.0]
            found[f"action, {name}"] = (None, np.array(values))
        hmc.updateMom(0.1)
        hmc.updateGauge(0.1)
        moved, mom = gauge.copy(), LatticeMom(INFO)
        hmc.saveGauge(moved)
        hmc.saveMom(mom)
        found[f"links, {name}"] = (1, moved.lexico())
        found[f"momenta, {name}"] = (1, mom.lexico())
    return found


found = results()
if COMM.Get_size() == 1:
    np.savez(sys.argv[1], **{name: values for name, (_, values) in found.items()})
else:
    whole, worst = np.load(sys.argv[1]), 0.0
    for name, (axis, values) in found.items():
        wanted = whole[name] if axis is None else part(whole[name], axis)
        distance = np.linalg.norm(values - wanted) / max(np.linalg.norm(wanted), 1e-300)
        # Solutions to 1e-12; all else differs by the order of sums.
        tolerance = 1e-10 if any(word in name for word in ("solution", "HISQ", "clover")) else 1e-12
        assert distance < tolerance, f"{name} on rank {COMM.Get_rank()}: {distance:.1e}"
        worst = max(worst, distance)
    print(f"rank {COMM.Get_rank()} of {COMM.Get_size()}: {len(found)} results, largest difference {worst:.1e}")
