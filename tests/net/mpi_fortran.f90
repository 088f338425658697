! SPDX-License-Identifier: Apache-2.0
! Collectives from Fortran: sums, in place, and a broadcast. Prints "rank R: right".
program mpi_fortran
  use mpi
  implicit none
  integer, parameter :: n = 30000
  integer :: rank, ranks, error, i, ones(1), total(1), bad
  double precision :: x(n), y(n)
  real :: z(n)

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  bad = 0
  ones = 1
  call MPI_Allreduce(ones, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (total(1) /= ranks) bad = bad + 1
  do i = 1, n
    x(i) = i * 0.5d0 + rank
  end do
  call MPI_Allreduce(x, y, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  do i = 1, n
    if (x(i) /= y(i) .or. y(i) /= ranks * i * 0.5d0 + ranks * (ranks - 1) / 2) bad = bad + 1
  end do
  z = real(rank)
  call MPI_Bcast(z, n, MPI_REAL, ranks - 1, MPI_COMM_WORLD, error)
  if (any(z /= real(ranks - 1))) bad = bad + 1
  call MPI_Reduce(z, x, 100, MPI_REAL, MPI_MAX, 0, MPI_COMM_WORLD, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (bad == 0) then
    print '(a,i0,a)', 'rank ', rank, ': right'
  else
    print '(a,i0,a)', 'rank ', rank, ': WRONG'
  end if
  call MPI_Finalize(error)
end program
