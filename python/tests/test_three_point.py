"""Three-point functions of mesons and of the nucleon: the charge is one, the scalar current is a derivative, and plain sums."""

import numpy as np
import pytest

import ferrite_lqcd as fe

ORIGIN = (1, 2, 0, 5)
TIGHT = dict(tol=1e-13)


def clover(weak, mass, **parameters):
    return fe.Clover(weak, mass=mass, csw=1.1, **parameters)


@pytest.mark.parametrize("boundary", ["antiperiodic", "periodic"])
def test_the_charge_is_one(weak, boundary):
    light, heavy = (clover(weak, m, bc_time=boundary) for m in (0.3, 0.6))
    S1, S2 = (D.propagator(fe.Point(ORIGIN), **TIGHT) for D in (light, heavy))
    for gamma, p, separation in (("g5", (0, 0, 0), 4), ("gx", (0, 1, 0), 3)):
        through = fe.sequential(light, S2, separation, sink=gamma, momentum=p, **TIGHT)
        V = fe.conserved_charge(light, S1, through, source=gamma)[0]
        two = fe.mesons(S1, S2, momenta=[p], gammas=[gamma])[gamma][0, separation]
        inside, outside = V[:separation], V[separation:]
        # Residuals of 1e-13 of larger parts of the fields.
        assert np.abs((inside[0] - outside[0]) / two - 1) < 1e-9
        assert np.abs(inside - inside[0]).max() < 1e-9 * abs(two) > np.abs(outside - outside[0]).max()


def test_the_scalar_current_is_a_derivative(weak):
    """S₁ changes with its mass by −S₁ S₁."""
    p, separation = (0, 0, 1), 6
    S2 = clover(weak, 0.6).propagator(fe.Point(ORIGIN), **TIGHT)

    def two(mass):
        S1 = clover(weak, mass).propagator(fe.Point(ORIGIN), **TIGHT)
        return fe.mesons(S1, S2, momenta=[p], gammas=["g5"])["g5"][0, separation]

    D = clover(weak, 0.3)
    through = fe.sequential(D, S2, separation, momentum=p, **TIGHT)
    scalar = fe.three_point(D.propagator(fe.Point(ORIGIN), **TIGHT), through, currents=["1"])["1"][0].sum()
    # Of fourth order: the error is step⁴ times the fifth derivative over 30, and rounding 1e-12 over the step.
    h = 2e-3
    derivative = (two(0.3 - 2 * h) - 8 * two(0.3 - h) + 8 * two(0.3 + h) - two(0.3 + 2 * h)) / (12 * h)
    assert abs(scalar + derivative) < 1e-7 * abs(derivative)


def test_smeared_sinks_and_momenta_are_plain_sums(weak):
    """−Σ_y e^{−i q y} tr Γ_J S₁(y) Γ̄' γ_5 Σ†(y) γ_5, with Σ of a source that NumPy makes."""
    D = fe.Wilson(weak, mass=0.4)
    S = D.propagator(fe.Point(ORIGIN), **TIGHT)
    shell = fe.Shell(ORIGIN, width=1.2, steps=3, gauge=weak)
    p, q, separation = (0, 1, 0), (0, -1, 2), 3
    through = fe.sequential(D, S, separation, sink="gy", momentum=p, shell=shell, **TIGHT)
    g5, gy = fe.gamma("g5"), fe.gamma("gy")
    time = (ORIGIN[3] + separation) % 8
    y, z = np.arange(4) - ORIGIN[1], np.arange(6) - ORIGIN[2]
    wave = lambda k: np.exp(2j * np.pi * (k[1] * y[:, None] / 4 + k[2] * z[:, None, None] / 6))  # noqa: E731
    eta = np.zeros_like(S.columns)
    inner = np.einsum("rs,...sc->...rc", g5 @ gy.conj().T @ g5, shell.smeared(S.columns)[:, time])
    eta[:, time] = wave(p)[None, ..., None, None] * inner
    expected = D.solve(shell.smeared(eta), **TIGHT).x
    np.testing.assert_allclose(through.columns, expected, atol=1e-11 * abs(expected).max())
    gt, current = fe.gamma("gt"), fe.gamma("gxgy")
    bar = gt @ gy.conj().T @ gt
    names = "z y x, g h, t z y x h b c d, b k, t z y x i k c d, i g -> t"
    plain = -fe.contract(
        names, wave(q).conj() * np.ones(2), current, S.array(), bar @ g5, through.array().conj(), g5
    )
    found = fe.three_point(S, through, momenta=[q], currents=["gxgy", "gt"], source="gy")
    assert list(found) == ["gxgy", "gt"] and found["gt"].shape == (1, 8)
    np.testing.assert_allclose(found["gxgy"][0], np.roll(plain, -ORIGIN[3]), rtol=1e-9, atol=1e-12 * abs(plain).max())


@pytest.mark.parametrize("projector", ["unpolarised", "polarised-z"])
def test_currents_of_the_nucleon(weak, projector):
    """The charge of u is two and that of d one, and u and d together change with the mass as the two-point function does."""
    p, separation, mass = (0, 1, 0), 4, 0.4
    D = clover(weak, mass)
    S = D.propagator(fe.Point(ORIGIN), **TIGHT)
    through = {
        flavour: fe.sequential_nucleon(
            D, S, separation, projector=projector, flavour=flavour, momentum=p, **TIGHT
        )
        for flavour in "ud"
    }
    charges = {flavour: fe.conserved_charge(D, S, Sigma)[0] for flavour, Sigma in through.items()}
    steps = {flavour: V[1] - V[separation + 1] for flavour, V in charges.items()}
    assert abs(steps["u"] / steps["d"] - 2) < 1e-9
    if projector == "polarised-z":
        # With the projector's other half, whose two-point function no command makes, only the ratio is known.
        return

    def two(mass):
        S = clover(weak, mass).propagator(fe.Point(ORIGIN), **TIGHT)
        return fe.nucleon(S, [p])["nucleon"][0, separation]

    assert abs(steps["d"] / two(mass) - 1) < 1e-9
    scalar = sum(fe.three_point(S, Sigma, currents=["1"])["1"][0].sum() for Sigma in through.values())
    # As of the meson's scalar current.
    h = 2e-3
    derivative = (two(mass - 2 * h) - 8 * two(mass - h) + 8 * two(mass + h) - two(mass + 2 * h)) / (12 * h)
    assert abs(scalar + derivative) < 1e-6 * abs(derivative)


def test_mistakes_of_three_point_functions_are_told(weak):
    D = fe.Wilson(weak, mass=0.5)
    S = D.propagator(fe.Point(ORIGIN), tol=1e-6)
    with pytest.raises(fe.InputError, match="separation = 8: expected a whole number from 0 to 7"):
        fe.sequential(D, S, 8)
    with pytest.raises(fe.InputError, match="'polarised' is not a projector: choose one of unpolarised, polarised-x"):
        fe.sequential_nucleon(D, S, 3, projector="polarised")
    with pytest.raises(fe.InputError, match="'s' is not a flavour: choose one of u, d"):
        fe.sequential_nucleon(D, S, 3, flavour="s")
    with pytest.raises(fe.InputError, match="'g6' is not a product"):
        fe.sequential(D, S, 2, sink="g6")
    with pytest.raises(fe.InputError, match="momentum = .1, 0.: expected a momentum of three components"):
        fe.sequential(D, S, 2, momentum=(1, 0))
    naive = fe.Staggered(weak, mass=0.5)
    with pytest.raises(fe.InputError, match="Wilson-like"):
        fe.sequential(naive, S, 2)
    with pytest.raises(fe.InputError, match="Wilson-like quarks"):
        fe.sequential(D, naive.propagator(fe.Point(ORIGIN), tol=1e-6), 2)
    other = fe.Propagator(S.columns, (0, 0, 0, 0))
    with pytest.raises(fe.InputError, match="from different sources"):
        fe.three_point(S, other)
    twisted = fe.Wilson(weak, mass=0.5, theta=(0.1, 0.0, 0.0, 0.0))
    with pytest.raises(fe.InputError, match="not available with twisted boundary conditions"):
        fe.conserved_charge(twisted, S, S)
