"""The scripts of ``examples``, each run as a user runs it."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import ferrite_lqcd as fe

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def run(folder, name, *arguments):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), OMP_NUM_THREADS="2")
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def weak_field(reference):
    return reference / "configs" / "pyquda_weak_field.lime"


def propagator(path, source, gauge=None):
    U = fe.Gauge.read(path).stout(0.125)
    return fe.Clover(U, mass=0.1, csw=1.16).propagator(source)


def test_quenched_hmc(tmp_path):
    """The same ensemble as by heat bath: the plaquette, and ⟨exp(−ΔH)⟩ = 1."""
    lines = run(tmp_path, "quenched_hmc.py", 4, 5.5, 60).splitlines()
    numbers = [line.replace(",", "").split() for line in lines]
    plaquettes = np.array([float(words[2]) for words in numbers][10:])
    delta = np.array([float(words[4]) for words in numbers][10:])
    heatbath = np.array(fe.Gauge.quenched((4, 4, 4, 4), 5.5, seed=3, sweeps=300).file["plaquettes"][50:])

    def error(series):
        bins = series[: len(series) // 10 * 10].reshape(-1, 10).mean(1)
        return bins.std(ddof=1) / np.sqrt(len(bins))

    assert abs(plaquettes.mean() - heatbath.mean()) < 4 * np.hypot(error(plaquettes), error(heatbath))
    weights = np.exp(-delta)
    assert abs(weights.mean() - 1) < 4 * weights.std() / np.sqrt(len(weights))
    saved = fe.Gauge(np.load(tmp_path / "cfg_60.npy"))
    assert abs(saved.plaquette().mean - plaquettes[-1]) < 1e-8


def test_propagator(tmp_path, weak_field):
    run(tmp_path, "propagator.py", weak_field)
    found = np.load(tmp_path / "pion.npy")
    S = propagator(weak_field, fe.Wall(3)).array()
    expected = fe.contract("t z y x s s1 c c1, t z y x s s1 c c1 -> t", S, S.conj()).real
    np.testing.assert_allclose(found[3], np.roll(expected, -3), rtol=1e-8)
    assert (tmp_path / "pion_2pt.svg").read_text().startswith("<svg")


def test_pion_proton(tmp_path, weak_field, reference):
    """Chroma's pion, which it computed in single precision."""
    said = run(tmp_path, "pion_proton.py", weak_field)
    assert "pion" in said and "proton" in said
    found = np.load(tmp_path / "hadrons.npz")
    data = json.loads((reference / "answers" / "chroma_hadspec_pion_4448.json").read_text())["data"]
    expected = np.array(data["Shell_Point_Wilson_Mesons"]["15"])[:, 0]
    np.testing.assert_allclose(found["pion"][0].real, expected, rtol=2e-5)
    # The proton by the sum over permutations of colours.
    U = fe.Gauge.read(weak_field)
    source = fe.Shell((0, 0, 0, 0), width=2.0, steps=5, gauge=U.ape(4 / 6.5, spatial=True))
    S = fe.Wilson(U, kappa=0.11).propagator(source).array()
    proton = np.zeros(8, dtype=complex)
    G = fe.gamma("gxgz")
    tilde = fe.gamma("gt") @ G.conj().T @ fe.gamma("gt")
    P = (np.eye(4) + fe.gamma("gt")) / 2
    even = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    signs = [(p, 1) for p in even] + [(p[::-1], -1) for p in even]
    for (a, b, c), sign in signs:
        for (d, e, f), other in signs:
            s, u, v = S[..., a, d], S[..., b, e], S[..., c, f]
            direct = fe.contract(
                "a b, e d, g h, t z y x b e, t z y x a d, t z y x h g -> t", G, tilde, P, u, s, v
            )
            exchange = fe.contract(
                "a b, e d, g h, t z y x b e, t z y x a g, t z y x h d -> t", G, tilde, P, u, S[..., a, f], S[..., c, d]
            )
            proton += sign * other * (direct - exchange)
    np.testing.assert_allclose(found["proton"][0], proton, rtol=1e-8, atol=1e-12 * abs(proton).max())


def test_pcac(tmp_path, weak_field):
    run(tmp_path, "pcac.py", weak_field)
    found = np.load(tmp_path / "pcac.npz")
    S, five, axial = propagator(weak_field, fe.Wall(0)).array(), fe.gamma("g5"), fe.gamma("gxgygz")
    bar = fe.gamma("gt") @ five.conj().T @ fe.gamma("gt")
    names = "g h, t z y x h b c d, b k, t z y x i k c d, i g -> t"
    expected = -fe.contract(names, axial, S, bar @ five, S.conj(), five)
    np.testing.assert_allclose(found["axial"], expected.real, rtol=1e-8, atol=1e-12)


def test_dispersion(tmp_path, weak_field):
    run(tmp_path, "dispersion.py", weak_field)
    found = np.load(tmp_path / "dispersion.npy")
    S = propagator(weak_field, fe.Point((0, 0, 0, 0))).array()
    # p = (0, 1, 2) is the sixth.
    y, z = np.arange(4)[:, None] / 4, np.arange(4)[:, None, None] / 4
    phase = np.exp(-2j * np.pi * (y + 2 * z)) * np.ones((4, 4, 4))
    expected = fe.contract("z y x, t z y x s r c d, t z y x s r c d -> t", phase, S, S.conj())
    np.testing.assert_allclose(found[5], expected, rtol=1e-8, atol=1e-12 * abs(expected).max())
