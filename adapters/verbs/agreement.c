/* SPDX-License-Identifier: Apache-2.0 */
/* What the peer says about its paths, what follows from it, and the library's thread. */
#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "tribverbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS 1000000ull
#define ASK_NS (20 * MS)    /* between messages while something has to be agreed on */
#define SLOW_NS (1000 * MS) /* between messages to a peer that has not answered for PATIENCE_NS */
#define ALIVE_NS (200 * MS) /* between messages if all is agreed on */
#define HOLD_ASKING_NS (200 * MS) /* large requests wait so long for the peer's first answer */
#define HOLD_NS (400 * MS)        /* large requests wait so long until all paths are up */
#define SILENT_NS (100 * MS)
#define PATIENCE_NS (2000 * MS)
#define GRACE_NS (200 * MS) /* completions may come for so long after the peer has left */
#define TICK_MS 2           /* the thread looks after completions */
#define IDLE_MS 50
#define SOCKETS_POLLED 1024u /* the others are looked at every IDLE_MS */

static pthread_once_t started = PTHREAD_ONCE_INIT;
static int woken = -1; /* readable when the thread has to look at all links */
static bool runs;      /* the thread */
static bool stopped;   /* with world: the process ends, and objects of libibverbs may be gone */

/* ---- what the peer says ---- */

static void gone(struct link_qp *link, uint64_t now, const char *why)
{
	if (link->mode == LINK_ASKING) {
		if (!link->told)
			log_notice("QP %u: plain RDMA, since the peer is without libtribverbs.so",
			           link->qp->qp_num);
		link->told = true;
	} else if (link->mode == LINK_MULTI) {
		log_info("QP %u: the peer %s", link->qp->qp_num, why);
		link->mode = LINK_GONE;
		link->gone_since = now;
	}
}

static void log_paths(const struct link_qp *link)
{
	char own[INET_ADDRSTRLEN], peer[INET_ADDRSTRLEN];

	log_info("QP %u to QP %u: %u paths", link->qp->qp_num, link->peer.qpn, link->n_paths);
	for (unsigned i = 0; i < link->n_paths; i++) {
		inet_ntop(AF_INET, link->own.paths[i].address + 12, own, sizeof(own));
		inet_ntop(AF_INET, link->peer.paths[i].address + 12, peer, sizeof(peer));
		log_debug("QP %u: path %u: %s to %s", link->qp->qp_num, i, own, peer);
	}
}

static void agree(struct link_qp *link, uint64_t now)
{
	link->n_paths =
		link->own.n_paths < link->peer.n_paths ? link->own.n_paths : link->peer.n_paths;
	if (link->n_paths < 2) {
		if (!link->told)
			log_notice("QP %u: plain RDMA, since the peer has one path",
			           link->qp->qp_num);
		link->told = true;
		link->n_paths = 0;
		return;
	}
	log_paths(link);
	splitter_agree(&link->splitter, link->n_paths, agreement_own_path(link),
	               link->peer.receives, now);
	link->mode = LINK_MULTI;
	link->advert_path = -1;
	link->advertised = UINT64_MAX;
}

static bool is_for(const struct link_qp *link, const struct pact *pact)
{
	return pact->qpn == link->rtr.dest_qp_num && pact->peer == link->qp->qp_num &&
	       (!pact->echo || pact->echo == link->own.nonce) &&
	       (!link->peer.nonce || (pact->nonce == link->peer.nonce &&
	                              (int32_t)(pact->serial - link->peer.serial) >= 0));
}

/* False: it was not from the peer. */
static bool take_message(struct link_qp *link, const uint8_t *bytes, size_t n, uint64_t now)
{
	struct pact pact;

	if (pact_parse(bytes, n, &pact) != TRIB_OK) {
		log_debug("QP %u: dropped: %s", link->qp->qp_num, trib_last_error());
		return false;
	}
	if ((link->mode != LINK_ASKING && link->mode != LINK_MULTI) || !is_for(link, &pact))
		return false;
	if (pact.heard != link->own.serial)
		link->wants_send = link->wants_send || clock_since(now, link->asked) > ASK_NS;
	if (pact.serial != link->peer.serial)
		link->wants_send = true;
	link->peer = pact;
	link->own.echo = pact.nonce;
	link->own.heard = pact.serial;
	link->heard = now;
	if (pact.leaving)
		gone(link, now, "has left");
	else if (link->mode == LINK_ASKING)
		agree(link, now);
	return true;
}

/* The host of the peer says that nobody has the port. */
static bool is_refused(int fd)
{
	uint8_t space[512];
	struct msghdr message = { .msg_control = space, .msg_controllen = sizeof(space) };
	bool refused = false;

	while (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
			struct sock_extended_err error;

			if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR)
				continue;
			memcpy(&error, CMSG_DATA(c), sizeof(error));
			refused = refused || error.ee_errno == ECONNREFUSED;
		}
		message.msg_controllen = sizeof(space);
	}
	return refused;
}

static void listen_at(struct link_qp *link, unsigned path, uint64_t now)
{
	uint8_t bytes[PACT_BYTES_MAX + 1];
	struct sockaddr_in from;
	socklen_t from_bytes = sizeof(from);
	int fd = link->sockets[path];
	ssize_t n;

	if (is_refused(fd))
		gone(link, now, "is gone");
	while ((n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from,
	                     &from_bytes)) >= 0 ||
	       errno == ECONNREFUSED)
		if (n >= 0 && agreement_is_from_peer(link, &from) &&
		    take_message(link, bytes, (size_t)n, now))
			link->heard_on[path] = now;
}

static void listen_to_all(struct link_qp *link, uint64_t now)
{
	for (unsigned i = 0; i < link->own.n_paths; i++)
		listen_at(link, i, now);
}

/* ---- paths ---- */

/* A path that has failed is tried again when a datagram has come on it. */
static bool is_silent(const struct link_qp *link, unsigned path, uint64_t now)
{
	const struct pact_path *own = &link->own.paths[path];

	return own->phase == PACT_FRESH && own->epoch > 1 &&
	       own->epoch == link->peer.paths[path].epoch &&
	       clock_since(now, link->heard_on[path]) > SILENT_NS;
}

static void path_step(struct link_qp *link, unsigned path, uint64_t now)
{
	struct pact_path *own = &link->own.paths[path];
	bool had_failed = own->phase == PACT_FAILED;
	enum pact_step step = is_silent(link, path, now) ? PACT_STAY
	                                                 : pact_next(own, &link->peer.paths[path],
	                                                             !link->posted[path]);
	bool well = true;

	if (step == PACT_FAIL) {
		hidden_fail(link, path);
	} else if (step == PACT_RENEW) {
		well = hidden_renew(link, path);
		if (had_failed) {
			splitter_fenced(&link->splitter, path);
			if (link->advert_path == (int)path)
				receive_advertise_again(link);
		}
	} else if (step == PACT_JOIN) {
		well = hidden_connect(link, path);
		if (!well) {
			own->phase = PACT_FAILED;
			hidden_fail(link, path);
		}
	}
	if (step != PACT_STAY) {
		link->own.serial++;
		link->wants_send = true;
		log_debug("QP %u: path %u: epoch %u, phase %d", link->qp->qp_num, path, own->epoch,
		          own->phase);
	}
	if (pact_is_usable(own, &link->peer.paths[path]) && !link->splitter.up[path] &&
	    !link->probing[path])
		send_probe(link, path);
}

static bool is_settled(const struct link_qp *link)
{
	bool settled = link->mode != LINK_ASKING && link->peer.heard == link->own.serial;

	for (unsigned i = 0; i < link->n_paths; i++)
		settled = settled && link->splitter.up[i];
	return settled && !link->splitter.own_down;
}

static void tell_if_due(struct link_qp *link, uint64_t now)
{
	uint64_t pause = is_settled(link) ? ALIVE_NS : ASK_NS;

	if (link->mode == LINK_ASKING && link->told)
		pause = SLOW_NS;
	if (link->mode == LINK_ASKING && !link->told &&
	    clock_since(now, link->asked_since) > PATIENCE_NS) {
		log_notice("QP %u: plain RDMA, since the peer does not answer", link->qp->qp_num);
		link->told = true;
	}
	if (link->wants_send || clock_since(now, link->asked) >= pause)
		agreement_tell(link, now);
}

/* Large requests wait for the agreement for a moment, so that they get all paths. */
static void check_hold(struct link_qp *link, uint64_t now)
{
	uint64_t most = link->mode == LINK_ASKING ? HOLD_ASKING_NS : HOLD_NS;

	if (!link->splitter.hold)
		return;
	link->splitter.hold = !link->told && link->mode != LINK_GONE && !is_settled(link) &&
	                      clock_since(now, link->asked_since) < most;
	if (!link->splitter.hold)
		send_pump(link);
}

/* The peer has not been heard for TRIB_TIMEOUT while requests wait for its answer. */
static void check_silence(struct link_qp *link, uint64_t now)
{
	double seconds = 30;

	if (setting_seconds(SETTING_TIMEOUT, &seconds) != TRIB_OK)
		seconds = 30;
	if (splitter_is_stuck(&link->splitter) &&
	    (double)clock_since(now, link->heard) > seconds * 1e9)
		gone(link, now, "is silent");
}

/* Returns whether the link needs the thread often. */
static bool step(struct link_qp *link, uint64_t now)
{
	bool busy;

	link_lock(link);
	if (link->mode != LINK_PLAIN)
		listen_to_all(link, now);
	if (link->mode == LINK_MULTI) {
		for (unsigned i = 0; i < link->n_paths; i++)
			path_step(link, i, now);
		own_step(link);
		check_silence(link, now);
		receive_advertise(link);
		send_pump(link);
	}
	check_hold(link, now);
	if (link->mode == LINK_GONE &&
	    (splitter_is_busy(&link->splitter) || link->splitter.own_down) &&
	    clock_since(now, link->gone_since) > GRACE_NS)
		own_break(link, IBV_WC_RETRY_EXC_ERR);
	if (link->mode == LINK_ASKING || link->mode == LINK_MULTI)
		tell_if_due(link, now);
	busy = link->mode != LINK_PLAIN &&
	       (splitter_has_more(&link->splitter) || !is_settled(link)) &&
	       !(link->mode == LINK_ASKING && link->told);
	link_unlock(link);
	return busy;
}

/* ---- the thread ---- */

/* Returns how many; *timeout: how long to wait for them. */
static unsigned look_after_all(struct pollfd *fds, int *timeout)
{
	uint64_t now = clock_now();
	unsigned n = 0;

	*timeout = IDLE_MS;
	pthread_mutex_lock(&world);
	for (struct link_qp *link = stopped ? NULL : links; link; link = link->next) {
		if (step(link, now)) {
			*timeout = TICK_MS;
			cq_progress(link->send_cq);
			if (atomic_load(&link->mending))
				cq_progress(link->receive_cq);
		}
		if (link->late)
			cq_take_late(link);
		for (unsigned i = 0; link->mode != LINK_PLAIN && i < link->own.n_paths; i++)
			if (n < SOCKETS_POLLED)
				fds[n++] =
					(struct pollfd){ .fd = link->sockets[i], .events = POLLIN };
	}
	pthread_mutex_unlock(&world);
	return n;
}

static void *run(void *unused)
{
	static struct pollfd fds[SOCKETS_POLLED + 1];

	(void)unused;
	for (;;) {
		uint64_t count;
		int timeout;
		unsigned n = look_after_all(fds, &timeout);

		fds[n] = (struct pollfd){ .fd = woken, .events = POLLIN };
		if (poll(fds, n + 1, timeout) > 0 && fds[n].revents)
			(void)!read(woken, &count, sizeof(count));
	}
	return NULL;
}

static void stop(void)
{
	pthread_mutex_lock(&world);
	for (struct link_qp *link = links; link && !stopped; link = link->next)
		if (link->mode != LINK_PLAIN)
			agreement_leave(link);
	stopped = true;
	pthread_mutex_unlock(&world);
}

static void lock_world(void)
{
	pthread_mutex_lock(&world);
}

static void unlock_world(void)
{
	pthread_mutex_unlock(&world);
}

/* The child has no thread, and the connections are the parent's. */
static void child_stop(void)
{
	stopped = true;
	unlock_world();
}

static void start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	atexit(stop);
	pthread_atfork(lock_world, unlock_world, child_stop);
	woken = agreement_wake_open();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	runs = woken >= 0 && pthread_create(&thread, &attr, run, NULL) == 0;
	if (!runs)
		log_notice("plain RDMA, since there is no thread for the library");
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool agreement_start(void)
{
	pthread_once(&started, start);
	return runs;
}
