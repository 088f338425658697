/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP beside our channel: flows that the fabric's hash spreads (ECMP), one flow on one path, and
 * multipath TCP, for which each alias address of the sender is an endpoint.
 */
#include "bench/path/bench_path.h"

#include "base/clock.h"
#include "path/udp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define PIECE (256u << 10) /* bytes of one call */
#define BACKLOG 16
#define POLL_MS 50

extern char **environ;

struct flows {
	int fds[PATHS_MAX];
	unsigned n;
	uint8_t *piece;
};

static int protocol_of(const struct path_job *job)
{
	return job->what->transport == TRANSPORT_MPTCP ? IPPROTO_MPTCP : IPPROTO_TCP;
}

static trib_status flows_open(struct flows *flows, const struct cluster_host *host)
{
	*flows = (struct flows){ .piece = calloc(1, PIECE) };
	if (!flows->piece)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a flow");
	return cluster_enter(host);
}

static void flows_close(struct flows *flows)
{
	for (unsigned i = 0; i < flows->n; i++)
		close(flows->fds[i]);
	free(flows->piece);
}

const char *path_mptcp_missing(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);

	if (fd < 0)
		return "this kernel has no multipath TCP";
	close(fd);
	if (access("/usr/sbin/ip", X_OK) && access("/sbin/ip", X_OK) && access("/usr/bin/ip", X_OK))
		return "there is no program ip to set its endpoints";
	return NULL;
}

/* Runs in the namespace of the calling thread. */
static trib_status run_ip(const char *line)
{
	char text[160], *argv[16], *rest = text;
	int status = -1, n = 0;
	pid_t pid;

	snprintf(text, sizeof(text), "%s", line);
	while (n < 15 && (argv[n] = strtok_r(rest, " ", &rest)))
		n++;
	argv[n] = NULL;
	if (posix_spawnp(&pid, "ip", NULL, NULL, argv, environ) == 0)
		waitpid(pid, &status, 0);
	return status == 0 ? TRIB_OK : status_fail(TRIB_ERR_SYSTEM, "\"%s\" has failed", line);
}

/* The first subflow leaves from alias 1, the others from the endpoints. */
static trib_status set_endpoints(const struct path_job *job)
{
	const struct cluster *cluster = &job->bed->cluster;
	trib_status status = run_ip("ip mptcp endpoint flush");
	char line[160], alias[40];

	if (status == TRIB_OK)
		status = run_ip("ip mptcp limits set subflows 8 add_addr_accepted 8");
	for (unsigned i = 1; i < job->what->paths && status == TRIB_OK; i++) {
		cluster_alias(cluster, (unsigned)(job->bed->from - cluster->hosts), i + 1, alias);
		snprintf(line, sizeof(line), "ip mptcp endpoint add %s subflow", alias);
		status = run_ip(line);
	}
	return status;
}

/* ---- the receiver ---- */

static trib_status receiver_open(struct path_job *job, struct flows *flows, int *listening)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t length = sizeof(any);
	trib_status status = flows_open(flows, job->bed->to);

	*listening = -1;
	if (status == TRIB_OK && job->what->transport == TRANSPORT_MPTCP)
		status = run_ip("ip mptcp limits set subflows 8 add_addr_accepted 8");
	if (status != TRIB_OK)
		return status;
	*listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol_of(job));
	if (*listening < 0 || bind(*listening, (void *)&any, sizeof(any)) ||
	    listen(*listening, BACKLOG) || getsockname(*listening, (void *)&any, &length))
		return status_fail_errno("cannot listen for TCP");
	job->port = ntohs(any.sin_port);
	return TRIB_OK;
}

static void take(struct path_job *job, struct flows *flows, int listening)
{
	struct pollfd fds[PATHS_MAX + 1] = { { .fd = listening, .events = POLLIN } };
	int fd;

	for (unsigned i = 0; i < flows->n; i++)
		fds[i + 1] = (struct pollfd){ .fd = flows->fds[i], .events = POLLIN };
	if (poll(fds, flows->n + 1, POLL_MS) <= 0)
		return;
	for (unsigned i = 0; i < flows->n; i++) {
		ssize_t came = fds[i + 1].revents
		                       ? recv(flows->fds[i], flows->piece, PIECE, MSG_DONTWAIT)
		                       : 0;

		if (came > 0)
			path_job_count(job, (uint64_t)came);
		if (came > 0 && job->what->token)
			(void)!send(flows->fds[i], flows->piece, (size_t)came,
			            MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	if (fds[0].revents && flows->n < PATHS_MAX &&
	    (fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		flows->fds[flows->n++] = fd;
}

void *path_stream_receive(void *user)
{
	struct path_job *job = user;
	struct flows flows;
	int listening;
	trib_status status = receiver_open(job, &flows, &listening);

	if (status != TRIB_OK)
		path_job_fail(job);
	job->ready = 1;
	while (status == TRIB_OK && !job->stop) {
		take(job, &flows, listening);
		path_job_cpu(job, 1);
	}
	if (listening >= 0)
		close(listening);
	flows_close(&flows);
	return NULL;
}

/* ---- the sender ---- */

/* ECMP: between the hosts' own addresses, whose ports the fabric hashes. */
static trib_status connect_flow(struct path_job *job, struct flows *flows)
{
	const struct cluster *cluster = &job->bed->cluster;
	struct udp_address from, to;
	char alias[40];
	trib_status status;
	int fd;

	cluster_alias(cluster, (unsigned)(job->bed->from - cluster->hosts), 1, alias);
	status = udp_resolve(job->bed->to->address, job->port, &to);
	if (status == TRIB_OK)
		status = udp_resolve(
			job->what->transport == TRANSPORT_ECMP ? job->bed->from->address : alias, 0,
			&from);
	if (status != TRIB_OK)
		return status;
	udp_set_port(&from, 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol_of(job));
	if (fd < 0)
		return status_fail_errno("cannot open a TCP socket");
	flows->fds[flows->n++] = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (bind(fd, (const void *)&from.storage, from.length) ||
	    connect(fd, (const void *)&to.storage, to.length))
		return status_fail_errno("no TCP connection to %s", job->bed->to->name);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return TRIB_OK;
}

static trib_status give(struct flows *flows)
{
	struct pollfd fds[PATHS_MAX];

	for (unsigned i = 0; i < flows->n; i++)
		fds[i] = (struct pollfd){ .fd = flows->fds[i], .events = POLLOUT };
	if (poll(fds, flows->n, POLL_MS) <= 0)
		return TRIB_OK;
	for (unsigned i = 0; i < flows->n; i++)
		if (fds[i].revents &&
		    send(fds[i].fd, flows->piece, PIECE, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
		    errno != EAGAIN)
			return status_fail_errno("a TCP connection has failed");
	return TRIB_OK;
}

/* A token goes there and back. */
static trib_status play_token(struct path_job *job, const struct flows *flows)
{
	struct pollfd back = { .fd = flows->fds[0], .events = POLLIN };
	uint64_t start = clock_now();
	unsigned n = job->n_latencies;
	size_t left = job->what->bytes;

	if (send(back.fd, flows->piece, left, MSG_NOSIGNAL) != (ssize_t)left)
		return status_fail_errno("a TCP connection has failed");
	while (left && !job->stop) {
		ssize_t came = poll(&back, 1, POLL_MS) > 0
		                       ? recv(back.fd, flows->piece, left, MSG_DONTWAIT)
		                       : 0;

		left -= came > 0 ? (size_t)came : 0;
	}
	if (!left && n < PATH_LATENCIES) {
		job->latencies[n] = (double)(clock_now() - start) / 2e9;
		job->n_latencies = n + 1;
	}
	return TRIB_OK;
}

void *path_stream_send(void *user)
{
	struct path_job *job = user;
	bool spreads = job->what->transport == TRANSPORT_ECMP && !job->what->token;
	unsigned flows_wanted = spreads ? job->what->paths : 1;
	struct flows flows;
	trib_status status = flows_open(&flows, job->bed->from);

	if (status == TRIB_OK && job->what->transport == TRANSPORT_MPTCP)
		status = set_endpoints(job);
	while (status == TRIB_OK && flows.n < flows_wanted)
		status = connect_flow(job, &flows);
	while (status == TRIB_OK && !job->stop) {
		status = job->what->token ? play_token(job, &flows) : give(&flows);
		path_job_cpu(job, 0);
	}
	if (status != TRIB_OK && !job->stop)
		path_job_fail(job);
	flows_close(&flows);
	return NULL;
}
