/* Solves the Dirac equation with several processes, each of which has a part of the lattice: mpirun -n 2 ./parallel */
#include <complex.h>
#include <ferrite.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends all processes with the reason of a failure. */
static void check(int32_t code) {
  if (code != FE_OK) {
    fprintf(stderr, "error %d: %s\n", code, fe_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comm = MPI_COMM_WORLD;
  fe_device *device;
  check(fe_device_new("{\"device\": \"cpu\", \"threads\": 1}", &comm, &device));

  const int64_t lattice[4] = {4, 4, 4, 8};
  int64_t origin[4], part[4];
  check(fe_device_part(device, lattice, origin, part));
  fe_gauge *gauge;
  check(fe_gauge_random(device, lattice, "{\"seed\": 7, \"noise\": 0.3}", &gauge));
  fe_plaquette plaquette;
  check(fe_gauge_plaquette(gauge, &plaquette));

  fe_operator *op;
  check(fe_operator_new(gauge, "{\"operator\": \"clover\", \"mass\": 0.1, \"csw\": 1.0}", &op));
  const size_t count = 12 * part[0] * part[1] * part[2] * part[3];
  double complex *b = calloc(count, sizeof *b), *x = calloc(count, sizeof *x);
  if (!b || !x) {
    MPI_Abort(comm, 1);
  }
  /* A point source, on the process that has the origin of the lattice. */
  if (origin[0] == 0 && origin[1] == 0 && origin[2] == 0 && origin[3] == 0) {
    b[0] = 1;
  }
  fe_array source = {
      .data = b, .scalar = FE_COMPLEX128, .place = FE_HOST, .axes = 6, .length = {part[3], part[2], part[1], part[0], 4, 3}};
  fe_array solution = source;
  solution.data = x;
  fe_solution found;
  check(fe_solve(op, &source, NULL, &solution, "{\"tol\": 1e-10}", &found));
  double norm = 0;
  for (size_t k = 0; k < count; k++) {
    norm += creal(x[k]) * creal(x[k]) + cimag(x[k]) * cimag(x[k]);
  }
  MPI_Allreduce(MPI_IN_PLACE, &norm, 1, MPI_DOUBLE, MPI_SUM, comm);
  if (rank == 0) {
    printf("plaquette %.12f, true residual %.1e, norm %.10f\n", plaquette.mean, found.true_residual, norm);
  }
  free(b);
  free(x);
  check(fe_operator_free(op));
  check(fe_gauge_free(gauge));
  check(fe_device_free(device)); /* Before MPI_Finalize. */
  MPI_Finalize();
  return fabs(plaquette.mean - 0.395297908950) < 1e-12 && fabs(norm - 0.0861100369) < 1e-8 ? 0 : 1;
}
