"""Hybrid Monte Carlo of SU(3) gauge theory with Wilson's action; a configuration every five trajectories."""
import sys

import ferrite_lqcd as fe

size, beta, count = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
hmc = fe.HMC(fe.Gauge.unit([size] * 4), fe.GaugeAction("wilson", beta), steps=20, integrator="leapfrog", seed=10086, thermalise=5)
for t in hmc.run(count):
    print(f"{t.number}: plaquette {t.plaquette:.8f}, ΔH {t.delta_h:+.5f}, {'accepted' if t.accepted else 'rejected'}, {t.seconds:.2f} s")
    if t.number % 5 == 0:
        hmc.gauge.write(f"cfg_{t.number}.npy")
