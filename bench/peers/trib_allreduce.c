/* SPDX-License-Identifier: Apache-2.0 */
/* Tributary itself, through its public header only. */
#include "peer.h"

#include <tributary.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int comm_barrier(void *comm)
{
	if (trib_barrier(comm) == TRIB_OK)
		return 0;
	warnx("barrier: %s", trib_last_error());
	return -1;
}

static const trib_type types[] = {
	[PEER_F32] = TRIB_F32, [PEER_F16] = TRIB_F16, [PEER_BF16] = TRIB_BF16, [PEER_I32] = TRIB_I32
};

static int comm_allreduce(void *comm, void *data, size_t count, enum peer_type type)
{
	if (trib_allreduce(comm, TRIB_IN_PLACE, data, count, types[type], TRIB_SUM) == TRIB_OK)
		return 0;
	warnx("allreduce: %s", trib_last_error());
	return -1;
}

static int comm_reduce(void *comm, void *data, size_t count, enum peer_type type)
{
	if (trib_reduce(comm, TRIB_IN_PLACE, data, count, types[type], TRIB_SUM, 0) == TRIB_OK)
		return 0;
	warnx("reduce: %s", trib_last_error());
	return -1;
}

static int comm_many(void *comm, void *data, size_t count, enum peer_type type, unsigned many)
{
	static trib_request **requests; /* as many in every call */
	size_t bytes = count * peer_type_size(type);
	trib_status status = TRIB_OK;
	unsigned posted = 0;

	if (!requests)
		requests = peer_alloc(many * sizeof(trib_request *));
	for (; posted < many && status == TRIB_OK; posted += status == TRIB_OK) {
		void *vector = (char *)data + posted * bytes;

		status = trib_iallreduce(comm, TRIB_IN_PLACE, vector, count, types[type], TRIB_SUM,
		                         &requests[posted]);
	}
	for (unsigned i = 0; i < posted && status == TRIB_OK; i++)
		status = trib_wait(&requests[i], -1);
	if (status == TRIB_OK)
		return 0;
	warnx("allreduce: %s", trib_last_error());
	return -1;
}

static int comm_reduce_scatter(void *comm, void *in, void *out, size_t count, enum peer_type type)
{
	if (trib_reduce_scatter(comm, in, out, count, types[type], TRIB_SUM) == TRIB_OK)
		return 0;
	warnx("reduce-scatter: %s", trib_last_error());
	return -1;
}

static int comm_allgather(void *comm, const void *in, void *out, size_t count, enum peer_type type)
{
	if (trib_allgather(comm, in, out, count, types[type]) == TRIB_OK)
		return 0;
	warnx("allgather: %s", trib_last_error());
	return -1;
}

/* Prints how much was repeated; `trib bench` sums it up. */
static void packets_print(trib_comm *comm)
{
	trib_stats stats = { .struct_size = sizeof(stats) };

	if (trib_get_stats(comm, &stats) == TRIB_OK)
		printf("PACKETS %" PRIu64 " %" PRIu64 "\n", stats.sent_packets,
		       stats.resent_packets);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct peer_options options;
	trib_comm *comm;
	double *samples;
	int rc;

	peer_parse(argc, argv, &options);
	peer_warm_up_ways(&options);
	samples = peer_alloc(options.iterations * sizeof(*samples));
	if (trib_init(&comm, NULL) != TRIB_OK)
		errx(1, "%s", trib_last_error());
	rc = peer_measure(
		&(struct peer){ .rank = trib_rank(comm),
	                        .size = trib_size(comm),
	                        .context = comm,
	                        .barrier = comm_barrier,
	                        .allreduce = options.to_one ? comm_reduce : comm_allreduce,
	                        .allreduce_many = comm_many,
	                        .reduce_scatter = comm_reduce_scatter,
	                        .allgather = comm_allgather },
		&options, samples);
	if (rc == 0) {
		peer_print(trib_rank(comm), samples, options.iterations);
		peer_print_cpu();
		packets_print(comm);
	}
	if (trib_finalize(comm) != TRIB_OK) {
		warnx("%s", trib_last_error());
		rc = -1;
	}
	free(samples);
	return rc ? 1 : 0;
}
