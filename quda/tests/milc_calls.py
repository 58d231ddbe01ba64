"""Calls the layer for MILC of Ferrite's library through ctypes, as MILC does, and compares the results with plain sums in NumPy.

Fields are on 4·6·4·8 sites, in single and in double precision. The structures are defined here as a program sees them that was compiled
against quda_milc_interface.h. Every function `test_…` is one group of calls, and the program prints its largest difference for both
precisions. A failed comparison names itself; the program goes on, and ends with the code 1.

Usage: milc_calls.py LIBRARY
"""

import ctypes
import itertools
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, Structure, byref, c_double, c_int, c_size_t, c_uint, c_void_p

# Sums here are too short for several threads, which would be in the way of the library's.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

LATTICE = [4, 6, 4, 8]
SHAPE = LATTICE[::-1]
VOLUME = int(np.prod(LATTICE))
T, Z, Y, X = np.indices(SHAPE)
ODD = (X + Y + Z + T) % 2
# MILC numbers the even sites first, and x runs fastest.
ORDER = np.argsort(ODD.ravel(), kind="stable")
HALF = VOLUME // 2

SINGLE, DOUBLE = 1, 2
PRECISIONS = {SINGLE: "single", DOUBLE: "double"}
REAL = {SINGLE: np.float32, DOUBLE: np.float64}
COMPLEX = {SINGLE: np.complex64, DOUBLE: np.complex128}
# Links and fields are rounded to the precision before NumPy computes with them in double precision. The library also computes in double
# precision and rounds its results once, by at most 2⁻²⁴ = 6·10⁻⁸ of a number in single precision. In double precision, results are sums
# of some ten to a thousand products, each with a rounding of 10⁻¹⁶.
ROUNDING = {SINGLE: 6e-8, DOUBLE: 1e-14}
EVEN_PARITY, ODD_PARITY = 0, 1


class Site(Structure):
    """QudaMILCSiteArg_t: where links and momenta are."""

    _fields_ = [
        ("site", c_void_p),
        ("link", c_void_p),
        ("link_offset", c_size_t),
        ("mom", c_void_p),
        ("mom_offset", c_size_t),
        ("size", c_size_t),
    ]


class InvertArgs(Structure):
    """QudaInvertArgs_t."""

    _fields_ = [
        ("max_iter", c_int),
        ("evenodd", c_int),
        ("mixed_precision", c_int),
        ("boundary_phase", c_double * 4),
        ("make_resident_solution", c_int),
        ("use_resident_solution", c_int),
        ("solver_type", c_int),
        ("tadpole", c_double),
        ("naik_epsilon", c_double),
    ]


class Layout(Structure):
    """QudaLayout_t."""

    _fields_ = [("latsize", POINTER(c_int)), ("machsize", POINTER(c_int)), ("device", c_int)]


class InitArgs(Structure):
    """QudaInitArgs_t."""

    _fields_ = [("verbosity", c_int), ("layout", Layout)]


class HisqParams(Structure):
    """QudaHisqParams_t."""

    _fields_ = [
        ("reunit_allow_svd", c_int),
        ("reunit_svd_only", c_int),
        ("reunit_svd_abs_error", c_double),
        ("reunit_svd_rel_error", c_double),
        ("force_filter", c_double),
    ]


class FatLinkArgs(Structure):
    """QudaFatLinkArgs_t."""

    _fields_ = [("su3_source", c_int), ("use_pinned_memory", c_int)]


# Arguments of the functions, in the order of the header.
SITES, NUMBERS, INTEGERS, ROWS = POINTER(Site), POINTER(c_double), POINTER(c_int), POINTER(c_void_p)
LOOPS = [ROWS, INTEGERS, NUMBERS, c_int, c_int, c_double, SITES, c_int]
SOLVE = [c_double, InvertArgs, c_double, c_double, c_void_p, c_void_p]
FUNCTIONS = {
    "qudaSetMPICommHandle": [c_void_p],
    "qudaInit": [InitArgs],
    "qudaFinalize": [],
    "qudaAllocatePinned": [c_size_t],
    "qudaFreePinned": [c_void_p],
    "qudaHisqParamsInit": [HisqParams],
    "qudaLoadKSLink": [c_int, FatLinkArgs, NUMBERS, c_void_p, c_void_p, c_void_p],
    "qudaLoadUnitarizedLink": [c_int, FatLinkArgs, NUMBERS, c_void_p, c_void_p, c_void_p],
    "qudaDslash": [c_int, c_int, InvertArgs, c_void_p, c_void_p, c_void_p, c_void_p, INTEGERS],
    "qudaInvert": [c_int, c_int, *SOLVE, c_void_p, c_void_p, NUMBERS, NUMBERS, INTEGERS],
    "qudaInvertMsrc": [c_int, c_int, *SOLVE, ROWS, ROWS, NUMBERS, NUMBERS, INTEGERS, c_int],
    "qudaMultishiftInvert": [
        *[c_int, c_int, c_int, NUMBERS, InvertArgs, NUMBERS, NUMBERS],
        *[c_void_p, c_void_p, c_void_p, ROWS, NUMBERS, NUMBERS, INTEGERS],
    ],
    "qudaHisqForce": [
        *[c_int, c_int, c_int, c_double, POINTER(NUMBERS), ROWS, NUMBERS, NUMBERS],
        *[c_void_p, c_void_p, c_void_p, c_void_p],
    ],
    "qudaGaugeForce": [c_int, c_int, NUMBERS, c_double, SITES],
    "qudaGaugeForcePhased": [c_int, c_int, NUMBERS, c_double, SITES, c_int],
    "qudaGaugeLoopTracePhased": [c_int, NUMBERS, *LOOPS],
    "qudaPlaquettePhased": [c_int, NUMBERS, SITES, c_int],
    "qudaPolyakovLoopPhased": [c_int, NUMBERS, c_int, SITES, c_int],
    "qudaGaugeMeasurementsPhased": [c_int, NUMBERS, NUMBERS, c_int, NUMBERS, *LOOPS],
    "qudaUpdateU": [c_int, c_double, SITES],
    "qudaUpdateUPhased": [c_int, c_double, SITES, c_int],
    "qudaUpdateUPhasedPipeline": [c_int, c_double, SITES, c_int, c_int],
    "qudaMomLoad": [c_int, SITES],
    "qudaMomSave": [c_int, SITES],
    "qudaMomAction": [c_int, SITES],
    "qudaRephase": [c_int, c_void_p, c_int, c_double],
    "qudaUnitarizeSU3": [c_int, c_double, SITES],
    "qudaUnitarizeSU3Phased": [c_int, c_double, SITES, c_int],
    "qudaGaugeFixingOVR": [c_int, c_uint, c_int, c_int, c_double, c_double, c_uint, c_uint, SITES],
}
RESULTS = {"qudaAllocatePinned": c_void_p, "qudaMomAction": c_double}


def loaded(path):
    library = ctypes.CDLL(path)
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, RESULTS.get(name)
    return library


def start(extents):
    """Starts the interface in one process, as MILC does. The arrays of the layout live only during the call."""
    quda.qudaSetMPICommHandle(None)
    latsize = (c_int * 4)(*extents) if extents else None
    quda.qudaInit(InitArgs(0, Layout(latsize, (c_int * 4)(1, 1, 1, 1), 0)))


DIFFERENCES, FAILURES = [], []


def fail(sentence):
    FAILURES.append(sentence)
    print(f"FAILED: {sentence}", flush=True)


def expect(name, found, wanted, tolerance):
    """Demands that two arrays differ by no more than a tolerance, relative to the norm of the second."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        raise ValueError(f"{name}: shapes {found.shape} and {wanted.shape}")
    distance = np.linalg.norm(found - wanted) / max(np.linalg.norm(wanted), 1e-300)
    DIFFERENCES.append(distance)
    if not distance <= tolerance:
        fail(f"{name}: {distance:.1e} is above {tolerance:.1e}")


def demand(name, holds):
    if not holds:
        fail(name)


def numbers(values):
    return (c_double * len(values))(*values)


def pointer(array):
    assert array.flags.c_contiguous
    return array.ctypes.data_as(c_void_p)


def pointers(arrays):
    return (c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


# Matrices, and fields of them with the axes t, z, y, x.


def dagger(u):
    return np.swapaxes(u.conj(), -1, -2)


def trace(u):
    return np.trace(u, axis1=-2, axis2=-1)


def traceless(m):
    a = (m - dagger(m)) / 2
    return a - trace(a)[..., None, None] / 3 * np.eye(3)


def exponential(a):
    """Returns exp(A) of anti-Hermitian matrices A."""
    value, vector = np.linalg.eigh(-1j * a)
    return (vector * np.exp(1j * value)[..., None, :]) @ dagger(vector)


def unitary(v):
    """Returns the unitary polar factor, V (V†V)^(−½)."""
    left, _, right = np.linalg.svd(v)
    return left @ right


def special_unitary(v):
    u = unitary(v)
    return u * np.exp(-1j * np.angle(np.linalg.det(u)) / 3)[..., None, None]


def random_numbers(seed, *shape):
    generator = np.random.default_rng(seed)
    return generator.normal(size=shape) + 1j * generator.normal(size=shape)


def random_momenta(seed):
    return traceless(random_numbers(seed, 4, *SHAPE, 3, 3))


def random_links(seed, width, precision):
    """Returns links near unity, as they are after rounding to a precision."""
    return rounded(exponential(width * random_momenta(seed)), precision)


def random_vector(seed, precision):
    return rounded(random_numbers(seed, *SHAPE, 3), precision)


def rounded(field, precision):
    return field.astype(COMPLEX[precision]).astype(complex)


def ahead(field, mu, steps=1):
    """Returns the field at x + nμ."""
    return np.roll(field, -steps, 3 - mu)


def path(links, steps):
    """Returns the products of links along a path from each site. MILC numbers the way back along μ as 7 − μ."""
    product, place = np.broadcast_to(np.eye(3, dtype=complex), links[0].shape), [0, 0, 0, 0]
    for step in steps:
        mu = min(step, 7 - step)
        if step > 3:
            place[mu] -= 1
        field = links[mu]
        for nu, n in enumerate(place):
            field = ahead(field, nu, n) if n else field
        product = product @ (dagger(field) if step > 3 else field)
        if step < 4:
            place[mu] += 1
    return product


def signs(reach=1):
    """Returns MILC's staggered phases of hops over 1 or 3 sites, with the sign of the antiperiodic boundary condition in t."""
    out = np.array([1 - 2 * (s % 2) for s in (T, T + X, T + X + Y, 0 * T)])
    out[3, -reach:] *= -1
    return out[..., None, None]


# Memory as MILC keeps it.


def milc_links(links, precision):
    field = np.moveaxis(links.reshape(4, VOLUME, 3, 3)[:, ORDER], 0, 1)
    return np.ascontiguousarray(field, COMPLEX[precision])


def from_milc_links(array):
    out = np.empty((4, VOLUME, 3, 3), complex)
    out[:, ORDER] = np.moveaxis(array, 1, 0)
    return out.reshape(4, *SHAPE, 3, 3)


def milc_vector(psi, precision):
    return np.ascontiguousarray(psi.reshape(VOLUME, 3)[ORDER], COMPLEX[precision])


def from_milc_vector(array):
    out = np.empty((VOLUME, 3), complex)
    out[ORDER] = array
    return out.reshape(*SHAPE, 3)


UPPER = ((0, 1), (0, 2), (1, 2))


def milc_momenta(p, precision):
    """Returns ten numbers for each momentum: the upper triangle, the imaginary parts of the diagonal, and one that MILC does not use."""
    field = np.moveaxis(p.reshape(4, VOLUME, 3, 3)[:, ORDER], 0, 1)
    out = np.zeros((VOLUME, 4, 10), REAL[precision])
    for n, (i, j) in enumerate(UPPER):
        out[..., 2 * n], out[..., 2 * n + 1] = field[..., i, j].real, field[..., i, j].imag
    for i in range(3):
        out[..., 6 + i] = field[..., i, i].imag
    return out


def from_milc_momenta(array):
    field = np.zeros((VOLUME, 4, 3, 3), complex)
    for n, (i, j) in enumerate(UPPER):
        field[..., i, j] = array[..., 2 * n] + 1j * array[..., 2 * n + 1].astype(float)
        field[..., j, i] = -field[..., i, j].conj()
    for i in range(3):
        field[..., i, i] = 1j * array[..., 6 + i].astype(float)
    out = np.empty((4, VOLUME, 3, 3), complex)
    out[:, ORDER] = np.moveaxis(field, 1, 0)
    return out.reshape(4, *SHAPE, 3, 3)


def as_momenta(p, precision):
    return from_milc_momenta(milc_momenta(p, precision))


class Sites:
    """Array of structures for the sites, with members before, between and after links and momenta as in MILC."""

    def __init__(self, precision, links, momenta):
        members = [
            *[("place", "i2", 4), ("parity", "i1"), ("index", "i4"), ("generator", "u4", 9)],
            ("link", COMPLEX[precision], (4, 3, 3)),
            ("between", REAL[precision], 5),
            ("mom", REAL[precision], (4, 10)),
            ("after", "u1", 21),
        ]
        kind = np.dtype(members, align=True)
        noise = np.random.default_rng(1).integers(0, 256, VOLUME * kind.itemsize, np.uint8)
        self.array = noise.view(kind)
        self.array["link"], self.array["mom"] = milc_links(links, precision), milc_momenta(momenta, precision)
        place = {name: kind.fields[name][1] for name in ("link", "mom")}
        self.arg = Site(self.array.ctypes.data, None, place["link"], None, place["mom"], kind.itemsize)
        self.before = self.bytes().copy()

    def bytes(self):
        return self.array.view(np.uint8).reshape(VOLUME, -1)

    def links(self):
        return from_milc_links(self.array["link"])

    def momenta(self):
        return from_milc_momenta(self.array["mom"])

    def expect_changes(self, name, *members):
        """Demands that only some members have changed since the last call."""
        kept = np.ones(self.array.dtype.itemsize, bool)
        for member in members:
            kind, place = self.array.dtype.fields[member]
            kept[place : place + kind.itemsize] = False
        after = self.bytes()
        changed = (after != self.before)[:, kept].any()
        demand(f"{name}: bytes other than those of {' and '.join(members) or 'nothing'} are changed", not changed)
        self.before = after.copy()


class Fields:
    """Links and momenta in arrays of their own, which MILC gives when there is no structure for the sites."""

    def __init__(self, precision, links, momenta):
        self.link, self.mom = milc_links(links, precision), milc_momenta(momenta, precision)
        # MILC's offsets mean nothing here.
        self.arg = Site(None, self.link.ctypes.data, 112, self.mom.ctypes.data, 400, 848)

    def links(self):
        return from_milc_links(self.link)

    def momenta(self):
        return from_milc_momenta(self.mom)

    def expect_changes(self, name, *members):
        pass


# Groups of calls.


def test_memory(precision):
    blocks = [(size, quda.qudaAllocatePinned(size)) for size in (1, 31104, 1472256, 0)]
    for size, address in blocks:
        demand(f"{size} bytes have an address, which is a multiple of 16", address and address % 16 == 0)
        ctypes.memset(address, 0xA5, size)
    demand("addresses differ", len({address for _, address in blocks}) == len(blocks))
    for size, address in blocks[1::-1] + blocks[2:]:
        demand(f"{size} bytes keep what is written", ctypes.string_at(address, size) == b"\xa5" * size)
        quda.qudaFreePinned(address)


def energy(p):
    return 0.5 * (np.abs(p) ** 2).sum() - 4 * p[..., 0, 0].size


def test_momenta(precision):
    links, first = random_links(1, 0.3, precision), as_momenta(random_momenta(2), precision)
    for kind in (Sites, Fields):
        sites, name = kind(precision, links, first), f"{kind.__name__}, {PRECISIONS[precision]}"
        # Energies are sums in double precision in any case.
        expect(f"energy, {name}", quda.qudaMomAction(precision, sites.arg), energy(first), 1e-13)
        quda.qudaMomLoad(precision, sites.arg)
        sites.expect_changes(f"qudaMomLoad, {name}")
        other = kind(precision, links, as_momenta(random_momenta(3), precision))
        # The momenta that are kept count, not those of the application.
        expect(f"energy of kept momenta, {name}", quda.qudaMomAction(precision, other.arg), energy(first), 1e-13)
        expect(f"energy asked again, {name}", quda.qudaMomAction(precision, other.arg), energy(first), 1e-13)
        quda.qudaMomSave(precision, other.arg)
        # The library takes away the trace that rounding has left on the diagonal, and rounds again.
        expect(f"momenta come back, {name}", other.momenta(), first, ROUNDING[precision])
        other.expect_changes(f"qudaMomSave, {name}", "mom")
        # Saved momenta are no longer kept.
        third = kind(precision, links, as_momenta(random_momenta(4), precision))
        found = quda.qudaMomAction(precision, third.arg)
        expect(f"energy without kept momenta, {name}", found, energy(third.momenta()), 1e-13)


def test_steps_of_links(precision):
    links, p = random_links(5, 0.3, precision), as_momenta(random_momenta(6), precision)
    eps = 0.013
    moved_links = exponential(eps * p) @ links
    for phased, kind in itertools.product((0, 1), (Sites, Fields)):
        # Signs are exact, and commute with the exponential.
        given = links * signs() if phased else links
        wanted = moved_links * signs() if phased else moved_links
        calls = {
            "qudaUpdateUPhased": lambda arg: quda.qudaUpdateUPhased(precision, eps, arg, phased),
            "qudaUpdateUPhasedPipeline": lambda arg: quda.qudaUpdateUPhasedPipeline(precision, eps, arg, phased, 1),
        }
        if not phased:
            calls["qudaUpdateU"] = lambda arg: quda.qudaUpdateU(precision, eps, arg)
        for call, work in calls.items():
            name = f"{call}, {kind.__name__}, phases {phased}, {PRECISIONS[precision]}"
            sites = kind(precision, given, p)
            work(sites.arg)
            expect(name, sites.links(), wanted, ROUNDING[precision])
            sites.expect_changes(name, "link")
        # Kept momenta move the links, and are still there.
        name = f"kept momenta, {kind.__name__}, phases {phased}, {PRECISIONS[precision]}"
        sites = kind(precision, given, p)
        quda.qudaMomLoad(precision, sites.arg)
        moved = kind(precision, given, 0 * p)
        quda.qudaUpdateUPhased(precision, eps, moved.arg, phased)
        expect(name, moved.links(), wanted, ROUNDING[precision])
        quda.qudaMomSave(precision, moved.arg)
        expect(f"{name}, afterwards", moved.momenta(), p, ROUNDING[precision])
        moved.expect_changes(name, "link", "mom")
    # As in a trajectory of MILC, a projection ends the pipeline of links.
    sites = Sites(precision, links, p)
    quda.qudaUnitarizeSU3(precision, 1e-6, sites.arg)


# The loops of MILC's gauge action, each in the planes of its first directions: the plaquette, the rectangle, and the parallelogram.
KINDS = [[0, 1, 7, 6], [0, 0, 1, 7, 7, 6], [0, 1, 2, 7, 6, 5]]


def closed_loops(kind):
    """Returns all loops that follow from one by symmetries of the lattice, each in one orientation and from one site."""
    loops = {}
    for axes in itertools.permutations(range(4)):
        for ways in itertools.product((0, 1), repeat=4):
            turned = [axes[min(step, 7 - step)] for step in kind]
            turned = [7 - mu if (step > 3) != ways[mu] else mu for step, mu in zip(kind, turned)]
            back = [7 - step for step in reversed(turned)]
            same = [tuple(one[n:] + one[:n]) for one in (turned, back) for n in range(len(kind))]
            loops[min(same)] = None
    return [list(loop) for loop in loops]


def gauge_force(links, loops):
    """Returns the sum over all loops with a link of U_μ(x) times the rest of the loop, for each link."""
    force = np.zeros_like(links)
    for loop in loops:
        for n, step in enumerate(loop):
            if step < 4:
                force[step] += path(links, loop[n:] + loop[:n])
            else:
                # The trace of the other orientation has the same real part.
                back, m = [7 - s for s in reversed(loop)], len(loop) - 1 - n
                force[7 - step] += path(links, back[m:] + back[:m])
    return force


def real_traces(links, loops):
    return sum(trace(path(links, loop)).real.sum() for loop in loops)


def test_gauge_force(precision):
    loops = [closed_loops(kind) for kind in KINDS]
    counts = [len(one) for one in loops]
    demand(f"there are 6, 12 and 16 loops, not {counts}", counts == [6, 12, 16])
    links, p = random_links(7, 0.3, precision), as_momenta(random_momenta(8), precision)
    forces = [traceless(gauge_force(links, one)) for one in loops]
    coefficients, eb3 = [1.0, -0.0673, -0.0121], 0.0216
    # The momentum of plaquettes, rectangles and parallelograms together against the derivative of the action along other momenta.
    if precision == DOUBLE:
        along, step = random_momenta(9), 1e-3

        def action(s):
            moved = exponential(s * along) @ links
            return -sum(c * real_traces(moved, one) for c, one in zip(coefficients, loops))

        slope = (8 * (action(step) - action(-step)) - action(2 * step) + action(-2 * step)) / (12 * step)
        sites = Sites(precision, links, 0 * p)
        quda.qudaGaugeForce(precision, 3, numbers(coefficients), eb3, sites.arg)
        # The differences have an error of the fourth power of the step, and of 10⁻¹⁶ of the action over the step.
        found = (along.conj() * sites.momenta()).sum().real
        expect("force along momenta and the derivative of the action", found, -eb3 * slope, 1e-8)
    for kinds, phased, kind in [(1, 1, Sites), (2, 0, Fields), *itertools.product([3], (0, 1), (Sites, Fields))]:
        wanted = p - eb3 * sum(c * force for c, force in zip(coefficients[:kinds], forces))
        name = f"{kinds} kinds of loops, {kind.__name__}, phases {phased}, {PRECISIONS[precision]}"
        sites = kind(precision, links * signs() if phased else links, p)
        if phased:
            quda.qudaGaugeForcePhased(precision, kinds, numbers(coefficients), eb3, sites.arg, 1)
        else:
            quda.qudaGaugeForce(precision, kinds, numbers(coefficients), eb3, sites.arg)
        expect(f"force, {name}", sites.momenta(), wanted, ROUNDING[precision])
        sites.expect_changes(f"force, {name}", "mom")
    sites = Sites(precision, links * signs(), p)
    quda.qudaMomLoad(precision, sites.arg)
    quda.qudaGaugeForcePhased(precision, 3, numbers(coefficients), eb3, sites.arg, 1)
    sites.expect_changes("force on kept momenta")
    quda.qudaMomSave(precision, sites.arg)
    wanted = p - eb3 * sum(c * force for c, force in zip(coefficients, forces))
    expect(f"force on kept momenta, {PRECISIONS[precision]}", sites.momenta(), wanted, ROUNDING[precision])
    sites.expect_changes("saved momenta", "mom")


def test_phases(precision):
    links = random_links(10, 0.3, precision)
    array, name = milc_links(links, precision), PRECISIONS[precision]
    # Changes of signs are exact.
    quda.qudaRephase(precision, pointer(array), 1, 0.0)
    expect(f"phases, {name}", from_milc_links(array), links * signs(), 0.0)
    quda.qudaRephase(precision, pointer(array), 0, 0.0)
    expect(f"phases taken away, {name}", from_milc_links(array), links, 0.0)


def test_projections(precision):
    links = rounded(random_links(11, 0.3, DOUBLE) + 0.05 * random_numbers(12, 4, *SHAPE, 3, 3), precision)
    p, wanted = as_momenta(random_momenta(13), precision), special_unitary(links)
    for phased, kind in itertools.product((0, 1), (Sites, Fields)):
        sites = kind(precision, links * signs() if phased else links, p)
        name = f"projection, {kind.__name__}, phases {phased}, {PRECISIONS[precision]}"
        if phased:
            quda.qudaUnitarizeSU3Phased(precision, 1e-5, sites.arg, 1)
        else:
            quda.qudaUnitarizeSU3(precision, 1e-5, sites.arg)
        expect(name, sites.links(), wanted * signs() if phased else wanted, ROUNDING[precision])
        sites.expect_changes(name, "link")


def test_observables(precision):
    links, p = random_links(14, 0.3, precision), as_momenta(random_momenta(15), precision)
    # The double precision of sums does not depend on that of the links. Means of small numbers lose some digits.
    tolerance = 1e-12
    planes = {(mu, nu): trace(path(links, [mu, nu, 7 - mu, 7 - nu])) for mu in range(4) for nu in range(mu)}
    space = np.mean([plane.real / 3 for (mu, _), plane in planes.items() if mu < 3])
    times = np.mean([plane.real / 3 for (mu, _), plane in planes.items() if mu == 3])
    plaquettes = [(space + times) / 2, space, times]
    line = trace(path(links, [3] * LATTICE[3])[0]).mean()
    paths = [*KINDS, [3, 0, 4, 7], [2, 3, 5, 4], [3, 3, 1, 4, 4, 6], [0, 6, 3, 7, 1, 4], [1, 1, 1, 6, 6, 6]]
    factors, factor = [0.5, -1.25, 3.0, 1.0, -2.0, 0.125, 1.0, 0.7], -1.5
    values = [factor * c * trace(path(links, steps)).sum() for c, steps in zip(factors, paths)]
    rows = np.full((len(paths), 6), -1, np.intc)
    for row, steps in zip(rows, paths):
        row[: len(steps)] = steps
    lengths = (c_int * len(paths))(*map(len, paths))
    rest = (pointers(list(rows)), lengths, numbers(factors), len(paths), 6, factor)
    for phased, kind in itertools.product((0, 1), (Sites, Fields)):
        sites = kind(precision, links * signs() if phased else links, p)
        name = f"{kind.__name__}, phases {phased}, {PRECISIONS[precision]}"
        # Plaquettes and other closed paths have no phases. The sign of Polyakov loops is that of QUDA: the opposite of
        # the sum over the links in memory.
        polyakov = [line.real, line.imag] if phased else [-line.real, -line.imag]
        plaq, ploop, traces = (c_double * 3)(), (c_double * 2)(), np.zeros(len(paths), complex)
        out = traces.ctypes.data_as(NUMBERS)
        quda.qudaPlaquettePhased(precision, plaq, sites.arg, phased)
        expect(f"plaquettes, {name}", plaq, plaquettes, tolerance)
        quda.qudaPolyakovLoopPhased(precision, ploop, 3, sites.arg, phased)
        expect(f"Polyakov loop, {name}", ploop, polyakov, tolerance)
        quda.qudaGaugeLoopTracePhased(precision, out, *rest, sites.arg, phased)
        expect(f"traces of loops, {name}", traces, values, tolerance)
        plaq, ploop, traces[:] = (c_double * 3)(), (c_double * 2)(), 0
        quda.qudaGaugeMeasurementsPhased(precision, plaq, ploop, 3, out, *rest, sites.arg, phased)
        expect(f"plaquettes together with others, {name}", plaq, plaquettes, tolerance)
        expect(f"Polyakov loop together with others, {name}", ploop, polyakov, tolerance)
        expect(f"traces of loops together with others, {name}", traces, values, tolerance)
        sites.expect_changes(f"observables, {name}")


def test_gauge_fixing(precision):
    links, p = random_links(16, 0.3, precision), as_momenta(random_momenta(17), precision)
    planes = [[mu, nu, 7 - mu, 7 - nu] for mu in range(4) for nu in range(mu)]
    before = [trace(path(links, plane)) for plane in planes]
    # θ is the mean square of the divergence. Rounding of the links to single precision leaves some 10⁻¹⁴, far below the limit of θ.
    limit = {SINGLE: 1e-11, DOUBLE: 1e-14}[precision]
    for kind, gauge, directions in ((Sites, "Landau", 4), (Fields, "Coulomb", 3)):
        sites, name = kind(precision, links, p), f"{gauge} gauge, {PRECISIONS[precision]}"
        quda.qudaGaugeFixingOVR(precision, directions, 3000, 0, 1.7, limit, 10, 1, sites.arg)
        sites.expect_changes(name, "link")
        fixed = sites.links()
        divergence = sum(traceless(fixed[mu] - np.roll(fixed[mu], 1, 3 - mu)) for mu in range(directions))
        theta = 4 * (np.abs(divergence) ** 2).sum() / (3 * VOLUME)
        demand(f"{name}: θ = {theta:.1e} is above {limit:.1e}", theta < 1.01 * limit)
        functional = [trace(u[:directions]).real.mean() / 3 for u in (links, fixed)]
        demand(f"{name}: the functional goes from {functional[0]} to {functional[1]}", functional[1] > functional[0])
        # Hundreds of sweeps round the links in double precision. Gauge transformations do not change the plaquette of any site.
        after = [trace(path(fixed, plane)) for plane in planes]
        expect(f"plaquettes of each site, {name}", after, before, {SINGLE: 4 * 6e-8, DOUBLE: 1e-12}[precision])
        unity = np.broadcast_to(np.eye(3), fixed.shape)
        expect(f"links are unitary, {name}", fixed @ dagger(fixed), unity, {SINGLE: 2 * 6e-8, DOUBLE: 1e-12}[precision])


# Fat and long links.


def staple_ahead(links, inner, mu, nu):
    """Returns U_ν(x) F(x+ν) U_ν†(x+μ) of a field F along μ."""
    return links[nu] @ ahead(inner, nu) @ dagger(ahead(links[nu], mu))


def staple_behind(links, inner, mu, nu):
    """Returns U_ν†(x−ν) F(x−ν) U_ν(x+μ−ν)."""
    return np.roll(dagger(links[nu]) @ inner @ ahead(links[nu], mu), 1, 3 - nu)


def fat_links(links, coefficients):
    """Returns the sum of one link and of its staples with one, two and three transverse directions, and of Lepage's double staples."""
    one, _, three, five, seven, lepage = coefficients
    out = one * links
    for mu in range(4):

        def staples(inner, nu):
            return staple_ahead(links, inner, mu, nu) + staple_behind(links, inner, mu, nu)

        transverse = [nu for nu in range(4) if nu != mu]
        single = {nu: staples(links[mu], nu) for nu in transverse}
        for nu in transverse:
            out[mu] += three * single[nu]
            if lepage != 0.0:
                for staple in (staple_ahead, staple_behind):
                    out[mu] += lepage * staple(links, staple(links, links[mu], mu, nu), mu, nu)
            if five == 0.0 and seven == 0.0:
                continue
            for rho in transverse:
                if rho != nu:
                    last = 6 - mu - nu - rho
                    out[mu] += staples(five * single[rho] + seven * staples(single[last], rho), nu)
    return out


def long_links(links, coefficient):
    return coefficient * np.array([links[mu] @ ahead(links[mu], mu) @ ahead(links[mu], mu, 2) for mu in range(4)])


# MILC's coefficients of asqtad links, and of the two levels of HISQ: one link, Naik, 3, 5 and 7 links, Lepage.
ASQTAD = [1 / 8 + 3 / 8 + 1 / 8, -1 / 24 * 1.34, -1 / 16 * 1.34, 1 / 64 * 1.81, -1 / 384 * 2.43, -1 / 16 * 1.81]
FAT7 = [1 / 8, 0.0, -1 / 16, 1 / 64, -1 / 384, 0.0]
SECOND = [1.0, -1 / 24, -1 / 16, 1 / 64, -1 / 384, -1 / 8]


def with_positive_staples(coefficients):
    """Returns the coefficients for links without phases: a transverse direction and the way back have the product −1 of their phases."""
    one, naik, three, five, seven, lepage = coefficients
    return [one, naik, -three, five, -seven, lepage]


def load_ks(precision, coefficients, inlink, fat, long):
    longlink = None if long is None else pointer(long)
    quda.qudaLoadKSLink(precision, FatLinkArgs(0, 0), numbers(coefficients), pointer(inlink), pointer(fat), longlink)


# Solves.


def hops(fat, long, psi):
    """Returns Σ V_μ(x) ψ(x+μ) − V_μ†(x−μ) ψ(x−μ), with the same sum over three sites of the long links, if there are some."""
    out = np.zeros_like(psi)
    for links, n in ((fat, 1), (long, 3)):
        if links is not None:
            for mu in range(4):
                out += (links[mu] @ ahead(psi, mu, n)[..., None])[..., 0]
                out -= np.roll((dagger(links[mu]) @ psi[..., None])[..., 0], n, 3 - mu)
    return out


def part(psi, parity):
    return psi * (ODD == parity)[..., None]


def invert_args(parity, mixed=0):
    """Returns the structure with the members that MILC sets; the others have whatever was there before."""
    rubbish = (c_double * 4)(5.53e-322, np.nan, -1e300, 0.7)
    return InvertArgs(2000, parity, mixed, rubbish, 216, 1072693248, -1171562339, 0.862, -0.03)


class Quarks:
    """Links of staggered quarks in MILC's memory, and the operators with them in NumPy."""

    def __init__(self, precision, fat, long):
        self.precision, self.fat, self.long = precision, fat, long
        self.arrays = [None if one is None else milc_links(one, precision) for one in (fat, long)]

    @classmethod
    def thin(cls, precision, seed, width=0.3):
        return cls(precision, random_links(seed, width, precision) * signs(), None)

    @classmethod
    def asqtad(cls, precision, seed, width=0.25):
        """Fat and long links that NumPy makes."""
        links = random_links(seed, width, precision)
        fat = fat_links(links, with_positive_staples(ASQTAD)) * signs()
        return cls(precision, rounded(fat, precision), rounded(long_links(links, ASQTAD[1]) * signs(3), precision))

    def pointers(self):
        return [None if one is None else pointer(one) for one in self.arrays]

    def hops(self, psi):
        return hops(self.fat, self.long, psi)

    def residual(self, parity, mass_term, x, b):
        """Returns ‖b − (4m² − D²) x‖ / ‖b‖ on one parity, and how much of it the rounding of x to the precision can be."""
        x, b = part(from_milc_vector(x), parity), part(from_milc_vector(b), parity)

        def product(psi):
            return mass_term * psi - self.hops(self.hops(psi))

        generator, spread = np.random.default_rng(20), {SINGLE: 2.0**-24, DOUBLE: 2.0**-53}[self.precision]
        noise = x.real * generator.uniform(-1, 1, x.shape) + 1j * x.imag * generator.uniform(-1, 1, x.shape)
        norm = np.linalg.norm(b)
        return np.linalg.norm(b - product(x)) / norm, 2 * spread * np.linalg.norm(product(noise)) / norm

    def expect_solution(self, name, parity, mass_term, x, b, tol):
        found, rounding = self.residual(parity, mass_term, x, b)
        DIFFERENCES.append(found)
        if not found <= 1.01 * tol + rounding:
            fail(f"{name}: the residual {found:.1e} is above {tol:.1e} and {rounding:.1e} for rounding the solution")


def expect_other_half_kept(name, parity, array, before):
    other = slice(HALF, None) if parity == EVEN_PARITY else slice(None, HALF)
    demand(f"{name}: the sites of the other parity are changed", (array[other] == before[other]).all())


def check_hops(name, quarks, marks=-1):
    """Applies D to both parities, to a field of its own and in place, as MILC does."""
    precision = quarks.precision
    psi = random_vector(21, precision)
    wanted = quarks.hops(psi)
    for parity, in_place in itertools.product((EVEN_PARITY, ODD_PARITY), (False, True)):
        source, iterations = milc_vector(psi, precision), c_int(marks)
        given, target = source.copy(), source if in_place else milc_vector(random_vector(22, precision), precision)
        before = target.copy()
        quda.qudaDslash(
            *[precision, precision, invert_args(parity), *quarks.pointers(), pointer(source), pointer(target)],
            byref(iterations),
        )
        of = f"{name}, parity {parity}, in place {in_place}, {PRECISIONS[precision]}"
        expect(f"hops, {of}", part(from_milc_vector(target), parity), part(wanted, parity), ROUNDING[precision])
        expect_other_half_kept(f"hops, {of}", parity, target, before)
        demand(f"hops, {of}: the source is changed", in_place or (source == given).all())


def solved(quarks, parity, mass, tol, iterations=-1, internal=DOUBLE, mixed=0, seed=23):
    """Returns the solution, the source, and what the call reports."""
    precision = quarks.precision
    b, x = milc_vector(random_vector(seed, precision), precision), np.zeros((VOLUME, 3), COMPLEX[precision])
    residual, fermilab, count = c_double(np.nan), c_double(np.nan), c_int(iterations)
    quda.qudaInvert(
        *[precision, internal, mass, invert_args(parity, mixed), tol, 0.0, *quarks.pointers()],
        *[pointer(b), pointer(x), byref(residual), byref(fermilab), byref(count)],
    )
    return x, b, residual.value, count.value


def check_solves(name, quarks):
    """Solves for one source, several sources and several offsets, on both parities."""
    precision = quarks.precision
    name, mass = f"{name}, {PRECISIONS[precision]}", 0.15
    # MILC asks for 10⁻⁶ or so in single precision. CG in single precision is refined in double precision, so it reaches any tolerance.
    settings = {
        SINGLE: [(EVEN_PARITY, SINGLE, 0, 1e-6), (ODD_PARITY, DOUBLE, 1, 1e-6)],
        DOUBLE: [(EVEN_PARITY, DOUBLE, 0, 1e-11), (ODD_PARITY, DOUBLE, 1, 1e-10), (EVEN_PARITY, SINGLE, 2, 1e-8)],
    }
    for parity, internal, mixed, tol in settings[precision]:
        of = f"{name}, parity {parity}, precision {internal}, mixed {mixed}"
        x, b, residual, count = solved(quarks, parity, mass, tol, -1, internal, mixed)
        quarks.expect_solution(f"solve, {of}", parity, 4 * mass**2, x, b, tol)
        demand(f"solve, {of}: {count} iterations, residual {residual}", 1 < count < 2000 and 0 < residual <= tol)
        expect_other_half_kept(f"solve, {of}", parity, x, 0 * x)
        sources = [milc_vector(random_vector(seed, precision), precision) for seed in (24, 25, 26)]
        solutions = [np.zeros_like(b) for b in sources]
        last, fermilab, count = c_double(np.nan), c_double(np.nan), c_int(-1)
        quda.qudaInvertMsrc(
            *[precision, internal, mass, invert_args(parity, mixed), tol, 0.0, *quarks.pointers()],
            *[pointers(sources), pointers(solutions), byref(last), byref(fermilab), byref(count), 3],
        )
        for n, (x, b) in enumerate(zip(solutions, sources)):
            quarks.expect_solution(f"source {n}, {of}", parity, 4 * mass**2, x, b, tol)
            expect_other_half_kept(f"source {n}, {of}", parity, x, 0 * x)
        converged = 1 < count.value < 6000 and 0 < last.value <= tol
        demand(f"several sources, {of}: {count.value} iterations, residual {last.value}", converged)
        for offsets in ([0.09, 0.16, 0.7, 3.0], [0.7, 0.09, 3.0, 0.16]):
            # MILC gives the first offset a tolerance, and 0 to the others, which means as far as the first one goes.
            targets, zeros = numbers([tol, 0.0, 0.0, 0.0]), numbers([0.0] * 4)
            b, solutions = sources[0], [np.zeros_like(sources[0]) for _ in offsets]
            reached, fermilab, count = numbers([np.nan] * 4), numbers([np.nan] * 4), c_int(-1)
            quda.qudaMultishiftInvert(
                *[precision, internal, 4, numbers(offsets), invert_args(parity, min(mixed, 1)), targets, zeros],
                *[*quarks.pointers(), pointer(b), pointers(solutions), reached, fermilab, byref(count)],
            )
            for x, offset, residual in zip(solutions, offsets, reached):
                of_offset = f"offset {offset} of {offsets}, {of}"
                quarks.expect_solution(of_offset, parity, offset, x, b, tol)
                expect_other_half_kept(of_offset, parity, x, 0 * x)
                demand(f"{of_offset}: residual {residual}", 0 < residual <= 1.01 * tol)
            demand(f"offsets {offsets}, {of}: {count.value} iterations", 1 < count.value < 2000)


def test_thin_and_foreign_links(precision):
    """Quarks whose links the library has not made: it cannot know when they are new, and loads them for each call."""
    name = PRECISIONS[precision]
    thin, asqtad = Quarks.thin(precision, 27), Quarks.asqtad(precision, 28)
    check_hops("thin links", thin)
    check_hops("asqtad links", asqtad)
    check_hops("thin links, not said to be new", thin, 0)
    check_solves("thin links", thin)
    first = solved(asqtad, EVEN_PARITY, 0.2, 1e-6, 0)[0]
    changed = Quarks.asqtad(precision, 29)
    for kept, new in zip(asqtad.arrays, changed.arrays):
        kept[:] = new
    x, b, *_ = solved(asqtad, EVEN_PARITY, 0.2, 1e-6, 0)
    demand(f"links of the application are loaded for each call, {name}", not (x == first).all())
    changed.expect_solution(f"solve with changed links of the application, {name}", EVEN_PARITY, 0.16, x, b, 1e-6)


def test_fat_links(precision):
    links = random_links(18, 0.25, precision)
    thin, name = milc_links(links * signs(), precision), PRECISIONS[precision]
    kept = thin.copy()
    cases = {"asqtad": ASQTAD, "second level": SECOND, "fat7": FAT7}
    if precision == DOUBLE:
        # Each kind of path alone shows its sign.
        paths = ("one link", "Naik", "3 links", "5 links", "7 links", "Lepage")
        cases.update({path_: [float(n == m) for m in range(6)] for n, path_ in enumerate(paths)})
    for case, coefficients in cases.items():
        fat, long = np.full_like(thin, np.nan), np.full_like(thin, np.nan)
        load_ks(precision, coefficients, thin, fat, long)
        wanted = fat_links(links, with_positive_staples(coefficients)) * signs()
        # A sum of 0 is 0 without any rounding.
        expect(f"fat links, {case}, {name}", from_milc_links(fat), wanted, ROUNDING[precision])
        wanted = long_links(links, coefficients[1]) * signs(3)
        expect(f"long links, {case}, {name}", from_milc_links(long), wanted, ROUNDING[precision])
        without = np.full_like(thin, np.nan)
        load_ks(precision, coefficients, thin, without, None)
        expect(f"fat links without long ones, {case}, {name}", without, fat, 0.0)
    demand(f"thin links are changed, {name}", (kept == thin).all())
    # Projections multiply the rounding of V by the inverse of its smallest singular value, which is about 1.
    links = random_links(19, 0.1, precision)
    thin, fat, w = milc_links(links * signs(), precision), np.empty_like(thin), np.empty_like(thin)
    v = fat_links(links, with_positive_staples(FAT7)) * signs()
    for fatlink in (pointer(fat), None):
        w[:] = np.nan
        quda.qudaLoadUnitarizedLink(precision, FatLinkArgs(1, 0), numbers(FAT7), pointer(thin), fatlink, pointer(w))
        expect(f"projections to U(3), {name}", from_milc_links(w), unitary(v), 2 * ROUNDING[precision])
    expect(f"links of the first level, {name}", from_milc_links(fat), v, ROUNDING[precision])


def made_links(precision, seed, coefficients=ASQTAD):
    """Quarks with links that the library makes."""
    thin = milc_links(random_links(seed, 0.25, precision) * signs(), precision)
    quarks = Quarks(precision, np.zeros((4, *SHAPE, 3, 3)), np.zeros((4, *SHAPE, 3, 3)))
    load_ks(precision, coefficients, thin, *quarks.arrays)
    quarks.fat, quarks.long = map(from_milc_links, quarks.arrays)
    return quarks


def test_asqtad_solves(precision):
    quarks = made_links(precision, 30)
    # Links that have just been made are new in any case.
    check_hops("new links, not said to be new", quarks, 0)
    check_solves("asqtad links", quarks)


def test_reloading(precision):
    """Links are loaded again only if MILC says so by −1 iterations, or after new links have been made."""
    name = PRECISIONS[precision]
    quarks = made_links(precision, 31)
    old, *_ = solved(quarks, ODD_PARITY, 0.2, 1e-6, 0)
    expect("links are there", solved(quarks, ODD_PARITY, 0.2, 1e-6, 0)[0], old, 0.0)
    other = made_links(precision, 32)
    new, *_ = solved(other, ODD_PARITY, 0.2, 1e-6, 0)
    demand(f"links that have been made are not loaded, {name}", not (new == old).all())
    # The application swaps its links, but does not say so.
    for kept, changed in zip(other.arrays, quarks.arrays):
        kept[:] = changed
    for iterations, wanted, how in ((0, new, "not said to be new"), (17, new, "after 17 iterations"), (-1, old, "said to be new")):
        found, *_ = solved(other, ODD_PARITY, 0.2, 1e-6, iterations)
        expect(f"changed links, {how}, {name}", found, wanted, 0.0)
    # From now on the changed links are those of products and of solves with several offsets too.
    check_hops(f"links after they were said to be new, {name}", quarks, 0)


def test_hisq_force(precision):
    """The force of HISQ quarks against the derivative of Σ c Re X† D(U) Y, where X and Y are a quark on even and on odd sites.

    With X = (4m² − D²)⁻¹ φ, Y = D X and c = 2r, this is the derivative of the action r φ† (4m² − D²)⁻¹ φ, in which X and Y stay as they
    are. The force does not use how X and Y were made, so that they can be any fields here.
    """
    name, dt = PRECISIONS[precision], 0.07
    u = random_links(33, 0.1, DOUBLE) * signs()
    fields = [random_vector(34 + n, precision) for n in range(3)]
    weights, extra, epsilon = [0.31, -0.47, 0.83], 2, -0.2
    # One row for each quark: the factors of one and of three hops. The last quarks have a Naik correction, with rows of its own.
    rows = [[2 * w, 2 * w * SECOND[1]] for w in weights]
    rows += [[c * epsilon * 2 * w for c in (1 / 8, -1 / 24)] for w in weights[-extra:]]

    def v_and_w(links):
        v = fat_links(links, FAT7)
        return v, unitary(v)

    def bilinear(links):
        _, w = v_and_w(links)
        fat, long = fat_links(w, SECOND), long_links(w, 1.0)
        total = 0
        for n, (one, three) in enumerate(rows):
            correction = n >= len(fields)
            field = fields[n - extra] if correction else fields[n]
            image = hops(one * (w if correction else fat), three * long, part(field, ODD_PARITY))
            total += np.vdot(part(field, EVEN_PARITY), image).real
        return total

    quda.qudaHisqParamsInit(HisqParams(1, 0, 1e-8, 1e-8, 5e-5))
    thin = milc_links(u, precision)
    u = from_milc_links(thin)
    v, w = [milc_links(one, precision) for one in v_and_w(u)]
    quark_fields = [milc_vector(field, precision) for field in fields]
    table = [numbers(row) for row in rows]
    coefficients = (NUMBERS * len(table))(*[ctypes.cast(row, NUMBERS) for row in table])

    def add_force(momentum):
        quda.qudaHisqForce(
            *[precision, len(fields), extra, dt, coefficients, pointers(quark_fields), numbers(SECOND), numbers(FAT7)],
            *[pointer(w), pointer(v), pointer(thin), momentum],
        )

    # Memory that MILC has just allocated has anything in it.
    array = milc_momenta(random_momenta(40), precision)
    add_force(pointer(array))
    force = from_milc_momenta(array)
    along, step = random_momenta(41), 1e-3

    def value(s):
        return bilinear(exponential(s * along) @ u)

    slope = (8 * (value(step) - value(-step)) - value(2 * step) + value(-2 * step)) / (12 * step)
    # The fifth derivative limits the differences. Single precision rounds V, W and the force, whose signs differ in the sum.
    tolerance = {SINGLE: 1e-5, DOUBLE: 1e-8}[precision]
    expect(f"force along momenta, {name}", (along.conj() * force).sum().real, -dt * slope, tolerance)
    # With kept momenta the force is added to them, and the memory of the application is not touched.
    p = as_momenta(random_momenta(42), precision)
    sites, untouched = Sites(precision, u, p), array.copy()
    quda.qudaMomLoad(precision, sites.arg)
    add_force(pointer(array))
    demand(f"the force on kept momenta changes memory, {name}", (array == untouched).all())
    quda.qudaMomSave(precision, sites.arg)
    # Both forces have been rounded.
    expect(f"force on kept momenta, {name}", sites.momenta(), p + force, 2 * ROUNDING[precision])


# Mistakes, each in a process of its own, and what the sentence about them has to have: the names of the function and of the argument.


def mistake(name):
    """Makes a mistake, which ends the process."""
    if name == "null extents":
        return start(None)
    if name == "odd extents":
        return start([4, 6, 3, 8])
    start(LATTICE)
    links = random_links(50, 0.3, DOUBLE)
    sites, memory = Sites(DOUBLE, links, random_momenta(51)), milc_links(links, DOUBLE)
    field, count, number = milc_vector(random_vector(52, DOUBLE), DOUBLE), c_int(-1), c_double()
    one = numbers([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    def solve(*rest):
        quda.qudaInvert(2, 2, 0.1, invert_args(0), 1e-8, 0.0, *rest, byref(number), byref(number), byref(count))

    def make_links(coefficients, thin):
        quda.qudaLoadKSLink(DOUBLE, FatLinkArgs(0, 0), coefficients, thin, pointer(memory), None)

    if name == "second thread":
        thread = threading.Thread(target=quda.qudaMomAction, args=(DOUBLE, sites.arg))
        thread.start()
        thread.join()
    calls = {
        "null sites of momenta": lambda: quda.qudaMomLoad(DOUBLE, None),
        "null sites of a step": lambda: quda.qudaUpdateU(DOUBLE, 0.1, None),
        "null sites of a force": lambda: quda.qudaGaugeForcePhased(DOUBLE, 3, one, 0.1, None, 1),
        "null factors of loops": lambda: quda.qudaGaugeForcePhased(DOUBLE, 3, None, 0.1, sites.arg, 1),
        "four kinds of loops": lambda: quda.qudaGaugeForcePhased(DOUBLE, 4, one, 0.1, sites.arg, 1),
        "null links to rephase": lambda: quda.qudaRephase(DOUBLE, None, 1, 0.0),
        "null coefficients": lambda: make_links(None, pointer(memory)),
        "null thin links": lambda: make_links(one, None),
        "null fat links": lambda: solve(None, None, pointer(field), pointer(field)),
        "null source": lambda: solve(pointer(memory), None, None, pointer(field)),
        "null solution": lambda: solve(pointer(memory), None, pointer(field), None),
        "null iterations": lambda: quda.qudaDslash(
            2, 2, invert_args(0), pointer(memory), None, pointer(field), pointer(field), None
        ),
        "both parities": lambda: quda.qudaDslash(
            2, 2, invert_args(2), pointer(memory), None, pointer(field), pointer(field), byref(count)
        ),
        "no momenta": lambda: quda.qudaMomSave(DOUBLE, sites.arg),
        "null plaquettes": lambda: quda.qudaPlaquettePhased(DOUBLE, None, sites.arg, 0),
        "null Polyakov loop": lambda: quda.qudaPolyakovLoopPhased(DOUBLE, None, 3, sites.arg, 0),
        "null traces": lambda: quda.qudaGaugeLoopTracePhased(DOUBLE, None, None, None, one, 1, 4, 1.0, sites.arg, 0),
        "Polyakov loop in x": lambda: quda.qudaPolyakovLoopPhased(DOUBLE, one, 0, sites.arg, 0),
        "foreign memory": lambda: quda.qudaFreePinned(pointer(memory)),
        "third precision": lambda: quda.qudaMomAction(3, sites.arg),
        "null sites of gauge fixing": lambda: quda.qudaGaugeFixingOVR(DOUBLE, 4, 10, 0, 1.7, 1e-6, 10, 1, None),
    }
    if name in calls:
        calls[name]()


MISTAKES = {
    "null extents": ("qudaInit", "latsize"),
    "odd extents": ("qudaInit", "latsize"),
    "second thread": ("qudaMomAction", "thread"),
    "null sites of momenta": ("qudaMomLoad", "arg"),
    "null sites of a step": ("qudaUpdateU", "arg"),
    "null sites of a force": ("qudaGaugeForcePhased", "arg"),
    "null factors of loops": ("qudaGaugeForcePhased", "milc_loop_coeff"),
    "four kinds of loops": ("qudaGaugeForcePhased", "num_loop_types"),
    "null links to rephase": ("qudaRephase", "gauge"),
    "null coefficients": ("qudaLoadKSLink", "path_coeff"),
    "null thin links": ("qudaLoadKSLink", "inlink"),
    "null fat links": ("qudaInvert", "fatlink"),
    "null source": ("qudaInvert", "source"),
    "null solution": ("qudaInvert", "solution"),
    "null iterations": ("qudaDslash", "num_iters"),
    "both parities": ("qudaDslash", "evenodd"),
    "no momenta": ("qudaMomSave", "momenta"),
    "null plaquettes": ("qudaPlaquettePhased", "plaq"),
    "null Polyakov loop": ("qudaPolyakovLoopPhased", "ploop"),
    "null traces": ("qudaGaugeLoopTracePhased", "traces"),
    "Polyakov loop in x": ("qudaPolyakovLoopPhased", "dir"),
    "foreign memory": ("qudaFreePinned", "ptr"),
    "third precision": ("qudaMomAction", "precision"),
    "null sites of gauge fixing": ("qudaGaugeFixingOVR", "arg"),
}


def made_mistake(name):
    return subprocess.run([sys.executable, *sys.argv, name], capture_output=True, text=True, timeout=120)


def check_mistakes(ended):
    for (name, words), process in zip(MISTAKES.items(), ended):
        sentence = [line for line in process.stderr.splitlines() if all(word in line for word in words)]
        if process.returncode != 1 or not sentence:
            said = process.stderr.strip()
            fail(f"{name} ended with {process.returncode}, without '{' … '.join(words)}' in: {said!r}")
    print(f"mistakes: {len(MISTAKES)}", flush=True)


def main(ended):
    start(LATTICE)
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        begin, found = time.monotonic(), {}
        for precision, word in PRECISIONS.items():
            DIFFERENCES.clear()
            test(precision)
            if DIFFERENCES:
                found[word] = f"{max(DIFFERENCES):.1e} in {word} precision ({len(DIFFERENCES)} comparisons)"
        largest = ", ".join(found.values()) or "none"
        print(f"{name}: largest difference {largest}; {time.monotonic() - begin:.1f} s", flush=True)
    kept = quda.qudaAllocatePinned(1000)
    quda.qudaFinalize()
    # MILC frees some memory only at its end.
    quda.qudaFreePinned(kept)
    check_mistakes(ended)
    if FAILURES:
        sys.exit(f"{len(FAILURES)} comparisons failed")


if __name__ == "__main__":
    quda = loaded(sys.argv[1])
    if len(sys.argv) > 2:
        mistake(sys.argv[2])
    else:
        # Mistakes are made beside the comparisons, in processes of their own.
        with ThreadPoolExecutor(1) as pool:
            main(pool.map(made_mistake, MISTAKES))
