/* SPDX-License-Identifier: Apache-2.0 */
#include "control/gauge.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/report.h"
#include "path/spans.h"
#include "path/tcp.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/tcp.h>
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
#define FILL_NS 150000000ull   /* so long a direction is filled at most, */
#define WAIT_NS 400000000ull   /* and so long the other side is waited for */
#define CONNECT_MS 200
#define UNSENT_BYTES (128 << 10) /* what waits here when the other side has had enough */
#define CHUNK (256u << 10)
#define STRAINED 0.5 /* of the time that the thread ran, or wanted to */

/* The first of a connection. */
struct ask {
	uint32_t magic, zero;
	uint64_t enough_bps, nonce;
	char from[TREE_NAME_MAX];
	uint64_t proof; /* of all before it */
};

/*
 * From who took, to who gave, when it has had enough; and at the end from who gave last. There are
 * zeros before and behind it.
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

/* ---- what a direction carried ---- */

/* While it is filled. */
struct trial {
	char interface[64];
	bool outward;
	struct spans stream, link; /* of the connection; of the interface */
	uint64_t began, ran;       /* when; and thread_ran() then */
	uint64_t bytes;            /* that have come */
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

static void trial_begin(struct trial *trial, int fd, bool outward)
{
	struct udp_address peer = { .length = sizeof(peer.storage) }, local;

	*trial = (struct trial){ .outward = outward };
	if (getpeername(fd, (void *)&peer.storage, &peer.length) ||
	    udp_route(&peer, &local, trial->interface, sizeof(trial->interface)) != TRIB_OK)
		trial->interface[0] = '\0';
}

static void trial_note(struct trial *trial, uint64_t now)
{
	if (!trial->began) {
		trial->began = now;
		trial->ran = thread_ran();
	}
	if (!spans_at(&trial->stream, now, trial->bytes))
		return;
	spans_at(&trial->link, now, interface_bytes(trial->interface, trial->outward));
	if (now > trial->began)
		trial->share = (double)(thread_ran() - trial->ran) / (double)(now - trial->began);
}

/* Some drivers count a second late: what came by the connection was carried in any case. */
static double trial_bps(const struct trial *trial)
{
	return fmax(spans_bps(&trial->stream), spans_bps(&trial->link));
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

/* Fills the way until the other side has had enough; what it says of that is in *word. */
static bool give(struct gauge *gauge, int fd, struct word *word, double *bps, bool *strained)
{
	uint64_t now = clock_now(), until = now + FILL_NS + WAIT_NS;
	struct reading reading = { .n = 0 };
	struct trial trial;
	bool broken = false;

	trial_begin(&trial, fd, true);
	while ((now = clock_now()) < until && !broken && !stops(gauge)) {
		struct pollfd wait = { .fd = fd, .events = POLLIN | POLLOUT };
		struct iovec piece = { gauge->chunk, CHUNK };
		int64_t n;

		trial_note(&trial, now);
		if (take_word(gauge, fd, &reading, &broken)) {
			memcpy(word, reading.bytes, sizeof(*word));
			*bps = fmax((double)word->bps, trial_bps(&trial));
			*strained = trial.share > STRAINED;
			return word->magic == MAGIC_WORD;
		}
		n = tcp_send(fd, &piece, 1);
		if (n < 0)
			return false;
		if (!n)
			poll(&wait, 1, 5);
	}
	return false;
}

/* Takes what comes until that is enough, or it has been tried long enough, and says so; `gave`:
 * that it was strained when it gave. */
static bool take(struct gauge *gauge, int fd, double enough_bps, bool gave, double *bps,
                 bool *strained)
{
	uint64_t now = clock_now(), until = now + WAIT_NS;
	struct word word = { .magic = MAGIC_WORD, .gave_strained = gave };
	struct trial trial;

	trial_begin(&trial, fd, false);
	while ((now = clock_now()) < until && trial_bps(&trial) < enough_bps && !stops(gauge)) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		ssize_t n = recv(fd, gauge->chunk, CHUNK, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n > 0 && !trial.bytes)
			until = now + FILL_NS;
		trial.bytes += n > 0 ? (uint64_t)n : 0;
		if (trial.bytes)
			trial_note(&trial, now);
		if (n < 0)
			poll(&wait, 1, 5);
	}
	memset(gauge->chunk, 0, CHUNK);
	if (!trial.bytes)
		return false;
	*bps = trial_bps(&trial);
	*strained = trial.share > STRAINED;
	word.took_strained = *strained;
	word.bps = (uint64_t)spans_bps(&trial.stream);
	return send_all(fd, &word, sizeof(word), clock_now() + WAIT_NS);
}

/* Whose place a new one takes: the oldest's, unless that shows most of what the link can do. */
static unsigned oldest(const struct gauge *gauge)
{
	unsigned best = 0;

	for (unsigned i = 1; i < NODE_WAYS; i++)
		if (gauge->ways[i].out_bps + gauge->ways[i].in_bps >
		    gauge->ways[best].out_bps + gauge->ways[best].in_bps)
			best = i;
	return best == NODE_WAYS - 1 ? NODE_WAYS - 2 : NODE_WAYS - 1;
}

static void keep(struct gauge *gauge, const struct node_way *way)
{
	unsigned at = 0;

	pthread_mutex_lock(&gauge->lock);
	while (at < gauge->n_ways && strcmp(gauge->ways[at].with, way->with) != 0)
		at++;
	if (at == gauge->n_ways)
		at = gauge->n_ways < NODE_WAYS ? gauge->n_ways++ : oldest(gauge);
	memmove(gauge->ways + 1, gauge->ways, at * sizeof(*gauge->ways));
	gauge->ways[0] = *way;
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

	if (!read_all(fd, ask, sizeof(*ask), clock_now() + WAIT_NS))
		return false;
	pthread_mutex_lock(&gauge->lock);
	good = gauge->has_secret &&
	       ask->proof == secret_hash(&gauge->secret, ask, offsetof(struct ask, proof));
	pthread_mutex_unlock(&gauge->lock);
	return good && ask->magic == MAGIC_ASK && memchr(ask->from, 0, sizeof(ask->from)) &&
	       name_is_good(ask->from);
}

static void serve(struct gauge *gauge, int fd)
{
	struct node_way way = { 0 };
	struct word word;
	struct ask ask;
	bool gave;

	prepare(fd);
	if (!take_ask(gauge, fd, &ask) ||
	    !take(gauge, fd, (double)ask.enough_bps, false, &way.in_bps, &way.in_strained) ||
	    !give(gauge, fd, &word, &way.out_bps, &gave))
		return;
	way.in_strained |= word.gave_strained != 0;
	way.out_strained = gave || word.took_strained;
	word = (struct word){ .magic = MAGIC_WORD, .gave_strained = gave };
	send_all(fd, &word, sizeof(word), clock_now() + WAIT_NS);
	memcpy(way.with, ask.from, sizeof(way.with));
	way.at = clock_now();
	keep(gauge, &way);
}

/* ---- who asks ---- */

static bool send_ask(struct gauge *gauge, int fd, const struct gauge_wish *wish)
{
	struct ask ask = { .magic = MAGIC_ASK, .enough_bps = wish->enough_bps };

	if (getrandom(&ask.nonce, sizeof(ask.nonce), 0) != sizeof(ask.nonce))
		ask.nonce = clock_now();
	memcpy(ask.from, wish->self, sizeof(ask.from));
	pthread_mutex_lock(&gauge->lock);
	ask.proof = secret_hash(&gauge->secret, &ask, offsetof(struct ask, proof));
	pthread_mutex_unlock(&gauge->lock);
	return send_all(fd, &ask, sizeof(ask), clock_now() + WAIT_NS);
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

static void fill_both(struct gauge *gauge, int fd, const struct gauge_wish *wish,
                      struct node_way *way)
{
	struct word word;
	bool gave;

	prepare(fd);
	if (!send_ask(gauge, fd, wish) || !give(gauge, fd, &word, &way->out_bps, &gave))
		return;
	way->out_strained = gave || word.took_strained;
	if (!take(gauge, fd, (double)wish->enough_bps, gave, &way->in_bps, &way->in_strained))
		return;
	if (!read_word(gauge, fd, &word) || word.gave_strained)
		way->in_strained = true;
}

static void try_way(struct gauge *gauge, const struct gauge_wish *wish)
{
	int fd = tcp_connect(&wish->at, CONNECT_MS);
	struct node_way way = { 0 };

	memcpy(way.with, wish->with, sizeof(way.with));
	if (fd < 0) {
		log_info("what the way to %s carries is not known: %s", wish->with, strerror(-fd));
	} else {
		fill_both(gauge, fd, wish, &way);
		close(fd);
	}
	way.at = clock_now();
	keep(gauge, &way); /* nothing was seen: that is said too, and another one is tried */
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
		struct gauge_wish wish;
		struct udp_address peer;
		uint64_t count;
		int fd;

		poll(wait, 2, -1);
		if (wait[1].revents && read(gauge->wake, &count, sizeof(count)) < 0)
			continue;
		if (next_wish(gauge, &wish))
			try_way(gauge, &wish);
		if (!wait[0].revents || (fd = tcp_accept(gauge->listen, &peer)) < 0)
			continue;
		serve(gauge, fd);
		close(fd);
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

	status = tcp_listen(&address, &gauge->listen);
	if (status != TRIB_OK) { /* an aggregator on TCP has it */
		udp_set_port(&address, 0);
		status = tcp_listen(&address, &gauge->listen);
	}
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
