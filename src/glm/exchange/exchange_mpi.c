/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchange over MPI_Allreduce: P4SGD's baseline CPUSync with the kernels of this project. It is
 * a module, so that trib itself does not need MPI. A post returns when the sum is there.
 */
#include "glm/exchange/exchange.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>

static trib_status mpi_failed(struct exchange *x, const char *what, int code)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int n;

	MPI_Error_string(code, text, &n);
	snprintf(x->error, sizeof(x->error), "%s: %.300s", what, text);
	return TRIB_ERR_PEER;
}

static trib_status mpi_open(struct exchange *x, trib_comm *comm)
{
	int code, threads;

	(void)comm;
	code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads);
	if (code != MPI_SUCCESS)
		return mpi_failed(x, "MPI_Init_thread", code);
	MPI_Comm_rank(MPI_COMM_WORLD, &x->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &x->size);
	return TRIB_OK;
}

static trib_status numbers_sum(struct exchange *x, char *data, size_t n, size_t size,
                               MPI_Datatype type)
{
	while (n) {
		int now = n < INT_MAX / 2 ? (int)n : INT_MAX / 2;
		int code = MPI_Allreduce(MPI_IN_PLACE, data, now, type, MPI_SUM, MPI_COMM_WORLD);

		if (code != MPI_SUCCESS)
			return mpi_failed(x, "MPI_Allreduce", code);
		data += (size_t)now * size;
		n -= (size_t)now;
	}
	return TRIB_OK;
}

static trib_status mpi_sum(struct exchange *x, int64_t *data, size_t n)
{
	return numbers_sum(x, (char *)data, n, sizeof(*data), MPI_INT64_T);
}

/* Unsigned: a sum may overflow. */
static trib_status mpi_sum32(struct exchange *x, int32_t *data, size_t n)
{
	return numbers_sum(x, (char *)data, n, sizeof(*data), MPI_UINT32_T);
}

static trib_status mpi_post(struct exchange *x, uint32_t slot, int64_t *data, size_t n)
{
	(void)slot;
	return mpi_sum(x, data, n);
}

static trib_status mpi_wait(struct exchange *x, uint32_t slot)
{
	(void)x, (void)slot;
	return TRIB_OK;
}

static void mpi_close(struct exchange *x)
{
	(void)x;
	MPI_Finalize();
}

extern const struct glm_exchange glm_exchange_table;
const struct glm_exchange glm_exchange_table = {
	.name = "mpi",
	.open = mpi_open,
	.sum = mpi_sum,
	.sum32 = mpi_sum32,
	.post = mpi_post,
	.test = mpi_wait,
	.wait = mpi_wait,
	.close = mpi_close,
};
