/* C interface of Ferrite, lattice QCD on GPUs. Generated from the crate capi; do not edit.

   Every function returns a code, FE_OK (0) on success. fe_message() has the reason of a failure, and fe_record() the record of the last
   call as JSON. Calls with a device, and with objects on it, come from the thread that opened the device. Functions marked Collective are
   called by all processes of a device. Options are JSON objects with the keys of input files and of Python. The lattice has the extents
   x, y, z, t; arrays have the axes t, z, y, x. docs/c.md explains the interface with examples. */

#ifndef FERRITE_H
#define FERRITE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Complex numbers in single precision, 8 bytes each: `float _Complex`.
#define FE_COMPLEX64 1

// Complex numbers in double precision, 16 bytes each: `double _Complex`.
#define FE_COMPLEX128 2

// Place of arrays in host memory. Arrays in the memory of a GPU are not offered yet.
#define FE_HOST -1

// Largest number of axes of an array.
#define FE_AXES 8

// Version of the interface. It changes if programs have to be compiled again.
#define FE_ABI 1

// The call succeeded.
#define FE_OK 0

// An argument or option is invalid.
#define FE_INPUT 1

// A file cannot be read or written, or its data is wrong.
#define FE_FILE 2

// A device is absent, fails, or has too little memory.
#define FE_DEVICE 3

// A solver did not reach the requested tolerance.
#define FE_SOLVER 4

// Any other failure, such as a call from another thread than that of the device.
#define FE_FAILED 5

// Internal error: a bug of Ferrite. Please report the message.
#define FE_INTERNAL 6

// Form M of an operator.
#define FE_PLAIN 0

// Form M† of an operator.
#define FE_DAGGER 1

// Form M†M of an operator.
#define FE_NORMAL 2

// Markov chain of hybrid Monte Carlo, whose links and momenta stay on the device.
typedef struct fe_chain fe_chain;

// A GPU or the CPU, with the processes that partition lattices among them. Calls that use a device, or what was made on it, come from the
// thread that opened it.
typedef struct fe_device fe_device;

// Links of a configuration, or this process's part of them. They never change.
typedef struct fe_gauge fe_gauge;

// Momenta of links: a traceless anti-Hermitian matrix for each link.
typedef struct fe_momenta fe_momenta;

// Multigrid setup of an operator.
typedef struct fe_multigrid fe_multigrid;

// Dirac operator on links. It keeps the links in every format that a product or a solve has used, and its multigrid setup.
typedef struct fe_operator fe_operator;

// Solutions for all components of a source, in the memory of a device.
typedef struct fe_propagator fe_propagator;

// Quarks of molecular dynamics, with their pseudofermions.
typedef struct fe_quarks fe_quarks;

// Outcome of a trajectory.
typedef struct {
  // 1 if the trajectory was accepted, otherwise 0.
  int32_t accepted;
  // Set to 0.
  int32_t reserved;
  // ΔH.
  double delta_h;
  // Mean plaquette of the links after the Metropolis step.
  double plaquette;
  // Seconds of the trajectory.
  double seconds;
} fe_trajectory;

// Array of the caller. Its axes are in the order of the documentation of each function; strides put them in any order in memory.
typedef struct {
  // First number.
  void *data;
  // Type of the numbers: `FE_COMPLEX64` or `FE_COMPLEX128`.
  int32_t scalar;
  // Place of the numbers: `FE_HOST`.
  int32_t place;
  // Number of axes.
  int32_t axes;
  // Set to 0.
  int32_t reserved;
  // Length of each axis.
  int64_t length[FE_AXES];
  // Distance in bytes between neighbours along each axis; all 0 for the C order without gaps.
  int64_t stride[FE_AXES];
} fe_array;

// Means of plaquettes, Re tr / 3.
typedef struct {
  // Mean of all planes.
  double mean;
  // Mean of the planes in space.
  double spatial;
  // Mean of the planes with t.
  double temporal;
  // Mean of Re tr U / 3 of the links.
  double link_trace;
} fe_plaquette;

// Outcome of a solve.
typedef struct {
  // 1 if every true residual is at or below the requested tolerance, otherwise 0.
  int32_t converged;
  // Set to 0.
  int32_t reserved;
  // Iterations of the slowest right-hand side.
  int64_t iterations;
  // Largest ‖b − M x‖ / ‖b‖, computed in double precision from the solutions.
  double true_residual;
  // Seconds of the iterations.
  double seconds;
  // Seconds of the call on the device, including transfers and the final check.
  double total_seconds;
  // 10⁹ floating-point operations of M per second of the iterations.
  double gflops;
} fe_solution;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the interface that the library has. Programs compare it with `FE_ABI`.
uint32_t fe_abi(void);

// Returns the version of Ferrite as text.
const char *fe_version(void);

// Returns the reason why the last call on this thread failed; an empty text if it succeeded. The text is valid until the next call on
// this thread; functions that free an object leave it.
const char *fe_message(void);

// Returns the record of the last call on this thread as a JSON object, with the keys of docs/output.md; an empty text if the call made no
// record. The text is valid until the next call on this thread; functions that free an object leave it.
const char *fe_record(void);

// *Collective.* Opens a device for calls from this thread, and stores it in `*out`.
//
// `options` is a JSON object, or null: `device` is `"auto"` (a GPU if one works, the default), `"cuda"` or `"cpu"`; `index` is the number
// of the GPU, by default the rank of the process on its host; `threads` is the number of CPU threads, by default all cores (for work outside
// kernels, the number of the first device of a thread holds for all its devices); `grid` has
// the number of processes in x, y, z and t, by default all in t. `mpi_comm` points to an `MPI_Comm`, whose processes partition all
// lattices among them; null for one process. MPI must be initialised, and stay so until all objects on the device are freed.
//
// # Safety
// `options` is null or a text with a final zero. `mpi_comm` is null or points to a live `MPI_Comm` of the MPI library for which this
// library was made. `out` is valid for writes.
int32_t fe_device_new(const char *options_json,
                      const void *mpi_comm,
                      fe_device **out);

// Frees a device. Its memory and its connection to MPI are freed with the last object on it.
//
// # Safety
// `device` is null or a device that has not been freed.
int32_t fe_device_free(fe_device *device);

// Describes a device. The record has `backend` (`cpu` or `cuda`), `device`, `gpu` (its number, or null), `rank` and `grid`.
//
// # Safety
// `device` is a device that has not been freed.
int32_t fe_device_describe(const fe_device *device);

// Stores the part of a lattice that this process has: its first site in `origin`, and its extents in `part`, both in x, y, z and t.
//
// # Safety
// `device` is a device that has not been freed; `lattice` points to four numbers; `origin` and `part` are null or have room for four.
int32_t fe_device_part(const fe_device *device,
                       const int64_t *lattice,
                       int64_t *origin,
                       int64_t *part);

// Stores the free and the total memory of a device in bytes.
//
// # Safety
// `device` is a device that has not been freed; `free_bytes` and `total_bytes` are null or valid for writes.
int32_t fe_device_memory(const fe_device *device, int64_t *free_bytes, int64_t *total_bytes);

// *Collective.* Starts a Markov chain from links, and stores it in `*out`.
//
// `options` is a JSON object: `gauge` (`{"action": "iwasaki", "beta": 1.9}`, with `u0`, `xi`, … if they apply), `quarks` (a list of
// objects with `kind`, `"two"`, `"one"` or `"staggered"`, `operator`, and its parameters; `heavier`, `twists`, `method`, `level`,
// `masses`, `flavours`, `pseudofermions`), `length` (1), `steps` (a list, outermost level first), `gauge_steps`, `integrator`
// (`"omelyan"`), `gauge_integrator`, `seed`, `thermalise` (0), `precision` (`"double"`), `dynamics_tol`, `action_tol` and `friction`.
//
// # Safety
// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
int32_t fe_chain_new(const fe_gauge *gauge,
                     const char *options_json,
                     fe_chain **out);

// *Collective.* Generates the trajectory `number`, counted from 1, and stores its outcome in `*out`. With `reverse` other than 0, it is
// also run back to its start, and the record has the deviation of links and momenta. If a solver fails, the trajectory is rejected, and
// the record has the reason.
//
// # Safety
// `chain` is a handle that has not been freed; `out` is null or valid for writes.
int32_t fe_chain_trajectory(const fe_chain *chain,
                            int64_t number,
                            int32_t reverse,
                            fe_trajectory *out);

// *Collective.* Stores the present links of a chain in `*out`.
//
// # Safety
// `chain` is a handle that has not been freed; `out` is valid for writes.
int32_t fe_chain_gauge(const fe_chain *chain, fe_gauge **out);

// Frees a chain.
//
// # Safety
// `chain` is null or a handle that has not been freed.
int32_t fe_chain_free(fe_chain *chain);

// *Collective.* Makes momenta that are zero on a lattice, and stores them in `*out`.
//
// # Safety
// `device` is a device that has not been freed; `lattice` points to four numbers; `out` is valid for writes.
int32_t fe_momenta_new(const fe_device *device, const int64_t *lattice, fe_momenta **out);

// Draws momenta with the weight exp(−½ Σ |P|²) from a seed and the number of a trajectory.
//
// # Safety
// `momenta` is a handle that has not been freed.
int32_t fe_momenta_draw(const fe_momenta *momenta, uint64_t seed, uint32_t trajectory);

// Replaces momenta by the traceless anti-Hermitian parts of the matrices of an array, with the axes of `fe_gauge_new`.
//
// # Safety
// `momenta` is a handle that has not been freed; `array` describes memory that may be read.
int32_t fe_momenta_set(const fe_momenta *momenta, const fe_array *array);

// Copies momenta to an array with the axes of `fe_gauge_new`.
//
// # Safety
// `momenta` is a handle that has not been freed; `array` describes memory that may be written.
int32_t fe_momenta_get(const fe_momenta *momenta, const fe_array *array);

// *Collective.* Stores the kinetic energy ½ Σ |P|² of momenta in `*out`, minus its mean of 4 for each link.
//
// # Safety
// `momenta` is a handle that has not been freed; `out` is valid for writes.
int32_t fe_momenta_energy(const fe_momenta *momenta, double *out);

// Frees momenta.
//
// # Safety
// `momenta` is null or a handle that has not been freed.
int32_t fe_momenta_free(fe_momenta *momenta);

// *Collective.* Stores the value of a gauge action in `*out`. `options` is a JSON object with `action` (`"wilson"`, `"symanzik-tree"`,
// `"luscher-weisz"`, `"iwasaki"` or `"dbw2"`), `beta`, and `u0`, `xi`, … if they apply.
//
// # Safety
// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
int32_t fe_gauge_action(const fe_gauge *gauge,
                        const char *options_json,
                        double *out);

// *Collective.* Adds the force of a gauge action to momenta: P ← P − ε ∂S, where ε is `step`. `options` are those of `fe_gauge_action`.
//
// # Safety
// `gauge` and `momenta` are handles that have not been freed; `options` is a text with a final zero.
int32_t fe_gauge_force(const fe_gauge *gauge,
                       const char *options_json,
                       double step,
                       const fe_momenta *momenta);

// *Collective.* Moves links, U ← exp(ε P) U with ε = `step`, and stores them in `*out`.
//
// # Safety
// `gauge` and `momenta` are handles that have not been freed; `out` is valid for writes.
int32_t fe_gauge_move(const fe_gauge *gauge, const fe_momenta *momenta, double step, fe_gauge **out);

// *Collective.* Makes quarks of molecular dynamics, and stores them in `*out`. Their rational functions suit the spectrum on `gauge`.
//
// `options` are those of an entry of `quarks` of `fe_chain_new`, and `precision` (`"double"`), `dynamics_tol`, `action_tol` (1e-12) and
// `seed` (1) of the spectral bounds.
//
// # Safety
// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
int32_t fe_quarks_new(const fe_gauge *gauge,
                      const char *options_json,
                      fe_quarks **out);

// *Collective.* Draws the pseudofermions of quarks for links from a seed and the number of a trajectory, and stores their action in
// `*action`.
//
// # Safety
// `quarks` and `gauge` are handles that have not been freed; `action` is null or valid for writes.
int32_t fe_quarks_draw(const fe_quarks *quarks,
                       const fe_gauge *gauge,
                       uint64_t seed,
                       uint32_t trajectory,
                       double *action);

// *Collective.* Stores the action of the pseudofermions of quarks on links in `*action`.
//
// # Safety
// `quarks` and `gauge` are handles that have not been freed; `action` is valid for writes.
int32_t fe_quarks_action(const fe_quarks *quarks, const fe_gauge *gauge, double *action);

// *Collective.* Adds the force of quarks on links to momenta: P ← P − ε ∂S, where ε is `step`.
//
// # Safety
// `quarks`, `gauge` and `momenta` are handles that have not been freed.
int32_t fe_quarks_force(const fe_quarks *quarks, const fe_gauge *gauge, double step, const fe_momenta *momenta);

// Frees quarks.
//
// # Safety
// `quarks` is null or a handle that has not been freed.
int32_t fe_quarks_free(fe_quarks *quarks);

// Copies links from an array with the axes t, z, y, x, direction (x, y, z, t), row, column, and stores them in `*out`. With several
// processes, the array has this process's part.
//
// # Safety
// `device` is a device that has not been freed; `array` describes memory that may be read; `out` is valid for writes.
int32_t fe_gauge_new(const fe_device *device,
                     const fe_array *array,
                     fe_gauge **out);

// Copies links to an array with the axes of `fe_gauge_new`.
//
// # Safety
// `gauge` is a handle that has not been freed; `array` describes memory that may be written.
int32_t fe_gauge_get(const fe_gauge *gauge, const fe_array *array);

// *Collective.* Reads links from a file in any supported format, and stores them in `*out`. Each process reads its part.
//
// `options` is a JSON object, or null: `verify` (true: checksums have to agree), `allow_non_unitary` (false), `reunitarise` (false),
// `lattice` (extents, for files without), `record` (0: the first configuration of the file). The record describes the file.
//
// # Safety
// `device` is a device that has not been freed; `path` and `options` are texts with a final zero; `out` is valid for writes.
int32_t fe_gauge_read(const fe_device *device,
                      const char *file,
                      const char *options_json,
                      fe_gauge **out);

// *Collective.* Writes links to a file, whose name determines the format. Each process writes its part.
//
// `options` is a JSON object, or null: `title` (a text), `metadata` (an object of texts), `single` (false: numbers in double precision).
//
// # Safety
// `gauge` is a handle that has not been freed; `path` and `options` are texts with a final zero.
int32_t fe_gauge_write(const fe_gauge *gauge,
                       const char *file,
                       const char *options_json);

// Makes unit links on a lattice with the extents x, y, z, t, and stores them in `*out`.
//
// # Safety
// `device` is a device that has not been freed; `lattice` points to four numbers; `out` is valid for writes.
int32_t fe_gauge_unit(const fe_device *device, const int64_t *lattice, fe_gauge **out);

// Makes random links on a lattice, and stores them in `*out`. They do not depend on the number of processes.
//
// `options` is a JSON object: `seed`, and `noise` for links near 1; without `noise`, links are distributed with the Haar measure.
//
// # Safety
// As for `fe_gauge_unit`; `options` is a text with a final zero.
int32_t fe_gauge_random(const fe_device *device,
                        const int64_t *lattice,
                        const char *options_json,
                        fe_gauge **out);

// *Collective.* Generates links of SU(3) gauge theory by heat bath and over-relaxation, and stores them in `*out`. They continue from
// `start`, or from unit or random links if `start` is null.
//
// `options` is a JSON object: `beta`, `seed`, `sweeps`, `overrelax` (4), `hot` (false: start from unit links), and `passes` (the
// heat-bath passes that generated `start` with the same seed). The record has `plaquettes`, one for each sweep.
//
// # Safety
// As for `fe_gauge_random`; `start` is null or a handle that has not been freed.
int32_t fe_gauge_quenched(const fe_device *device,
                          const int64_t *lattice,
                          const char *options_json,
                          const fe_gauge *start,
                          fe_gauge **out);

// Stores the extents x, y, z, t of the whole lattice of links.
//
// # Safety
// `gauge` is a handle that has not been freed; `lattice` has room for four numbers.
int32_t fe_gauge_lattice(const fe_gauge *gauge, int64_t *lattice);

// *Collective.* Stores the mean plaquettes of links in `*out`.
//
// # Safety
// `gauge` is a handle that has not been freed; `out` is valid for writes.
int32_t fe_gauge_plaquette(const fe_gauge *gauge, fe_plaquette *out);

// *Collective.* Measures plaquettes, rectangles, Polyakov loop, energy density and topological charge, which the record has.
//
// # Safety
// `gauge` is a handle that has not been freed.
int32_t fe_gauge_loops(const fe_gauge *gauge);

// *Collective.* Smears links, and stores the result in `*out`.
//
// `options` is a JSON object: `kind` (`"stout"`, `"ape"` or `"hyp"`), `weights` (ρ, α, or α₁, α₂, α₃), `levels` (1: number of steps), and
// `spatial` (false: all links).
//
// # Safety
// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
int32_t fe_gauge_smear(const fe_gauge *gauge,
                       const char *options_json,
                       fe_gauge **out);

// *Collective.* Follows the gradient flow, and stores the links at its end in `*out`.
//
// `options` is a JSON object: `time` and `step` in units of a², and `action` (`"wilson"`). The record has `points`, each with the flow
// time, the energy density from the clover and from plaquettes, and the topological charge; and `t0` and `w0`.
//
// # Safety
// As for `fe_gauge_smear`.
int32_t fe_gauge_flow(const fe_gauge *gauge,
                      const char *options_json,
                      fe_gauge **out);

// *Collective.* Fixes the gauge of links, and stores the result in `*out`.
//
// `options` is a JSON object: `gauge` (`"coulomb"` or `"landau"`), `tol` (for θ), `overrelax` (from the extents of the lattice) and
// `max_sweeps` (20,000). The record has `theta`, `functional` and `sweeps`.
//
// # Safety
// As for `fe_gauge_smear`.
int32_t fe_gauge_fix(const fe_gauge *gauge,
                     const char *options_json,
                     fe_gauge **out);

// Frees links. Objects that were made from them keep what they need.
//
// # Safety
// `gauge` is null or a handle that has not been freed.
int32_t fe_gauge_free(fe_gauge *gauge);

// *Collective.* Makes an operator on links, and stores it in `*out`.
//
// `options` is a JSON object with `operator` (`"wilson"`, `"clover"`, `"exp-clover"`, `"twisted"`, `"twisted-clover"`, `"staggered"`,
// `"asqtad"`, `"hisq"`, …) and its parameters: `mass` or `kappa`, `csw`, `mu`, `bc_time`, … as listed by `ferrite solve --help`.
//
// # Safety
// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
int32_t fe_operator_new(const fe_gauge *gauge,
                        const char *options_json,
                        fe_operator **out);

// Frees an operator with its multigrid setup.
//
// # Safety
// `op` is null or a handle that has not been freed.
int32_t fe_operator_free(fe_operator *op);

// *Collective.* Computes M ψ, M† ψ or M†M ψ in double precision for all fields ψ of an array.
//
// The axes of both arrays are those of the fields (any number of fields in front), then t, z, y, x, spin and colour; fields of staggered
// operators have no spin. `form` is `FE_PLAIN`, `FE_DAGGER` or `FE_NORMAL`. The arrays may be the same.
//
// # Safety
// `op` is a handle that has not been freed; `input` describes memory that may be read, and `output` memory that may be written.
int32_t fe_apply(const fe_operator *op,
                 int32_t form,
                 const fe_array *input,
                 const fe_array *output);

// *Collective.* Solves M x = b for all fields b of an array, as many as are given.
//
// Axes are those of `fe_apply`. `guess` has initial guesses, or is null. `options` is a JSON object, or null: `solver` (`"auto"`), `tol`
// (1e-10), `precision` (chosen for the device), `reconstruct`, `max_iterations`, `batch`, and others that `ferrite solve --help` lists.
// The record is that of `ferrite solve --json`. If a solver gives up, `x` has the best iterates, `*solution` and the record are there,
// too, and the call returns `FE_SOLVER`.
//
// # Safety
// `op` is a handle that has not been freed; `b` and `guess` describe memory that may be read, and `x` memory that may be written;
// `options` is null or a text with a final zero; `solution` is null or valid for writes.
int32_t fe_solve(const fe_operator *op,
                 const fe_array *b,
                 const fe_array *guess,
                 const fe_array *x,
                 const char *options_json,
                 fe_solution *solution);

// *Collective.* Solves several systems of a staggered operator that differ by a mass, or by a shift σ of M†M + σ, for all fields b of an
// array.
//
// `options` has `masses` or `shifts`, a list of numbers, beside the options of `fe_solve`. The axes of `x` are those of `b` with the
// systems in front. The record has the outcome of each system, in the order of the list.
//
// # Safety
// As for `fe_solve`.
int32_t fe_solve_systems(const fe_operator *op,
                         const fe_array *b,
                         const fe_array *x,
                         const char *options_json,
                         fe_solution *solution);

// *Collective.* Computes the smallest and the largest eigenvalue of M̂†M̂, where M̂ is the even-odd preconditioned operator on the even
// sites, or of M†M of a staggered operator. They are stored in `*smallest` and `*largest`.
//
// `options` is a JSON object, or null: `tol` (1e-6: residual relative to the eigenvalue), `steps` (500), `max_iterations` (100,000: CG in
// each step for the smallest eigenvalue) and `seed` (1). The record has bounds and numbers of steps.
//
// # Safety
// `op` is a handle that has not been freed; `options` is null or a text with a final zero; `smallest` and `largest` are null or valid for
// writes.
int32_t fe_eigenvalues(const fe_operator *op,
                       const char *options_json,
                       double *smallest,
                       double *largest);

// *Collective.* Makes the multigrid setup of an operator, and stores it in `*out`. Solves with `"solver": "multigrid"` or `"auto"` use it
// until it is freed. An operator has one setup; a new one replaces it.
//
// `options` are those of `fe_solve`, among them `vectors`, `levels`, `blocks`, `improvements` and `setup_precision`. The record has the
// seconds and the levels.
//
// # Safety
// `op` is a handle that has not been freed; `options` is null or a text with a final zero; `out` is valid for writes.
int32_t fe_multigrid_new(const fe_operator *op,
                         const char *options_json,
                         fe_multigrid **out);

// *Collective.* Makes the multigrid setup of an operator from the near-null vectors of a file. Options and record are those of
// `fe_multigrid_new`.
//
// # Safety
// As for `fe_multigrid_new`; `path` is a text with a final zero.
int32_t fe_multigrid_read(const fe_operator *op,
                          const char *file,
                          const char *options_json,
                          fe_multigrid **out);

// *Collective.* Writes the near-null vectors of a multigrid setup to a file.
//
// # Safety
// `multigrid` is a handle that has not been freed; `path` is a text with a final zero.
int32_t fe_multigrid_write(const fe_multigrid *multigrid, const char *file);

// Frees a multigrid setup. Later solves make another one if they need it.
//
// # Safety
// `multigrid` is null or a handle that has not been freed.
int32_t fe_multigrid_free(fe_multigrid *multigrid);

// *Collective.* Solves for all components of a source on one time slice, 12 for Wilson-like operators and 3 for staggered ones, and stores
// the propagator in `*out`. It stays on the device.
//
// `profile` has the amplitudes z, y, x of the source, the same for each spin and colour, on this process's part of the lattice; null for
// the point `origin`. With `gauge`, the source is smeared: `options` then has `width`, `steps` and `momentum` of the Gaussian. `options`
// is a JSON object with `origin` (x, y, z, t; of a profile, t counts), and the options of `fe_solve`. If the solver gives up, the
// propagator is made from the best iterates, and the call returns `FE_SOLVER`.
//
// # Safety
// `op` is a handle that has not been freed, `gauge` is one or null; `profile` is null or describes memory that may be read; `options` is
// a text with a final zero; `out` is valid for writes; `solution` is null or valid for writes.
int32_t fe_propagator_new(const fe_operator *op,
                          const fe_array *profile,
                          const fe_gauge *gauge,
                          const char *options_json,
                          fe_propagator **out,
                          fe_solution *solution);

// *Collective.* Solves for the sequential propagator through a sink, and stores it in `*out`. It stays on the device.
//
// `options` is a JSON object with `sink` (the number of Γ of a meson, or `[projector, flavour]` of the nucleon), `momentum`, `origin`,
// `time`, `antiperiodic`, and the options of `fe_solve`. With `gauge`, propagator and sources are smeared at the sink: `options` then has
// `width` and `steps`.
//
// # Safety
// As for `fe_propagator_new`; `from` is a handle that has not been freed.
int32_t fe_propagator_through(const fe_operator *op,
                              const fe_propagator *from,
                              const fe_gauge *gauge,
                              const char *options_json,
                              fe_propagator **out,
                              fe_solution *solution);

// *Collective.* Copies a propagator from an array with the axes component, t, z, y, x, spin and colour (12 components), or component, t, z, y, x and
// colour (3 components), to the device of `gauge` or links on the same lattice, and stores it in `*out`.
//
// # Safety
// `gauge` is a handle that has not been freed; `array` describes memory that may be read; `out` is valid for writes.
int32_t fe_propagator_from(const fe_gauge *gauge,
                           const fe_array *array,
                           fe_propagator **out);

// Copies a propagator to an array with the axes of `fe_propagator_from`.
//
// # Safety
// `propagator` is a handle that has not been freed; `array` describes memory that may be written.
int32_t fe_propagator_get(const fe_propagator *propagator, const fe_array *array);

// *Collective.* Smears a propagator at its sink with a Gaussian, on all time slices, and stores the result in `*out`. `options` is a JSON
// object with `width`, `steps` and `momentum`.
//
// # Safety
// `propagator` and `gauge` are handles that have not been freed; `options` is a text with a final zero; `out` is valid for writes.
int32_t fe_propagator_smear(const fe_propagator *propagator,
                            const fe_gauge *gauge,
                            const char *options_json,
                            fe_propagator **out);

// Frees a propagator.
//
// # Safety
// `propagator` is null or a handle that has not been freed.
int32_t fe_propagator_free(fe_propagator *propagator);

// *Collective.* Contracts the propagators of a quark and an antiquark (`other`, null for the same) to correlators, which are stored in an
// array.
//
// `options` is a JSON object with `hadron`, `origin` (x, y, z, t of the source) and `momenta` (a list of three whole numbers each, in units
// of 2π/L). Hadrons, their other options and the axes of the array are: `"mesons"` with `pairs` of numbers of Γ at sink and source:
// momentum, pair, time; `"nucleon"` with `antiperiodic`: momentum, parity, time; `"staggered-mesons"`: meson, momentum, time;
// `"staggered-nucleon"` with `antiperiodic` and `milc_phases`: momentum, time; `"charge"` with `source` and `antiperiodic`, from a
// propagator and a sequential one, which needs `gauge`: momentum, time. Γ has the number a + 2b + 4c + 8d for γ_x^a γ_y^b γ_z^c γ_t^d, so
// that the pion is 15.
//
// # Safety
// `quark` is a handle that has not been freed; `other` and `gauge` are such handles or null; `options` is a text with a final zero; `out`
// describes memory that may be written.
int32_t fe_contract(const fe_propagator *quark,
                    const fe_propagator *other,
                    const fe_gauge *gauge,
                    const char *options_json,
                    const fe_array *out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FERRITE_H */
