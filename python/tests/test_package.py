"""What the package promises besides numbers."""

import gc
import inspect
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ferrite_lqcd as fe


def plain_wilson(U, psi, mass, antiperiodic=True):
    """M ψ from the formula: (4 + m) ψ − ½ Σ_μ (1 − γ_μ) U_μ ψ(x+μ) + (1 + γ_μ) U†_μ(x−μ) ψ(x−μ)."""
    out = (4 + mass) * psi
    links = np.array(U)
    if antiperiodic:
        links[-1, :, :, :, 3] *= -1
    for mu, (axis, name) in enumerate(((3, "gx"), (2, "gy"), (1, "gz"), (0, "gt"))):
        gamma, one = fe.gamma(name), np.eye(4)
        u = links[..., mu, :, :]
        ahead = np.einsum("...ab,...sb->...sa", u, np.roll(psi, -1, axis=axis))
        behind = np.roll(np.einsum("...ba,...sb->...sa", u.conj(), psi), 1, axis=axis)
        out -= 0.5 * (
            np.einsum("rs,...sa->...ra", one - gamma, ahead) + np.einsum("rs,...sa->...ra", one + gamma, behind)
        )
    return out


def random_field(lattice, seed, spins=True):
    x, y, z, t = lattice
    rng = np.random.default_rng(seed)
    shape = (t, z, y, x, 4, 3) if spins else (t, z, y, x, 3)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def test_operator_is_that_of_the_formula(weak):
    psi = random_field(weak.lattice, 1)
    D = fe.Wilson(weak, mass=0.1)
    np.testing.assert_allclose(D.apply(psi), plain_wilson(weak, psi, 0.1), atol=1e-13 * abs(psi).max() * 10)
    phi = random_field(weak.lattice, 2)
    assert abs(np.vdot(phi, D.apply(psi)) - np.vdot(D.dagger(phi), psi)) < 1e-9
    np.testing.assert_allclose(D.normal(psi), D.dagger(D.apply(psi)), atol=1e-11)


@pytest.mark.parametrize("operator", fe.operators(), ids=lambda operator: operator["name"])
def test_every_operator_solves(weak, operator):
    names = [parameter["name"] for parameter in operator["parameters"]]
    parameters = {"mass": 0.2}
    parameters.update({key: value for key, value in {"csw": 1.0, "mu": 0.1, "u0": 0.9}.items() if key in names})
    D = fe.Operator(operator["name"], weak, **parameters)
    b = np.stack([random_field(weak.lattice, seed, not operator["staggered"]) for seed in (1, 2)])
    x, report = D.solve(b, tol=1e-9, precision="single")
    assert x.shape == b.shape and report.converged
    residual = np.linalg.norm((b - D.apply(x)).reshape(2, -1), axis=1) / np.linalg.norm(b.reshape(2, -1), axis=1)
    np.testing.assert_allclose(residual, report.true_residuals, rtol=1e-3)
    assert "true_residual" in repr(report) and report._repr_html_().startswith("<table>")


def test_operators_are_those_of_the_registry():
    generate = pytest.importorskip("ferrite_lqcd._generate")
    there = pathlib.Path(__file__).resolve().parents[1] / "ferrite_lqcd" / "operators.pyi"
    assert there.read_text() == generate.source(), "python -m ferrite_lqcd._generate > operators.pyi updates the file"


def test_classes_have_the_parameters_of_their_operators(weak):
    signature = inspect.signature(fe.Clover)
    assert list(signature.parameters)[:3] == ["gauge", "mass", "kappa"] and signature.parameters["csw"].annotation == "Optional[float]"
    assert "csw : float\n    Clover coefficient c_sw" in inspect.getdoc(fe.Clover) and fe.Clover.__module__ == "ferrite_lqcd.operators"
    with pytest.raises(TypeError, match="Wilson.. has no parameter 'csw'; its parameters are bc_time, kappa"):
        fe.Wilson(weak, mass=0.1, csw=1.0)


def test_masses_at_once(weak):
    D = fe.Asqtad(weak, mass=0.1, u0=0.9)
    b = random_field(weak.lattice, 3, False)
    x, report = D.solve_masses(b, [0.1, 0.3], tol=1e-9)
    assert x.shape == (2, *b.shape) and report.true_residual < 1e-9
    np.testing.assert_allclose(x[1], fe.Asqtad(weak, mass=0.3, u0=0.9).solve(b, tol=1e-10).x, atol=1e-7)
    y = D.solve_shifts(b, [0.5], tol=1e-10).x[0]
    np.testing.assert_allclose(D.normal(y) + 0.5 * y, b, atol=1e-7)


def test_links_are_seen_without_a_copy(weak):
    view = np.asarray(weak)
    assert view.shape == (8, 6, 4, 2, 4, 3, 3) and not view.flags.writeable and not view.flags.owndata
    assert np.shares_memory(view, np.asarray(weak))
    # The view keeps the links alive.
    view = np.asarray(fe.Gauge.random((2, 2, 2, 2), seed=1))
    gc.collect()
    np.testing.assert_allclose(view @ view.conj().swapaxes(-1, -2), np.broadcast_to(np.eye(3), view.shape), atol=1e-13)


def test_nothing_is_resident(weak):
    """Smearing and flowing leave links and operators as they are."""
    psi = random_field(weak.lattice, 1)
    D = fe.Wilson(weak, mass=0.1)
    before, plaquette = D.apply(psi), weak.plaquette().mean
    smeared = weak.stout(0.1, 2)
    smeared.flow(0.1, 0.05)
    assert weak.plaquette().mean == plaquette < smeared.plaquette().mean
    assert np.array_equal(D.apply(psi), before)
    assert not np.allclose(fe.Wilson(smeared, mass=0.1).apply(psi), before)


def test_covariance(weak):
    """M on transformed links is the transformed M."""
    psi = random_field(weak.lattice, 1)
    g = np.asarray(fe.Gauge.random(weak.lattice, seed=5))[..., 1, :, :]
    turn = lambda field: np.einsum("tzyxab,tzyxsb->tzyxsa", g, field)  # noqa: E731
    there = fe.Clover(weak.transform(g), mass=0.1, csw=1.0).apply(turn(psi))
    np.testing.assert_allclose(there, turn(fe.Clover(weak, mass=0.1, csw=1.0).apply(psi)), atol=1e-12)
    fixed = weak.fix("landau", tol=1e-10)
    assert fixed.file["theta"] <= 1e-10 and abs(fixed.plaquette().mean - weak.plaquette().mean) < 1e-12


def test_files_come_back(tmp_path, weak):
    for name in ("a.ildg", "a.nersc3x3", "a.npy", "a.openqcd"):
        weak.write(tmp_path / name)
        np.testing.assert_allclose(np.asarray(fe.Gauge.read(tmp_path / name)), np.asarray(weak), atol=1e-15)
    assert fe.Gauge.read(tmp_path / "a.ildg").file["checksum"] == "SciDAC verified"
    S = fe.Wilson(weak, mass=0.5).propagator(fe.Point((0, 0, 0, 0)), tol=1e-6)
    for name in ("s.npy", "s.lime"):
        S.write(tmp_path / name)
        np.testing.assert_allclose(fe.read_fermions(tmp_path / name), S.columns, atol=1e-15)
    field = random_field(weak.lattice, 1, False)
    columns = np.stack([random_field(weak.lattice, seed, False) for seed in (1, 2, 3)])
    fe.write_fermions(tmp_path / "x.milc", columns)
    # MILC's format has single precision.
    np.testing.assert_allclose(fe.read_fermions(tmp_path / "x.milc", staggered=True), columns, rtol=1e-7)
    with pytest.raises(fe.FileError, match="3 colour vectors"):
        S.write(tmp_path / "s.milc")
    fe.write_fermions(tmp_path / "x.lime", field)
    np.testing.assert_allclose(fe.read_fermions(tmp_path / "x.lime", staggered=True), field, atol=1e-15)


def test_idr_has_the_dimension_that_is_asked_for(weak):
    """An iteration of IDR(s) has s + 1 applications: with s = 1 one has two, as one of BiCGstab, and with s = 8 nine."""
    D, b = fe.Wilson(weak, mass=0.1), random_field(weak.lattice, 1)

    def applications(s):
        report = D.solve(b, solver="idr", idr_s=s, tol=1e-9, escalate=False).report
        return report.applications["sloppy"] / report.iterations

    found = [applications(s) for s in (1, 8)]
    assert found[0] < 4 < found[1], found


def test_mistakes_are_told(tmp_path, weak):
    with pytest.raises(fe.InputError, match="mass and kappa: give either mass or kappa"):
        fe.Wilson(weak, mass=0.1, kappa=0.12)
    with pytest.raises(fe.InputError, match="bc_time = open: expected antiperiodic or periodic(.|\n)*no mass"):
        fe.Wilson(weak, bc_time="open")
    with pytest.raises(fe.InputError, match="csw: wilson has no such parameter"):
        fe.Operator("wilson", weak, mass=0.1, csw=1.0)
    with pytest.raises(fe.InputError, match="'wislon' is not an operator: choose one of wilson"):
        fe.Operator("wislon", weak)
    D = fe.Wilson(weak, mass=0.1)
    with pytest.raises(fe.InputError, match="the axes of a field are"):
        D.apply(np.zeros((8, 6, 4, 2, 3)))
    with pytest.raises(fe.FerriteError, match="lattice"):
        D.apply(np.zeros((4, 4, 4, 4, 4, 3)))
    with pytest.raises(fe.InputError, match="solver = sor: expected auto"):
        D.solve(np.zeros((8, 6, 4, 2, 4, 3)), solver="sor")
    with pytest.raises(fe.InputError, match="idr_s = 17: expected a whole number from 1 to 16"):
        D.solve(np.zeros((8, 6, 4, 2, 4, 3)), solver="idr", idr_s=17)
    with pytest.raises(fe.InputError, match="idr_s = 2: expected solver = idr"):
        D.solve(np.zeros((8, 6, 4, 2, 4, 3)), solver="cg", idr_s=2)
    with pytest.raises(fe.FileError, match="none.ildg: cannot open"):
        fe.Gauge.read(tmp_path / "none.ildg")
    with pytest.raises(fe.InputError, match="end it in .ildg"):
        weak.write(tmp_path / "a.cfg")
    with pytest.raises(fe.InputError, match="odd|even"):
        fe.Gauge.unit((3, 4, 4, 4))
    with pytest.raises(fe.SolverError, match="did not converge") as stopped:
        D.solve(random_field(weak.lattice, 1), max_iterations=2)
    assert stopped.value.report.iterations == 2 and stopped.value.x.shape == (8, 6, 4, 2, 4, 3)
    with pytest.raises(fe.InputError, match="'gpu' is not a device"):
        fe.Device("gpu")


def test_threads_of_python_run_beside_each_other(weak):
    """The interpreter's lock is free while a device works, and a device takes one job after the other."""
    D, b = fe.Wilson(weak, mass=0.1), random_field(weak.lattice, 1)
    expected = D.solve(b).x
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    clock = threading.Thread(target=tick)
    clock.start()
    found = [None] * 4

    def solve(k):
        found[k] = D.solve(b).x

    workers = [threading.Thread(target=solve, args=(k,)) for k in range(4)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    done.set()
    clock.join()
    assert all(np.array_equal(one, expected) for one in found) and len(ticks) > 3


def test_results_do_not_depend_on_threads(weak):
    b = random_field(weak.lattice, 1)
    one, two = (fe.Wilson(weak, mass=0.1, device=fe.Device("cpu", threads=n)).solve(b).x for n in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_control_c_ends_a_solve(tmp_path):
    """Within a second, and the device can be used afterwards."""
    script = """
import ferrite_lqcd as fe, numpy as np, signal
# A process that a shell has put into the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
fe.init("cpu", threads=1)
# Inside the spectrum of such links, where CG takes thousands of iterations.
D = fe.Wilson(fe.Gauge.random((8, 8, 8, 8), seed=1), kappa=0.3)
b = fe.Noise(1).field((8, 8, 8, 8), spin=0)
print("begins", flush=True)
try:
    D.solve(b, solver="cg", max_iterations=1_000_000)
except KeyboardInterrupt:
    print("interrupted", np.isfinite(D.apply(b)).all(), flush=True)
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = subprocess.Popen([sys.executable, "-c", script], env=environment, **pipes)
    assert running.stdout.readline() == "begins\n"
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=60) == ("interrupted True\n", "")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_control_c_ends_a_trajectory():
    """At its next step; the chain is as it was, and makes the same trajectory as one that was not interrupted."""
    script = """
import ferrite_lqcd as fe, numpy as np, signal
# A background job of a shell ignores SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
fe.init("cpu", threads=1)
def chain(steps):
    quarks = [fe.TwoFlavours("clover", kappa=0.12, csw=1.0, guesses=2), fe.OneFlavour("wilson", kappa=0.11)]
    U = fe.Gauge.random((4, 4, 4, 4), seed=1, noise=0.3)
    return fe.HMC(U, fe.GaugeAction("iwasaki", 2.0), quarks, steps=steps, length=0.1, seed=3, thermalise=9, friction=0.5)
# Many more steps than anybody waits for.
hmc = chain(100_000)
before = np.array(hmc.gauge)
print("begins", flush=True)
try:
    hmc.trajectory()
except KeyboardInterrupt:
    print("interrupted", hmc.number, np.array_equal(hmc.gauge, before), flush=True)
hmc, same = chain(25), chain(25)
straight = [same.trajectory() for _ in range(2)]
first = hmc.trajectory()
before = np.array(hmc.gauge)
print("again", flush=True)
stopped = 0
while True:
    try:
        second = hmc.trajectory()
        break
    except KeyboardInterrupt:
        stopped += 1
        assert hmc.number == 1 and np.array_equal(hmc.gauge, before)
        print("stopped", flush=True)
def numbers(trajectory):
    return trajectory.delta_h, trajectory.plaquette, trajectory.iterations, trajectory.start, trajectory.end
print(stopped > 0, numbers(first) == numbers(straight[0]), numbers(second) == numbers(straight[1]), hmc.number)
print(np.array_equal(hmc.gauge, same.gauge))
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = subprocess.Popen([sys.executable, "-c", script], env=environment, **pipes)
    assert running.stdout.readline() == "begins\n"
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    assert running.stdout.readline() == "interrupted 0 True\n"
    assert running.stdout.readline() == "again\n"
    time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=120) == ("stopped\nTrue True True 2\nTrue\n", "")


def test_trajectories(weak):
    start = fe.Gauge.random((2, 2, 2, 4), seed=1, noise=0.3)
    quarks = [fe.TwoFlavours("clover", kappa=0.12, csw=1.0, heavier=[1.0]), fe.OneFlavour("wilson", kappa=0.11)]
    hmc = fe.HMC(start, fe.GaugeAction("iwasaki", 2.0), quarks, steps=[2, 2], gauge_steps=2, length=0.2, seed=3)
    trajectory = hmc.trajectory(reverse=True)
    assert abs(trajectory.delta_h) < 0.5 and max(trajectory.irreversibility) < 1e-5 and trajectory.failure is None
    assert abs(hmc.gauge.plaquette().mean - trajectory.plaquette) < 1e-12
    hisq = fe.StaggeredQuarks("hisq", [0.1, 0.3], [2, 1])
    symanzik = fe.GaugeAction("luscher-weisz", 7.0, u0=0.9, flavours=3)
    steps = [fe.HMC(start, symanzik, [hisq], steps=n, length=0.2, seed=1).trajectory().delta_h for n in (2, 4)]
    # Of second order.
    assert 2.5 < steps[0] / steps[1] < 6
    with pytest.raises(fe.InputError, match="level 3"):
        fe.HMC(start, symanzik, [fe.StaggeredQuarks("hisq", [0.1], [2], level=3)], seed=1)
    with pytest.raises(fe.InputError, match="gauge action 'plaq'"):
        fe.HMC(start, fe.GaugeAction("plaq", 6.0), seed=1)


def test_contractions_are_checked():
    a = np.ones((2, 3))
    with pytest.raises(fe.InputError, match="has no '->'"):
        fe.contract("a b", a)
    with pytest.raises(fe.InputError, match="b has 3 values in one array, but 2"):
        fe.contract("a b, b a -> a", a, a)
    np.testing.assert_allclose(fe.contract("one two, three two -> one three", a, a), a @ a.T)
    assert fe.contract("a, a ->", [1, 2], [3, 4]) == 11


def test_multigrid_is_an_object(weak):
    links = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.2)
    D, b = fe.Clover(links, mass=0.05, csw=1.0), random_field(links.lattice, 1)
    setup = D.setup(vectors=8, levels=2, blocks=[(2, 2, 2, 2)])
    assert setup.seconds > 0 and setup.levels == [{"block": [2, 2, 2, 2], "vectors": 8}]
    report = D.solve(b, solver=setup).report
    assert report.solver == "multigrid" and report.converged
    with pytest.raises(fe.InputError, match="belongs to another operator"):
        fe.Clover(links, mass=0.1, csw=1.0).solve(b, solver=setup)
    with pytest.raises(fe.InputError, match="divide the 2×4×6×8 of level 0"):
        fe.Clover(weak, mass=0.1, csw=1.0).setup(blocks=[(2, 2, 2, 2)])


def test_multigrid_setups_are_kept(tmp_path):
    """A setup of a file takes the iterations of the one that was saved."""
    links, path = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.3), tmp_path / "clover.setup"
    D, b = fe.Clover(links, mass=-0.2, csw=1.0), random_field((4, 4, 4, 8), 1)
    blocks = [(2, 2, 2, 2)]
    made = D.setup(vectors=8, blocks=blocks)
    known = D.solve(b, solver=made)
    made.save(path)
    loaded = fe.Clover(links, mass=-0.2, csw=1.0).load_setup(path, blocks=blocks)
    assert loaded.levels == made.levels
    found = loaded._operator.solve(b, solver=loaded)
    np.testing.assert_allclose(found.x, known.x, atol=1e-8 * abs(known.x).max())
    assert abs(found.report.iterations - known.report.iterations) <= 1
    # In place of a setup that is there, which a setup of a file can be saved as.
    D.load_setup(path, blocks=blocks).save(tmp_path / "again.setup")
    again = fe.Clover(links, mass=-0.15, csw=1.1).load_setup(tmp_path / "again.setup", blocks=blocks)
    assert again._operator.solve(b, solver=again).report.iterations <= known.report.iterations + 1
    with pytest.raises(fe.InputError, match="a newer setup"):
        made.save(tmp_path / "none.setup")
    with pytest.raises(fe.FileError, match="clover.setup is a setup for links with checksum"):
        fe.Clover(fe.Gauge.random((4, 4, 4, 8), seed=8, noise=0.3), mass=-0.2, csw=1.0).load_setup(path)
    with pytest.raises(fe.FileError, match='clover.setup is a setup for operator = "clover", but this solve has operator = "wilson"'):
        fe.Wilson(links, mass=-0.2).load_setup(path)
    with pytest.raises(fe.FileError, match="none.setup: cannot open"):
        D.load_setup(tmp_path / "none.setup")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(fe.FileError, match="clover.setup"):
        D.load_setup(path)
    with pytest.raises(fe.InputError, match="multigrid applies to Wilson-like operators only"):
        fe.Staggered(links, mass=0.1).load_setup(path)


def test_plots_show_themselves(tmp_path, weak):
    D = fe.Wilson(weak, mass=0.1)
    report = D.solve(random_field(weak.lattice, 1)).report
    correlators = fe.mesons(D.propagator(fe.Point((1, 2, 3, 4)), tol=1e-6))
    for picture in (report.plot(), correlators.plot("pion"), weak.flow(0.1, 0.05).plot()):
        assert picture._repr_svg_().startswith("<svg")
    correlators.plot().save(tmp_path / "c.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["c.svg"]


def test_arrays_of_a_device_are_shared(weak):
    """Without a copy: what one sees, the other does."""
    D = fe.Clover(weak, mass=0.2, csw=1.0)
    b = np.stack([random_field(weak.lattice, seed) for seed in (1, 2, 3)])
    there = fe.to_device(b)
    image = D.apply(there)
    assert isinstance(image, fe.DeviceArray) and image.shape == b.shape
    np.testing.assert_array_equal(image.numpy(), D.apply(b))
    x, report = D.solve(there, tol=1e-10, precision="single")
    assert report.converged
    np.testing.assert_allclose(x.numpy(), D.solve(b, tol=1e-10).x, atol=1e-8)
    # From a guess that is the solution nothing is left to do.
    assert D.solve(there, guess=x, tol=1e-9).report.iterations <= 1
    if fe.device().name == "cpu":
        view = np.from_dlpack(x)
        assert view.dtype == np.complex128 and not view.flags.owndata and np.array_equal(view, x.numpy())
        view.flags.writeable and view.__setitem__(0, 0)
        assert view.flags.writeable is False or not x.numpy()[0].any()
        assert not hasattr(x, "__cuda_array_interface__")
        del x, there
        gc.collect()
        assert np.isfinite(view).all()
    else:
        interface = x.__cuda_array_interface__
        assert interface["shape"] == b.shape and interface["typestr"] == "<c16" and x.__dlpack_device__()[0] == 2
    with pytest.raises(fe.InputError, match="the shape of a field of this operator is"):
        D.apply(fe.to_device(np.zeros((2, 2, 2, 2, 4, 3))))
    with pytest.raises(fe.InputError, match="1 to 16"):
        D.apply(fe.to_device(np.zeros((17, *b.shape[1:]))))
    other = fe.Device("cpu", threads=1)
    with pytest.raises(fe.DeviceError, match="an array"):
        D.apply(fe.to_device(b, device=other))
    naive = fe.Staggered(weak, mass=0.2)
    source = random_field(weak.lattice, 4, False)
    x = naive.solve(fe.to_device(source)).x
    np.testing.assert_allclose(naive.apply(x.numpy()), source, atol=1e-8)


def test_propagators_stay_on_their_device(weak):
    """What is made of a propagator that stays is what is made of its array."""
    D, shell = fe.Clover(weak, mass=0.3, csw=1.0), fe.Shell((1, 2, 3, 4), 1.3, 4, weak, momentum=(0.5, 0.0, -1.0))
    noise = fe.Noise(3, t=2)
    for operator, source in [(D, fe.Point((1, 2, 3, 4))), (D, shell), (D, noise), (fe.Asqtad(weak, mass=0.2, u0=0.9), fe.Wall(1))]:
        there = operator.propagator(source, tol=1e-12)
        array, _ = operator.solve(source.fields(weak.lattice, operator.staggered), tol=1e-12)
        assert there._there is not None and there._columns is None
        back = fe.Propagator(there.columns, source.origin, phases=there.phases)
        np.testing.assert_allclose(back.columns, array, atol=1e-9 * abs(array).max())
        for name, values in fe.mesons(there).items():
            # The same bits, but for the copy that fields of the device were made of.
            np.testing.assert_allclose(values, fe.mesons(back)[name], atol=1e-13 * abs(values).max())
    # A sink that is smeared, and another device.
    S = D.propagator(shell, tol=1e-10)
    np.testing.assert_allclose(shell.smeared(S).columns, shell.smeared(S.columns), rtol=1e-12)
    other = fe.Device("cpu", threads=1)
    for name, values in fe.nucleon(S, device=other).items():
        np.testing.assert_allclose(values, fe.nucleon(S)[name], atol=1e-13 * abs(values).max())
    # A source of one's own, and a solve that fails.
    class Own(fe.Point):
        def fields(self, lattice, staggered=False):
            return 2 * super().fields(lattice, staggered)

    twice = D.propagator(Own((0, 0, 0, 0)), tol=1e-10).columns
    np.testing.assert_allclose(twice, 2 * D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-10).columns, atol=1e-8)
    with pytest.raises(fe.SolverError) as failed:
        D.propagator(fe.Point((0, 0, 0, 0)), tol=1e-10, max_iterations=3)
    assert failed.value.x.shape == (12, 8, 6, 4, 2, 4, 3) and not failed.value.report.converged


def test_mesons_of_two_masses(weak):
    """Against plain sums, from a shifted source, with momentum."""
    light, heavy = (fe.Wilson(weak, mass=m).propagator(fe.Point((1, 2, 3, 4)), tol=1e-9) for m in (0.2, 0.5))
    found = fe.mesons(light, heavy, momenta=[(0, 1, 0)], gammas=["gx"])["gx"][0]
    gx, five = fe.gamma("gx"), fe.gamma("g5")
    bar = fe.gamma("gt") @ gx.conj().T @ fe.gamma("gt")
    phase = np.exp(-2j * np.pi * (np.arange(4) - 2) / 4)
    names = "y, g h, t z y x h b c d, b k, t z y x i k c d, i g -> t"
    expected = -fe.contract(names, phase, gx, light.array(), bar @ five, heavy.array().conj(), five)
    np.testing.assert_allclose(found, np.roll(expected, -4), rtol=1e-9, atol=1e-12 * abs(expected).max())
    S = fe.Hisq(weak, mass=0.3).propagator(fe.Point((0, 0, 0, 2)), tol=1e-9)
    expected = fe.contract("t z y x a b, t z y x a b -> t", S.array(), S.array().conj())
    np.testing.assert_allclose(fe.mesons(S)["pion"][0], np.roll(expected, -2), rtol=1e-10)
    nucleon = fe.nucleon(S)["nucleon"][0]
    even = S.array()[:, ::2, ::2, ::2]
    expected = np.roll(6 * np.linalg.det(even).sum(axis=(1, 2, 3)), -2)
    # Behind the end of the lattice three quarks have turned their sign.
    expected[6:] *= -1
    np.testing.assert_allclose(nucleon, expected, rtol=1e-8)
    with pytest.raises(fe.InputError, match="of the same kind"):
        fe.mesons(light, S)


def test_shells_of_a_plane_wave():
    """On unit links a step multiplies a wave by 1 + σ Σ (2 cos (q − κ) − 2)."""
    U = fe.Gauge.unit((4, 4, 6, 2))
    shell = fe.Shell((0, 0, 0, 0), width=1.5, steps=3, gauge=U, momentum=(0.0, 0.5, 1.0))
    wave = fe.Momentum(1, (1, 2, 1)).field(U.lattice, spin=2, colour=1)
    sigma, extents = 1.5**2 / 12, (4, 4, 6)
    angles = [2 * np.pi * (q - k) / n for q, k, n in zip((1, 2, 1), (0.0, 0.5, 1.0), extents)]
    factor = (1 + sigma * sum(2 * np.cos(angle) - 2 for angle in angles)) ** 3
    np.testing.assert_allclose(shell.smeared(wave), factor * wave, atol=1e-13)
