/* SPDX-License-Identifier: Apache-2.0 */
#include "control/agent/link_probe.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/agent/probe_ask.h"
#include "control/agent/probe_meter.h"
#include "control/policy/link_estimate.h"
#include "control/transport/node_report.h"
#include "path/tcp.h"

#include <errno.h>
#include <linux/tcp.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define MAGIC_RESULT 0x31574154u /* "TAW1" */
#define FILL_NS 150000000ull     /* 150 ms: longest time to fill a direction */
#define WAIT_NS 400000000ull     /* 400 ms: longest wait for the other side */
#define FLOWS_NS 200000000ull    /* 200 ms: longest wait for the other connections of a probe */
#define ASK_NS 100000000ull      /* 100 ms: longest wait for the first bytes of a connection */
#define CONNECT_MS 200
#define UNSENT_BYTES (64 << 10) /* unsent data kept in a socket, so that a probe ends quickly */
#define CHUNK (256u << 10)
/* Share of time that the thread ran or waited for a core: if it is higher, cores are short. */
#define STRAINED 0.5

/*
 * Sent on the first connection: by the receiving side when it has seen enough, and at the end by
 * the side that sent last. Zeros precede and follow it.
 */
struct probe_result {
	uint32_t magic;
	uint16_t took_strained, gave_strained; /* its cores were short while it took, or gave */
	uint64_t bps;                          /* rate at which bytes arrived */
};

_Static_assert(sizeof(struct probe_result) == 16, "as it is sent");

struct link_probe {
	int listen, wake; /* wake: an eventfd */
	uint16_t port;
	void (*done)(void *context);
	void *context;
	uint8_t *chunk;
	pthread_t thread;
	pthread_mutex_t lock; /* guards all fields below */
	bool stop, has_secret, has_request;
	struct secret secret;
	struct link_probe_request request;
	struct link_sample samples[LINK_SAMPLES_MAX]; /* the newest is first */
	unsigned n_samples;
};

/* ---- both sides of a connection ---- */

static bool stops(struct link_probe *probe)
{
	bool stop;

	pthread_mutex_lock(&probe->lock);
	stop = probe->stop;
	pthread_mutex_unlock(&probe->lock);
	return stop;
}

/* True: all bytes were sent before the deadline. */
static bool send_all(int fd, const void *data, size_t bytes, uint64_t until)
{
	const uint8_t *at = data;

	while (bytes && clock_now() < until) {
		struct pollfd wait = { .fd = fd, .events = POLLOUT };
		struct iovec piece = { (void *)at, bytes };
		int64_t n = tcp_send(fd, &piece, 1);

		if (n < 0)
			return false;
		at += n;
		bytes -= (size_t)n;
		if (!n)
			poll(&wait, 1, 5);
	}
	return !bytes;
}

static bool read_all(int fd, void *data, size_t bytes, uint64_t until)
{
	uint8_t *at = data;

	while (bytes && clock_now() < until) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		ssize_t n = recv(fd, at, bytes, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n < 0) {
			poll(&wait, 1, 5);
			continue;
		}
		at += n;
		bytes -= (size_t)n;
	}
	return !bytes;
}

/* A result, as far as it has come. */
struct reading {
	uint8_t bytes[sizeof(struct probe_result)];
	size_t n;
};

/* Reads the other direction: zeros, and among them the result. True: it is complete. */
static bool take_result(struct link_probe *probe, int fd, struct reading *reading, bool *broken)
{
	ssize_t n = recv(fd, probe->chunk, CHUNK, MSG_DONTWAIT);

	*broken = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	for (ssize_t i = 0; i < n && reading->n < sizeof(reading->bytes); i++)
		if (reading->n || probe->chunk[i])
			reading->bytes[reading->n++] = probe->chunk[i];
	memset(probe->chunk, 0, n > 0 ? (size_t)n : 0);
	return reading->n == sizeof(reading->bytes);
}

/* True: all connections are full. */
static bool send_zeros(struct link_probe *probe, const struct flows *flows, bool *broken)
{
	bool full = true;

	for (unsigned i = 0; i < flows->n; i++) {
		struct iovec piece = { probe->chunk, CHUNK };
		int64_t n = tcp_send(flows->fds[i], &piece, 1);

		*broken |= n < 0;
		full &= n <= 0;
	}
	return full;
}

/* Fills the link until the other side sends its result. */
static bool give(struct link_probe *probe, const struct flows *flows, struct probe_result *result,
                 double *bps, bool *strained)
{
	uint64_t now = clock_now(), until = now + FILL_NS + 2 * WAIT_NS;
	struct reading reading = { .n = 0 };
	struct measurement measurement;
	bool broken = false;

	measurement_begin(&measurement, flows, true);
	while ((now = clock_now()) < until && !broken && !stops(probe)) {
		measurement_note(&measurement, now);
		if (take_result(probe, flows->fds[0], &reading, &broken)) {
			memcpy(result, reading.bytes, sizeof(*result));
			*bps = fmin((double)result->bps + measurement_others(&measurement),
			            NODE_BPS_MAX);
			*strained = measurement.share > STRAINED;
			return result->magic == MAGIC_RESULT;
		}
		if (send_zeros(probe, flows, &broken))
			flows_wait(flows, POLLOUT);
	}
	return false;
}

/* Returns the bytes that arrived. */
static uint64_t read_zeros(struct link_probe *probe, const struct flows *flows, bool *broken)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < flows->n; i++) {
		ssize_t n = recv(flows->fds[i], probe->chunk, CHUNK, MSG_DONTWAIT);

		*broken |= n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
		bytes += n > 0 ? (uint64_t)n : 0;
	}
	return bytes;
}

/* Receives until the rate is high enough or the time is over, and sends the result. `gave`: this
 * side was short of cores when it sent. */
static bool take(struct link_probe *probe, const struct flows *flows, double enough_bps, bool gave,
                 double *bps, bool *strained)
{
	uint64_t now = clock_now(), until = now + WAIT_NS, came;
	struct probe_result result = { .magic = MAGIC_RESULT, .gave_strained = gave };
	struct measurement measurement;
	bool broken = false;

	measurement_begin(&measurement, flows, false);
	/* Takes longer if cores are so short that almost nothing was measured. */
	while (((now = clock_now()) < until ||
	        (measurement.bytes && measurement.stream.n < SPANS_LEAST &&
	         now < until + WAIT_NS)) &&
	       spans_bps(&measurement.stream) + measurement_others(&measurement) < enough_bps &&
	       !broken && !stops(probe)) {
		came = read_zeros(probe, flows, &broken);
		if (came && !measurement.bytes)
			until = now + FILL_NS;
		measurement.bytes += came;
		if (measurement.bytes)
			measurement_note(&measurement, now);
		if (!came)
			flows_wait(flows, POLLIN);
	}
	memset(probe->chunk, 0, CHUNK);
	if (!measurement.bytes || broken)
		return false;
	*bps = fmin(spans_bps(&measurement.stream) + measurement_others(&measurement),
	            NODE_BPS_MAX);
	*strained = measurement.share > STRAINED;
	result.took_strained = *strained;
	result.bps = (uint64_t)spans_bps(&measurement.stream);
	return send_all(flows->fds[0], &result, sizeof(result), clock_now() + WAIT_NS);
}

static void keep(struct link_probe *probe, const struct link_sample *sample)
{
	pthread_mutex_lock(&probe->lock);
	link_estimate_keep(probe->samples, &probe->n_samples, sample);
	pthread_mutex_unlock(&probe->lock);
	probe->done(probe->context);
}

static void prepare(int fd)
{
	int unsent = UNSENT_BYTES;

	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

/* ---- the side that is asked ---- */

static bool take_ask(struct link_probe *probe, int fd, struct probe_ask *ask)
{
	bool good;

	uint64_t challenge;

	if (getrandom(&challenge, sizeof(challenge), 0) != sizeof(challenge) ||
	    !send_all(fd, &challenge, sizeof(challenge), clock_now() + ASK_NS) ||
	    !read_all(fd, ask, sizeof(*ask), clock_now() + ASK_NS))
		return false;
	pthread_mutex_lock(&probe->lock);
	good = probe->has_secret && probe_ask_is_good(ask, &probe->secret, challenge);
	pthread_mutex_unlock(&probe->lock);
	return good;
}

/* Accepts the other connections of the same probe. */
static void accept_flows(struct link_probe *probe, struct flows *flows,
                         const struct probe_ask *first)
{
	uint64_t until = clock_now() + FLOWS_NS;

	while (flows->n < first->flows && flows->n < PROBE_FLOWS && clock_now() < until) {
		struct pollfd wait = { .fd = probe->listen, .events = POLLIN };
		struct udp_address peer;
		struct probe_ask ask;
		int fd;

		poll(&wait, 1, 20);
		if ((fd = tcp_accept(probe->listen, &peer)) < 0)
			continue;
		if (take_ask(probe, fd, &ask) && ask.nonce == first->nonce &&
		    !strcmp(ask.from, first->from)) {
			prepare(fd);
			flows->fds[flows->n++] = fd;
		} else {
			close(fd);
		}
	}
}

static void serve(struct link_probe *probe, struct flows *flows)
{
	struct link_sample sample = { 0 };
	struct probe_result result;
	struct probe_ask ask;
	bool gave;

	if (!take_ask(probe, flows->fds[0], &ask))
		return;
	prepare(flows->fds[0]);
	accept_flows(probe, flows, &ask);
	memcpy(sample.with, ask.from, sizeof(sample.with));
	if (!take(probe, flows, (double)ask.enough_bps, false, &sample.in_bps,
	          &sample.in_strained)) {
		log_info("link probe from %s: no data arrived", ask.from);
		return;
	}
	if (give(probe, flows, &result, &sample.out_bps, &gave)) {
		sample.in_strained |= result.gave_strained != 0;
		sample.out_strained = gave || result.took_strained;
		result = (struct probe_result){ .magic = MAGIC_RESULT, .gave_strained = gave };
		send_all(flows->fds[0], &result, sizeof(result), clock_now() + WAIT_NS);
	} else {
		log_info("link probe with %s broke off", ask.from);
	}
	sample.at = clock_now();
	keep(probe, &sample);
}

/* ---- the side that asks ---- */

static bool send_ask(struct link_probe *probe, const struct flows *flows, unsigned flow,
                     const struct link_probe_request *request, uint64_t nonce)
{
	struct probe_ask ask = { .magic = PROBE_ASK_MAGIC,
		                 .flows = flows->n,
		                 .enough_bps = request->enough_bps,
		                 .nonce = nonce };

	if (!read_all(flows->fds[flow], &ask.challenge, sizeof(ask.challenge),
	              clock_now() + WAIT_NS))
		return false;
	memcpy(ask.from, request->self, sizeof(ask.from));
	pthread_mutex_lock(&probe->lock);
	probe_ask_seal(&ask, &probe->secret);
	pthread_mutex_unlock(&probe->lock);
	return send_all(flows->fds[flow], &ask, sizeof(ask), clock_now() + WAIT_NS);
}

/* A route over loopback does not use the link. */
static bool leaves(const struct link_probe_request *request)
{
	struct udp_address local;
	char interface[64];

	return request->may_stay ||
	       udp_route(&request->at, &local, interface, sizeof(interface)) != TRIB_OK ||
	       strcmp(interface, "lo") != 0;
}

/* Opens up to PROBE_FLOWS connections; an error if there is none. */
static int connect_all(struct flows *flows, const struct link_probe_request *request)
{
	int fd = -ENETUNREACH;

	if (request->at.length && leaves(request))
		while (flows->n < PROBE_FLOWS &&
		       (fd = tcp_connect(&request->at, CONNECT_MS)) >= 0) {
			prepare(fd);
			flows->fds[flows->n++] = fd;
		}
	return flows->n ? 0 : fd;
}

/* The last result comes behind all zeros in flight. */
static bool read_result(struct link_probe *probe, int fd, struct probe_result *result)
{
	uint64_t until = clock_now() + WAIT_NS;
	struct reading reading = { .n = 0 };
	bool broken = false;

	while (clock_now() < until && !broken && !stops(probe)) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };

		if (take_result(probe, fd, &reading, &broken)) {
			memcpy(result, reading.bytes, sizeof(*result));
			return result->magic == MAGIC_RESULT;
		}
		poll(&wait, 1, 5);
	}
	return false;
}

/* False: the probe broke off. */
static bool fill_both(struct link_probe *probe, const struct flows *flows,
                      const struct link_probe_request *request, struct link_sample *sample)
{
	uint64_t nonce;
	struct probe_result result;
	bool gave;

	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		nonce = clock_now();
	for (unsigned i = 0; i < flows->n; i++)
		if (!send_ask(probe, flows, i, request, nonce))
			return false;
	if (!give(probe, flows, &result, &sample->out_bps, &gave))
		return false;
	sample->out_strained = gave || result.took_strained;
	if (!take(probe, flows, (double)request->enough_bps, gave, &sample->in_bps,
	          &sample->in_strained))
		return false;
	if (!read_result(probe, flows->fds[0], &result) || result.gave_strained)
		sample->in_strained = true;
	return true;
}

static void run_probe(struct link_probe *probe, const struct link_probe_request *request)
{
	struct flows flows = { .n = 0 };
	struct link_sample sample = { 0 };
	int error = connect_all(&flows, request);

	memcpy(sample.with, request->with, sizeof(sample.with));
	if (error)
		log_info("link probe with %s failed: %s", request->with, strerror(-error));
	else if (!fill_both(probe, &flows, request, &sample))
		log_info("link probe with %s broke off", request->with);
	flows_close(&flows);
	sample.at = clock_now();
	keep(probe, &sample); /* a failed probe is reported too, so another partner is tried */
}

/* ---- the thread ---- */

static bool next_request(struct link_probe *probe, struct link_probe_request *request)
{
	bool has;

	pthread_mutex_lock(&probe->lock);
	has = probe->has_request;
	probe->has_request = false;
	*request = probe->request;
	pthread_mutex_unlock(&probe->lock);
	return has;
}

static void *link_probe_main(void *context)
{
	struct link_probe *probe = context;

	while (!stops(probe)) {
		struct pollfd wait[] = { { .fd = probe->listen, .events = POLLIN },
			                 { .fd = probe->wake, .events = POLLIN } };
		struct flows flows = { .n = 0 };
		struct link_probe_request request;
		struct udp_address peer;
		uint64_t count;
		int fd;

		poll(wait, 2, -1);
		if (wait[1].revents && read(probe->wake, &count, sizeof(count)) < 0)
			continue;
		if (next_request(probe, &request))
			run_probe(probe, &request);
		if (!wait[0].revents)
			continue;
		fd = tcp_accept(probe->listen, &peer);
		if (fd < 0) {
			if (fd != -EAGAIN)
				poll(NULL, 0,
				     100); /* too many open files: wait until some are closed */
			continue;
		}
		flows.fds[flows.n++] = fd;
		serve(probe, &flows);
		flows_close(&flows);
	}
	return NULL;
}

static void wake(struct link_probe *probe)
{
	uint64_t one = 1;

	if (write(probe->wake, &one, sizeof(one)) < 0)
		log_debug("a thread cannot be woken: %s", strerror(errno));
}

/* ---- starting ---- */

static trib_status open_listener(const struct udp_address *wanted, struct link_probe *probe)
{
	struct udp_address address = *wanted;
	trib_status status;

	udp_set_port(&address, 0); /* an aggregator on the TCP plane may have the same port */
	status = tcp_listen(&address, &probe->listen);
	if (status != TRIB_OK)
		return status;
	if (getsockname(probe->listen, (void *)&address.storage, &address.length))
		return status_fail_errno("cannot read the port of the link probe");
	probe->port = udp_port(&address);
	return TRIB_OK;
}

static void probe_free(struct link_probe *probe)
{
	if (probe->listen >= 0)
		close(probe->listen);
	if (probe->wake >= 0)
		close(probe->wake);
	pthread_mutex_destroy(&probe->lock);
	free(probe->chunk);
	free(probe);
}

trib_status link_probe_open(const struct udp_address *listen, void (*done)(void *context),
                            void *context, struct link_probe **out)
{
	struct link_probe *probe = calloc(1, sizeof(*probe));
	trib_status status;

	if (!probe)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a listener");
	pthread_mutex_init(&probe->lock, NULL);
	probe->done = done;
	probe->context = context;
	probe->listen = -1;
	probe->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	probe->chunk = calloc(1, CHUNK);
	status = open_listener(listen, probe);
	if (status == TRIB_OK && (!probe->chunk || probe->wake < 0))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for a listener");
	if (status == TRIB_OK && pthread_create(&probe->thread, NULL, link_probe_main, probe))
		status = status_fail(TRIB_ERR_SYSTEM, "cannot start a thread");
	if (status != TRIB_OK) {
		probe_free(probe);
		return status;
	}
	*out = probe;
	return TRIB_OK;
}

void link_probe_close(struct link_probe *probe)
{
	if (!probe)
		return;
	pthread_mutex_lock(&probe->lock);
	probe->stop = true;
	pthread_mutex_unlock(&probe->lock);
	wake(probe);
	pthread_join(probe->thread, NULL);
	probe_free(probe);
}

uint16_t link_probe_port(const struct link_probe *probe)
{
	return probe->port;
}

void link_probe_set_secret(struct link_probe *probe, const struct secret *secret)
{
	pthread_mutex_lock(&probe->lock);
	probe->secret = *secret;
	probe->has_secret = true;
	pthread_mutex_unlock(&probe->lock);
}

void link_probe_ask(struct link_probe *probe, const struct link_probe_request *request)
{
	pthread_mutex_lock(&probe->lock);
	probe->request = *request;
	probe->has_request = true;
	pthread_mutex_unlock(&probe->lock);
	wake(probe);
}

unsigned link_probe_samples(struct link_probe *probe, struct link_sample out[LINK_SAMPLES_MAX])
{
	unsigned n;

	pthread_mutex_lock(&probe->lock);
	n = probe->n_samples;
	memcpy(out, probe->samples, n * sizeof(*out));
	pthread_mutex_unlock(&probe->lock);
	return n;
}

void link_probe_forget(struct link_probe *probe, uint64_t before)
{
	unsigned n = 0;

	pthread_mutex_lock(&probe->lock);
	for (unsigned i = 0; i < probe->n_samples; i++)
		if (probe->samples[i].at >= before)
			probe->samples[n++] = probe->samples[i];
	probe->n_samples = n;
	pthread_mutex_unlock(&probe->lock);
}
