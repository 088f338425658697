/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of a communicator that is not here: this process has been started
 * again, or the communicator is over. Whoever sends them is told, and need not
 * find out by silence: at once, but for DATA, which has no cookie that an answer
 * could show. Its sender reports soon.
 *
 * The answer has the cookie of the packet, so only who is in that communicator
 * takes it for one. With a controller's secret only cookies are answered that
 * were made with it; without one, anybody, but no more than a few a tick, so
 * nobody can be flooded by way of us. An ABORT is never answered, nor an echo:
 * two aggregators cannot keep one another busy. Who says goodbye may go.
 */
#include "plane/core/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

bool cookie_make(struct aggregator *aggregator, uint16_t job, uint64_t *out)
{
	if (getrandom(out, sizeof(*out), 0) != sizeof(*out))
		return false;
	pthread_mutex_lock(&aggregator->secret_lock);
	if (aggregator->has_secret)
		*out = secret_ticket(&aggregator->secret, job, (uint32_t)*out);
	pthread_mutex_unlock(&aggregator->secret_lock);
	return true;
}

static bool was_made(struct aggregator *aggregator, uint16_t job, uint64_t cookie)
{
	bool made;

	pthread_mutex_lock(&aggregator->secret_lock);
	made = !aggregator->has_secret || secret_made(&aggregator->secret, job, cookie);
	pthread_mutex_unlock(&aggregator->secret_lock);
	return made;
}

static bool is_answered(struct thread *thread, const struct wire_control *header)
{
	struct aggregator *aggregator = thread->aggregator;

	/* A connection that shows an unknown cookie is closed, which says it all. */
	if (aggregator->carrier->reliable || !thread->strays_left ||
	    !was_made(aggregator, header->job, header->cookie))
		return false;
	thread->strays_left--;
	return true;
}

void stray_echo(struct thread *thread, const struct wire_control *header,
                const struct udp_address *from)
{
	struct wire_control echo = *header;

	if (header->flags & WIRE_ECHO || !is_answered(thread, header))
		return;
	echo.flags = WIRE_ECHO;
	thread_send(thread, &echo, sizeof(echo), from);
}

void stray_answer(struct thread *thread, const struct wire_control *header,
                  const struct udp_address *from)
{
	struct aggregator *aggregator = thread->aggregator;
	struct {
		struct wire_control header;
		struct wire_abort abort;
	} packet = { .header = { .magic = WIRE_MAGIC,
		                 .type = WIRE_ABORT,
		                 .cookie = header->cookie,
		                 .job = header->job,
		                 .comm = header->comm,
		                 .epoch = header->epoch,
		                 .child = header->child,
		                 .pos = wire_pos(wire_lane(header), 0) },
		     .abort = { .status = TRIB_ERR_AGGREGATOR, .rank = header->child } };
	char host[WIRE_NAME_MAX] = "", address[64];

	if (!is_answered(thread, header))
		return;
	gethostname(host, sizeof(host) - 1);
	snprintf(packet.abort.text, sizeof(packet.abort.text),
	         "the aggregator at %s (host %s, pid %d) does not know communicator %u of job %u: "
	         "it "
	         "has been started again, or that one is over",
	         udp_text(&aggregator->options.listen, address, sizeof(address)), host,
	         (int)getpid(), header->comm, header->job);
	thread_send(thread, &packet, sizeof(packet), from);
}
