/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"
#include "base/random_bits.h"

#include "base/clock.h"
#include "loopback_list.h"

#include <pthread.h>
#include <string.h>

#define TRIES 50

void cluster_environment(void)
{
	static const char *const names[] = {
		"TRIB_AGGREGATOR",
		"TRIB_TREES",
		"TRIB_RENDEZVOUS",
		"TRIB_RING",
		"TRIB_WAY",
		"TRIB_CONTROLLER",
		"TRIB_RANK",
		"TRIB_SIZE",
		"TRIB_JOB",
		"TRIB_TIMEOUT",
		"TRIB_POOL",
		"TRIB_LANES",
		"TRIB_RATE",
		"TRIB_MTU",
		"TRIB_CONFIG",
		"RANK",
		"WORLD_SIZE",
		"PMI_RANK",
		"PMI_SIZE",
		"OMPI_COMM_WORLD_RANK",
		"OMPI_COMM_WORLD_SIZE",
		"PMIX_RANK",
		"SLURM_PROCID",
		"SLURM_NTASKS",
	};

	for (unsigned i = 0; i < countof(names); i++)
		unsetenv(names[i]);
	setenv("TRIB_COOKIE", CLUSTER_COOKIE_TEXT, 1);
	/* Most tests are about aggregators: their vectors must not leave them. */
	setenv("TRIB_WAY", getenv("TRIB_TEST_WAY") ? getenv("TRIB_TEST_WAY") : "aggregator", 1);
	/* These tests provoke failures, so no warnings are needed. */
	setenv("TRIB_LOG", getenv("TRIB_TEST_LOG") ? getenv("TRIB_TEST_LOG") : "error", 1);
}

static struct aggregator *start_one(unsigned threads, uint64_t pool_bytes, char address[32])
{
	struct aggregator *aggregator = NULL;
	struct aggregator_options options = {
		.plane = getenv("TRIB_PLANE"),
		.cookie = CLUSTER_COOKIE,
		.threads = threads,
		.link_bps = getenv("TRIB_TEST_TREE") ? 100000000000 : 0, /* negotiates rates */
		.pool_bytes = pool_bytes,
		.parents = NETWORK_LIST_LOOPBACK,
		.socket = { .offload = true, .receive_bytes = 8 << 20, .send_bytes = 1 << 20 },
	};
	trib_status status = TRIB_ERR_SYSTEM;

	demand(udp_resolve("127.0.0.1:0", 0, &options.listen) == TRIB_OK);
	/* The ports after the one that the kernel chose may be in use. */
	for (int i = 0; i < TRIES && status != TRIB_OK; i++)
		status = aggregator_start(&options, &aggregator);
	demand(status == TRIB_OK);
	snprintf(address, 32, "127.0.0.1:%u", aggregator_port(aggregator));
	return aggregator;
}

void cluster_start(struct cluster *cluster, unsigned threads, uint64_t pool_bytes)
{
	*cluster = (struct cluster){ .aggregator = NULL };
	cluster->aggregator = start_one(threads, pool_bytes, cluster->address);
	for (unsigned i = 0; getenv("TRIB_TEST_TREE") && i < CLUSTER_BELOW; i++)
		cluster->below[i] = start_one(threads, pool_bytes, cluster->addresses[i]);
}

void cluster_stop(struct cluster *cluster)
{
	for (unsigned i = 0; i < CLUSTER_BELOW && cluster->below[i]; i++) {
		aggregator_stop(cluster->below[i]);
		aggregator_free(cluster->below[i]);
	}
	aggregator_stop(cluster->aggregator);
	aggregator_free(cluster->aggregator);
	cluster->aggregator = NULL;
}

void cluster_stars(const struct cluster *clusters, unsigned n, int ranks, char *out, size_t size)
{
	size_t used = 0;

	for (unsigned i = 0; i < n; i++) {
		used += (size_t)snprintf(out + used, size - used, "%s%u*%s(0-%d)", i ? ";" : "",
		                         i + 1, clusters[i].address, ranks - 1);
		demand(used < size);
	}
}

uint64_t cluster_count(const struct cluster *cluster, const char *section, const char *name)
{
	char text[4096], key[64];
	const char *at, *end;

	aggregator_describe(cluster->aggregator, text, sizeof(text));
	snprintf(key, sizeof(key), "\"%s\":", section);
	at = strstr(text, key);
	demand(at);
	end = strchr(at, '}');
	if (name) {
		snprintf(key, sizeof(key), "\"%s\":", name);
		at = strstr(at, key);
		demand(at && at < end);
	}
	return strtoull(strchr(at, ':') + 1, NULL, 10);
}

struct thread_start {
	struct rank rank;
	void (*body)(struct rank *rank);
	bool bare;
};

static void *rank_main(void *argument)
{
	struct thread_start *start = argument;
	struct rank *rank = &start->rank;

	if (!start->bare)
		demand(trib_init(&rank->comm, &rank->options) == TRIB_OK);
	start->body(rank);
	if (!start->bare && rank->comm)
		trib_finalize(rank->comm);
	return NULL;
}

/*
 * Of every three ranks: one at a leaf of level 1, one at a leaf of level 2, one at the aggregator
 * between them.
 */
static void tell_tree(const struct cluster *cluster, int size)
{
	char ranks[3][200] = { "", "", "" }, text[800];

	for (int r = 0; r < size; r++) {
		size_t used = strlen(ranks[r % 3]);

		snprintf(ranks[r % 3] + used, sizeof(ranks[0]) - used, used ? ",%d" : "%d", r);
	}
	snprintf(text, sizeof(text),
	         size > 2 ? "%s(%s(%s),%s(%s(%s),%s))" : "%s(%s(%s),%s(%s(%s)))", cluster->address,
	         cluster->addresses[0], ranks[0], cluster->addresses[1], cluster->addresses[2],
	         ranks[1], ranks[2]);
	setenv("TRIB_TREES", text, 1);
}

/* A port that is free now. */
static void tell_rendezvous(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[32];

	demand(fd >= 0 && !bind(fd, (struct sockaddr *)&address, length) &&
	       !getsockname(fd, (struct sockaddr *)&address, &length));
	close(fd);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
	setenv("TRIB_RENDEZVOUS", text, 1);
}

static void run(const struct cluster *cluster, int size, const trib_options *options,
                void (*body)(struct rank *rank), void *job, bool bare)
{
	struct thread_start starts[CLUSTER_RANKS_MAX];
	pthread_t threads[CLUSTER_RANKS_MAX];

	if (cluster->below[0] && size > 1)
		tell_tree(cluster, size);
	if (getenv("TRIB_TEST_RING"))
		tell_rendezvous();
	for (int r = 0; r < size; r++) {
		trib_options own = TRIB_OPTIONS_INIT;

		if (options)
			own = *options;
		/* Otherwise TRIB_TREES or a controller gives the address. */
		if (!own.trees && !own.controller && !cluster->below[0] &&
		    !getenv("TRIB_TEST_RING"))
			own.aggregator = cluster->address;
		own.has_rank = 1;
		own.rank = r;
		own.size = size;
		if (own.timeout_s == 0)
			own.timeout_s = 60;
		starts[r] = (struct thread_start){ .rank = { .cluster = cluster,
			                                     .rank = r,
			                                     .size = size,
			                                     .options = own,
			                                     .job = job },
			                           .body = body,
			                           .bare = bare };
		demand(pthread_create(&threads[r], NULL, rank_main, &starts[r]) == 0);
	}
	for (int r = 0; r < size; r++)
		demand(pthread_join(threads[r], NULL) == 0);
}

void cluster_run(const struct cluster *cluster, int size, const trib_options *options,
                 void (*body)(struct rank *rank), void *job)
{
	run(cluster, size, options, body, job, false);
}

void cluster_run_bare(const struct cluster *cluster, int size, const trib_options *options,
                      void (*body)(struct rank *rank), void *job)
{
	run(cluster, size, options, body, job, true);
}

bool error_has(const char *text)
{
	return strstr(trib_last_error(), text) != NULL;
}

uint64_t mix(uint64_t seed)
{
	return bits_mix(seed * RANDOM_STEP);
}

void nap_ms(unsigned ms)
{
	struct timespec span = clock_span(ms * 1000000ull);

	nanosleep(&span, NULL);
}
