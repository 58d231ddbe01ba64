! Solves the Dirac equation of staggered quarks for one source, and computes the ends of the spectrum of M†M.
program eigenvalue
  use ferrite
  implicit none
  integer, parameter :: x = 4, y = 4, z = 4, t = 8
  complex(c_double_complex), allocatable, target :: b(:, :, :, :, :), solution(:, :, :, :, :)
  type(c_ptr) :: device, gauge, op
  type(fe_solution) :: found
  real(c_double) :: smallest, largest

  if (fe_abi() /= FE_ABI_OF_MODULE) stop "the library has another interface than the module: compile the program again"
  call check(fe_device_new('{"device": "cpu", "threads": 1}' // c_null_char, c_null_ptr, device))
  call check(fe_gauge_random(device, int([x, y, z, t], c_int64_t), '{"seed": 7, "noise": 0.3}' // c_null_char, gauge))
  call check(fe_operator_new(gauge, '{"operator": "staggered", "mass": 0.2}' // c_null_char, op))

  ! The first index of Fortran varies fastest: colour, x, y, z, t.
  allocate (b(3, x, y, z, t), solution(3, x, y, z, t))
  b = 0
  b(1, 1, 1, 1, 1) = 1
  call check(fe_solve(op, field(c_loc(b)), x=field(c_loc(solution)), options_json='{"tol": 1e-10}' // c_null_char, solution=found))
  print '(a, es8.1, a, i0, a)', 'true residual ', found%true_residual, ' after ', found%iterations, ' iterations'

  call check(fe_eigenvalues(op, c_null_char, smallest, largest))
  print '(a, f14.10, a, f14.10)', 'eigenvalues from ', smallest, ' to ', largest
  if (fe_eigenvalues(op, '{"tol": -1}' // c_null_char, smallest, largest) /= FE_INPUT) error stop 'a mistake was not found'
  print '(a)', fe_text(fe_message())

  call check(fe_operator_free(op))
  call check(fe_gauge_free(gauge))
  call check(fe_device_free(device))
  if (found%converged /= 1 .or. abs(largest - 5.8675618d0) > 1d-5) error stop 'wrong numbers'

contains

  subroutine check(code)
    integer(c_int32_t), intent(in) :: code
    if (code /= FE_OK) then
      print '(a)', fe_text(fe_message())
      error stop 1
    end if
  end subroutine

  ! Describes a field of staggered quarks.
  function field(address)
    type(c_ptr), intent(in) :: address
    type(fe_array) :: field
    field%data = address
    field%scalar = FE_COMPLEX128
    field%place = FE_HOST
    field%axes = 5
    field%length(1:5) = [t, z, y, x, 3]
  end function
end program
