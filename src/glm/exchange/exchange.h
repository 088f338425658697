/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glm/exchange owns how workers sum integers. It must not know what is summed, nor models and data.
 *
 * exchange: a table of functions for each way:
 *
 *   local      one worker: a sum is what it has
 *   tributary  trib_iallreduce, small vectors by slots
 *   mpi        MPI_Allreduce, a module that is loaded on demand (the baseline CPUSync)
 *
 * All workers post in the same order.
 */
#ifndef TRIB_GLM_EXCHANGE_H
#define TRIB_GLM_EXCHANGE_H

#include <tributary.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange {
	const struct glm_exchange *ops;
	void *state;
	int rank, size;
	uint32_t slots;  /* vectors that may be on their way at once */
	bool wide;       /* a sum did not fit 32 bits: later ones are not tried */
	char error[384]; /* the sentence of the last error; modules cannot reach trib_last_error */
};

struct glm_exchange {
	const char *name;
	/* Fills state, rank and size. `comm` belongs to the caller; it may be NULL where none is
	 * used. */
	trib_status (*open)(struct exchange *x, trib_comm *comm);
	/* Sums in place and returns when the sum is there. No other vector is on its way. */
	trib_status (*sum)(struct exchange *x, int64_t *data, size_t n);
	/* The same modulo 2^32. Never called with one worker. */
	trib_status (*sum32)(struct exchange *x, int32_t *data, size_t n);
	/* TRIB_OK: the sum is there at once. TRIB_IN_PROGRESS: test or wait for it. */
	trib_status (*post)(struct exchange *x, uint32_t slot, int64_t *data, size_t n);
	trib_status (*test)(struct exchange *x, uint32_t slot);
	trib_status (*wait)(struct exchange *x, uint32_t slot);
	void (*close)(struct exchange *x);
};

/* `name` is NULL: tributary if there is a communicator, else local. `comm` is NULL: one worker. */
trib_status exchange_open(struct exchange *x, const char *name, trib_comm *comm, uint32_t slots);
void exchange_close(struct exchange *x);

/* As in the table, with the sentence where trib_last_error finds it. Slots are below x->slots. */
trib_status exchange_post(struct exchange *x, uint32_t slot, int64_t *data, size_t n);
trib_status exchange_wait(struct exchange *x, uint32_t slot);
trib_status exchange_sum(struct exchange *x, int64_t *data, size_t n);
/*
 * The same sum with half the bytes, for numbers that are mostly small (see narrow_sums.h).
 * `scratch` has n + 1 numbers.
 */
trib_status exchange_sum_small(struct exchange *x, int64_t *data, size_t n, int32_t *scratch);

/* Loads libtributary-glm-mpi.so from beside this program, or from the folder of libraries. */
trib_status exchange_module(const char *name, const struct glm_exchange **ops);

extern const struct glm_exchange exchange_local, exchange_tributary;
/* The name of the table in a module. */
#define EXCHANGE_SYMBOL "glm_exchange_table"

#endif
