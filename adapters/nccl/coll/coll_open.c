/* SPDX-License-Identifier: Apache-2.0 */
#include "coll.h"
#include "common/nccl_endpoint.h"
#include "meeting.h"
#include "common/plugin.h"

#include "base/log.h"
#include "worker/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct coll_listener {
	int fd;
	struct handle handle;
};

int coll_listen(int device, void *handle, void **out)
{
	struct coll_listener *listener;
	trib_status status;

	*out = NULL;
	if (device != 0)
		return NCCL_INVALID_ARGUMENT;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return NCCL_SYSTEM_ERROR;
	status = endpoint_listen(GREETING_COLLECTIVE, &listener->handle, &listener->fd);
	if (status != TRIB_OK) {
		coll_close_listen(listener);
	} else {
		handle_write(&listener->handle, handle);
		*out = listener;
	}
	return plugin_report(status, "listen");
}

int coll_close_listen(void *closed)
{
	struct coll_listener *listener = closed;

	if (!listener)
		return NCCL_SUCCESS;
	if (listener->fd >= 0)
		close(listener->fd);
	free(listener);
	return NCCL_SUCCESS;
}

/* Joins the aggregator, as one of the communicators of this job. */
static trib_status join(const struct meeting *meeting, trib_comm **out)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct comm_config config;
	trib_status status;
	char prefix[40];

	options.has_rank = 1;
	options.rank = meeting->rank;
	options.size = meeting->size;
	status = comm_config_read(&options, &config);
	if (status != TRIB_OK)
		return status;
	snprintf(prefix, sizeof(prefix), "tributary: node %d", meeting->rank);
	log_set_prefix(prefix);
	config.key = meeting->key;
	config.ring = RING_NEVER; /* without an aggregator, NCCL's own algorithms are better */
	return comm_open(&config, NULL, out);
}

/* All nodes get TRIB_OK, or all get an error. */
static trib_status agree(struct meeting *meeting, int listener, const struct handle *host,
                         trib_comm **trib)
{
	char why[NOTE_TEXT];
	trib_status status, joined;

	status = meeting_begin(meeting, listener, host,
	                       device_has_aggregator() ? NULL : "no aggregator is named");
	if (status == TRIB_OK) {
		joined = join(meeting, trib);
		snprintf(why, sizeof(why), "%s", trib_last_error());
		status = meeting_end(meeting, joined == TRIB_OK ? NULL : why);
	}
	meeting_close(meeting);
	return status;
}

static struct coll_comm *comm_new(trib_comm *trib, int rank, int size)
{
	struct coll_comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		return NULL;
	comm->requests = coll_new_requests();
	if (!comm->requests) {
		free(comm);
		return NULL;
	}
	comm->trib = trib;
	comm->rank = rank;
	comm->size = size;
	comm->last = &comm->first;
	pthread_mutex_init(&comm->lock, NULL);
	return comm;
}

int coll_connect(void *handles[], int nranks, int rank, void *listening, void **out)
{
	struct coll_listener *listener = listening;
	struct meeting meeting = { .rank = rank, .size = nranks };
	trib_comm *trib = NULL;
	struct handle host;
	trib_status status;

	*out = NULL;
	if (rank < 0 || nranks < 1 || rank >= nranks)
		return NCCL_INVALID_ARGUMENT;
	status = handle_read(handles[0], &host);
	if (status == TRIB_OK && nranks > (int)WIRE_CHILDREN_MAX)
		status = status_fail(TRIB_ERR_CONFIG, "%d nodes: at most %u are possible", nranks,
		                     WIRE_CHILDREN_MAX);
	if (status == TRIB_OK)
		status = agree(&meeting, listener->fd, &host, &trib);
	if (status == TRIB_OK && !(*out = comm_new(trib, rank, nranks)))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for a communicator");
	if (status == TRIB_OK) {
		plugin_info("node %d of %d sums through an aggregator", rank, nranks);
		return NCCL_SUCCESS;
	}
	plugin_warn("no sums through an aggregator, so NCCL uses point-to-point: %s",
	            trib_last_error());
	trib_finalize(trib);
	return plugin_result(status);
}

int coll_close(void *closed)
{
	struct coll_comm *comm = closed;

	if (!comm)
		return NCCL_SUCCESS;
	if (coll_is_busy(comm)) /* NCCL has given up, and waits for none of them */
		comm_fail(comm->trib, TRIB_ERR_CLOSED, "NCCL has closed the communicator");
	trib_finalize(comm->trib);
	coll_free_requests(comm->requests);
	pthread_mutex_destroy(&comm->lock);
	free(comm);
	return NCCL_SUCCESS;
}
