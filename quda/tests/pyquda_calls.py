"""Calls Ferrite through PyQUDA on a CPU, and compares the results with plain sums in NumPy.

Fields are on 4·4·6·8 sites. Every function `test_…` compares one group of calls; a failed comparison names itself. With a folder of
reference data as argument, the pion of HISQ quarks has to be that of MILC.

Usage: pyquda_calls.py [REFDATA]
"""

import json
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
from pyquda.field import LatticeMom, MultiLatticeStaggeredFermion, MultiLatticeFermion, X, Y, Z, T
from pyquda import enum_quda as enums
from pyquda import quda
from pyquda.action import CloverWilsonAction, GaugeAction, HISQAction
from pyquda.action.abstract import LoopParam, RationalParam
from pyquda.hmc import HMC, O2Nf1Ng0V, O4Nf5Ng0V
from pyquda_utils import core, io

from pyquda_pion import GAMMA, wilson

LATTICE = [4, 4, 6, 8]
SHAPE = LATTICE[::-1]
core.init([1, 1, 1, 1], LATTICE, backend="numpy", resource_path=".")
INFO = core.LatticeInfo(LATTICE, 1, 1.0)
ANTIPERIODIC = core.LatticeInfo(LATTICE, -1, 1.0)


DISTANCES = []


def expect(name, found, wanted, tolerance):
    """Fails if two arrays differ by more than a tolerance, relative to the norm of the second."""
    distance = np.linalg.norm(np.asarray(found) - wanted) / max(np.linalg.norm(wanted), 1e-300)
    DISTANCES.append(distance)
    assert distance <= tolerance, f"{name}: {distance:.1e} is above {tolerance:.1e}"


def dagger(u):
    return np.swapaxes(u.conj(), -1, -2)


def near_unity(seed, width=0.4):
    """Returns links exp(A) of random anti-Hermitian matrices A."""
    generator = np.random.default_rng(seed)
    shape = (4, *SHAPE, 3, 3)
    h = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    h = h + dagger(h)
    h = h - np.trace(h, axis1=-2, axis2=-1)[..., None, None] / 3 * np.eye(3)
    value, vector = np.linalg.eigh(width * h)
    return (vector * np.exp(1j * value)[..., None, :]) @ dagger(vector)


def gauge_of(links, info=INFO):
    return core.LatticeGauge(info, core.evenodd(links, [1, 2, 3, 4]))


def spinor(seed):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(*SHAPE, 4, 3)) + 1j * generator.normal(size=(*SHAPE, 4, 3))


def vector(seed):
    return spinor(seed)[..., 0, :].copy()


def fermion_of(psi, info=INFO):
    return core.LatticeFermion(info, core.evenodd(psi, [0, 1, 2, 3]))


def staggered_of(psi, info=INFO):
    return core.LatticeStaggeredFermion(info, core.evenodd(psi, [0, 1, 2, 3]))


def ahead(field, mu):
    """Returns the field at x + μ."""
    return np.roll(field, -1, 3 - mu)


def behind(field, mu):
    """Returns the field at x − μ."""
    return np.roll(field, 1, 3 - mu)


def hop(links, mu, psi, forward):
    """Returns U_μ(x) ψ(x+μ) or U_μ†(x−μ) ψ(x−μ)."""
    if forward:
        return np.einsum("tzyxab,tzyx...b->tzyx...a", links[mu], ahead(psi, mu))
    return behind(np.einsum("tzyxba,tzyx...b->tzyx...a", links[mu].conj(), psi), mu)


def path(links, steps):
    """Returns the products of links along a path from each site; a direction above 3 is backward."""
    product = np.broadcast_to(np.eye(3, dtype=complex), links[0].shape).copy()
    place = [0, 0, 0, 0]

    def shifted(field):
        for mu, n in enumerate(place):
            field = np.roll(field, -n, 3 - mu)
        return field

    for step in steps:
        mu = step % 4
        if step < 4:
            product = product @ shifted(links[mu])
            place[mu] += 1
        else:
            place[mu] -= 1
            product = product @ dagger(shifted(links[mu]))
    return product


def coordinates():
    return np.meshgrid(*[np.arange(n) for n in SHAPE], indexing="ij")


def with_sign(links, antiperiodic=True, phases="milc"):
    """Returns links with staggered phases and the sign of the boundary condition."""
    t, z, y, x = coordinates()
    sums = {"milc": [t, t + x, t + x + y, 0 * t], "chroma": [1 + 0 * t, 1 + x, 1 + x + y, 1 + x + y + z]}[phases]
    out = links * np.array([1 - 2 * (s % 2) for s in sums])[..., None, None]
    if antiperiodic:
        out[3, -1] *= -1
    return out


def staggered_hops(links, psi, steps=1):
    """Returns Σ_μ V_μ(x) ψ(x+nμ) − V_μ†(x−nμ) ψ(x−nμ)."""
    out = 0
    for mu in range(4):
        axis = 3 - mu
        out = out + np.einsum("tzyxab,tzyxb->tzyxa", links[mu], np.roll(psi, -steps, axis))
        out = out - np.roll(np.einsum("tzyxba,tzyxb->tzyxa", links[mu].conj(), psi), steps, axis)
    return out


def parity_of_sites():
    return sum(coordinates()) % 2


def test_shifts_and_laplace():
    links, psi = near_unity(1), spinor(2)
    gauge = gauge_of(links)
    with gauge.use() as dirac:
        for mu in range(8):
            wanted = hop(links, mu % 4, psi, mu < 4)
            # Half the sum and half the difference of two hops.
            expect(f"covariant shift {mu}", dirac.covDev(fermion_of(psi), mu).lexico(), wanted, 1e-15)
        chi = vector(3)
        for left_out in range(5):
            directions = [mu for mu in range(4) if mu != left_out]
            total = sum(hop(links, mu, chi, way) for mu in directions for way in (True, False))
            wanted = chi - total / (2 * len(directions))
            expect(f"Laplace operator {left_out}", dirac.laplace(staggered_of(chi), left_out).lexico(), wanted, 1e-15)
    alpha, wanted = 0.3, psi
    for _ in range(4):
        total = sum(hop(links, mu, wanted, way) for mu in range(3) for way in (True, False))
        wanted = (wanted + alpha * total) / (1 + 6 * alpha)
    expect("Wuppertal smearing", gauge.wuppertalSmear(fermion_of(psi), 4, alpha).lexico(), wanted, 1e-14)


def test_loops():
    links = near_unity(4)
    gauge = gauge_of(links)
    plaquettes = {
        (mu, nu): np.trace(path(links, [mu, nu, mu + 4, nu + 4]), axis1=-2, axis2=-1).real.mean() / 3
        for mu in range(4)
        for nu in range(mu)
    }
    space = np.mean([p for (mu, _), p in plaquettes.items() if mu < 3])
    time = np.mean([p for (mu, _), p in plaquettes.items() if mu == 3])
    expect("plaquettes", gauge.plaquette(), [(space + time) / 2, space, time], 1e-14)
    line = path(links, [3] * 8)[0]
    trace = np.trace(line, axis1=-2, axis2=-1).mean()
    expect("Polyakov loop", gauge.polyakovLoop(), [trace.real, trace.imag], 1e-13)
    loops = [[X, Y, -X, -Y], [X, X, Z, -X, -X, -Z], [X, Y, T, -X, -Y, -T], [T, T, X, T, -T, -T, -X, -T]]
    wanted = [np.trace(path(links, loop), axis1=-2, axis2=-1).sum() for loop in loops]
    expect("traces of loops", gauge.loopTrace(loops), wanted, 1e-13)
    around = [[[mu, nu, mu + 4, nu + 4], [nu, mu, nu + 4, mu + 4]] for mu, nu in ((0, 1), (1, 2), (2, 3), (3, 0))]
    found = gauge.loop(around, [0.5, -2.0]).lexico()
    wanted = np.array([0.5 * path(links, one) - 2.0 * path(links, two) for one, two in around])
    expect("sums of loops", found, wanted, 1e-14)


def traceless(m):
    a = (m - dagger(m)) / 2
    return a - np.trace(a, axis1=-2, axis2=-1)[..., None, None] / 3 * np.eye(3)


def exponential(a):
    value, vectors = np.linalg.eigh(-1j * a)
    return (vectors * np.exp(1j * value)[..., None, :]) @ dagger(vectors)


def staples(links, mu, directions):
    return sum(path(links, [nu, mu, (nu + 4) % 8]) for nu in [d for n in directions if n != mu for d in (n, n + 4)])


def polar(v):
    u, _, w = np.linalg.svd(v)
    p = u @ w
    return p * np.exp(-1j * np.angle(np.linalg.det(p)) / 3)[..., None, None]


def stout(links, rho, directions):
    out = links.copy()
    for mu in directions:
        out[mu] = exponential(rho * traceless(staples(links, mu, directions) @ dagger(links[mu]))) @ links[mu]
    return out


def ape(links, alpha, directions):
    out = links.copy()
    for mu in directions:
        mean = staples(links, mu, directions) / (2 * (len(directions) - 1))
        out[mu] = polar((1 - alpha) * links[mu] + alpha * mean)
    return out


def hyp(links, alpha):
    """Returns links after a step of HYP smearing in four dimensions."""

    def path_of(steps):
        product, place = np.eye(3), [0, 0, 0, 0]

        def shifted(field):
            for mu, n in enumerate(place):
                field = np.roll(field, -n, 3 - mu)
            return field

        for field, mu, forward in steps:
            if forward:
                product = product @ shifted(field)
                place[mu] += 1
            else:
                place[mu] -= 1
                product = product @ dagger(shifted(field))
        return product

    def level(mu, excluded, share, inner):
        axes = [nu for nu in range(4) if nu != mu and nu not in excluded]
        total = 0
        for nu in axes:
            side, middle = inner(nu, excluded | {mu}), inner(mu, excluded | {nu})
            total = total + path_of([(side, nu, True), (middle, mu, True), (side, nu, False)])
            total = total + path_of([(side, nu, False), (middle, mu, True), (side, nu, True)])
        return polar((1 - share) * links[mu] + share / (2 * len(axes)) * total)

    def first(mu, excluded):
        return level(mu, excluded, alpha[2], lambda nu, _: links[nu])

    def second(mu, excluded):
        return level(mu, excluded, alpha[1], lambda nu, out: first(nu, out))

    return np.array([level(mu, frozenset(), alpha[0], lambda nu, out: second(nu, out)) for mu in range(4)])


def flow(links, step):
    """Returns links after a step of the Wilson flow by Lüscher's third-order scheme."""

    def force(u):
        return np.array([traceless(staples(u, mu, range(4)) @ dagger(u[mu])) for mu in range(4)])

    z0 = force(links)
    w1 = exponential(step / 4 * z0) @ links
    z1 = force(w1)
    w2 = exponential(step * (8 / 9 * z1 - 17 / 36 * z0)) @ w1
    z2 = force(w2)
    return exponential(step * (3 / 4 * z2 - 8 / 9 * z1 + 17 / 36 * z0)) @ w2


def test_smearing():
    links = near_unity(5)
    smeared = {
        "stout smearing in space": (lambda g: g.stoutSmear(2, 0.11, 3), [lambda u: stout(u, 0.11, range(3))] * 2),
        "stout smearing": (lambda g: g.stoutSmear(1, 0.12, 4), [lambda u: stout(u, 0.12, range(4))]),
        "APE smearing in space": (lambda g: g.apeSmear(2, 0.5, 3), [lambda u: ape(u, 0.5, range(3))] * 2),
        "APE smearing": (lambda g: g.apeSmear(1, 0.6, 4), [lambda u: ape(u, 0.6, range(4))]),
        "HYP smearing": (lambda g: g.hypSmear(1, 0.75, 0.6, 0.3, 4), [lambda u: hyp(u, (0.75, 0.6, 0.3))]),
        "Wilson flow": (lambda g: g.wilsonFlow(3, 0.02), [lambda u: flow(u, 0.02)] * 3),
    }
    for name, (call, steps) in smeared.items():
        gauge, wanted = gauge_of(links), links
        call(gauge)
        for step in steps:
            wanted = step(wanted)
        expect(name, gauge.lexico(), wanted, 1e-13)
    gauge = gauge_of(links)
    generator = np.random.default_rng(6)
    noise = generator.normal(size=links.shape) + 1j * generator.normal(size=links.shape)
    gauge = gauge_of(links + 0.05 * noise)
    gauge.projectSU3(1e-15)
    expect("projection to SU(3)", gauge.lexico(), polar(links + 0.05 * noise), 1e-13)


def test_gauge_fixing():
    for directions, name in ((4, "Landau"), (3, "Coulomb")):
        gauge = gauge_of(near_unity(7))
        before = gauge.plaquette()
        gauge.fixingOVR(directions, 10000, 1000, 1.6, 1e-16, 1, 1)
        fixed = gauge.lexico()
        divergence = sum(traceless(fixed[mu] - behind(fixed[mu], mu)) for mu in range(directions))
        theta = 4 * (np.abs(divergence) ** 2).sum() / (3 * np.prod(SHAPE))
        print(f"{name} gauge: theta {theta:.1e}")
        assert theta < 1.01e-16
        # Hundreds of sweeps round the links, and the means are small.
        expect(f"plaquettes in {name} gauge", gauge.plaquette(), before, 1e-12)


def test_wilson_parts():
    links, psi, mass = near_unity(8), spinor(9), 0.2
    gauge = gauge_of(links, ANTIPERIODIC)
    kappa = 0.5 / (4 + mass)
    dirac = core.getWilson(ANTIPERIODIC, mass, 1e-12, 1000)
    with dirac.useGauge(gauge):
        # D = 2 (4 + m) ψ − 2 M ψ
        hops = 2 * (4 + mass) * psi - 2 * wilson(links, mass, psi)
        expect("hops of Wilson quarks", dirac.dslash(fermion_of(psi, ANTIPERIODIC)).lexico(), hops, 1e-14)
        expect("Wilson's matrix", dirac.mat(fermion_of(psi, ANTIPERIODIC)).lexico(), wilson(links, mass, psi), 1e-14)
        found = dirac.invertPC(fermion_of(psi, ANTIPERIODIC)).lexico()
        expect("solve with an odd complement", wilson(links, mass, found), psi, 1.1e-12)
        several = MultiLatticeFermion(ANTIPERIODIC, 2)
        for n in range(2):
            several[n] = fermion_of(spinor(20 + n), ANTIPERIODIC)
        solved = dirac.invertMultiSrc(several)
        for n in range(2):
            expect(f"right-hand side {n}", wilson(links, mass, solved[n].lexico()), spinor(20 + n), 1.1e-12)
    assert abs(dirac.invert_param.kappa - kappa) < 1e-15


def test_complements():
    """Products and solves with all kinds of even-odd complements, against products with the parts."""
    links, mass, csw = near_unity(10), 0.25, 1.1
    gauge = gauge_of(links, ANTIPERIODIC)
    for has_clover in (False, True):
        if has_clover:
            dirac = core.getClover(ANTIPERIODIC, mass, 1e-12, 1000, 1.0, csw, csw)
        else:
            dirac = core.getWilson(ANTIPERIODIC, mass, 1e-12, 1000)
        param, kappa = dirac.invert_param, 0.5 / (4 + mass)
        with dirac.useGauge(gauge):

            def term(psi, parity, inverse):
                if not has_clover:
                    return psi
                out = np.zeros_like(psi)
                quda.cloverQuda(pointer(out), pointer(psi), param, parity, inverse)
                return out

            def hops(psi, parity, adjoint):
                param.dagger = enums.QudaDagType(adjoint)
                out = np.zeros_like(psi)
                quda.dslashQuda(pointer(out), pointer(psi), param, parity)
                param.dagger = enums.QudaDagType.QUDA_DAG_NO
                # QUDA's hops include the inverse of the clover term.
                return term(out, parity, 0)

            def complement(psi, parity, asymmetric, adjoint):
                if not asymmetric and adjoint:
                    psi = term(psi, parity, 1)
                back = hops(term(hops(psi, 1 - parity, adjoint), 1 - parity, 1), parity, adjoint)
                out = term(psi, parity, 0) - kappa**2 * back
                return term(out, parity, 1) if not asymmetric and not adjoint else out

            generator = np.random.default_rng(11)
            half = (np.prod(SHAPE) // 2, 4, 3)
            psi = generator.normal(size=half) + 1j * generator.normal(size=half)
            if has_clover:
                expect("inverse of the clover term", term(term(psi, 1, 0), 1, 1), psi, 1e-14)
            normalisation = enums.QudaMassNormalization
            for kind, (parity, asymmetric) in enumerate(((0, False), (1, False), (0, True), (1, True))):
                param.matpc_type = enums.QudaMatPCType(kind)
                for norm, power in (
                    (normalisation.QUDA_KAPPA_NORMALIZATION, 0),
                    (normalisation.QUDA_MASS_NORMALIZATION, 2),
                    (normalisation.QUDA_ASYMMETRIC_MASS_NORMALIZATION, 1),
                ):
                    param.mass_normalization, factor = norm, (2 * kappa) ** -power
                    name = f"clover {has_clover}, kind {kind}, normalisation {int(norm)}"
                    param.solution_type = enums.QudaSolutionType.QUDA_MATPC_SOLUTION
                    for adjoint in (0, 1):
                        param.dagger = enums.QudaDagType(adjoint)
                        out = np.zeros_like(psi)
                        quda.MatQuda(pointer(out), pointer(psi), param)
                        wanted = factor * complement(psi, parity, asymmetric, adjoint)
                        param.dagger = enums.QudaDagType(adjoint)
                        expect(f"product, {name}, adjoint {adjoint}", out, wanted, 1e-14)
                        quda.invertQuda(pointer(out), pointer(psi), param)
                        again = factor * complement(out, parity, asymmetric, adjoint)
                        expect(f"solve, {name}, adjoint {adjoint}", again, psi, 1.1e-12)
                    param.dagger = enums.QudaDagType.QUDA_DAG_NO
                    param.solution_type = enums.QudaSolutionType.QUDA_MATPCDAG_MATPC_SOLUTION
                    quda.MatDagMatQuda(pointer(out), pointer(psi), param)
                    square = complement(complement(psi, parity, asymmetric, 0), parity, asymmetric, 1)
                    expect(f"square, {name}", out, factor**2 * square, 1e-14)
                    quda.invertQuda(pointer(out), pointer(psi), param)
                    again = complement(complement(out, parity, asymmetric, 0), parity, asymmetric, 1)
                    expect(f"solve with the square, {name}", factor**2 * again, psi, 1.1e-12)


def hermitian_blocks(seed, diagonal):
    """Returns two Hermitian 6×6 matrices for each site, near a number."""
    generator = np.random.default_rng(seed)
    shape = (*SHAPE, 2, 6, 6)
    h = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    return diagonal * (np.eye(6) + 0.05 * (h + dagger(h)))


def packed(blocks):
    """Returns blocks as applications keep them: the diagonal, and then the columns below it."""
    pairs = [(row, column) for column in range(6) for row in range(column + 1, 6)]
    below = np.stack([blocks[..., row, column] for row, column in pairs], -1)
    reals = np.stack([below.real, below.imag], -1).reshape(*SHAPE, 2, 30)
    diagonal = np.einsum("...aa->...a", blocks).real
    return np.ascontiguousarray(core.evenodd(np.concatenate([diagonal, reals], -1), [0, 1, 2, 3]))


def unpacked(array):
    """Returns the blocks of an array that the library has written."""
    numbers = np.empty((*SHAPE, 2, 36))
    half = array.reshape(2, *SHAPE[:3], SHAPE[3] // 2, 2, 36)
    t, z, y, x = coordinates()
    numbers[t, z, y, x] = half[(t + z + y + x) % 2, t, z, y, x // 2]
    blocks = np.zeros((*SHAPE, 2, 6, 6), dtype=complex)
    for k in range(6):
        blocks[..., k, k] = numbers[..., k]
    for n, (row, column) in enumerate((r, c) for c in range(6) for r in range(c + 1, 6)):
        blocks[..., row, column] = numbers[..., 6 + 2 * n] + 1j * numbers[..., 7 + 2 * n]
        blocks[..., column, row] = blocks[..., row, column].conj()
    return blocks


def times_blocks(blocks, psi):
    return np.einsum("tzyxsab,tzyxsb->tzyxsa", blocks, psi.reshape(*SHAPE, 2, 6)).reshape(psi.shape)


def check_operator(name, param, links, kappa, term):
    """Compares products and solves with M = T − κ D, where T are blocks for each site, in all forms of systems."""
    inverses = np.linalg.inv(term)
    odd = parity_of_sites()[..., None, None]
    kinds, norms = enums.QudaSolutionType, enums.QudaMassNormalization

    def hops(psi, adjoint):
        sign = np.array([1, 1, -1, -1] if adjoint else [1, 1, 1, 1])[:, None]
        return sign * (8 * (sign * psi) - 2 * wilson(links, 0.0, sign * psi))

    def diagonal(psi, adjoint, inverse=False):
        blocks = inverses if inverse else term
        return times_blocks(dagger(blocks) if adjoint else blocks, psi)

    def matrix(psi, adjoint):
        return diagonal(psi, adjoint) - kappa * hops(psi, adjoint)

    def complement(psi, asymmetric, adjoint):
        psi = psi if asymmetric or not adjoint else diagonal(psi, True, True)
        out = diagonal(psi, adjoint) - kappa**2 * hops(diagonal(hops(psi, adjoint), adjoint, True), adjoint)
        return diagonal(out, False, True) if not asymmetric and not adjoint else out

    def solved(b, solution, call, many=None):
        param.solution_type = solution
        out = np.zeros((many, *b.shape) if many else b.shape, dtype=complex)
        call(out.reshape(many, -1) if many else pointer(out), pointer(b), param)
        return out

    psi = spinor(50)
    full = np.ascontiguousarray(core.evenodd(psi, [0, 1, 2, 3]))
    lexico = lambda array: core.lexico(array, [0, 1, 2, 3, 4])
    for norm, factor in ((norms.QUDA_KAPPA_NORMALIZATION, 1), (norms.QUDA_MASS_NORMALIZATION, 0.5 / kappa)):
        param.mass_normalization = norm
        for adjoint in (0, 1):
            param.dagger = enums.QudaDagType(adjoint)
            out = lexico(solved(full, kinds.QUDA_MAT_SOLUTION, quda.MatQuda))
            expect(f"{name}, product, adjoint {adjoint}", out, factor * matrix(psi, adjoint), 1e-14)
            out = lexico(solved(full, kinds.QUDA_MAT_SOLUTION, quda.invertQuda))
            expect(f"{name}, solve, adjoint {adjoint}", factor * matrix(out, adjoint), psi, 1.1e-12)
        param.dagger = enums.QudaDagType.QUDA_DAG_NO
        out = lexico(solved(full, kinds.QUDA_MATDAG_MAT_SOLUTION, quda.invertQuda))
        expect(f"{name}, solve with the square", factor**2 * matrix(matrix(out, 0), 1), psi, 1.1e-12)
    for kind, (parity, asymmetric) in enumerate(((0, False), (1, False), (0, True), (1, True))):
        param.matpc_type = enums.QudaMatPCType(kind)
        param.mass_normalization = norms.QUDA_KAPPA_NORMALIZATION
        half, here = np.ascontiguousarray(full[parity]), odd == parity

        def lexico_of(array, parity=parity):
            both = np.zeros_like(full)
            both[parity] = array
            return lexico(both)

        for adjoint in (0, 1):
            param.dagger = enums.QudaDagType(adjoint)
            out = lexico_of(solved(half, kinds.QUDA_MATPC_SOLUTION, quda.MatQuda))
            expect(f"{name}, complement {kind}, {adjoint}", out, complement(here * psi, asymmetric, adjoint), 1e-14)
            out = lexico_of(solved(half, kinds.QUDA_MATPC_SOLUTION, quda.invertQuda))
            again = complement(out, asymmetric, adjoint)
            expect(f"{name}, solve with complement {kind}, {adjoint}", again, here * psi, 1.1e-12)
        param.dagger = enums.QudaDagType.QUDA_DAG_NO
        out = lexico_of(solved(half, kinds.QUDA_MATPCDAG_MATPC_SOLUTION, quda.invertQuda))
        square = lambda chi, of=asymmetric: complement(complement(chi, of, 0), of, 1)
        expect(f"{name}, square of complement {kind}", square(out), here * psi, 1.1e-12)
        offsets = [0.0, 0.03, 0.4]
        param.num_offset, param.offset, param.tol_offset = 3, offsets + [0.0] * 29, [1e-12] * 32
        several = solved(half, kinds.QUDA_MATPCDAG_MATPC_SOLUTION, quda.invertMultiShiftQuda, 3)
        for offset, array in zip(offsets, several):
            out = lexico_of(array)
            # Residuals of multi-shift CG drift from the true ones by some units in the last place for each iteration.
            expect(f"{name}, complement {kind}, offset {offset}", square(out) + offset * out, here * psi, 1e-11)


def test_terms_of_sites():
    """Compares twisted masses, and clover terms that the application gives, with the matrices of the sites."""
    links, mass, kinds = near_unity(51), 0.3, enums.QudaDslashType
    gamma5 = np.array([1.0, -1.0])[:, None, None] * np.eye(6)
    for kappa, diagonal in ((0.12, 1.0), (0.5, 4.3)):
        dirac = core.getClover(ANTIPERIODIC, mass, 1e-12, 1000, 1.0, 1.0, 1.0)
        param, blocks = dirac.invert_param, hermitian_blocks(52, diagonal)
        with dirac.useGauge(gauge_of(links, ANTIPERIODIC)):
            param.kappa, param.compute_clover = kappa, 0
            param.clover_order = enums.QudaCloverFieldOrder.QUDA_PACKED_CLOVER_ORDER
            param.clover_cpu_prec = enums.QudaPrecision.QUDA_DOUBLE_PRECISION
            quda.loadCloverQuda(pointer(packed(blocks)), pointer(packed(np.linalg.inv(blocks))), param)
            check_operator(f"clover term of the application, κ = {kappa}", param, links, kappa, blocks)
            if diagonal == 1.0:
                # A twisted mass without a clover term leaves the loaded one alone.
                param.dslash_type, param.mu = kinds.QUDA_TWISTED_MASS_DSLASH, 0.2
                param.twist_flavor = enums.QudaTwistFlavorType.QUDA_TWIST_SINGLET
                plain = np.broadcast_to(np.eye(6), (*SHAPE, 2, 6, 6)) + 2j * kappa * param.mu * gamma5
                check_operator("twisted mass beside a clover term", param, links, kappa, plain)
    mu, kappa = 0.17, 0.5 / (4 + mass)
    for has_clover in (False, True):
        dirac = core.getClover(ANTIPERIODIC, mass, 1e-12, 1000, 1.0, 1.2, 1.2)
        param = dirac.invert_param
        with dirac.useGauge(gauge_of(links, ANTIPERIODIC)):
            blocks = np.broadcast_to(np.eye(6), (*SHAPE, 2, 6, 6))
            if has_clover:
                arrays = [np.zeros((2, np.prod(SHAPE) // 2, 2, 36)) for _ in range(2)]
                param.return_clover = param.return_clover_inverse = 1
                param.clover_order = enums.QudaCloverFieldOrder.QUDA_PACKED_CLOVER_ORDER
                param.clover_cpu_prec = enums.QudaPrecision.QUDA_DOUBLE_PRECISION
                quda.loadCloverQuda(pointer(arrays[0]), pointer(arrays[1]), param)
                param.return_clover = param.return_clover_inverse = 0
                blocks = unpacked(arrays[0])
                expect("inverse of the clover term", unpacked(arrays[1]), np.linalg.inv(blocks), 1e-14)
            param.mu, param.twist_flavor = mu, enums.QudaTwistFlavorType.QUDA_TWIST_SINGLET
            param.dslash_type = kinds.QUDA_TWISTED_CLOVER_DSLASH if has_clover else kinds.QUDA_TWISTED_MASS_DSLASH
            term = blocks + 2j * kappa * mu * gamma5
            check_operator(f"twisted mass, clover {has_clover}", param, links, kappa, term)
            check_basis_and_residual(param)


def check_basis_and_residual(param):
    """Compares a product in the chiral basis with the one in the usual basis, and solves to an absolute residual."""
    spinors = np.ascontiguousarray(core.evenodd(spinor(53), [0, 1, 2, 3]))
    chiral = lambda psi: np.stack([-psi[..., 3, :], psi[..., 2, :], psi[..., 1, :], -psi[..., 0, :]], -2)
    param.solution_type, param.dagger = enums.QudaSolutionType.QUDA_MAT_SOLUTION, enums.QudaDagType.QUDA_DAG_NO
    out, other = np.zeros_like(spinors), np.zeros_like(spinors)
    quda.MatQuda(pointer(out), pointer(spinors), param)
    param.gamma_basis = enums.QudaGammaBasis.QUDA_CHIRAL_GAMMA_BASIS
    given = np.ascontiguousarray(chiral(spinors))
    quda.MatQuda(pointer(other), pointer(given), param)
    expect("product in the chiral basis", other, chiral(out), 1e-15)
    param.residual_type = enums.QudaResidualType.QUDA_L2_ABSOLUTE_RESIDUAL
    param.tol = 1e-8
    quda.invertQuda(pointer(other), pointer(given), param)
    again = np.zeros_like(spinors)
    quda.MatQuda(pointer(again), pointer(other), param)
    residual = np.linalg.norm(again - given)
    assert 1e-10 < residual < 1.1e-8, f"absolute residual: {residual:.1e}"


def test_multigrid():
    links, psi = near_unity(40, 0.1), spinor(41)
    gauge = gauge_of(links, ANTIPERIODIC)
    dirac = core.getWilson(ANTIPERIODIC, 0.05, 1e-11, 200, [[2, 2, 3, 4]])
    dirac.multigrid.param.n_vec = [8] * enums.QUDA_MAX_MG_LEVEL
    with dirac.useGauge(gauge):
        found = dirac.invert(fermion_of(psi, ANTIPERIODIC)).lexico()
        expect("solve by multigrid", wilson(links, 0.05, found), psi, 1.1e-11)
        iterations = dirac.invert_param.iter
    assert 1 < iterations < 30, f"{iterations} iterations of multigrid"


def test_staggered():
    links, mass = near_unity(12), 0.15
    gauge = gauge_of(links, ANTIPERIODIC)
    kinds = enums.QudaStaggeredPhase
    for phases, kind in (("milc", kinds.QUDA_STAGGERED_PHASE_MILC), ("chroma", kinds.QUDA_STAGGERED_PHASE_CHROMA)):
        dirac = core.getStaggered(ANTIPERIODIC, mass, 1e-12, 2000)
        dirac.gauge_param.staggered_phase_type = kind
        signed, psi = with_sign(links, True, phases), vector(13)
        with dirac.useGauge(gauge):
            check_staggered(f"{phases} phases", dirac, mass, lambda chi, u=signed: staggered_hops(u, chi), psi)


def check_staggered(name, dirac, mass, hops, psi):
    """Compares the calls of a staggered operator 2m − D with the hops D."""

    def matrix(chi):
        return 2 * mass * chi - hops(chi)

    def adjoint(chi):
        return 2 * mass * chi + hops(chi)

    param, chi = dirac.invert_param, staggered_of(psi, ANTIPERIODIC)
    expect(f"hops, {name}", dirac.dslash(chi).lexico(), hops(psi), 1e-14)
    expect(f"matrix, {name}", dirac.mat(chi).lexico(), matrix(psi), 1e-14)
    expect(f"square, {name}", dirac.matDagMat(chi).lexico(), adjoint(matrix(psi)), 1e-14)
    expect(f"solve, {name}", matrix(dirac.invert(chi).lexico()), psi, 1.1e-12)
    param.dagger = enums.QudaDagType.QUDA_DAG_YES
    expect(f"adjoint hops, {name}", dirac.dslash(chi).lexico(), -hops(psi), 1e-14)
    expect(f"adjoint matrix, {name}", dirac.mat(chi).lexico(), adjoint(psi), 1e-14)
    expect(f"adjoint solve, {name}", adjoint(dirac.invert(chi).lexico()), psi, 1.1e-12)
    param.dagger = enums.QudaDagType.QUDA_DAG_NO
    # The odd half by the complement, from which the even half follows: the tolerance is divided by the mass.
    expect(f"odd complement, {name}", matrix(dirac.invertPC(chi).lexico()), psi, 1.1e-12 / mass**2)
    several = MultiLatticeStaggeredFermion(ANTIPERIODIC, 3)
    for n in range(3):
        several[n] = staggered_of(vector(30 + n), ANTIPERIODIC)
    solved = dirac.invertMultiSrc(several)
    for n in range(3):
        expect(f"right-hand side {n}, {name}", matrix(solved[n].lexico()), vector(30 + n), 1.1e-12)
    # Several offsets on even sites: (4m² − D² + σ) x = b, where 4m² is one of the offsets.
    even = psi * (1 - parity_of_sites())[..., None]
    offsets, residues = [0.09, 0.3, 2.0], [0.5, -1.0, 0.25]
    solutions = MultiLatticeStaggeredFermion(ANTIPERIODIC, 3)
    source = staggered_of(even, ANTIPERIODIC)
    param.solution_type = enums.QudaSolutionType.QUDA_MATPC_SOLUTION
    param.num_offset, rest = 3, [0.0] * (enums.QUDA_MAX_MULTI_SHIFT - 3)
    param.offset, param.residue = offsets + rest, residues + rest
    param.tol_offset, param.compute_action = [1e-11] * 3 + rest, 1
    quda.invertMultiShiftQuda(solutions.even_ptrs, source.even_ptr, param)
    action = 0
    for n, (offset, residue) in enumerate(zip(offsets, residues)):
        x = solutions[n].lexico() * (1 - parity_of_sites())[..., None]
        expect(f"offset {offset}, {name}", offset * x - hops(hops(x)), even, 1.1e-11)
        action += residue * np.vdot(even, x).real
    expect(f"action of several offsets, {name}", param.action[0], action, 1e-11)
    param.compute_action, param.solution_type = 0, enums.QudaSolutionType.QUDA_MAT_SOLUTION


def test_improved_staggered():
    mass = 0.2
    dirac = core.getHISQ(ANTIPERIODIC, mass, 1e-12, 2000, 0.0)
    # Links near 1, because the projection to U(3) is not stable on wild ones.
    gauge = gauge_of(near_unity(14, 0.1), ANTIPERIODIC)
    thin = dirac.computeULink(gauge)
    unitary = dirac.computeWLink(thin)
    w = unitary.lexico()
    expect("links of the first level are unitary", w @ dagger(w), np.broadcast_to(np.eye(3), w.shape), 1e-13)
    fat, long = dirac.computeXLink(unitary)
    wanted = np.array([-path(w, [mu, mu, mu]) / 24 for mu in range(4)])
    expect("long links", long.lexico(), wanted, 1e-14)
    f, l = fat.lexico(), long.lexico()
    with dirac.useGauge(gauge):
        check_staggered(
            "HISQ", dirac, mass, lambda chi: staggered_hops(f, chi) + staggered_hops(l, chi, 3), vector(15)
        )


def momenta_of(mom):
    """Returns anti-Hermitian matrices of momenta in QUDA's order."""
    p = mom.lexico()
    out = np.zeros((*p.shape[:-1], 3, 3), complex)
    for n, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        out[..., i, j] = p[..., 2 * n] + 1j * p[..., 2 * n + 1]
        out[..., j, i] = -out[..., i, j].conj()
    for i in range(3):
        out[..., i, i] = 1j * p[..., 6 + i]
    return out


def test_molecular_dynamics():
    links = near_unity(16, 0.2)
    gauge = gauge_of(links, ANTIPERIODIC)
    loops = {
        "plaquettes and rectangles": symanzik_loops(),
        # Loops without a kernel of their own.
        "bent rectangles": LoopParam(
            [[mu, mu, nu, (mu + 4) % 8, (mu + 4) % 8, (nu + 4) % 8] for mu in range(4) for nu in range(4) if nu != mu]
            + [[mu, nu, rho, (mu + 4) % 8, (nu + 4) % 8, (rho + 4) % 8] for mu, nu, rho in permutations(range(4), 3)],
            [0.1] * 12 + [0.01] * 24,
        ),
    }
    for name, param in loops.items():
        action = GaugeAction(ANTIPERIODIC, param, 5.5)
        hmc = HMC(ANTIPERIODIC, [action], O2Nf1Ng0V(1))
        hmc.initialize(1, gauge)
        hmc.gaussMom()
        before = LatticeMom(ANTIPERIODIC)
        hmc.saveMom(before)
        p = momenta_of(before)
        energy = 0.5 * (np.abs(p) ** 2).sum() - 4 * p[..., 0, 0].size
        expect(f"kinetic energy, {name}", hmc.momAction(), energy, 1e-11)
        # The mean of |P|² is 8 for each link, with the variance 16.
        spread = (0.5 * (np.abs(p) ** 2).sum() - 4 * p[..., 0, 0].size) / np.sqrt(4 * p[..., 0, 0].size)
        assert abs(spread) < 5, f"momenta deviate by {spread} standard deviations"
        traces = [np.trace(path(links, loop), axis1=-2, axis2=-1).real.sum() for loop in param.path]
        wanted = -5.5 / 3 * np.dot(param.coeff, traces)
        expect(f"action, {name}", hmc.gaugeAction(), wanted, 1e-13)
        hmc.updateMom(0.07)
        after = LatticeMom(ANTIPERIODIC)
        hmc.saveMom(after)
        force = np.zeros_like(p)
        for loop, coefficient in zip(param.path, param.coeff):
            for n, step in enumerate(loop):
                turned = loop[n:] + loop[:n]
                if step < 4:
                    force[step] += coefficient * path(links, turned)
                else:
                    back = [(s + 4) % 8 for s in reversed(loop)]
                    m = len(loop) - 1 - n
                    force[step - 4] += coefficient * path(links, back[m:] + back[:m])
        expect(f"force, {name}", momenta_of(after), p - 0.07 * 5.5 / 3 * traceless(force), 1e-13)
        hmc.updateGauge(0.1)
        moved = gauge.copy()
        hmc.saveGauge(moved)
        expect(f"links after a step, {name}", moved.lexico(), exponential(0.1 * momenta_of(after)) @ links, 1e-13)


def symanzik_loops():
    plaquettes = [[mu, nu, mu + 4, nu + 4] for nu in range(4) for mu in range(nu)]
    rectangles = [[a, a, b, a + 4, a + 4, b + 4] for a in range(4) for b in range(4) if b != a]
    return LoopParam(plaquettes + rectangles, [5 / 3] * 6 + [-1 / 12] * 12)


def test_trajectories():
    """Trajectories of a quenched chain: reversible, and with a mean of exp(−ΔH) of 1."""
    hmc = HMC(ANTIPERIODIC, [GaugeAction(ANTIPERIODIC, symanzik_loops(), 4.3)], O4Nf5Ng0V(3))
    gauge = gauge_of(near_unity(17, 0.1), ANTIPERIODIC)
    hmc.initialize(3, gauge)
    weights = []
    for n in range(30):
        hmc.gaussMom()
        before = hmc.momAction() + hmc.gaugeAction()
        hmc.integrate(0.7, 1e-15)
        change = hmc.momAction() + hmc.gaugeAction() - before
        # Links of the start are not those of equilibrium, so every proposal is accepted at first.
        if n < 10:
            hmc.saveGauge(gauge)
            continue
        weights.append(np.exp(-change))
        if hmc.accept(change):
            hmc.saveGauge(gauge)
        else:
            hmc.loadGauge(gauge)
    mean, error = np.mean(weights), np.std(weights) / np.sqrt(len(weights) - 1)
    print(f"mean of exp(-dH) over {len(weights)} trajectories: {mean:.3f} ± {error:.3f}")
    assert abs(mean - 1) < 4 * error
    assert error < 0.2
    hmc.gaussMom()
    hmc.loadGauge(gauge)
    hmc.integrate(0.7)
    there, mom = gauge.copy(), LatticeMom(ANTIPERIODIC)
    hmc.saveGauge(there)
    assert (there - gauge).norm2() > 0.1 * gauge.norm2(), "the trajectory moves the links"
    hmc.saveMom(mom)
    mom *= -1
    hmc.loadMom(mom)
    hmc.integrate(0.7)
    back = gauge.copy()
    hmc.saveGauge(back)
    # Some hundred steps, each with the rounding errors of double precision.
    expect("links after a trajectory and back", back.lexico(), gauge.lexico(), 1e-11)


def check_force(name, monomial, gauge, tolerance):
    """Compares the force of a monomial with the derivative of its action along random momenta."""
    hmc = HMC(ANTIPERIODIC, [monomial], O2Nf1Ng0V(1))
    hmc.initialize(5, gauge)
    hmc.gaussMom()
    mom = LatticeMom(ANTIPERIODIC)
    hmc.saveMom(mom)
    hmc.samplePhi()
    hmc.loadMom(LatticeMom(ANTIPERIODIC))
    hmc.updateMom(1.0, gauge=False)
    force = LatticeMom(ANTIPERIODIC)
    hmc.saveMom(force)
    along = (momenta_of(mom).conj() * momenta_of(force)).real.sum()
    hmc.loadMom(mom)
    step, values = 1e-3, []
    # Central differences of fourth order.
    for move in (step, step, -3 * step, -step):
        hmc.updateGauge(move)
        for fused in hmc.fermion_monomials:
            # PyQUDA 0.10.54 loads new fat links only when the Naik correction changes.
            if hasattr(fused, "current_naik_epsilon"):
                fused.current_naik_epsilon = -1.0
        values.append(hmc.fermionAction())
    one, two, minus_one, minus_two = values
    derivative = (8 * (one - minus_one) - (two - minus_two)) / (12 * step)
    expect(f"force, {name}", along, -derivative, tolerance)


def test_forces_of_quarks():
    rational = RationalParam(
        0.0, [0.4, 0.7, 0.2], [0.3, 1.1, 5.0], 1.0, [0.2, 0.1], [0.5, 2.0], 1.0, [-0.1, -0.2], [0.4, 3.0]
    )
    gauge = gauge_of(near_unity(18, 0.1), ANTIPERIODIC)
    # Actions to 1e-12 and steps of 1e-3: some 1e-9 of the derivative, beside the fifth derivative.
    check_force("HISQ", HISQAction(ANTIPERIODIC, rational, 1e-13, 2000), gauge, 3e-8)
    check_force("HISQ with a Naik correction", HISQAction(ANTIPERIODIC, rational, 1e-13, 2000, -0.2), gauge, 3e-8)
    check_force("one clover quark", CloverWilsonAction(ANTIPERIODIC, rational, 0.3, 1, 1e-13, 2000, 1.3), gauge, 3e-8)
    two = RationalParam()
    check_force("two clover quarks", CloverWilsonAction(ANTIPERIODIC, two, 0.3, 2, 1e-13, 2000, 1.3), gauge, 3e-8)


def hisq_pion(refdata):
    """Compares the pion of HISQ quarks with that of MILC, which has six digits."""
    info = core.LatticeInfo([4, 4, 4, 8], 1, 1.0)
    answers = json.loads((refdata / "answers/milc_hisq_pion_point_4448.json").read_text())
    dirac = core.getHISQ(info, 0.05, 1e-11, 2000, 0.0)
    with dirac.useGauge(io.readMILCGauge(str(refdata / "configs/lat.sample.l4448"))):
        propagator = core.invertStaggered(dirac, "point", [0, 0, 0, 0])
    pion = (np.abs(propagator.lexico()) ** 2).sum(axis=(1, 2, 3, 4, 5)) * 0.000244141
    for correlator in answers["correlators"]:
        if correlator["quark_mass"] == correlator["antiquark_mass"] == 0.05:
            difference = np.abs(pion / np.array(correlator["data"])[:, 0] - 1).max()
            print(f"HISQ pion: largest difference from MILC {difference:.1e}")
            assert difference < 1e-6


def pointer(array):
    return array.reshape(-1)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            DISTANCES.clear()
            test()
            print(f"{name}: {len(DISTANCES)} comparisons, largest difference {max(DISTANCES):.1e}", flush=True)
    if len(sys.argv) > 1:
        hisq_pion(Path(sys.argv[1]))
