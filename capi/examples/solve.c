/* Solves the Dirac equation for one source on random links, and checks the solution with the operator. */
#include <complex.h>
#include <ferrite.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { X = 4, Y = 4, Z = 4, T = 8, NUMBERS = X * Y * Z * T * 12 };

/* Ends the program with the reason of a failure. */
static void check(int32_t code) {
  if (code != FE_OK) {
    fprintf(stderr, "error %d: %s\n", code, fe_message());
    exit(1);
  }
}

int main(void) {
  if (fe_abi() != FE_ABI) {
    fprintf(stderr, "the library has another interface than the header: compile the program again\n");
    return 1;
  }
  fe_device *device;
  check(fe_device_new("{\"device\": \"cpu\", \"threads\": 1}", NULL, &device));

  const int64_t lattice[4] = {X, Y, Z, T};
  fe_gauge *gauge;
  check(fe_gauge_random(device, lattice, "{\"seed\": 7, \"noise\": 0.3}", &gauge));
  fe_plaquette plaquette;
  check(fe_gauge_plaquette(gauge, &plaquette));
  printf("plaquette %.12f\n", plaquette.mean);

  fe_operator *op;
  check(fe_operator_new(gauge, "{\"operator\": \"clover\", \"mass\": 0.1, \"csw\": 1.0}", &op));
  check(fe_gauge_free(gauge)); /* The operator keeps the links. */

  static double complex b[NUMBERS], x[NUMBERS], image[NUMBERS];
  b[0] = 1; /* A point source: spin 0, colour 0 at the origin. */
  fe_array source = {.data = b, .scalar = FE_COMPLEX128, .place = FE_HOST, .axes = 6, .length = {T, Z, Y, X, 4, 3}};
  fe_array solution = source, product = source;
  solution.data = x;
  product.data = image;
  fe_solution found;
  check(fe_solve(op, &source, NULL, &solution, "{\"tol\": 1e-10}", &found));
  printf("true residual %.1e after %lld iterations\n", found.true_residual, (long long)found.iterations);

  check(fe_apply(op, FE_PLAIN, &solution, &product));
  double square = 0;
  for (int k = 0; k < NUMBERS; k++) {
    double complex rest = b[k] - image[k];
    square += creal(rest) * creal(rest) + cimag(rest) * cimag(rest);
  }
  printf("|b - M x| %.1e\n", sqrt(square));

  /* Mistakes have a code and a sentence. */
  if (fe_solve(op, &source, NULL, &solution, "{\"tol\": 2}", NULL) != FE_INPUT) {
    return 1;
  }
  printf("%s\n", fe_message());
  check(fe_operator_free(op));
  check(fe_device_free(device));
  return found.converged && sqrt(square) < 1e-9 && fabs(plaquette.mean - 0.395297908950) < 1e-12 ? 0 : 1;
}
