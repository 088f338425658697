/* SPDX-License-Identifier: Apache-2.0 */
#include "control/gauge.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/links.h"
#include "control/report.h"
#include "path/spans.h"
#include "path/tcp.h"

#include <errno.h>
#include <inttypes.h>
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

#define MAGIC_ASK 0x31474154u  /* "TAG1" */
#define MAGIC_WORD 0x31574154u /* "TAW1" */
#define FLOWS 4u               /* connections at once: one may be all on one leg of a bond */
#define FILL_NS 150000000ull   /* so long a direction is filled at most, */
#define WAIT_NS 400000000ull   /* and so long the other side is waited for */
#define GATHER_NS 200000000ull /* ... with its other connections, */
#define ASK_NS 100000000ull    /* for what each begins with */
#define CONNECT_MS 200
#define UNSENT_BYTES (64 << 10) /* what waits here when the other side has had enough */
#define CHUNK (256u << 10)
#define HEADERS 1.06 /* of small packets: those of a virtual link are larger */
#define STRAINED 0.5 /* of the time that the thread ran, or wanted to */

/* The first of each connection. */
struct ask {
	uint32_t magic, flows;
	uint64_t enough_bps, nonce;
	char from[TREE_NAME_MAX];
	uint64_t proof; /* of all before it */
};

/*
 * By the first connection: from who took, to who gave, when it has had enough; and at the end from
 * who gave last. There are zeros before and behind it.
 */
struct word {
	uint32_t magic;
	uint16_t took_strained,
		gave_strained; /* whether its cores were short when it did, or had */
	uint64_t bps;          /* that came */
};

_Static_assert(sizeof(struct ask) == 96 && sizeof(struct word) == 16, "as it is sent");

struct gauge {
	int listen, wake; /* wake: an event */
	uint16_t port;
	void (*done)(void *context);
	void *context;
	uint8_t *chunk;
	pthread_t thread;
	pthread_mutex_t lock; /* all below */
	bool stop, has_secret, has_wish;
	struct secret secret;
	struct gauge_wish wish;
	struct node_way ways[NODE_WAYS]; /* the newest first */
	unsigned n_ways;
};

/* The connections of one trial. */
struct flows {
	int fds[FLOWS];
	unsigned n;
};

static void flows_close(struct flows *flows)
{
	while (flows->n)
		close(flows->fds[--flows->n]);
}

/* Until one of them is ready, or a word may have come by the first, or some milliseconds. */
static void flows_wait(const struct flows *flows, short events)
{
	struct pollfd wait[FLOWS];

	for (unsigned i = 0; i < flows->n; i++)
		wait[i] = (struct pollfd){ .fd = flows->fds[i],
			                   .events = (short)(events | (i ? 0 : POLLIN)) };
	poll(wait, flows->n, 5);
}

/* ---- what a direction carried ---- */

/* While it is filled. */
struct trial {
	const struct flows *flows;
	char interface[64];
	bool outward;
	struct spans stream, link; /* of the connections; of the interface */
	uint64_t began, ran;       /* when; and thread_ran() then */
	uint64_t bytes;            /* that have come; outward: that have left, lost ones too */
	double share;              /* of the time that it ran or waited for a core */
};

/* Nanoseconds that this thread has run, and those that it wanted to and could not. */
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

/* All that the interface has received or sent, in this process's network; 0: unknown. */
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

/* What has left by the connections, lost or not. */
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

static void trial_begin(struct trial *trial, const struct flows *flows, bool outward)
{
	struct udp_address peer = { .length = sizeof(peer.storage) }, local;

	*trial = (struct trial){ .flows = flows, .outward = outward };
	if (getpeername(flows->fds[0], (void *)&peer.storage, &peer.length) ||
	    udp_route(&peer, &local, trial->interface, sizeof(trial->interface)) != TRIB_OK)
		trial->interface[0] = '\0';
}

static void trial_note(struct trial *trial, uint64_t now)
{
	if (!trial->began) {
		trial->began = now;
		trial->ran = thread_ran();
	}
	if (trial->stream.since && now < trial->stream.since + SPAN_NS)
		return;
	if (trial->outward)
		trial->bytes = flows_sent(trial->flows);
	spans_at(&trial->stream, now, trial->bytes);
	spans_at(&trial->link, now, interface_bytes(trial->interface, trial->outward));
	if (now > trial->began)
		trial->share = (double)(thread_ran() - trial->ran) / (double)(now - trial->began);
}

/* What else the interface carried. Headers are not in what connections count. */
static double trial_others(const struct trial *trial)
{
	return fmax(0, spans_bps(&trial->link) - HEADERS * spans_bps(&trial->stream));
}

/* ---- both sides of a connection ---- */

static bool stops(struct gauge *gauge)
{
	bool stop;

	pthread_mutex_lock(&gauge->lock);
	stop = gauge->stop;
	pthread_mutex_unlock(&gauge->lock);
	return stop;
}

/* All of it, before the deadline. */
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

/* A word, as far as it has come. */
struct reading {
	uint8_t bytes[sizeof(struct word)];
	size_t n;
};

/* What comes in the other direction: zeros, and among them the word. True: it is there. */
static bool take_word(struct gauge *gauge, int fd, struct reading *reading, bool *broken)
{
	ssize_t n = recv(fd, gauge->chunk, CHUNK, MSG_DONTWAIT);

	*broken = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	for (ssize_t i = 0; i < n && reading->n < sizeof(reading->bytes); i++)
		if (reading->n || gauge->chunk[i])
			reading->bytes[reading->n++] = gauge->chunk[i];
	memset(gauge->chunk, 0, n > 0 ? (size_t)n : 0);
	return reading->n == sizeof(reading->bytes);
}

/* True: all are full. */
static bool send_zeros(struct gauge *gauge, const struct flows *flows, bool *broken)
{
	bool full = true;

	for (unsigned i = 0; i < flows->n; i++) {
		struct iovec piece = { gauge->chunk, CHUNK };
		int64_t n = tcp_send(flows->fds[i], &piece, 1);

		*broken |= n < 0;
		full &= n <= 0;
	}
	return full;
}

/* Fills the way until the other side has had enough; what it says of that is in *word. */
static bool give(struct gauge *gauge, const struct flows *flows, struct word *word, double *bps,
                 bool *strained)
{
	uint64_t now = clock_now(), until = now + FILL_NS + 2 * WAIT_NS;
	struct reading reading = { .n = 0 };
	struct trial trial;
	bool broken = false;

	trial_begin(&trial, flows, true);
	while ((now = clock_now()) < until && !broken && !stops(gauge)) {
		trial_note(&trial, now);
		if (take_word(gauge, flows->fds[0], &reading, &broken)) {
			memcpy(word, reading.bytes, sizeof(*word));
			*bps = fmin((double)word->bps + trial_others(&trial), NODE_BPS_MAX);
			*strained = trial.share > STRAINED;
			return word->magic == MAGIC_WORD;
		}
		if (send_zeros(gauge, flows, &broken))
			flows_wait(flows, POLLOUT);
	}
	return false;
}

/* How many bytes came; 0: none did. */
static uint64_t read_zeros(struct gauge *gauge, const struct flows *flows, bool *broken)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < flows->n; i++) {
		ssize_t n = recv(flows->fds[i], gauge->chunk, CHUNK, MSG_DONTWAIT);

		*broken |= n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
		bytes += n > 0 ? (uint64_t)n : 0;
	}
	return bytes;
}

/* Takes what comes until that is enough, or it has been tried long enough, and says so; `gave`:
 * that it was strained when it gave. */
static bool take(struct gauge *gauge, const struct flows *flows, double enough_bps, bool gave,
                 double *bps, bool *strained)
{
	uint64_t now = clock_now(), until = now + WAIT_NS, came;
	struct word word = { .magic = MAGIC_WORD, .gave_strained = gave };
	struct trial trial;
	bool broken = false;

	trial_begin(&trial, flows, false);
	/* Longer where cores are so short that next to nothing was seen. */
	while (((now = clock_now()) < until ||
	        (trial.bytes && trial.stream.n < SPANS_LEAST && now < until + WAIT_NS)) &&
	       spans_bps(&trial.stream) + trial_others(&trial) < enough_bps && !broken &&
	       !stops(gauge)) {
		came = read_zeros(gauge, flows, &broken);
		if (came && !trial.bytes)
			until = now + FILL_NS;
		trial.bytes += came;
		if (trial.bytes)
			trial_note(&trial, now);
		if (!came)
			flows_wait(flows, POLLIN);
	}
	memset(gauge->chunk, 0, CHUNK);
	if (!trial.bytes || broken)
		return false;
	*bps = fmin(spans_bps(&trial.stream) + trial_others(&trial), NODE_BPS_MAX);
	*strained = trial.share > STRAINED;
	word.took_strained = *strained;
	word.bps = (uint64_t)spans_bps(&trial.stream);
	return send_all(flows->fds[0], &word, sizeof(word), clock_now() + WAIT_NS);
}

static void keep(struct gauge *gauge, const struct node_way *way)
{
	pthread_mutex_lock(&gauge->lock);
	links_keep(gauge->ways, &gauge->n_ways, way);
	pthread_mutex_unlock(&gauge->lock);
	gauge->done(gauge->context);
}

static void prepare(int fd)
{
	int unsent = UNSENT_BYTES;

	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

/* ---- who is asked ---- */

static bool take_ask(struct gauge *gauge, int fd, struct ask *ask)
{
	bool good;

	if (!read_all(fd, ask, sizeof(*ask), clock_now() + ASK_NS))
		return false;
	pthread_mutex_lock(&gauge->lock);
	good = gauge->has_secret &&
	       ask->proof == secret_hash(&gauge->secret, ask, offsetof(struct ask, proof));
	pthread_mutex_unlock(&gauge->lock);
	return good && ask->magic == MAGIC_ASK && memchr(ask->from, 0, sizeof(ask->from)) &&
	       name_is_good(ask->from);
}

/* The other connections of the one that came first. */
static void gather(struct gauge *gauge, struct flows *flows, const struct ask *first)
{
	uint64_t until = clock_now() + GATHER_NS;

	while (flows->n < first->flows && flows->n < FLOWS && clock_now() < until) {
		struct pollfd wait = { .fd = gauge->listen, .events = POLLIN };
		struct udp_address peer;
		struct ask ask;
		int fd;

		poll(&wait, 1, 20);
		if ((fd = tcp_accept(gauge->listen, &peer)) < 0)
			continue;
		if (take_ask(gauge, fd, &ask) && ask.nonce == first->nonce &&
		    !strcmp(ask.from, first->from)) {
			prepare(fd);
			flows->fds[flows->n++] = fd;
		} else {
			close(fd);
		}
	}
}

static void serve(struct gauge *gauge, struct flows *flows)
{
	struct node_way way = { 0 };
	struct word word;
	struct ask ask;
	bool gave;

	if (!take_ask(gauge, flows->fds[0], &ask))
		return;
	prepare(flows->fds[0]);
	gather(gauge, flows, &ask);
	memcpy(way.with, ask.from, sizeof(way.with));
	if (!take(gauge, flows, (double)ask.enough_bps, false, &way.in_bps, &way.in_strained)) {
		log_info("%s tried what the way here carries, and nothing came", ask.from);
		return;
	}
	if (give(gauge, flows, &word, &way.out_bps, &gave)) {
		way.in_strained |= word.gave_strained != 0;
		way.out_strained = gave || word.took_strained;
		word = (struct word){ .magic = MAGIC_WORD, .gave_strained = gave };
		send_all(flows->fds[0], &word, sizeof(word), clock_now() + WAIT_NS);
	} else {
		log_info("what the way to %s carries is not known: it did not come to an end",
		         ask.from);
	}
	way.at = clock_now();
	keep(gauge, &way);
}

/* ---- who asks ---- */

static bool send_ask(struct gauge *gauge, const struct flows *flows, unsigned flow,
                     const struct gauge_wish *wish, uint64_t nonce)
{
	struct ask ask = { .magic = MAGIC_ASK,
		           .flows = flows->n,
		           .enough_bps = wish->enough_bps,
		           .nonce = nonce };

	memcpy(ask.from, wish->self, sizeof(ask.from));
	pthread_mutex_lock(&gauge->lock);
	ask.proof = secret_hash(&gauge->secret, &ask, offsetof(struct ask, proof));
	pthread_mutex_unlock(&gauge->lock);
	return send_all(flows->fds[flow], &ask, sizeof(ask), clock_now() + WAIT_NS);
}

/* What does not leave the machine is no way. */
static bool leaves(const struct gauge_wish *wish)
{
	struct udp_address local;
	char interface[64];

	return wish->may_stay ||
	       udp_route(&wish->at, &local, interface, sizeof(interface)) != TRIB_OK ||
	       strcmp(interface, "lo") != 0;
}

/* As many connections as can be had; or an error. */
static int connect_all(struct flows *flows, const struct gauge_wish *wish)
{
	int fd = -ENETUNREACH;

	if (wish->at.length && leaves(wish))
		while (flows->n < FLOWS && (fd = tcp_connect(&wish->at, CONNECT_MS)) >= 0) {
			prepare(fd);
			flows->fds[flows->n++] = fd;
		}
	return flows->n ? 0 : fd;
}

/* The last one, behind all that was still under way. */
static bool read_word(struct gauge *gauge, int fd, struct word *word)
{
	uint64_t until = clock_now() + WAIT_NS;
	struct reading reading = { .n = 0 };
	bool broken = false;

	while (clock_now() < until && !broken && !stops(gauge)) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };

		if (take_word(gauge, fd, &reading, &broken)) {
			memcpy(word, reading.bytes, sizeof(*word));
			return word->magic == MAGIC_WORD;
		}
		poll(&wait, 1, 5);
	}
	return false;
}

/* False: not all is known that could be. */
static bool fill_both(struct gauge *gauge, const struct flows *flows, const struct gauge_wish *wish,
                      struct node_way *way)
{
	uint64_t nonce;
	struct word word;
	bool gave;

	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		nonce = clock_now();
	for (unsigned i = 0; i < flows->n; i++)
		if (!send_ask(gauge, flows, i, wish, nonce))
			return false;
	if (!give(gauge, flows, &word, &way->out_bps, &gave))
		return false;
	way->out_strained = gave || word.took_strained;
	if (!take(gauge, flows, (double)wish->enough_bps, gave, &way->in_bps, &way->in_strained))
		return false;
	if (!read_word(gauge, flows->fds[0], &word) || word.gave_strained)
		way->in_strained = true;
	return true;
}

static void try_way(struct gauge *gauge, const struct gauge_wish *wish)
{
	struct flows flows = { .n = 0 };
	struct node_way way = { 0 };
	int error = connect_all(&flows, wish);

	memcpy(way.with, wish->with, sizeof(way.with));
	if (error)
		log_info("what the way to %s carries is not known: %s", wish->with,
		         strerror(-error));
	else if (!fill_both(gauge, &flows, wish, &way))
		log_info("what the way to %s carries is not known: it did not come to an end",
		         wish->with);
	flows_close(&flows);
	way.at = clock_now();
	keep(gauge, &way); /* that nothing was seen is said too, and another one is tried */
}

/* ---- the thread ---- */

static bool next_wish(struct gauge *gauge, struct gauge_wish *wish)
{
	bool has;

	pthread_mutex_lock(&gauge->lock);
	has = gauge->has_wish;
	gauge->has_wish = false;
	*wish = gauge->wish;
	pthread_mutex_unlock(&gauge->lock);
	return has;
}

static void *gauge_main(void *context)
{
	struct gauge *gauge = context;

	while (!stops(gauge)) {
		struct pollfd wait[] = { { .fd = gauge->listen, .events = POLLIN },
			                 { .fd = gauge->wake, .events = POLLIN } };
		struct flows flows = { .n = 0 };
		struct gauge_wish wish;
		struct udp_address peer;
		uint64_t count;
		int fd;

		poll(wait, 2, -1);
		if (wait[1].revents && read(gauge->wake, &count, sizeof(count)) < 0)
			continue;
		if (next_wish(gauge, &wish))
			try_way(gauge, &wish);
		if (!wait[0].revents)
			continue;
		fd = tcp_accept(gauge->listen, &peer);
		if (fd < 0) {
			if (fd != -EAGAIN)
				poll(NULL, 0, 100); /* too many files are open: others end */
			continue;
		}
		flows.fds[flows.n++] = fd;
		serve(gauge, &flows);
		flows_close(&flows);
	}
	return NULL;
}

static void wake(struct gauge *gauge)
{
	uint64_t one = 1;

	if (write(gauge->wake, &one, sizeof(one)) < 0)
		log_debug("a thread cannot be woken: %s", strerror(errno));
}

/* ---- starting ---- */

static trib_status open_listener(const struct udp_address *wanted, struct gauge *gauge)
{
	struct udp_address address = *wanted;
	trib_status status;

	udp_set_port(&address, 0); /* its own may be an aggregator's on TCP */
	status = tcp_listen(&address, &gauge->listen);
	if (status != TRIB_OK)
		return status;
	if (getsockname(gauge->listen, (void *)&address.storage, &address.length))
		return status_fail_errno("cannot tell a port");
	gauge->port = udp_port(&address);
	return TRIB_OK;
}

static void gauge_free(struct gauge *gauge)
{
	if (gauge->listen >= 0)
		close(gauge->listen);
	if (gauge->wake >= 0)
		close(gauge->wake);
	pthread_mutex_destroy(&gauge->lock);
	free(gauge->chunk);
	free(gauge);
}

trib_status gauge_open(const struct udp_address *listen, void (*done)(void *context), void *context,
                       struct gauge **out)
{
	struct gauge *gauge = calloc(1, sizeof(*gauge));
	trib_status status;

	if (!gauge)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a listener");
	pthread_mutex_init(&gauge->lock, NULL);
	gauge->done = done;
	gauge->context = context;
	gauge->listen = -1;
	gauge->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	gauge->chunk = calloc(1, CHUNK);
	status = open_listener(listen, gauge);
	if (status == TRIB_OK && (!gauge->chunk || gauge->wake < 0))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for a listener");
	if (status == TRIB_OK && pthread_create(&gauge->thread, NULL, gauge_main, gauge))
		status = status_fail(TRIB_ERR_SYSTEM, "cannot start a thread");
	if (status != TRIB_OK) {
		gauge_free(gauge);
		return status;
	}
	*out = gauge;
	return TRIB_OK;
}

void gauge_close(struct gauge *gauge)
{
	if (!gauge)
		return;
	pthread_mutex_lock(&gauge->lock);
	gauge->stop = true;
	pthread_mutex_unlock(&gauge->lock);
	wake(gauge);
	pthread_join(gauge->thread, NULL);
	gauge_free(gauge);
}

uint16_t gauge_port(const struct gauge *gauge)
{
	return gauge->port;
}

void gauge_set_secret(struct gauge *gauge, const struct secret *secret)
{
	pthread_mutex_lock(&gauge->lock);
	gauge->secret = *secret;
	gauge->has_secret = true;
	pthread_mutex_unlock(&gauge->lock);
}

void gauge_ask(struct gauge *gauge, const struct gauge_wish *wish)
{
	pthread_mutex_lock(&gauge->lock);
	gauge->wish = *wish;
	gauge->has_wish = true;
	pthread_mutex_unlock(&gauge->lock);
	wake(gauge);
}

unsigned gauge_ways(struct gauge *gauge, struct node_way out[NODE_WAYS])
{
	unsigned n;

	pthread_mutex_lock(&gauge->lock);
	n = gauge->n_ways;
	memcpy(out, gauge->ways, n * sizeof(*out));
	pthread_mutex_unlock(&gauge->lock);
	return n;
}

void gauge_forget(struct gauge *gauge, uint64_t before)
{
	unsigned n = 0;

	pthread_mutex_lock(&gauge->lock);
	for (unsigned i = 0; i < gauge->n_ways; i++)
		if (gauge->ways[i].at >= before)
			gauge->ways[n++] = gauge->ways[i];
	gauge->n_ways = n;
	pthread_mutex_unlock(&gauge->lock);
}
