"""Arguments that make no sense are refused with a sentence, at every place that takes numbers."""

import numpy as np
import pytest

import ferrite_lqcd as fe


@pytest.fixture(scope="module")
def made(weak):
    """Objects on 2·4·6·8 that cost little."""
    D = fe.Wilson(weak, mass=0.5)
    S = fe.Propagator(np.ones((12, 8, 6, 4, 2, 4, 3)))
    return {"U": weak, "D": D, "S": S, "c": fe.mesons(S), "b": np.ones((8, 6, 4, 2, 4, 3))}


SAMPLES = np.cosh(0.4 * (np.arange(8) - 4)) * np.linspace(0.99, 1.01, 12)[:, None]
ACTION = fe.GaugeAction("wilson", 6.0)

#: Every place where an integer is meant, as a function of that integer; and one that it takes.
INTEGERS = {
    "lattice of unit": (lambda o, n: fe.Gauge.unit((n, 4, 4, 4)), 4),
    "lattice of random": (lambda o, n: fe.Gauge.random((4, 4, 4, n), seed=1), 2),
    "lattice of quenched": (lambda o, n: fe.Gauge.quenched((2, 2, 2, n), 6.0, 1, sweeps=0), 2),
    "seed of random": (lambda o, n: fe.Gauge.random((2, 2, 2, 2), seed=n), 3),
    "seed of quenched": (lambda o, n: fe.Gauge.quenched((2, 2, 2, 2), 6.0, n, sweeps=0), 3),
    "sweeps": (lambda o, n: fe.Gauge.quenched((2, 2, 2, 2), 6.0, 1, sweeps=n), 1),
    "overrelax": (lambda o, n: fe.Gauge.quenched((2, 2, 2, 2), 6.0, 1, sweeps=1, overrelax=n), 1),
    "passes": (lambda o, n: fe.Gauge.quenched((2, 2, 2, 2), 6.0, 1, sweeps=0, passes=n), 1),
    "steps of stout": (lambda o, n: o["U"].stout(0.1, n), 1),
    "steps of ape": (lambda o, n: o["U"].ape(0.5, n), 1),
    "steps of hyp": (lambda o, n: o["U"].hyp(steps=n), 1),
    "idr_s": (lambda o, n: o["D"].solve(o["b"], solver="idr", idr_s=n, tol=0.5), 2),
    "max_sweeps": (lambda o, n: fe.Gauge.unit((2, 2, 2, 2)).fix(max_sweeps=n), 1),
    "threads": (lambda o, n: fe.Device("cpu", threads=n), 1),
    "axis of local_part": (lambda o, n: fe.local_part(np.zeros((2,) * 6), axis=n), 1),
    "axis of gather": (lambda o, n: fe.gather(np.zeros((2,) * 6), axis=n), 1),
    "root": (lambda o, n: fe.gather(np.zeros((2,) * 4), root=n), 0),
    "site of Point": (lambda o, n: fe.Point((0, n, 0, 0)), 1),
    "t of Wall": (lambda o, n: fe.Wall(n), 1),
    "t of Momentum": (lambda o, n: fe.Momentum(n, (0, 0, 0)), 1),
    "p of Momentum": (lambda o, n: fe.Momentum(0, (n, 0, 0)), -1),
    "seed of Noise": (lambda o, n: fe.Noise(n), 1),
    "t of Noise": (lambda o, n: fe.Noise(1, t=n), 1),
    "number of Noise": (lambda o, n: fe.Noise(1, number=n), 1),
    "site of Shell": (lambda o, n: fe.Shell((0, 0, 0, n), 1.0, 2, o["U"]), 1),
    "steps of Shell": (lambda o, n: fe.Shell((0, 0, 0, 0), 1.0, n, o["U"]), 1),
    "origin of Array": (lambda o, n: fe.Array(o["b"], origin=(0, 0, 0, n)), 1),
    "spin": (lambda o, n: fe.Point((0, 0, 0, 0)).field((2, 2, 2, 2), spin=n), 1),
    "colour": (lambda o, n: fe.Point((0, 0, 0, 0)).field((2, 2, 2, 2), spin=0, colour=n), 1),
    "colour of one spin": (lambda o, n: fe.Point((0, 0, 0, 0)).field((2, 2, 2, 2), colour=n), 1),
    "origin of Propagator": (lambda o, n: fe.Propagator(o["S"].columns, origin=(0, n, 0, 0)), 1),
    "momenta of mesons": (lambda o, n: fe.mesons(o["S"], momenta=[(0, 0, n)]), 1),
    "momenta of nucleon": (lambda o, n: fe.nucleon(o["S"], momenta=[(0, n, 0)]), 1),
    "momenta of three_point": (lambda o, n: fe.three_point(o["S"], o["S"], [(n, 0, 0)], currents=["1"]), 1),
    "momenta of conserved_charge": (lambda o, n: fe.conserved_charge(o["D"], o["S"], o["S"], [(n, 0, 0)]), 1),
    "momentum of effective_mass": (lambda o, n: o["c"].effective_mass("pion", n), 0),
    "momentum of plot": (lambda o, n: o["c"].plot("pion", momentum=n), 0),
    "separation": (lambda o, n: fe.sequential(o["D"], o["S"], n, tol=0.5), 1),
    "momentum of sequential": (lambda o, n: fe.sequential(o["D"], o["S"], 1, momentum=(n, 0, 0), tol=0.5), 1),
    "separation of the nucleon": (lambda o, n: fe.sequential_nucleon(o["D"], o["S"], n, tol=0.5), 1),
    "max_iterations": (lambda o, n: o["D"].solve(o["b"], tol=1e-4, max_iterations=n), 1000),
    "batch": (lambda o, n: o["D"].solve(o["b"], tol=1e-4, batch=n), 1),
    "reconstruct": (lambda o, n: o["D"].solve(o["b"], tol=1e-4, reconstruct=n), 18),
    "window": (lambda o, n: fe.fit(SAMPLES, window=(n, 4), covariance="diagonal"), 1),
    "states": (lambda o, n: fe.fit(SAMPLES, window=(0, 4), states=n, covariance="diagonal"), 1),
    "bin": (lambda o, n: fe.fit(SAMPLES, window=(0, 4), bin=n, covariance="diagonal"), 1),
    "bootstrap": (lambda o, n: fe.fit(SAMPLES, window=(0, 4), bootstrap=n, covariance="diagonal"), 10),
    "seed of fit": (lambda o, n: fe.fit(SAMPLES, window=(0, 4), bootstrap=10, seed=n, covariance="diagonal"), 1),
    "momentum of fit": (lambda o, n: fe.fit([o["c"]] * 4, "pion", momentum=n, window=(0, 4)), None),
    "bin of effective_masses": (lambda o, n: fe.effective_masses(SAMPLES, bin=n), 1),
    "bootstrap of effective_masses": (lambda o, n: fe.effective_masses(SAMPLES, bootstrap=n), 10),
    "guesses": (lambda o, n: fe.TwoFlavours("wilson", mass=0.1, guesses=n), 1),
    "level": (lambda o, n: fe.OneFlavour("wilson", mass=0.1, level=n), 1),
    "stout_levels": (lambda o, n: fe.OneFlavour("wilson", mass=0.1, stout_rho=0.1, stout_levels=n), 1),
    "pseudofermions": (lambda o, n: fe.StaggeredQuarks("hisq", [0.1], [2], pseudofermions=n), 1),
    "flavours": (lambda o, n: fe.StaggeredQuarks("hisq", [0.1], [n]), 2),
    "steps of HMC": (lambda o, n: fe.HMC(o["U"], ACTION, seed=1, steps=n), 1),
    "list of steps": (lambda o, n: fe.HMC(o["U"], ACTION, seed=1, steps=[n]), 1),
    "gauge_steps": (lambda o, n: fe.HMC(o["U"], ACTION, seed=1, gauge_steps=n), 1),
    "seed of HMC": (lambda o, n: fe.HMC(o["U"], ACTION, seed=n), 1),
    "thermalise": (lambda o, n: fe.HMC(o["U"], ACTION, seed=1, thermalise=n), 1),
    "count": (lambda o, n: fe.HMC(o["U"], ACTION, seed=1).run(n), 0),
    "vectors": (lambda o, n: o["D"].setup(vectors=n), None),
    "levels": (lambda o, n: o["D"].setup(levels=n), None),
    "improvements": (lambda o, n: o["D"].setup(improvements=n), None),
    "blocks": (lambda o, n: o["D"].setup(blocks=[(2, 2, n, 2)]), None),
    "levels of a file": (lambda o, n: o["D"].load_setup("none.setup", levels=n), None),
    "record of read": (lambda o, n: fe.Gauge.read("none.ildg", record=n), None),
    "lattice of read": (lambda o, n: fe.Gauge.read("none.ildg", lattice=(4, 4, 4, n)), None),
    "record of read_fermions": (lambda o, n: fe.read_fermions("none.lime", record=n), None),
}


@pytest.mark.parametrize("place", INTEGERS)
def test_integers_are_whole(made, place):
    """Fractions, truth values, texts and numbers beyond all bounds are refused, before anything is computed."""
    call, good = INTEGERS[place]
    for wrong in (0.5, 4.5, 4.0, True, np.True_, np.float64(4.5), "four", None, 2**70, -(2**70), np.array([4.5]), float("nan")):
        if (wrong is None and place in OPTIONAL) or (isinstance(wrong, str) and place == "flavours"):
            continue
        with pytest.raises(fe.InputError, match="expected|no device"):
            call(made, wrong)
    if good is not None:
        for kind in (int, np.int64, np.int32, np.array, Index):
            call(made, kind(good))


#: Where nothing may be given.
OPTIONAL = {
    "threads", "t of Noise", "max_iterations", "batch", "reconstruct", "window", "bootstrap", "bootstrap of effective_masses", "gauge_steps", "vectors",
    "levels", "improvements", "idr_s", "levels of a file", "spin",
}


class Index:
    """Another integer."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


#: Every place where a real number is meant.
NUMBERS = {
    "noise": lambda o, x: fe.Gauge.random((2, 2, 2, 2), seed=1, noise=x),
    "beta": lambda o, x: fe.Gauge.quenched((2, 2, 2, 2), x, 1, sweeps=1),
    "rho": lambda o, x: o["U"].stout(x),
    "alpha": lambda o, x: o["U"].ape(x),
    "alpha of hyp": lambda o, x: o["U"].hyp((0.5, x, 0.5)),
    "time": lambda o, x: o["U"].flow(x),
    "step": lambda o, x: o["U"].flow(0.1, x),
    "tol of fix": lambda o, x: o["U"].fix(tol=x),
    "overrelax of fix": lambda o, x: o["U"].fix(overrelax=x),
    "width": lambda o, x: fe.Shell((0, 0, 0, 0), x, 2, o["U"]),
    "tol of solve": lambda o, x: o["D"].solve(o["b"], tol=x),
    "mass": lambda o, x: fe.Wilson(o["U"], mass=x),
    "kappa": lambda o, x: fe.Wilson(o["U"], kappa=x),
    "csw": lambda o, x: fe.Clover(o["U"], mass=0.1, csw=x),
    "masses": lambda o, x: fe.Staggered(o["U"], mass=0.1).solve_masses(np.ones((8, 6, 4, 2, 3)), [0.1, x]),
    "shifts": lambda o, x: fe.Staggered(o["U"], mass=0.1).solve_shifts(np.ones((8, 6, 4, 2, 3)), [0.1, x]),
    "momentum of Shell": lambda o, x: fe.Shell((0, 0, 0, 0), 1.0, 2, o["U"], momentum=(0, x, 0)),
    "beta of GaugeAction": lambda o, x: fe.GaugeAction("wilson", x),
    "u0 of GaugeAction": lambda o, x: fe.GaugeAction("luscher-weisz", 7.0, u0=x),
    "length": lambda o, x: fe.HMC(o["U"], ACTION, seed=1, length=x),
    "dynamics_tol": lambda o, x: fe.HMC(o["U"], ACTION, seed=1, dynamics_tol=x),
    "action_tol": lambda o, x: fe.HMC(o["U"], ACTION, seed=1, action_tol=x),
    "friction": lambda o, x: fe.HMC(o["U"], ACTION, seed=1, friction=x),
    "heavier": lambda o, x: fe.TwoFlavours("wilson", mass=0.1, heavier=[x]),
    "twists": lambda o, x: fe.TwoFlavours("wilson", mass=0.1, twists=[x]),
    "masses of StaggeredQuarks": lambda o, x: fe.StaggeredQuarks("hisq", [x], [2]),
    "stout_rho": lambda o, x: fe.OneFlavour("wilson", mass=0.1, stout_rho=x),
}
#: Those that may be negative.
OF_ANY_SIGN = {"mass", "csw", "kappa", "masses", "shifts", "momentum of Shell", "heavier"}


@pytest.mark.parametrize("place", NUMBERS)
def test_numbers_are_finite(made, place):
    negative = [] if place in OF_ANY_SIGN else [-0.5]
    for wrong in [float("nan"), float("inf"), -float("inf"), True, "a half", 1 + 2j, *negative]:
        with pytest.raises(fe.InputError, match="expected|must|has to"):
            NUMBERS[place](made, wrong)


def test_messages_name_what_is_wrong(made):
    for call, said in [
        (lambda: fe.Gauge.unit((4.5, 4, 4, 4)), r"lattice = \(4.5, 4, 4, 4\): expected four extents x, y, z, t"),
        (lambda: fe.mesons(made["S"], momenta=[(0, 0, 0), (0.5, 0, 0)]), r"momenta\[1\] = \(0.5, 0, 0\): expected a momentum of three"),
        (lambda: fe.mesons(made["S"], momenta=(1, 0, 0)), r"momenta\[0\] = 1: expected a momentum"),
        (lambda: fe.mesons(made["S"], momenta=[]), "expected at least one momentum"),
        (lambda: fe.Gauge.random((2, 2, 2, 2), seed=-1), "seed = -1: expected a whole number from 0 to 18446744073709551615"),
        (lambda: fe.Gauge.random((2, 2, 2, 2), 1, noise=float("nan")), "noise = nan: expected a number from 0 to 1e6"),
        (lambda: fe.Gauge.random((2, 2, 2, 2), 1, noise=-0.1), "noise = -0.1: expected a number from 0 to 1e6"),
        (lambda: made["U"].stout(0.1, 2.0), "steps = 2.0: expected a whole number, not a value of type float"),
        (lambda: fe.Device("cuda:x"), "'cuda:x' is not a device"),
        (lambda: fe.Device(0), "'0' is not a device"),
        (lambda: made["U"].flow(0.1, device="cpu"), "device = 'cpu': expected a fe.Device"),
        (lambda: fe.local_part(np.zeros((2, 2, 2))), "does not have the axes t, z, y, x"),
        (lambda: fe.Gauge("links"), "expected an array of complex numbers, not a value of type str"),
        (lambda: fe.effective_mass([[1.0]]), "expected an array of numbers by time"),
        (lambda: fe.StaggeredQuarks("hisq", [0.1], 2), "flavours = 2: expected a list"),
        (lambda: fe.StaggeredQuarks("hisq", 0.1, [2]), "masses = 0.1: expected a list of numbers above 0"),
        (lambda: fe.TwoFlavours("wilson", mass=0.1, heavier=0.5), "heavier = 0.5: expected a list of finite numbers"),
        (lambda: fe.HMC(made["U"], ACTION, fe.OneFlavour("wilson", mass=0.1), seed=1), "expected a list of TwoFlavours"),
        (lambda: fe.HMC(made["U"], "wilson", seed=1), "a chain needs a fe.Gauge as initial links, and a fe.GaugeAction"),
        (lambda: fe.fit([[1.0], [1.0, 2.0]]), "rows have different lengths"),
    ]:
        with pytest.raises(fe.InputError, match=said):
            call()


def test_work_has_the_bounds_of_the_program(made):
    U = made["U"]
    for call, said in [
        (lambda: U.flow(1e9), "a flow to time = 1e[+]09 in steps of 0.02 takes 5e[+]10 steps of three forces each, but at most 1000000 are allowed"),
        (lambda: U.flow(1.0, 1e-300), "at most 1000000 are allowed: give an earlier time, or a step of at least 1e-06"),
        (lambda: fe.Gauge.quenched(U.lattice, 6.0, 1, sweeps=4_000_000_000), "one call makes at most 1000000000"),
        (lambda: fe.Gauge.quenched(U.lattice, 6.0, 1, sweeps=2, overrelax=2_000_000_000), "one call makes at most 1000000000"),
        (lambda: U.stout(0.1, 70_000), "steps = 70000: expected a whole number from 0 to 65535"),
        (lambda: U.ape(0.1, 70_000), "steps = 70000: expected a whole number from 0 to 65535"),
        (lambda: U.hyp(steps=70_000), "steps = 70000: expected a whole number from 0 to 65535"),
        (lambda: fe.Shell((0, 0, 0, 0), 1.0, 10_001, U), "steps = 10001: expected a whole number from 1 to 10000"),
        (lambda: fe.HMC(U, ACTION, seed=1, steps=1_000_001), "steps = 1000001: expected a whole number from 1 to 1000000"),
        (lambda: fe.HMC(U, ACTION, seed=1, steps=[1000, 1001]), "1001000 steps, but a trajectory has at most 1000000"),
        (lambda: fe.HMC(U, ACTION, seed=1, steps=[1] * 17), "expected one to 16 levels"),
        (lambda: fe.HMC(U, ACTION, seed=1, thermalise=2**32), "thermalise = 4294967296: expected"),
        (lambda: fe.HMC(U, ACTION, seed=1).run(2**32), "count = 4294967296: expected"),
        (lambda: fe.TwoFlavours("wilson", mass=0.1, guesses=33), "guesses = 33: expected a whole number from 0 to 32"),
        (lambda: fe.StaggeredQuarks("hisq", [0.1], [2], pseudofermions=65), "expected a whole number from 1 to 64"),
        (lambda: fe.Gauge.unit((4096, 4096, 4096, 4096)), "of memory in each process, but this machine has"),
        (lambda: fe.Noise(1, number=2**24), "number = 16777216: expected a whole number from 0 to 16777215"),
        (lambda: made["D"].setup(levels=5), "levels = 5: expected a whole number from 2 to 4"),
    ]:
        with pytest.raises(fe.InputError, match=said):
            call()


def test_arrays_are_finite(made):
    """Of sources, guesses and links: with the place of the number."""
    D, b = made["D"], made["b"]
    naive = fe.Staggered(made["U"], mass=0.5)
    colours = np.ones((8, 6, 4, 2, 3))
    for bad in (np.nan, np.inf, complex(0, -np.inf)):
        wrong, wrong_colours = b.astype(complex), colours.astype(complex)
        wrong[1, 2, 3, 1, 0, 2] = bad
        wrong_colours[0, 0, 0, 1, 0] = bad
        for call, said in [
            (lambda: D.solve(wrong), "b, field 0 counted from 0: number 854, counted from 0"),
            (lambda: D.solve(np.stack([b, wrong])), "b, field 1 counted from 0: number 854, counted from 0"),
            (lambda: D.solve(b, guess=wrong), "guess, field 0"),
            (lambda: D.solve(fe.to_device(wrong)), "b: number 854, counted from 0"),
            (lambda: D.propagator(fe.Array(np.stack([wrong] * 12))), "b, field 0"),
            (lambda: D.propagator(Own(bad)), "the source, field 0"),
            (lambda: naive.solve(wrong_colours), "b, field 0 counted from 0: number 3, counted"),
            (lambda: naive.solve_masses(wrong_colours, [0.1, 0.2]), "b, field 0"),
        ]:
            with pytest.raises(fe.InputError, match=said + ".*(\n|.)*every number must be finite"):
                call()
        links = np.array(made["U"])
        links[0, 0, 0, 0, 1, 2, 0] = bad
        with pytest.raises(fe.InputError, match="links: number 15, counted from 0 in C order, is "):
            fe.Gauge(links)


class Own(fe.Wall):
    """A profile of one's own."""

    def __init__(self, value):
        super().__init__(1)
        self.value = value

    def profile(self, lattice):
        return np.where(super().profile(lattice) == 1, self.value, 0)
