"""Fits and effective masses: against least squares and jackknives that NumPy does here."""

import numpy as np
import pytest

import ferrite_lqcd as fe


def samples(seed, count=200, times=16, form="cosh", noise=0.02):
    """One state with correlated noise: numbers that neighbours in time share."""
    rng, t = np.random.default_rng(seed), np.arange(times)
    sign = {"cosh": 1, "sinh": -1, "exp": 0}[form]
    truth = 1.3 * (np.exp(-0.4 * t) + sign * np.exp(-0.4 * (times - t)))
    walk = np.zeros((count, times))
    last = rng.standard_normal(count)
    for k in range(times):
        last = 0.8 * last + 0.6 * rng.standard_normal(count)
        walk[:, k] = last
    return truth * (1 + noise * walk), truth


def least_squares(x, y, covariance, function):
    """Gauss and Newton, with derivatives by differences."""
    p, inverse = np.array([1.0, 0.35]), np.linalg.inv(covariance)
    for _ in range(25):
        r = y - function(x, p)
        step = 1e-6
        slopes = [(function(x, p + step * e) - function(x, p - step * e)) / (2 * step) for e in np.eye(2)]
        J = np.stack(slopes, axis=1)
        p = p + np.linalg.solve(J.T @ inverse @ J, J.T @ inverse @ r)
    r = y - function(x, p)
    return p, r @ inverse @ r


@pytest.mark.parametrize("form", ["cosh", "sinh", "exp"])
def test_a_fit_is_least_squares(form):
    data, _ = samples(1, form=form)
    fit = fe.fit(data, form=form, window=(2, 7), covariance="full")
    sign = {"cosh": 1, "sinh": -1, "exp": 0}[form]
    mirrored = np.roll(data[:, ::-1], 1, axis=1)
    folded = data if form == "exp" else 0.5 * (data + sign * mirrored)
    x, part = np.arange(2.0, 8.0), folded[:, 2:8]
    covariance = np.cov(part, rowvar=False) / len(part)

    def function(t, p):
        return p[0] * (np.exp(-p[1] * t) + sign * np.exp(-p[1] * (16 - t)))

    p, chi2 = least_squares(x, part.mean(axis=0), covariance, function)
    # Minima of one quadratic form, found by steps that end at 1e-7 standard deviations.
    assert abs(fit.energy.value - p[1]) < 1e-5 * fit.energy.error and abs(fit.chi2 - chi2) < 1e-6 * (1 + chi2)
    assert abs(fit.amplitude.value - p[0]) < 1e-5 * fit.amplitude.error
    assert (fit.dof, fit.window, fit.covariance, fit.average, fit.states) == (4, (2, 7), "full", None, 1)
    np.testing.assert_allclose(fit(np.arange(16)), function(np.arange(16), p), rtol=1e-6, atol=1e-9)
    # The means that leave out one, with the covariance as it is; the rest is for its being estimated, 2 % of 200 samples.
    left = [least_squares(x, (part.sum(axis=0) - one) / 199, covariance, function)[0][1] for one in part]
    jackknife = np.sqrt(199 * np.var(left))
    assert 0.999 < fit.energy.error / jackknife < 1.06
    by_draws = fe.fit(data, form=form, window=(2, 7), covariance="full", bootstrap=400)
    # Of 400 draws errors are known to 1/√800, within five of these.
    assert abs(by_draws.energy.error / fit.energy.error - 1) < 0.18
    assert by_draws.energy.value == fit.energy.value
    again = fe.fit(data, form=form, window=(2, 7), covariance="full", bootstrap=400, seed=2)
    assert again.energy.error != by_draws.energy.error
    assert 0 < fit.p_value < 1 and "chi2/dof" in repr(fit) and fit._repr_svg_().startswith("<svg")


def test_errors_cover_the_truth():
    """68 % of 60 experiments, within four of their deviations, which are 6 %; windows and covariances by themselves."""
    within = 0
    for seed in range(60):
        fit = fe.fit(samples(seed, count=80)[0], bin=1)
        within += abs(fit.energy.value - 0.4) < fit.energy.error
        assert fit.average is not None and abs(sum(one["probability"] for one in fit.windows) - 1) < 0.5
    assert 0.44 < within / 60 < 0.92


def test_effective_masses_are_the_jackknife():
    data, _ = samples(3, form="exp")
    m, dm = fe.effective_masses(data, form="exp", bin=2)
    bins = data.reshape(100, 2, 16).mean(axis=1)
    ratio = lambda mean: np.log(mean[:-1] / mean[1:])  # noqa: E731
    left = np.array([ratio((bins.sum(axis=0) - one) / 99) for one in bins])
    np.testing.assert_allclose(m, ratio(bins.mean(axis=0)), rtol=1e-12)
    np.testing.assert_allclose(dm, np.sqrt(99 * left.var(axis=0)), rtol=1e-9)
    np.testing.assert_allclose(m, fe.effective_mass(data.mean(axis=0), "exp"), rtol=1e-12)
    found = fe.effective_masses(data, form="exp")
    assert len(found.values) == 15 and found._repr_svg_().startswith("<svg")
    # Where there is no mass there is no number, and no error.
    data[:, 5] *= -1
    broken = fe.effective_masses(data, form="exp")
    assert np.isnan(broken.values[4:6]).all() and np.isfinite(broken.values[:4]).all()


def test_correlators_of_configurations():
    """What mesons and nucleons make goes into a fit by its name."""
    every = []
    for seed in range(6):
        U = fe.Gauge.random((2, 2, 2, 8), seed=seed, noise=0.1)
        S = fe.Wilson(U, mass=0.5).propagator(fe.Point((0, 0, 0, 0)), tol=1e-8)
        every.append((fe.mesons(S, momenta=[(0, 0, 0), (1, 0, 0)]), fe.nucleon(S)))
    mesons, nucleons = zip(*every)
    pion = fe.fit(mesons, "pion", window=(1, 4), momentum=1, bin=1)
    plain = np.stack([c["pion"][1].real for c in mesons])
    assert pion.energy == fe.fit(plain, window=(1, 4)).energy and pion.form == "cosh"
    assert (pion.as_dict()["configurations"], pion.as_dict()["bins"], pion.name) == (6, 6, "pion")
    nucleon = fe.fit(nucleons, "nucleon", window=(1, 3))
    assert nucleon.form == "exp" and nucleon.energy.value > 1
    m, dm = fe.effective_masses(nucleons, "nucleon")
    assert len(m) == 7 and dm[0] > 0
    np.testing.assert_allclose(pion.correlator.values[1], plain.mean(axis=0)[1], rtol=1e-12)
    np.testing.assert_allclose(pion.correlator.errors[1], plain[:, 1].std(ddof=1) / np.sqrt(6), rtol=1e-9)


def test_two_states_are_told_apart():
    rng, t = np.random.default_rng(5), np.arange(32)
    truth = sum(a * (np.exp(-e * t) + np.exp(-e * (32 - t))) for a, e in ((1.0, 0.2), (2.0, 0.7)))
    fit = fe.fit(truth * (1 + 1e-4 * rng.standard_normal((400, 32))), states=[1, 2], window=(1, 15))
    assert fit.states == 2 and abs(fit.energy.value - 0.2) < 5 * fit.energy.error < 0.01
    assert abs(fit.excited_energy.value - 0.7) < 5 * fit.excited_energy.error < 0.1
    np.testing.assert_allclose(fit(t[2:15]), truth[2:15], rtol=1e-3)


def test_mistakes_of_fits_are_told():
    data, _ = samples(1, count=20)
    for arguments, said in [
        (dict(form="tanh"), "form = 'tanh': expected 'cosh', 'sinh', 'exp'"),
        (dict(window=(2, 9)), "expected the first and the last time, in this order, from 0 to 8"),
        (dict(window=(5, 2)), "expected the first and the last time"),
        (dict(states=3), "states = "),
        (dict(covariance="none"), "covariance = 'none': expected 'full'"),
        (dict(bin=0), "bin = 0: expected 1 to 20"),
        (dict(bootstrap=1), "expected 10 to 100000"),
        (dict(bin=10), "the fit of the correlator failed: "),
    ]:
        with pytest.raises(fe.InputError, match=said):
            fe.fit(data, **arguments)
    with pytest.raises(fe.InputError, match=r"expected \[configuration, time\]"):
        fe.fit(data[0])
    data[7, 3] = np.nan
    with pytest.raises(fe.InputError, match="configuration 7, counted from 0, has a number that is not finite"):
        fe.fit(data)
    correlators = fe.mesons(fe.Propagator(np.ones((12, 4, 2, 2, 2, 4, 3))))
    with pytest.raises(fe.InputError, match="errors need several configurations"):
        fe.fit(correlators, "pion")
    with pytest.raises(fe.InputError, match="give the name of a correlator"):
        fe.fit([correlators, correlators])
    assert repr(fe.Estimate(12.3456, 0.021)) == "12.346 ± 0.021" and repr(fe.Estimate(1.5, float("nan"))) == "1.5"
