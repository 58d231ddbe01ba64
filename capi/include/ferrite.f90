! Fortran interface of Ferrite, lattice QCD on GPUs. Generated from ferrite.h, which explains all functions; do not edit.
!
! Handles have the type c_ptr. Texts end with c_null_char; the text of c_null_char alone stands for no options. Arrays are
! described by their address, c_loc(numbers), with the axes in the order of ferrite.h and their strides in bytes. Arguments
! that may be null are optional.
module ferrite
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int32_t), parameter :: FE_COMPLEX64 = 1
  integer(c_int32_t), parameter :: FE_COMPLEX128 = 2
  integer(c_int32_t), parameter :: FE_HOST = -1
  integer(c_int32_t), parameter :: FE_AXES = 8
  integer(c_int32_t), parameter :: FE_ABI_OF_MODULE = 1
  integer(c_int32_t), parameter :: FE_OK = 0
  integer(c_int32_t), parameter :: FE_INPUT = 1
  integer(c_int32_t), parameter :: FE_FILE = 2
  integer(c_int32_t), parameter :: FE_DEVICE = 3
  integer(c_int32_t), parameter :: FE_SOLVER = 4
  integer(c_int32_t), parameter :: FE_FAILED = 5
  integer(c_int32_t), parameter :: FE_INTERNAL = 6
  integer(c_int32_t), parameter :: FE_PLAIN = 0
  integer(c_int32_t), parameter :: FE_DAGGER = 1
  integer(c_int32_t), parameter :: FE_NORMAL = 2

  type, bind(c) :: fe_trajectory
    integer(c_int32_t) :: accepted = 0
    integer(c_int32_t) :: reserved = 0
    real(c_double) :: delta_h = 0
    real(c_double) :: plaquette = 0
    real(c_double) :: seconds = 0
  end type

  type, bind(c) :: fe_array
    type(c_ptr) :: data = c_null_ptr
    integer(c_int32_t) :: scalar = 0
    integer(c_int32_t) :: place = 0
    integer(c_int32_t) :: axes = 0
    integer(c_int32_t) :: reserved = 0
    integer(c_int64_t) :: length(8) = 0
    integer(c_int64_t) :: stride(8) = 0
  end type

  type, bind(c) :: fe_plaquette
    real(c_double) :: mean = 0
    real(c_double) :: spatial = 0
    real(c_double) :: temporal = 0
    real(c_double) :: link_trace = 0
  end type

  type, bind(c) :: fe_solution
    integer(c_int32_t) :: converged = 0
    integer(c_int32_t) :: reserved = 0
    integer(c_int64_t) :: iterations = 0
    real(c_double) :: true_residual = 0
    real(c_double) :: seconds = 0
    real(c_double) :: total_seconds = 0
    real(c_double) :: gflops = 0
  end type

  interface
    function fe_abi() bind(c)
      import
      integer(c_int32_t) :: fe_abi
    end function
    function fe_version() bind(c)
      import
      type(c_ptr) :: fe_version
    end function
    function fe_message() bind(c)
      import
      type(c_ptr) :: fe_message
    end function
    function fe_record() bind(c)
      import
      type(c_ptr) :: fe_record
    end function
    function fe_device_new(options_json, mpi_comm, out) bind(c)
      import
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), value :: mpi_comm
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_device_new
    end function
    function fe_device_free(device) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_int32_t) :: fe_device_free
    end function
    function fe_device_describe(device) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_int32_t) :: fe_device_describe
    end function
    function fe_device_part(device, lattice, origin, part) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_int64_t), intent(in) :: lattice(4)
      integer(c_int64_t), intent(out) :: origin(4)
      integer(c_int64_t), intent(out) :: part(4)
      integer(c_int32_t) :: fe_device_part
    end function
    function fe_device_memory(device, free_bytes, total_bytes) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_int64_t), intent(out) :: free_bytes
      integer(c_int64_t), intent(out) :: total_bytes
      integer(c_int32_t) :: fe_device_memory
    end function
    function fe_chain_new(gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_chain_new
    end function
    function fe_chain_trajectory(chain, number, reverse, out) bind(c)
      import
      type(c_ptr), value :: chain
      integer(c_int64_t), value :: number
      integer(c_int32_t), value :: reverse
      type(fe_trajectory), intent(out), optional :: out
      integer(c_int32_t) :: fe_chain_trajectory
    end function
    function fe_chain_gauge(chain, out) bind(c)
      import
      type(c_ptr), value :: chain
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_chain_gauge
    end function
    function fe_chain_free(chain) bind(c)
      import
      type(c_ptr), value :: chain
      integer(c_int32_t) :: fe_chain_free
    end function
    function fe_momenta_new(device, lattice, out) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_int64_t), intent(in) :: lattice(4)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_momenta_new
    end function
    function fe_momenta_draw(momenta, seed, trajectory) bind(c)
      import
      type(c_ptr), value :: momenta
      integer(c_int64_t), value :: seed
      integer(c_int32_t), value :: trajectory
      integer(c_int32_t) :: fe_momenta_draw
    end function
    function fe_momenta_set(momenta, array) bind(c)
      import
      type(c_ptr), value :: momenta
      type(fe_array), intent(in), optional :: array
      integer(c_int32_t) :: fe_momenta_set
    end function
    function fe_momenta_get(momenta, array) bind(c)
      import
      type(c_ptr), value :: momenta
      type(fe_array), intent(in), optional :: array
      integer(c_int32_t) :: fe_momenta_get
    end function
    function fe_momenta_energy(momenta, out) bind(c)
      import
      type(c_ptr), value :: momenta
      real(c_double), intent(out) :: out
      integer(c_int32_t) :: fe_momenta_energy
    end function
    function fe_momenta_free(momenta) bind(c)
      import
      type(c_ptr), value :: momenta
      integer(c_int32_t) :: fe_momenta_free
    end function
    function fe_gauge_action(gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      real(c_double), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_action
    end function
    function fe_gauge_force(gauge, options_json, step, momenta) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      real(c_double), value :: step
      type(c_ptr), value :: momenta
      integer(c_int32_t) :: fe_gauge_force
    end function
    function fe_gauge_move(gauge, momenta, step, out) bind(c)
      import
      type(c_ptr), value :: gauge
      type(c_ptr), value :: momenta
      real(c_double), value :: step
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_move
    end function
    function fe_quarks_new(gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_quarks_new
    end function
    function fe_quarks_draw(quarks, gauge, seed, trajectory, action) bind(c)
      import
      type(c_ptr), value :: quarks
      type(c_ptr), value :: gauge
      integer(c_int64_t), value :: seed
      integer(c_int32_t), value :: trajectory
      real(c_double), intent(out) :: action
      integer(c_int32_t) :: fe_quarks_draw
    end function
    function fe_quarks_action(quarks, gauge, action) bind(c)
      import
      type(c_ptr), value :: quarks
      type(c_ptr), value :: gauge
      real(c_double), intent(out) :: action
      integer(c_int32_t) :: fe_quarks_action
    end function
    function fe_quarks_force(quarks, gauge, step, momenta) bind(c)
      import
      type(c_ptr), value :: quarks
      type(c_ptr), value :: gauge
      real(c_double), value :: step
      type(c_ptr), value :: momenta
      integer(c_int32_t) :: fe_quarks_force
    end function
    function fe_quarks_free(quarks) bind(c)
      import
      type(c_ptr), value :: quarks
      integer(c_int32_t) :: fe_quarks_free
    end function
    function fe_gauge_new(device, array, out) bind(c)
      import
      type(c_ptr), value :: device
      type(fe_array), intent(in), optional :: array
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_new
    end function
    function fe_gauge_get(gauge, array) bind(c)
      import
      type(c_ptr), value :: gauge
      type(fe_array), intent(in), optional :: array
      integer(c_int32_t) :: fe_gauge_get
    end function
    function fe_gauge_read(device, file, options_json, out) bind(c)
      import
      type(c_ptr), value :: device
      character(kind=c_char), intent(in) :: file(*)
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_read
    end function
    function fe_gauge_write(gauge, file, options_json) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: file(*)
      character(kind=c_char), intent(in) :: options_json(*)
      integer(c_int32_t) :: fe_gauge_write
    end function
    function fe_gauge_unit(device, lattice, out) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_int64_t), intent(in) :: lattice(4)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_unit
    end function
    function fe_gauge_random(device, lattice, options_json, out) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_int64_t), intent(in) :: lattice(4)
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_random
    end function
    function fe_gauge_quenched(device, lattice, options_json, start, out) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_int64_t), intent(in) :: lattice(4)
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), value :: start
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_quenched
    end function
    function fe_gauge_lattice(gauge, lattice) bind(c)
      import
      type(c_ptr), value :: gauge
      integer(c_int64_t), intent(out) :: lattice(4)
      integer(c_int32_t) :: fe_gauge_lattice
    end function
    function fe_gauge_plaquette(gauge, out) bind(c)
      import
      type(c_ptr), value :: gauge
      type(fe_plaquette), intent(out), optional :: out
      integer(c_int32_t) :: fe_gauge_plaquette
    end function
    function fe_gauge_loops(gauge) bind(c)
      import
      type(c_ptr), value :: gauge
      integer(c_int32_t) :: fe_gauge_loops
    end function
    function fe_gauge_smear(gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_smear
    end function
    function fe_gauge_flow(gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_flow
    end function
    function fe_gauge_fix(gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_gauge_fix
    end function
    function fe_gauge_free(gauge) bind(c)
      import
      type(c_ptr), value :: gauge
      integer(c_int32_t) :: fe_gauge_free
    end function
    function fe_operator_new(gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_operator_new
    end function
    function fe_operator_free(op) bind(c)
      import
      type(c_ptr), value :: op
      integer(c_int32_t) :: fe_operator_free
    end function
    function fe_apply(op, form, input, output) bind(c)
      import
      type(c_ptr), value :: op
      integer(c_int32_t), value :: form
      type(fe_array), intent(in), optional :: input
      type(fe_array), intent(in), optional :: output
      integer(c_int32_t) :: fe_apply
    end function
    function fe_solve(op, b, guess, x, options_json, solution) bind(c)
      import
      type(c_ptr), value :: op
      type(fe_array), intent(in), optional :: b
      type(fe_array), intent(in), optional :: guess
      type(fe_array), intent(in), optional :: x
      character(kind=c_char), intent(in) :: options_json(*)
      type(fe_solution), intent(out), optional :: solution
      integer(c_int32_t) :: fe_solve
    end function
    function fe_solve_systems(op, b, x, options_json, solution) bind(c)
      import
      type(c_ptr), value :: op
      type(fe_array), intent(in), optional :: b
      type(fe_array), intent(in), optional :: x
      character(kind=c_char), intent(in) :: options_json(*)
      type(fe_solution), intent(out), optional :: solution
      integer(c_int32_t) :: fe_solve_systems
    end function
    function fe_eigenvalues(op, options_json, smallest, largest) bind(c)
      import
      type(c_ptr), value :: op
      character(kind=c_char), intent(in) :: options_json(*)
      real(c_double), intent(out) :: smallest
      real(c_double), intent(out) :: largest
      integer(c_int32_t) :: fe_eigenvalues
    end function
    function fe_multigrid_new(op, options_json, out) bind(c)
      import
      type(c_ptr), value :: op
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_multigrid_new
    end function
    function fe_multigrid_read(op, file, options_json, out) bind(c)
      import
      type(c_ptr), value :: op
      character(kind=c_char), intent(in) :: file(*)
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_multigrid_read
    end function
    function fe_multigrid_write(multigrid, file) bind(c)
      import
      type(c_ptr), value :: multigrid
      character(kind=c_char), intent(in) :: file(*)
      integer(c_int32_t) :: fe_multigrid_write
    end function
    function fe_multigrid_free(multigrid) bind(c)
      import
      type(c_ptr), value :: multigrid
      integer(c_int32_t) :: fe_multigrid_free
    end function
    function fe_propagator_new(op, profile, gauge, options_json, out, solution) bind(c)
      import
      type(c_ptr), value :: op
      type(fe_array), intent(in), optional :: profile
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      type(fe_solution), intent(out), optional :: solution
      integer(c_int32_t) :: fe_propagator_new
    end function
    function fe_propagator_through(op, from, gauge, options_json, out, solution) bind(c)
      import
      type(c_ptr), value :: op
      type(c_ptr), value :: from
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      type(fe_solution), intent(out), optional :: solution
      integer(c_int32_t) :: fe_propagator_through
    end function
    function fe_propagator_from(gauge, array, out) bind(c)
      import
      type(c_ptr), value :: gauge
      type(fe_array), intent(in), optional :: array
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_propagator_from
    end function
    function fe_propagator_get(propagator, array) bind(c)
      import
      type(c_ptr), value :: propagator
      type(fe_array), intent(in), optional :: array
      integer(c_int32_t) :: fe_propagator_get
    end function
    function fe_propagator_smear(propagator, gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: propagator
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(c_ptr), intent(out) :: out
      integer(c_int32_t) :: fe_propagator_smear
    end function
    function fe_propagator_free(propagator) bind(c)
      import
      type(c_ptr), value :: propagator
      integer(c_int32_t) :: fe_propagator_free
    end function
    function fe_contract(quark, other, gauge, options_json, out) bind(c)
      import
      type(c_ptr), value :: quark
      type(c_ptr), value :: other
      type(c_ptr), value :: gauge
      character(kind=c_char), intent(in) :: options_json(*)
      type(fe_array), intent(in), optional :: out
      integer(c_int32_t) :: fe_contract
    end function
  end interface

contains

  ! Returns the text at the address `text`, such as that of fe_message() or fe_record().
  function fe_text(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: copy
    character(kind=c_char), pointer :: letters(:)
    integer :: length, k
    call c_f_pointer(text, letters, [huge(0)])
    length = 0
    do while (letters(length + 1) /= c_null_char)
      length = length + 1
    end do
    allocate (character(len=length) :: copy)
    do k = 1, length
      copy(k:k) = letters(k)
    end do
  end function
end module
