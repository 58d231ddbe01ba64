// C++ interface of Ferrite, lattice QCD on GPUs: classes that free their handles, and exceptions in place of codes. It consists of this
// header and of ferrite.h alone, and needs C++20. docs/c.md explains the interface with examples.
#pragma once

#include <ferrite.h>

#include <array>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace ferrite {

// Failure of a call, with its code and its message.
class error : public std::runtime_error {
public:
  error(std::int32_t code, const char *message) : std::runtime_error(message), code_(code) {}
  // FE_INPUT, FE_FILE, FE_DEVICE, FE_SOLVER, FE_FAILED or FE_INTERNAL.
  std::int32_t code() const noexcept { return code_; }

private:
  std::int32_t code_;
};

// Failure of a solve that did not converge, with its outcome.
class solve_error : public error {
public:
  solve_error(const char *message, const fe_solution &solution) : error(FE_SOLVER, message), solution(solution) {}
  fe_solution solution;
};

// Throws an exception for a code other than FE_OK.
inline void check(std::int32_t code) {
  if (code != FE_OK) {
    throw error(code, fe_message());
  }
}

// Throws an exception for the code of a solve other than FE_OK.
inline void check_solve(std::int32_t code, const fe_solution &solution) {
  if (code == FE_SOLVER) {
    throw solve_error(fe_message(), solution);
  }
  check(code);
}

// Record of the last call on this thread, as a JSON object.
inline std::string record() { return fe_record(); }

// Extents x, y, z and t of a lattice.
using extents = std::array<std::int64_t, 4>;

namespace detail {
inline fe_array dense(void *data, std::int32_t scalar, std::size_t count, std::initializer_list<std::int64_t> shape) {
  fe_array array{};
  array.data = data;
  array.scalar = scalar;
  array.place = FE_HOST;
  array.axes = static_cast<std::int32_t>(shape.size());
  std::size_t all = 1, axis = 0;
  for (auto length : shape) {
    if (axis == FE_AXES || length < 1) {
      throw error(FE_INPUT, "shape: expected 1 to 8 lengths above 0");
    }
    array.length[axis++] = length;
    all *= static_cast<std::size_t>(length);
  }
  if (all != count) {
    throw error(FE_INPUT, "shape: the span does not have as many numbers as the shape");
  }
  return array;
}

// Handle that is freed at the end of its life.
template <typename T, std::int32_t (*Free)(T *)> class handle {
public:
  handle() = default;
  explicit handle(T *pointer) : pointer_(pointer) {}
  handle(handle &&other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  handle &operator=(handle &&other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  handle(const handle &) = delete;
  handle &operator=(const handle &) = delete;
  ~handle() {
    if (pointer_) {
      Free(pointer_);
    }
  }
  T *get() const noexcept { return pointer_; }
  T **out() noexcept { return &pointer_; }

private:
  T *pointer_ = nullptr;
};
} // namespace detail

// Describes complex numbers in C order, of a vector, a span, or another contiguous range, with the lengths of the axes. Functions that only
// read numbers also take descriptions of constant ones.
template <std::ranges::contiguous_range R> fe_array view(R &&numbers, std::initializer_list<std::int64_t> shape) {
  using number = std::remove_cv_t<std::ranges::range_value_t<R>>;
  static_assert(std::is_same_v<number, std::complex<double>> || std::is_same_v<number, std::complex<float>>);
  constexpr auto scalar = std::is_same_v<number, std::complex<double>> ? FE_COMPLEX128 : FE_COMPLEX64;
  std::span all(numbers);
  return detail::dense(const_cast<number *>(all.data()), scalar, all.size(), shape);
}

// A GPU or the CPU, with the processes that partition lattices among them.
class device {
public:
  // Opens a device; options are those of fe_device_new. mpi_comm points to an MPI_Comm, or is null.
  explicit device(const std::string &options = "", const void *mpi_comm = nullptr) {
    check(fe_device_new(options.c_str(), mpi_comm, own_.out()));
  }
  fe_device *get() const noexcept { return own_.get(); }

private:
  detail::handle<fe_device, fe_device_free> own_;
};

// Momenta of links.
class momenta {
public:
  momenta(const device &on, const extents &lattice) { check(fe_momenta_new(on.get(), lattice.data(), own_.out())); }
  void draw(std::uint64_t seed, std::uint32_t trajectory) { check(fe_momenta_draw(get(), seed, trajectory)); }
  void set(const fe_array &matrices) { check(fe_momenta_set(get(), &matrices)); }
  void copy_to(const fe_array &matrices) const { check(fe_momenta_get(get(), &matrices)); }
  double energy() const {
    double energy = 0;
    check(fe_momenta_energy(get(), &energy));
    return energy;
  }
  fe_momenta *get() const noexcept { return own_.get(); }

private:
  detail::handle<fe_momenta, fe_momenta_free> own_;
};

// Links of a configuration.
class gauge {
public:
  gauge(const device &on, const fe_array &links) { check(fe_gauge_new(on.get(), &links, own_.out())); }
  static gauge read(const device &on, const std::string &path, const std::string &options = "") {
    return make(fe_gauge_read, on.get(), path.c_str(), options.c_str());
  }
  static gauge unit(const device &on, const extents &lattice) { return make(fe_gauge_unit, on.get(), lattice.data()); }
  static gauge random(const device &on, const extents &lattice, const std::string &options) {
    return make(fe_gauge_random, on.get(), lattice.data(), options.c_str());
  }
  static gauge quenched(const device &on, const extents &lattice, const std::string &options, const gauge *start = nullptr) {
    return make(fe_gauge_quenched, on.get(), lattice.data(), options.c_str(), start ? start->get() : nullptr);
  }
  void write(const std::string &path, const std::string &options = "") const {
    check(fe_gauge_write(get(), path.c_str(), options.c_str()));
  }
  void copy_to(const fe_array &links) const { check(fe_gauge_get(get(), &links)); }
  extents lattice() const {
    extents lattice{};
    check(fe_gauge_lattice(get(), lattice.data()));
    return lattice;
  }
  fe_plaquette plaquette() const {
    fe_plaquette found{};
    check(fe_gauge_plaquette(get(), &found));
    return found;
  }
  gauge smear(const std::string &options) const { return make(fe_gauge_smear, get(), options.c_str()); }
  gauge flow(const std::string &options) const { return make(fe_gauge_flow, get(), options.c_str()); }
  gauge fix(const std::string &options) const { return make(fe_gauge_fix, get(), options.c_str()); }
  gauge moved(const momenta &by, double step) const { return make(fe_gauge_move, get(), by.get(), step); }
  double action(const std::string &options) const {
    double value = 0;
    check(fe_gauge_action(get(), options.c_str(), &value));
    return value;
  }
  // Adds the force of a gauge action to momenta: P ← P − step ∂S.
  void force(const std::string &options, double step, momenta &to) const {
    check(fe_gauge_force(get(), options.c_str(), step, to.get()));
  }
  fe_gauge *get() const noexcept { return own_.get(); }

private:
  friend class chain;
  gauge() = default;
  template <typename F, typename... A> static gauge make(F function, A... arguments) {
    gauge made;
    check(function(arguments..., made.own_.out()));
    return made;
  }
  detail::handle<fe_gauge, fe_gauge_free> own_;
};

// Dirac operator on links.
class dirac {
public:
  dirac(const gauge &on, const std::string &options) { check(fe_operator_new(on.get(), options.c_str(), own_.out())); }
  void apply(const fe_array &input, const fe_array &output, std::int32_t form = FE_PLAIN) const {
    check(fe_apply(get(), form, &input, &output));
  }
  // Solves M x = b. Throws a solve_error if the solve does not converge; x then has the best iterates.
  fe_solution solve(const fe_array &b, const fe_array &x, const std::string &options = "", const fe_array *guess = nullptr) const {
    fe_solution found{};
    check_solve(fe_solve(get(), &b, guess, &x, options.c_str(), &found), found);
    return found;
  }
  fe_solution solve_systems(const fe_array &b, const fe_array &x, const std::string &options) const {
    fe_solution found{};
    check_solve(fe_solve_systems(get(), &b, &x, options.c_str(), &found), found);
    return found;
  }
  // Smallest and largest eigenvalue.
  std::pair<double, double> eigenvalues(const std::string &options = "") const {
    std::pair<double, double> found;
    check(fe_eigenvalues(get(), options.c_str(), &found.first, &found.second));
    return found;
  }
  fe_operator *get() const noexcept { return own_.get(); }

private:
  detail::handle<fe_operator, fe_operator_free> own_;
};

// Multigrid setup of an operator.
class multigrid {
public:
  explicit multigrid(const dirac &of, const std::string &options = "") {
    check(fe_multigrid_new(of.get(), options.c_str(), own_.out()));
  }
  // Makes the setup from the near-null vectors of a file.
  static multigrid read(const dirac &of, const std::string &path, const std::string &options = "") {
    multigrid made;
    check(fe_multigrid_read(of.get(), path.c_str(), options.c_str(), made.own_.out()));
    return made;
  }
  void write(const std::string &path) const { check(fe_multigrid_write(own_.get(), path.c_str())); }

private:
  multigrid() = default;
  detail::handle<fe_multigrid, fe_multigrid_free> own_;
};

// Quark propagator on a device.
class propagator {
public:
  // Solves for a point source, or a smeared one with `smearing`; options are those of fe_propagator_new.
  propagator(const dirac &of, const std::string &options, const gauge *smearing = nullptr, const fe_array *profile = nullptr) {
    auto links = smearing ? smearing->get() : nullptr;
    check_solve(fe_propagator_new(of.get(), profile, links, options.c_str(), own_.out(), &solution), solution);
  }
  // Copies a propagator from an array; links on the same lattice say where it is.
  static propagator from(const gauge &on, const fe_array &numbers) {
    propagator made;
    check(fe_propagator_from(on.get(), &numbers, made.own_.out()));
    return made;
  }
  // Solves for the sequential propagator through a sink; options are those of fe_propagator_through.
  propagator through(const dirac &of, const std::string &options, const gauge *smearing = nullptr) const {
    propagator made;
    auto links = smearing ? smearing->get() : nullptr;
    check_solve(fe_propagator_through(of.get(), get(), links, options.c_str(), made.own_.out(), &made.solution), made.solution);
    return made;
  }
  // Smears the propagator at its sink.
  propagator smear(const gauge &with, const std::string &options) const {
    propagator made;
    check(fe_propagator_smear(get(), with.get(), options.c_str(), made.own_.out()));
    return made;
  }
  void copy_to(const fe_array &numbers) const { check(fe_propagator_get(get(), &numbers)); }
  fe_propagator *get() const noexcept { return own_.get(); }
  // Outcome of the solve.
  fe_solution solution{};

private:
  propagator() = default;
  detail::handle<fe_propagator, fe_propagator_free> own_;
};

// Contracts propagators to correlators; options and the axes of `out` are those of fe_contract.
inline void contract(const propagator &quark, const std::string &options, const fe_array &out, const propagator *other = nullptr,
                     const gauge *links = nullptr) {
  check(fe_contract(quark.get(), other ? other->get() : nullptr, links ? links->get() : nullptr, options.c_str(), &out));
}

// Quarks of molecular dynamics, with their pseudofermions.
class quarks {
public:
  quarks(const gauge &on, const std::string &options) { check(fe_quarks_new(on.get(), options.c_str(), own_.out())); }
  double draw(const gauge &on, std::uint64_t seed, std::uint32_t trajectory) {
    double action = 0;
    check(fe_quarks_draw(own_.get(), on.get(), seed, trajectory, &action));
    return action;
  }
  double action(const gauge &on) const {
    double action = 0;
    check(fe_quarks_action(own_.get(), on.get(), &action));
    return action;
  }
  void force(const gauge &on, double step, momenta &to) const { check(fe_quarks_force(own_.get(), on.get(), step, to.get())); }

private:
  detail::handle<fe_quarks, fe_quarks_free> own_;
};

// Markov chain of hybrid Monte Carlo.
class chain {
public:
  chain(const gauge &start, const std::string &options) { check(fe_chain_new(start.get(), options.c_str(), own_.out())); }
  fe_trajectory trajectory(std::int64_t number, bool reverse = false) {
    fe_trajectory made{};
    check(fe_chain_trajectory(own_.get(), number, reverse, &made));
    return made;
  }
  gauge links() const { return gauge::make(fe_chain_gauge, own_.get()); }

private:
  detail::handle<fe_chain, fe_chain_free> own_;
};

} // namespace ferrite
