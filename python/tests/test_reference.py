"""Against numbers of other codes."""

import json

import numpy as np

import ferrite_lqcd as fe

SHELL = dict(width=2.0, steps=5)


def answer(reference, name):
    return json.loads((reference / "answers" / f"{name}.json").read_text())


def norms(S):
    return np.sum(np.abs(S.columns) ** 2, axis=(0, 2, 3, 4, 5, 6))


def test_propagators_of_chroma(reference):
    """Chroma ran in single precision: 5e-7 was found by an independent program, which the data come with."""
    U = fe.Gauge.read(reference / "configs" / "pyquda_weak_field.lime")
    data = answer(reference, "chroma_weakfield_4448")["data"]
    source = fe.Shell((0, 0, 0, 0), gauge=U, **SHELL)
    anisotropic = dict(xi=2.464, nu=0.95)
    wilson = fe.Wilson(U, mass=0.5 / 0.135 - 4, **anisotropic).propagator(source)
    np.testing.assert_allclose(norms(wilson), data["prec_wilson"]["prop_corr"], rtol=1e-6)
    clover = fe.Clover(U, mass=0.5 / 0.115 - 4, clover_r=0.91, clover_t=1.07, **anisotropic).propagator(source)
    np.testing.assert_allclose(norms(clover), data["prec_clover"]["prop_corr"], rtol=1e-6)


def test_pion_of_milc(reference):
    """MILC's M is twice ours, and its printed digits are seven."""
    U = fe.Gauge.read(reference / "configs" / "lat.sample.l4448", reunitarise=True)
    S = fe.Hisq(U, mass=0.05, bc_time="periodic").propagator(fe.Point((0, 0, 0, 0)))
    found = fe.mesons(S)["pion"][0].real
    expected = np.array(answer(reference, "milc_hisq_pion_point_4448")["correlators"][0]["data"])[:, 0] / 0.000244141
    np.testing.assert_allclose(found / 4, expected, rtol=5e-6)


def test_condensate_of_cl2qcd(reference):
    """By hand: M of unit links on constant fields is a number."""
    data = answer(reference, "cl2qcd_twisted_4444")
    kappa, volume = data["kappa"], 256
    D = fe.Twisted(fe.Gauge.unit((4, 4, 4, 4)), kappa=kappa, mu=data["mu"], bc_time="periodic")
    b = np.ones((4, 4, 4, 4, 4, 3), dtype=complex)
    # Theirs is κ-normalised, 2 κ M, and its γ5 is opposite to ours, which is diagonal, too.
    x = D.solve(b, tol=1e-14).x / (2 * kappa)
    signs = np.diag(fe.gamma("g5")).real
    value = 4 * kappa / (12 * volume) * np.sum((signs[:, None] * b).conj() * x).imag
    assert abs(abs(value) / data["twisted_mass_cold_volume"] - 1) < 1e-12


def test_flow_of_openqcd(reference):
    (path,) = (reference / "openqcd").glob("openQCD_*")
    start, end = answer(reference, "openqcd_flow_8888")["flow"]
    U = fe.Gauge.read(path)
    points = U.flow(end["t"], 0.02).points
    for point, expected in ((points[0], start), (points[-1], end)):
        assert abs(point.energy * 8**4 / expected["Yact"] - 1) < 1e-6
        assert abs(point.plaquette_energy * 8**4 / expected["Wact"] - 1) < 1e-6
        assert abs(point.charge + expected["Q"]) < 1e-3


def test_loops_of_cl2qcd(reference):
    """Rectangles are summed there: 12 V planes and orientations of Re tr / 3."""
    loops = fe.Gauge.read(reference / "configs" / "cl2qcd_conf.00200").loops()
    assert abs(loops.plaquette.mean - 0.57107711169452713) < 1e-12
    assert abs(loops.rectangle * 12 * 256 / 1103.2398401620451 - 1) < 1e-12
    assert abs(loops.polyakov - (-0.11349672123636857 + 0.22828243566855227j)) < 1e-12
