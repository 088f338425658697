/* SPDX-License-Identifier: Apache-2.0 */
#include "control/agent/probe_meter.h"

#include "base/clock.h"
#include "path/udp.h"

#include <inttypes.h>
#include <linux/tcp.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADERS 1.06 /* factor for packet headers; packets of a virtual link are larger */

/* ---- connections ---- */

void flows_close(struct flows *flows)
{
	while (flows->n)
		close(flows->fds[--flows->n]);
}

void flows_wait(const struct flows *flows, short events)
{
	struct pollfd wait[PROBE_FLOWS];

	for (unsigned i = 0; i < flows->n; i++)
		wait[i] = (struct pollfd){ .fd = flows->fds[i],
			                   .events = (short)(events | (i ? 0 : POLLIN)) };
	poll(wait, flows->n, 5);
}

/* ---- measuring ---- */

/* Nanoseconds that this thread has run or waited for a core. */
static uint64_t thread_ran(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	uint64_t ran = 0, waited = 0;
	struct timespec cpu;

	if (file && fscanf(file, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
		waited = 0;
	if (file)
		fclose(file);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (uint64_t)cpu.tv_sec * NSEC_PER_SEC + (uint64_t)cpu.tv_nsec + waited;
}

/* Bytes that the interface has received or sent; 0: unknown. */
static uint64_t interface_bytes(const char *interface, bool outward)
{
	FILE *file = fopen("/proc/thread-self/net/dev", "re");
	uint64_t in, out, found = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':'), *name = line + strspn(line, " ");

		if (!colon)
			continue;
		*colon = '\0';
		if (!strcmp(name, interface) &&
		    sscanf(colon + 1, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &in,
		           &out) == 2)
			found = outward ? out : in;
	}
	if (file)
		fclose(file);
	return found;
}

/* Bytes that the connections have sent, including retransmissions. */
static uint64_t flows_sent(const struct flows *flows)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < flows->n; i++) {
		struct tcp_info info = { 0 };
		socklen_t length = sizeof(info);

		if (!getsockopt(flows->fds[i], IPPROTO_TCP, TCP_INFO, &info, &length))
			sum += info.tcpi_bytes_sent;
	}
	return sum;
}

void measurement_begin(struct measurement *measurement, const struct flows *flows, bool outward)
{
	struct udp_address peer = { .length = sizeof(peer.storage) }, local;

	*measurement = (struct measurement){ .flows = flows, .outward = outward };
	if (getpeername(flows->fds[0], (void *)&peer.storage, &peer.length) ||
	    udp_route(&peer, &local, measurement->interface, sizeof(measurement->interface)) !=
	            TRIB_OK)
		measurement->interface[0] = '\0';
}

void measurement_note(struct measurement *measurement, uint64_t now)
{
	if (!measurement->began) {
		measurement->began = now;
		measurement->ran = thread_ran();
	}
	if (measurement->stream.since && now < measurement->stream.since + SPAN_NS)
		return;
	if (measurement->outward)
		measurement->bytes = flows_sent(measurement->flows);
	spans_at(&measurement->stream, now, measurement->bytes);
	spans_at(&measurement->link, now,
	         interface_bytes(measurement->interface, measurement->outward));
	if (now > measurement->began)
		measurement->share = (double)(thread_ran() - measurement->ran) /
		                     (double)(now - measurement->began);
}

double measurement_others(const struct measurement *measurement)
{
	return fmax(0, spans_bps(&measurement->link) - HEADERS * spans_bps(&measurement->stream));
}
