/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls as Fortran programs know them. Open MPI's Fortran functions call PMPI_*, which pass the
 * adapter by. So it has functions of their names, which call the adapter's C functions. MPICH's
 * call MPI_*, except for mpi_init of the module mpi_f08.
 */
#include "tribmpi.h"

#ifdef OPEN_MPI

/* Their addresses stand for MPI_IN_PLACE and MPI_BOTTOM. */
extern int mpi_fortran_in_place_ __attribute__((weak));
extern int mpi_fortran_bottom_ __attribute__((weak));

static void *buffer(void *memory)
{
	if (memory == (void *)&mpi_fortran_in_place_)
		return MPI_IN_PLACE;
	return memory == (void *)&mpi_fortran_bottom_ ? MPI_BOTTOM : memory;
}

/*
 * Compilers write names in several ways, and the module mpi_f08 calls ompi_*_f. `name` is the
 * function's name for mpif.h and the module mpi with gfortran and most others.
 */
#define ALIAS(of, as) extern __typeof__(mpi_##of##_) as __attribute__((alias("mpi_" #of "_")))
#define NAMES(lower, upper)            \
	ALIAS(lower, mpi_##lower);     \
	ALIAS(lower, mpi_##lower##__); \
	ALIAS(lower, MPI_##upper);     \
	ALIAS(lower, ompi_##lower##_f)

void mpi_init_(MPI_Fint *error);
void mpi_init_(MPI_Fint *error)
{
	*error = MPI_Init(NULL, NULL);
}
NAMES(init, INIT);

void mpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error);
void mpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
{
	*error = MPI_Init_thread(NULL, NULL, *required, provided);
}
NAMES(init_thread, INIT_THREAD);

void mpi_finalize_(MPI_Fint *error);
void mpi_finalize_(MPI_Fint *error)
{
	*error = MPI_Finalize();
}
NAMES(finalize, FINALIZE);

void mpi_allreduce_(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
                    MPI_Fint *comm, MPI_Fint *error);
void mpi_allreduce_(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
                    MPI_Fint *comm, MPI_Fint *error)
{
	*error = MPI_Allreduce(buffer(send), buffer(recv), *count, MPI_Type_f2c(*type),
	                       MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
}
NAMES(allreduce, ALLREDUCE);

void mpi_reduce_(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
                 MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error);
void mpi_reduce_(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
                 MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error)
{
	*error = MPI_Reduce(buffer(send), buffer(recv), *count, MPI_Type_f2c(*type),
	                    MPI_Op_f2c(*op), *root, MPI_Comm_f2c(*comm));
}
NAMES(reduce, REDUCE);

void mpi_reduce_scatter_(void *send, void *recv, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op,
                         MPI_Fint *comm, MPI_Fint *error);
void mpi_reduce_scatter_(void *send, void *recv, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op,
                         MPI_Fint *comm, MPI_Fint *error)
{
	*error = MPI_Reduce_scatter(buffer(send), buffer(recv), counts, MPI_Type_f2c(*type),
	                            MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
}
NAMES(reduce_scatter, REDUCE_SCATTER);

void mpi_reduce_scatter_block_(void *send, void *recv, MPI_Fint *count, MPI_Fint *type,
                               MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error);
void mpi_reduce_scatter_block_(void *send, void *recv, MPI_Fint *count, MPI_Fint *type,
                               MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error)
{
	*error = MPI_Reduce_scatter_block(buffer(send), buffer(recv), *count, MPI_Type_f2c(*type),
	                                  MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
}
NAMES(reduce_scatter_block, REDUCE_SCATTER_BLOCK);

void mpi_bcast_(void *memory, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm,
                MPI_Fint *error);
void mpi_bcast_(void *memory, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm,
                MPI_Fint *error)
{
	*error = MPI_Bcast(buffer(memory), *count, MPI_Type_f2c(*type), *root, MPI_Comm_f2c(*comm));
}
NAMES(bcast, BCAST);

void mpi_allgather_(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
                    MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm, MPI_Fint *error);
void mpi_allgather_(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
                    MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm, MPI_Fint *error)
{
	*error = MPI_Allgather(buffer(send), *send_count, MPI_Type_f2c(*send_type), buffer(recv),
	                       *recv_count, MPI_Type_f2c(*recv_type), MPI_Comm_f2c(*comm));
}
NAMES(allgather, ALLGATHER);

void mpi_barrier_(MPI_Fint *comm, MPI_Fint *error);
void mpi_barrier_(MPI_Fint *comm, MPI_Fint *error)
{
	*error = MPI_Barrier(MPI_Comm_f2c(*comm));
}
NAMES(barrier, BARRIER);

#else

/* `error` is optional in this module. */
void mpi_init_f08_(MPI_Fint *error);
void mpi_init_f08_(MPI_Fint *error)
{
	int code = MPI_Init(NULL, NULL);

	if (error)
		*error = code;
}

void mpi_init_thread_f08_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error);
void mpi_init_thread_f08_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
{
	int code = MPI_Init_thread(NULL, NULL, *required, provided);

	if (error)
		*error = code;
}

void mpi_finalize_f08_(MPI_Fint *error);
void mpi_finalize_f08_(MPI_Fint *error)
{
	int code = MPI_Finalize();

	if (error)
		*error = code;
}

#endif
