"""What `test_processes.py` compares: everything that processes do together, on one of them or on several.

`python with_processes.py OUT x y z t` with numbers of processes writes OUT.json and OUT.npz.
"""

import copy
import json
import os
import pathlib
import pickle
import sys

import numpy as np

import ferrite_lqcd as fe

LATTICE = (8, 4, 4, 16)


def numbers(folder):
    """Scalars, and arrays of the whole lattice, by name."""
    scalars, arrays = {}, {}
    U = fe.Gauge.quenched(LATTICE, beta=6.0, seed=3, sweeps=3, start="hot")
    arrays["quenched"] = fe.gather(U)
    U = fe.Gauge.random(LATTICE, seed=7, noise=0.2)
    plaquette = U.plaquette()
    scalars["plaquettes"] = [plaquette.mean, plaquette.spatial, plaquette.temporal]
    scalars["link trace"], scalars["unitarity"] = U.link_trace(), U.unitarity()
    loops = U.loops()
    scalars["loops"] = [loops.rectangle, loops.polyakov.real, loops.polyakov.imag, loops.energy, loops.charge]
    smeared = U.stout(0.1, 2)
    arrays["stout"], arrays["hyp"] = fe.gather(smeared), fe.gather(U.hyp())
    flow = U.flow(0.1, 0.05)
    scalars["flow"] = [flow.points[-1].energy, flow.points[-1].charge]
    fixed = U.fix("coulomb", tol=1e-10)
    scalars["functional"] = fixed.file["functional"]
    g = fe.local_part(np.asarray(whole_links())[..., 0, :, :])
    scalars["turned"] = U.transform(g).plaquette().mean
    arrays["turned"] = fe.gather(U.transform(g))

    # Files: written together, and read together.
    U.write(folder / "links.ildg")
    arrays["read"] = fe.gather(fe.Gauge.read(folder / "links.ildg"))
    D = fe.Clover(smeared, mass=0.2, csw=1.1)
    S = D.propagator(fe.Point((3, 1, 2, 6)), tol=1e-11)
    assert S.lattice == LATTICE == U.lattice
    arrays["propagator"] = fe.gather(S.columns, axis=1)
    arrays["image"] = fe.gather(D.normal(S.columns), axis=1)
    S.write(folder / "S.lime")
    read = fe.read_fermions(folder / "S.lime")
    scalars["read again"] = bool(np.array_equal(read, S.columns))
    field = fe.Noise(5).field(LATTICE, spin=2)
    fe.write_fermions(folder / "one.npy", field)
    scalars["one again"] = bool(np.array_equal(fe.read_fermions(folder / "one.npy"), field))

    momenta = [(0, 0, 0), (1, 0, -1)]
    shell = fe.Shell((3, 1, 2, 6), 2.0, 3, U.ape(0.5, 2, spatial=True), momentum=(0.5, 0.0, 0.0))
    smeared_source = D.propagator(shell, tol=1e-11)
    through = fe.sequential(D, S, 3, momentum=(0, 1, 0), shell=shell, tol=1e-11)
    of_nucleon = fe.sequential_nucleon(D, S, 3, projector="polarised-z", flavour="d", tol=1e-11)
    for name, found in [
        ("mesons", fe.mesons(S, momenta=momenta)),
        ("smeared", fe.mesons(smeared_source, S, momenta=momenta)),
        ("nucleon", fe.nucleon(S, momenta)),
        ("through", fe.three_point(S, through, momenta, currents=["gt", "g5"])),
        ("of nucleon", fe.three_point(S, of_nucleon, momenta, currents=["gx", "1"])),
    ]:
        for key, values in found.items():
            scalars[f"{name} {key}"] = [values.real.tolist(), values.imag.tolist()]
    if fe.device().grid[3] == 1:
        scalars["charge"] = fe.conserved_charge(D, S, through, momenta).real.tolist()
    else:
        try:
            fe.conserved_charge(D, S, through, momenta)
        except fe.InputError as error:
            assert "(X, Y, Z, 1)" in str(error), error
        else:
            raise AssertionError("times that are not there were summed over")
    # Of several processes each has a part, which a pickle would tear out; copies stay.
    for thing in (U, D, S, fe.to_device(field)):
        try:
            pickle.dumps(thing)
            refused = False
        except TypeError as error:
            refused = "of several processes cannot be pickled, because each process has a part" in str(error)
        assert refused == (fe.device().comm is not None), thing
    assert copy.deepcopy(U).plaquette() == U.plaquette() and copy.deepcopy(D).parameters == D.parameters
    assert np.array_equal(copy.deepcopy(S).columns, S.columns)
    mg = D.setup(vectors=8, blocks=[(2, 2, 2, 2)])
    arrays["by multigrid"] = fe.gather(D.solve(field, solver=mg, tol=1e-11).x)
    mg.save(folder / "clover.setup")
    again = D.load_setup(folder / "clover.setup", blocks=[(2, 2, 2, 2)])
    arrays["by its file"] = fe.gather(D.solve(field, solver=again, tol=1e-11).x)

    staggered = fe.Asqtad(U, mass=0.1, u0=0.9)
    quark = staggered.propagator(fe.Wall(t=5), tol=1e-11)
    arrays["staggered"] = fe.gather(quark.columns, axis=1)
    found = fe.mesons(quark)
    scalars["tastes"] = {key: values.real.tolist() for key, values in found.items()}
    scalars["staggered nucleon"] = fe.nucleon(quark)["nucleon"].real.tolist()
    masses = staggered.solve_masses(fe.Point((0, 0, 0, 3)).field(LATTICE), [0.1, 0.3], tol=1e-11)
    arrays["masses"] = fe.gather(masses.x, axis=1)
    on_device = fe.to_device(field)
    arrays["on the device"] = fe.gather(D.apply(on_device).numpy())

    hmc = fe.HMC(
        U,
        fe.GaugeAction("iwasaki", beta=2.0),
        [fe.TwoFlavours("wilson", mass=0.3)],
        steps=[2],
        length=0.2,
        seed=4,
        action_tol=1e-11,
    )
    report = hmc.trajectory()
    scalars["trajectory"] = [report.delta_h, report.plaquette, report.accepted]
    arrays["moved"] = fe.gather(hmc.gauge)
    return scalars, arrays


def whole_links():
    """The same on every process."""
    return fe.Gauge.random(LATTICE, seed=2, device=ALONE)


if __name__ == "__main__":
    out, grid = pathlib.Path(sys.argv[1]), tuple(int(parts) for parts in sys.argv[2:])
    ALONE = fe.Device("cpu", threads=1)
    kind = os.environ.get("FERRITE_TEST_DEVICE", "cpu")
    if grid == (1, 1, 1, 1):
        fe.init(kind)
    else:
        from mpi4py import MPI

        # The grid is that of the processes and the same on all, or nothing is done.
        rank = MPI.COMM_WORLD.Get_rank()
        try:
            fe.init(kind, comm=MPI.COMM_WORLD, grid=grid if rank == 0 else grid[::-1])
        except fe.InputError as error:
            assert "different grids" in str(error), error
        else:
            raise AssertionError("different grids were taken")
        try:
            fe.init(kind, comm=MPI.COMM_WORLD, grid=(1, 1, 1, MPI.COMM_WORLD.Get_size() + 1))
        except fe.InputError as error:
            assert "but comm has" in str(error), error
        else:
            raise AssertionError("a grid of more processes than there are was taken")
        device = fe.init(kind, comm=MPI.COMM_WORLD, grid=grid)
        assert (device.grid, device.rank) == (grid, MPI.COMM_WORLD.Get_rank())
    scalars, arrays = numbers(out.parent)
    # Two devices beside each other, whole links beside parts, and links of one on the other.
    whole, turn = whole_links(), np.asarray(whole_links())[..., 1, :, :]
    assert whole.lattice == LATTICE and whole.transform(turn).lattice == LATTICE
    assert abs(whole.transform(turn).plaquette().mean - whole.plaquette().mean) < 1e-13
    assert abs(whole.stout(0.1, device=ALONE).plaquette().mean - fe.Gauge.random(LATTICE, seed=2).stout(0.1).plaquette().mean) < 1e-13
    if grid != (1, 1, 1, 1):
        try:
            fe.Gauge.random(LATTICE, seed=2).loops(device=ALONE)
        except fe.InputError as error:
            assert "holds another part of that lattice" in str(error), error
        else:
            raise AssertionError("a part was taken for a whole lattice")
    if fe.device().rank == 0:
        out.with_suffix(".json").write_text(json.dumps(scalars))
        np.savez(out.with_suffix(".npz"), **arrays)
