"""Objects that are pickled or copied come back with their arrays and settings."""

import copy
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import ferrite_lqcd as fe


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))


#: How a copy is made, and whether it shares nothing with the original.
WAYS = {"pickle": pickled, "deepcopy": copy.deepcopy, "copy": copy.copy}


@pytest.fixture(params=WAYS)
def copied(request):
    return WAYS[request.param]


class MyClover(fe.Clover):
    """A class of one's own."""

    def __init__(self, gauge, light):
        super().__init__(gauge, mass=0.1 if light else 0.5, csw=1.0)
        self.light = light


@pytest.fixture(scope="module")
def source(weak):
    return fe.Noise(1).field(weak.lattice, spin=1)


def test_links(weak, copied):
    U = fe.Gauge.quenched((2, 2, 2, 4), 6.0, 1, sweeps=2)
    V = copied(U)
    assert type(V) is fe.Gauge and V.lattice == U.lattice and V.file == U.file and len(V.file["plaquettes"]) == 2
    assert np.array_equal(V, U) and V.plaquette() == U.plaquette()
    assert np.array_equal(V.stout(0.1), U.stout(0.1))


@pytest.mark.parametrize("operator", fe.operators(), ids=lambda operator: operator["name"])
def test_operators_keep_their_parameters(weak, operator):
    """All parameters that an operator has, at values that are not the usual ones."""
    chosen = {
        "mass": 0.3, "bc_time": "periodic", "csw": 1.1, "mu": 0.2, "u0": 0.9, "naik_epsilon": 0.1, "phases": "lexicographic",
        "schur": "asymmetric", "theta": (0.1, 0.0, 0.2, 0.3), "spread_boundary": False, "xi": 1.2, "nu": 1.1,
    }
    names = [parameter["name"] for parameter in operator["parameters"]]
    # On anisotropic lattices clover has other coefficients.
    left_out = ("xi", "nu") if "csw" in names else ()
    parameters = {name: value for name, value in chosen.items() if name in names and name not in left_out}
    D = fe.Operator(operator["name"], weak, **parameters)
    shape = (8, 6, 4, 2, 3) if operator["staggered"] else (8, 6, 4, 2, 4, 3)
    psi = np.random.default_rng(1).standard_normal(shape)
    for way in WAYS.values():
        E = way(D)
        assert type(E) is fe.Operator and (E.name, E.parameters, E.mass) == (D.name, D.parameters, 0.3) and repr(E) == repr(D)
        assert np.array_equal(E.apply(psi), D.apply(psi))
        assert np.array_equal(way(E).apply(psi), D.apply(psi))


def test_classes_of_operators(weak, source, copied):
    D = MyClover(weak, light=True)
    E = copied(D)
    assert type(E) is MyClover and E.light and np.array_equal(E.apply(source), D.apply(source))
    F = copied(fe.TwistedClover(weak, kappa=0.12, csw=1.0, mu=np.float64(0.1), theta=[0, 0, 0, 0.5]))
    assert type(F) is fe.TwistedClover and F.parameters["mu"] == 0.1
    # A copy has no multigrid setup, and solves with one of its own.
    setups = fe.Gauge.random((4, 4, 4, 4), seed=1, noise=0.2)
    D = fe.Wilson(setups, mass=0.1)
    first = D.setup(vectors=8, blocks=[(2, 2, 2, 2)])
    E, b = copied(D), fe.Noise(1).field(setups.lattice, spin=0)
    with pytest.raises(fe.InputError, match="belongs to another operator"):
        E.solve(b, solver=first)
    np.testing.assert_allclose(E.solve(b, solver=E.setup(vectors=8, blocks=[(2, 2, 2, 2)])).x, D.solve(b, solver=first).x, atol=1e-8)


def test_propagators(weak, copied):
    for D, site in [(fe.Clover(weak, mass=0.5, csw=1.0, bc_time="periodic"), (1, 2, 3, 4)), (fe.Asqtad(weak, mass=0.5, u0=0.9, phases="lexicographic"), (0, 0, 0, 2))]:
        S = D.propagator(fe.Point(site), tol=1e-8)
        T = copied(S)
        assert (T.origin, T.antiperiodic, T.phases, T.lattice, T.staggered) == (S.origin, S.antiperiodic, S.phases, S.lattice, S.staggered)
        assert T.report.as_dict() == S.report.as_dict()
        for name, values in fe.mesons(T).items():
            np.testing.assert_allclose(values, fe.mesons(S)[name], atol=1e-13 * abs(values).max())
        assert np.array_equal(T.columns, S.columns)


def test_deep_copies_are_independent(weak):
    S = fe.Propagator(np.ones((12, 8, 6, 4, 2, 4, 3)))
    deep, shallow = copy.deepcopy(S), copy.copy(S)
    S.columns[0] = 2
    assert deep.columns[0].max() == 1 and shallow.columns[0].max() == 2
    U = fe.Gauge.quenched((2, 2, 2, 4), 6.0, 1, sweeps=2)
    V = copy.deepcopy(U)
    U.file["plaquettes"].clear()
    assert len(V.file["plaquettes"]) == 2
    x = fe.to_device(np.arange(6.0))
    assert copy.deepcopy(x).device == x.device and copy.deepcopy(x)._shared is not x._shared


def test_fields_and_results(weak, source, copied):
    x = fe.to_device(source)
    assert isinstance(copied(x), fe.DeviceArray) and np.array_equal(copied(x).numpy(), source)
    D = fe.Wilson(weak, mass=0.5)
    solution = D.solve(source)
    again = copied(solution)
    assert type(again) is fe.Solution and np.array_equal(again.x, solution.x)
    report = copied(solution.report)
    assert report.as_dict() == solution.report.as_dict() and report.true_residual == solution.report.true_residual
    assert repr(report) == repr(solution.report) and report.plot().svg == solution.report.plot().svg
    flow = weak.flow(0.1, 0.05)
    other = copied(flow)
    assert other.points == flow.points and np.array_equal(other.gauge, flow.gauge) and other.plot().svg == flow.plot().svg
    assert copied(weak.loops()) == weak.loops() and copied(weak.plaquette()) == weak.plaquette()
    c = fe.mesons(D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-6), momenta=[(0, 0, 0), (0, 1, 0)])
    e = copied(c)
    assert list(e) == list(c) and e.momenta == c.momenta and np.array_equal(e["pion"], c["pion"])
    assert np.array_equal(e.effective_mass("pion"), c.effective_mass("pion"), equal_nan=True)
    data = np.cosh(0.4 * (np.arange(8) - 4)) * np.linspace(0.99, 1.01, 12)[:, None]
    fit = fe.fit(data, window=(0, 4), covariance="diagonal")
    g = copied(fit)
    assert g.as_dict() == fit.as_dict() and g.energy == fit.energy and g.plot().svg == fit.plot().svg and repr(g) == repr(fit)
    m = fe.effective_masses(data)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(copied(m), m))
    trajectory = fe.HMC(weak, fe.GaugeAction("wilson", 6.0), seed=1, steps=1, length=0.01).trajectory()
    assert copied(trajectory) == trajectory


def test_what_makes_them(weak, copied):
    """Sources, actions and quarks."""
    shell = fe.Shell((0, 0, 0, 0), 1.5, 3, weak, momentum=(0.5, 0, 0))
    for source in (fe.Point((1, 2, 3, 4)), fe.Wall(2), fe.Momentum(1, (0, 1, 0)), fe.Noise(1, t=2), shell, fe.Array(np.ones((8, 6, 4, 2)))):
        assert np.array_equal(copied(source).fields(weak.lattice), source.fields(weak.lattice))
    quarks, action = copied(fe.TwoFlavours("wilson", kappa=0.11, guesses=2)), copied(fe.GaugeAction("iwasaki", 2.0))
    assert fe.HMC(weak, action, [quarks], seed=1, steps=1, length=0.01).trajectory().failure is None


def test_exceptions_come_from_workers(weak, source):
    """With what they carry, as multiprocessing sends them."""
    with pytest.raises(fe.SolverError) as stopped:
        fe.Wilson(weak, mass=0.1).solve(source, max_iterations=2)
    error = pickled(stopped.value)
    assert type(error) is fe.SolverError and str(error) == str(stopped.value) and error.report.iterations == 2
    assert np.array_equal(error.x, stopped.value.x)
    for name in ("FerriteError", "InputError", "FileError", "DeviceError", "SolverError"):
        kind = getattr(fe, name)
        assert kind.__name__ == name and kind.__module__ == "ferrite_lqcd" and type(pickled(kind("why"))) is kind


def test_what_cannot_be_pickled_is_told(weak):
    D = fe.Wilson(fe.Gauge.random((4, 4, 4, 4), seed=1, noise=0.2), mass=0.1)
    setup, hmc = D.setup(vectors=8, blocks=[(2, 2, 2, 2)]), fe.HMC(weak, fe.GaugeAction("wilson", 6.0), seed=1)
    for thing, said in [(setup, "save"), (hmc, "hmc.gauge"), (fe.device(), "fe.init")]:
        with pytest.raises(TypeError, match=f"cannot be pickled: .*{said}"):
            pickle.dumps(thing)
    for way in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            way(hmc)
        assert way(fe.device()) is fe.device()
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(setup)


def test_pickles_have_a_format(weak):
    """One of a later package is refused with a sentence, and says of which."""
    made = weak.__reduce__()
    assert made[1][:3] == (fe.Gauge, 1, fe.__version__)
    with pytest.raises(fe.InputError, match="a pickled Gauge has format 2, of ferrite-lqcd 9.9, but ferrite-lqcd .* reads format 1"):
        made[0](fe.Gauge, 2, "9.9", {})


def test_another_process_reads_them(weak, source, tmp_path):
    D = fe.TwistedClover(weak, mass=0.3, csw=1.0, mu=0.1)
    (tmp_path / "operator.pickle").write_bytes(pickle.dumps((D, D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-6), fe.to_device(source))))
    script = """
import ferrite_lqcd as fe, json, numpy as np, pickle, sys
fe.init("cpu", threads=1)
D, S, x = pickle.loads(open(sys.argv[1], "rb").read())
print(json.dumps([D.parameters, np.linalg.norm(D.apply(x.numpy())), abs(fe.mesons(S)["pion"]).sum()]))
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    command = [sys.executable, "-c", script, str(tmp_path / "operator.pickle")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    parameters, norm, pion = json.loads(done.stdout)
    assert parameters == D.parameters and abs(norm - np.linalg.norm(D.apply(source))) < 1e-12 * norm
    assert abs(pion - abs(fe.mesons(D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-6))["pion"]).sum()) < 1e-9 * pion
