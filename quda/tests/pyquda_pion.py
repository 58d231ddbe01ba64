"""Solves for Wilson and clover propagators with PyQUDA on a CPU, through Ferrite.

The solutions on random links have to satisfy Wilson's equation, which this script computes with NumPy. With a folder of reference data as
argument, the pions on PyQUDA's weak field have to be those of Chroma.

Usage: pyquda_pion.py [REFDATA]
"""

import json
import sys
from pathlib import Path

import numpy as np
from pyquda_utils import core, io

LATTICE = [4, 4, 4, 8]
# γ matrices in the DeGrand-Rossi basis, for x, y, z, t.
GAMMA = np.array(
    [
        [[0, 0, 0, 1j], [0, 0, 1j, 0], [0, -1j, 0, 0], [-1j, 0, 0, 0]],
        [[0, 0, 0, -1], [0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]],
        [[0, 0, 1j, 0], [0, 0, 0, -1j], [-1j, 0, 0, 0], [0, 1j, 0, 0]],
        [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]],
    ]
)


def wilson(links, mass, psi):
    """Returns (4 + m) ψ − ½ Σ_μ [(1 − γ_μ) U_μ(x) ψ(x + μ) + (1 + γ_μ) U_μ†(x − μ) ψ(x − μ)], antiperiodic in t."""
    out = (4 + mass) * psi
    for mu in range(4):
        axis, u = 3 - mu, links[mu].copy()
        if mu == 3:
            u[-1] *= -1
        forward = np.einsum("tzyxab,tzyxsb->tzyxsa", u, np.roll(psi, -1, axis))
        backward = np.roll(np.einsum("tzyxba,tzyxsb->tzyxsa", u.conj(), psi), 1, axis)
        for sign, hop in ((-1, forward), (1, backward)):
            out = out - 0.5 * (hop + sign * np.einsum("rs,tzyxsa->tzyxra", GAMMA[mu], hop))
    return out


def random_links(seed):
    generator = np.random.default_rng(seed)
    shape = (4, *LATTICE[::-1], 3, 3)
    matrices = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    unitary = np.linalg.qr(matrices)[0]
    return unitary / np.linalg.det(unitary)[..., None, None] ** (1 / 3)


def residuals():
    """Returns the largest |b − M x| / |b| on random links."""
    info = core.LatticeInfo(LATTICE, -1, 1.0)
    links = random_links(7)
    gauge = core.LatticeGauge(info, core.evenodd(links, [1, 2, 3, 4]))
    generator = np.random.default_rng(8)
    dirac, worst = core.getWilson(info, 0.3, 1e-11, 1000), 0.0
    with dirac.useGauge(gauge):
        for _ in range(3):
            shape = (*LATTICE[::-1], 4, 3)
            b = generator.normal(size=shape) + 1j * generator.normal(size=shape)
            x = dirac.invert(core.LatticeFermion(info, core.evenodd(b, [0, 1, 2, 3]))).lexico()
            worst = max(worst, np.linalg.norm(b - wilson(links, 0.3, x)) / np.linalg.norm(b))
    return worst


def shell(links, psi, width=2.0, steps=5):
    """Returns (1 + w²Δ/(4n))ⁿ ψ on time slice 0, with the axes z, y, x, colour."""
    weight = width * width / (4 * steps)
    for _ in range(steps):
        out = (1 - 6 * weight) * psi
        for mu in range(3):
            axis, u = 2 - mu, links[mu, 0]
            forward = np.einsum("zyxab,zyxb->zyxa", u, np.roll(psi, -1, axis))
            backward = np.roll(np.einsum("zyxba,zyxb->zyxa", u.conj(), psi), 1, axis)
            out = out + weight * (forward + backward)
        psi = out
    return psi


def pion(info, gauge, links, dirac):
    correlator = np.zeros(LATTICE[3])
    with dirac.useGauge(gauge):
        for spin in range(4):
            for colour in range(3):
                point = np.zeros((*LATTICE[2::-1], 3), complex)
                point[0, 0, 0, colour] = 1
                b = np.zeros((*LATTICE[::-1], 4, 3), complex)
                b[0, ..., spin, :] = shell(links, point)
                x = dirac.invert(core.LatticeFermion(info, core.evenodd(b, [0, 1, 2, 3])))
                correlator += (np.abs(x.lexico()) ** 2).sum(axis=(1, 2, 3, 4, 5))
    return correlator


def pions(refdata):
    """Returns the largest relative differences from Chroma's pions."""
    gauge = io.readQIOGauge(str(refdata / "configs/pyquda_weak_field.lime"))
    answers = json.loads((refdata / "answers/chroma_weakfield_4448.json").read_text())["data"]
    xi, nu = 2.464, 0.95
    info, links = core.LatticeInfo(LATTICE, -1, xi / nu), gauge.lexico()

    def mass(kappa):
        return 1 / (2 * kappa) - 4

    operators = {
        "prec_wilson": core.getWilson(info, mass(0.135), 1e-12, 1000),
        "prec_clover": core.getClover(info, mass(0.115), 1e-12, 1000, xi, 1.07, 0.91),
    }
    found = {}
    for name, dirac in operators.items():
        theirs = np.array(answers[name]["prop_corr"])
        found[name] = np.abs(pion(info, gauge, links, dirac) / theirs - 1).max()
    return found


if __name__ == "__main__":
    core.init(None, LATTICE, backend="numpy", resource_path=".")
    worst = residuals()
    print(f"largest residual {worst:.1e}")
    # The tolerance, with sums in another order.
    assert worst < 1.01e-11
    if len(sys.argv) > 1:
        for name, difference in pions(Path(sys.argv[1])).items():
            print(f"{name}: largest difference from Chroma {difference:.1e}")
            # Chroma's numbers are in single precision.
            assert difference < 1e-6
