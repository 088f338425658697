/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mice: short TCP flows between two other hosts, one after the other, beside what is measured. A
 * flow takes the path that the fabric's hash gives it. Its time counts from the first packet until
 * the receiver has all of its bytes and has closed it.
 */
#include "bench/path/bench_path.h"

#include "base/clock.h"
#include "bench/report/samples.h"
#include "path/udp.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVERY_US 2000 /* between two flows */
#define POLL_MS 50    /* until threads look whether they shall end */
#define LONGEST_S 2   /* a flow that takes longer counts as long as this */
#define PIECE 65536u  /* bytes of one call */

struct path_mice {
	const struct path_bed *bed;
	uint32_t bytes;
	uint16_t port;
	pthread_t threads[2];
	_Atomic int ready; /* 1: the receiver listens; -1: it cannot */
	_Atomic bool stop;
	struct path_fct *fct;
};

/* Takes the bytes of one flow, and closes it. */
static void take_flow(const struct path_mice *mice, int fd)
{
	const struct timeval most = { .tv_sec = LONGEST_S };
	uint8_t piece[4096];
	uint32_t left = mice->bytes;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	while (left) {
		ssize_t came = recv(fd, piece, left < sizeof(piece) ? left : sizeof(piece), 0);

		if (came <= 0)
			break;
		left -= (uint32_t)came;
	}
	close(fd);
}

static void *receive(void *user)
{
	struct path_mice *mice = user;
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t length = sizeof(any);
	int listening = -1;

	if (cluster_enter(mice->bed->load_to) == TRIB_OK)
		listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listening < 0 || bind(listening, (void *)&any, sizeof(any)) || listen(listening, 16) ||
	    getsockname(listening, (void *)&any, &length)) {
		mice->ready = -1;
	} else {
		mice->port = ntohs(any.sin_port);
		mice->ready = 1;
	}
	while (mice->ready > 0 && !mice->stop) {
		struct pollfd wait = { .fd = listening, .events = POLLIN };
		int fd = poll(&wait, 1, POLL_MS) > 0 ? accept4(listening, NULL, NULL, SOCK_CLOEXEC)
		                                     : -1;

		if (fd >= 0)
			take_flow(mice, fd);
	}
	if (listening >= 0)
		close(listening);
	return NULL;
}

/* One flow; gives its seconds. */
static double send_flow(const struct path_mice *mice, const struct udp_address *to)
{
	static const uint8_t piece[PIECE];
	const struct timeval most = { .tv_sec = LONGEST_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t start = clock_now();
	uint32_t left = mice->bytes;
	ssize_t sent = 1;
	uint8_t end;

	if (fd < 0)
		return LONGEST_S;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (connect(fd, (const void *)&to->storage, to->length))
		sent = 0;
	for (; left && sent > 0; left -= sent > 0 ? (uint32_t)sent : 0)
		sent = send(fd, piece, left < PIECE ? left : PIECE, MSG_NOSIGNAL);
	if (!left)
		sent = recv(fd, &end, 1, 0) == 0 ? 1 : 0;
	close(fd);
	return sent > 0 ? (double)(clock_now() - start) * 1e-9 : LONGEST_S;
}

static void *send_flows(void *user)
{
	struct path_mice *mice = user;
	struct udp_address to;
	trib_status status = cluster_enter(mice->bed->load_from);

	if (status == TRIB_OK)
		status = udp_resolve(mice->bed->load_to->address, mice->port, &to);
	while (status == TRIB_OK && !mice->stop && mice->fct->n < PATH_MICE_MAX) {
		mice->fct->seconds[mice->fct->n] = send_flow(mice, &to);
		mice->fct->n++;
		usleep(EVERY_US);
	}
	return NULL;
}

trib_status path_mice_start(const struct path_bed *bed, uint32_t bytes, struct path_fct *fct,
                            struct path_mice **out)
{
	struct path_mice *mice;

	*out = NULL;
	fct->n = 0;
	if (!bytes)
		return TRIB_OK;
	if (!bed->load_from || !bed->load_to)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "--mice: two hosts below each leaf are needed");
	mice = calloc(1, sizeof(*mice));
	if (!mice)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for short flows");
	mice->bed = bed;
	mice->bytes = bytes;
	mice->fct = fct;
	if (pthread_create(&mice->threads[0], NULL, receive, mice)) {
		free(mice);
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread");
	}
	while (!mice->ready)
		usleep(1000);
	if (mice->ready > 0 && pthread_create(&mice->threads[1], NULL, send_flows, mice) == 0) {
		*out = mice;
		return TRIB_OK;
	}
	mice->stop = true;
	pthread_join(mice->threads[0], NULL);
	free(mice);
	return status_fail(TRIB_ERR_SYSTEM, "--mice: cannot listen for short flows");
}

void path_mice_stop(struct path_mice *mice)
{
	if (!mice)
		return;
	mice->stop = true;
	pthread_join(mice->threads[1], NULL);
	pthread_join(mice->threads[0], NULL);
	stats_sort(mice->fct->seconds, mice->fct->n);
	free(mice);
}

double path_fct_at(const struct path_fct *fct, double share)
{
	return fct->n ? fct->seconds[(unsigned)(share * (fct->n - 1) + 0.5)] : 0;
}
