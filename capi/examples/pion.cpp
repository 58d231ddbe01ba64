// Computes the pion correlator and an HMC trajectory on random links.
#include <cmath>
#include <cstdio>
#include <ferrite.hpp>
#include <vector>

int main() try {
  const ferrite::extents lattice{4, 4, 4, 8};
  ferrite::device device(R"({"device": "cpu", "threads": 1})");
  auto links = ferrite::gauge::random(device, lattice, R"({"seed": 7, "noise": 0.3})");
  ferrite::dirac dirac(links, R"({"operator": "clover", "mass": 0.1, "csw": 1.0})");

  ferrite::propagator quark(dirac, R"({"origin": [0, 0, 0, 0], "tol": 1e-10})");
  std::vector<std::complex<double>> pion(8);
  // 15 is the number of γ5; the correlator is summed over space.
  ferrite::contract(quark, R"({"hadron": "mesons", "pairs": [[15, 15]], "origin": [0, 0, 0, 0], "momenta": [[0, 0, 0]]})",
                    ferrite::view(pion, {1, 1, 8}));
  for (std::size_t t = 0; t < pion.size(); t++) {
    std::printf("%zu %.10e\n", t, pion[t].real());
  }

  ferrite::chain chain(links, R"({"gauge": {"action": "wilson", "beta": 5.5}, "steps": [4], "seed": 3, "thermalise": 1,
                                  "quarks": [{"kind": "two", "operator": "wilson", "mass": 0.3}]})");
  auto trajectory = chain.trajectory(1);
  std::printf("dH %.6f, plaquette %.10f\n", trajectory.delta_h, trajectory.plaquette);

  bool is_refused = false;
  try {
    ferrite::dirac unknown(links, R"({"operator": "overlap"})");
  } catch (const ferrite::error &error) {
    std::printf("%s\n", error.what());
    is_refused = error.code() == FE_INPUT;
  }
  const double expected[] = {4.807977286507956e-4, 0.4338685202};
  bool is_right = std::abs(pion[4].real() / expected[0] - 1) < 1e-8 && std::abs(trajectory.plaquette - expected[1]) < 1e-8;
  return is_refused && is_right ? 0 : 1;
} catch (const ferrite::error &error) {
  std::fprintf(stderr, "error %d: %s\n", error.code(), error.what());
  return 1;
}
