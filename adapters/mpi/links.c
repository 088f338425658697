/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A communicator of libtributary for each MPI communicator. It is an attribute of the MPI
 * communicator, so it ends with it. A duplicate gets none, and so opens one of its own.
 */
#include "base/clock.h"
#include "base/log.h"
#include "tribmpi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define RANKS_MAX 64    /* of a communicator of libtributary */
#define LINKS_MAX 32    /* open at once: each has threads, and memory at aggregators */
#define PROBES 32       /* Open MPI looks at its TCP connections in every eighth */
#define NAP_NS 50000ull /* between two looks at nonblocking calls */

static int keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static struct link *open_links;
static int n_open;
/* The link of the last call: most calls use one communicator, and MPI takes long to find an
 * attribute. NULL: unknown, as always if several threads may call at once. */
static struct link *last;

/* Waits until no nonblocking call of the link is in flight. */
static void wait_for_calls(struct link *link)
{
	const struct timespec nap = clock_span(NAP_NS);

	while (atomic_load(&link->in_flight))
		nanosleep(&nap, NULL);
}

static void link_close(struct link *link)
{
	trib_comm *trib = link->trib;
	struct link **at;

	wait_for_calls(link);
	link->trib = NULL;
	free(link->scratch);
	link->scratch = NULL;
	link->scratch_bytes = 0;
	if (!trib)
		return;
	pthread_mutex_lock(&lock);
	for (at = &open_links; *at != link; at = &(*at)->next)
		;
	*at = link->next;
	n_open--;
	pthread_mutex_unlock(&lock);
	if (trib_finalize(trib) != TRIB_OK)
		log_warn("a communicator did not end well: %s", trib_last_error());
}

static int attribute_delete(MPI_Comm comm, int key, void *value, void *unused)
{
	(void)comm;
	(void)key;
	(void)unused;
	if (last == value)
		last = NULL;
	link_close(value);
	free(value);
	return MPI_SUCCESS;
}

trib_status links_begin(void)
{
	if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, attribute_delete, &keyval, NULL) ==
	    MPI_SUCCESS)
		return TRIB_OK;
	return trib_set_error(TRIB_ERR_SYSTEM, "MPI gives no key for attributes");
}

void links_end(void)
{
	for (;;) {
		struct link *link;

		pthread_mutex_lock(&lock);
		link = open_links;
		pthread_mutex_unlock(&lock);
		if (!link)
			return;
		link_close(link);
	}
}

int link_fail(MPI_Comm comm, const char *call)
{
	log_error("%s: %s", call, trib_last_error());
	adapter_flush(); /* the handler may end the job */
	PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
	return MPI_ERR_OTHER;
}

void *link_scratch(struct link *link, size_t bytes)
{
	if (bytes > link->scratch_bytes) {
		free(link->scratch);
		link->scratch = malloc(bytes);
		link->scratch_bytes = link->scratch ? bytes : 0;
		if (!link->scratch)
			trib_set_error(TRIB_ERR_NO_MEMORY, "no memory for a sum of doubles");
	}
	return link->scratch;
}

/* ---- opening ---- */

/* Are all ranks of a communicator in MPI_COMM_WORLD? */
static bool is_of_world(MPI_Comm comm, int size)
{
	MPI_Group world, group;
	int own[RANKS_MAX], ranks[RANKS_MAX];
	bool all = true;

	for (int i = 0; i < size; i++)
		own[i] = i;
	PMPI_Comm_group(MPI_COMM_WORLD, &world);
	PMPI_Comm_group(comm, &group);
	PMPI_Group_translate_ranks(group, size, own, world, ranks);
	PMPI_Group_free(&world);
	PMPI_Group_free(&group);
	for (int i = 0; i < size; i++)
		all = all && ranks[i] != MPI_UNDEFINED;
	return all;
}

/* Do any two ranks share a host? MPI's shared memory is faster there. Collective over `comm`. */
static bool shares_hosts(MPI_Comm comm)
{
	int here = 2, most = 2; /* of ranks; 2 if MPI does not say it */
	MPI_Comm host;

	if (PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) ==
	    MPI_SUCCESS) {
		PMPI_Comm_size(host, &here);
		PMPI_Comm_free(&host);
	}
	PMPI_Allreduce(&here, &most, 1, MPI_INT, MPI_MAX, comm);
	return most > 1;
}

/* Is a communicator one that libtributary can have? All its ranks find the same. */
static bool is_suitable(MPI_Comm comm, struct link *link)
{
	int is_inter = 0;

	PMPI_Comm_test_inter(comm, &is_inter);
	PMPI_Comm_size(comm, &link->size);
	PMPI_Comm_rank(comm, &link->rank);
	return !is_inter && link->size >= 2 && link->size <= RANKS_MAX &&
	       is_of_world(comm, link->size) && (adapter.use == MPI_USE_ON || !shares_hosts(comm));
}

static int exchange(void *context, const void *mine, void *all, size_t bytes)
{
	const MPI_Comm *comm = context;

	return PMPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, *comm) ==
	                       MPI_SUCCESS
	               ? 0
	               : -1;
}

/*
 * Another rank may wait for a message that this one has begun to send, before it comes to the same
 * collective. So MPI has to make progress while libtributary waits.
 */
static void let_mpi_go_on(void *unused)
{
	int found;

	(void)unused;
	for (int i = 0; i < PROBES; i++)
		PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

/*
 * The communicator that the aggregator knows by the job's own number. The processes that
 * MPI_Comm_spawn has started have another MPI_COMM_WORLD, and the same environment.
 */
static bool is_job(MPI_Comm comm)
{
	MPI_Comm parent = MPI_COMM_NULL;

	PMPI_Comm_get_parent(&parent);
	return comm == MPI_COMM_WORLD && parent == MPI_COMM_NULL;
}

/* A key that all ranks share. 0: a rank has no room for another communicator. */
static uint64_t agree_key(MPI_Comm comm)
{
	uint64_t key = 0;
	int is_full, any_full = 1;

	pthread_mutex_lock(&lock);
	is_full = n_open >= LINKS_MAX;
	pthread_mutex_unlock(&lock);
	while (!key)
		if (getrandom(&key, sizeof(key), 0) < 0)
			is_full = key = 1;
	PMPI_Allreduce(&is_full, &any_full, 1, MPI_INT, MPI_MAX, comm);
	PMPI_Bcast(&key, sizeof(key), MPI_BYTE, 0, comm);
	return any_full ? 0 : key;
}

/* Collective over `comm`: opens on all its ranks or on none. */
static void open_together(MPI_Comm comm, struct link *link)
{
	trib_options options = TRIB_OPTIONS_INIT;
	static _Atomic bool told; /* the reason is mostly the same for all communicators */
	char prefix[48];
	trib_status status;

	options.has_rank = 1;
	options.rank = link->rank;
	options.size = link->size;
	options.timeout_s = adapter.timeout_s;
	options.exchange = exchange;
	options.exchange_context = &comm;
	options.idle = let_mpi_go_on;
	if (!is_job(comm) && !(options.key = agree_key(comm)))
		return;
	status = trib_init(&link->trib, &options);
	snprintf(prefix, sizeof(prefix), "tributary: MPI rank %d", adapter.rank);
	log_set_prefix(prefix);
	if (status == TRIB_OK) {
		pthread_mutex_lock(&lock);
		link->next = open_links;
		open_links = link;
		n_open++;
		pthread_mutex_unlock(&lock);
	} else if (link->rank == 0 && !atomic_exchange(&told, true)) {
		log_warn("MPI itself carries the collectives of a communicator of %d ranks: %s",
		         link->size, trib_last_error());
	}
}

static struct link *link_make(MPI_Comm comm)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link) {
		log_error("no memory for a communicator");
		PMPI_Abort(MPI_COMM_WORLD, 1);
		return NULL;
	}
	link->comm = comm;
	link->was_tried = is_suitable(comm, link);
	if (link->was_tried)
		open_together(comm, link);
	else if (comm == MPI_COMM_WORLD && link->rank == 0)
		log_notice("MPI itself carries the collectives of MPI_COMM_WORLD: ranks share "
		           "hosts, or there are more than 64 (TRIB_MPI=on uses Tributary on one "
		           "host, too)");
	PMPI_Comm_set_attr(comm, keyval, link);
	return link;
}

static struct link *attribute(MPI_Comm comm)
{
	struct link *link = NULL;
	int found = 0;

	PMPI_Comm_get_attr(comm, keyval, &link, &found);
	return found ? link : NULL;
}

struct link *link_known(MPI_Comm comm)
{
	struct link *link;

	if (!adapter.is_active || comm == MPI_COMM_NULL)
		return NULL;
	link = attribute(comm);
	return link && link->trib ? link : NULL;
}

int link_size(MPI_Comm comm)
{
	int size = 0;

	if (adapter.is_active && comm != MPI_COMM_NULL)
		PMPI_Comm_size(comm, &size);
	return size;
}

struct link *link_open(MPI_Comm comm)
{
	struct link *link;

	if (!adapter.is_active || comm == MPI_COMM_NULL)
		return NULL;
	link = last && last->comm == comm ? last : attribute(comm);
	if (!link)
		link = link_make(comm);
	if (adapter.level != MPI_THREAD_MULTIPLE)
		last = link;
	return link && link->trib ? link : NULL;
}

bool link_was_tried(MPI_Comm comm)
{
	const struct link *link = attribute(comm);

	return link && link->was_tried;
}
