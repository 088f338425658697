/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/unknown_comm.h"

#include "plane/core/aggregator_state.h"
#include "base/log.h"
#include "plane/core/cookies.h"
#include "plane/membership/join_answer.h"

#include <stdio.h>
#include <unistd.h>

static bool is_answered(struct thread *thread, const struct wire_control *header)
{
	struct aggregator *aggregator = thread->aggregator;

	/* A connection that shows an unknown cookie is closed, which tells its sender. */
	if (aggregator->carrier->reliable || !thread->unknown_left ||
	    !cookie_was_made(aggregator, header->job, header->cookie))
		return false;
	thread->unknown_left--;
	return true;
}

/* Does the aggregator know what a cookie has to be? An agent may wait for its secret. */
static bool judges_cookies(struct aggregator *aggregator)
{
	bool judges;

	pthread_mutex_lock(&aggregator->secret_lock);
	judges = aggregator->has_secret || aggregator->options.cookie || aggregator->options.open;
	pthread_mutex_unlock(&aggregator->secret_lock);
	return judges;
}

void unknown_comm_cookie(struct thread *thread, const struct wire_control *header, uint32_t bytes,
                         const struct udp_address *from)
{
	char text[64], why[WIRE_TEXT_MAX];
	uint64_t count;

	thread->strangers.count++;
	count = tally_due(&thread->strangers, thread->now);
	if (count)
		log_warn("%llu packet%s with a wrong cookie refused, the last one from %s for job "
		         "%u",
		         (unsigned long long)count, count == 1 ? "" : "s",
		         udp_text(from, text, sizeof(text)), header->job);
	/* No stranger gets more than it has sent. */
	if (header->type != WIRE_JOIN || bytes < WIRE_CONTROL + sizeof(struct wire_welcome) ||
	    !thread->unknown_left || !judges_cookies(thread->aggregator))
		return;
	thread->unknown_left--;
	snprintf(why, sizeof(why),
	         "wrong cookie for job %u: TRIB_COOKIE has to be the one that this tribd has, or "
	         "the one that the controller gave to the job",
	         header->job);
	join_tell(thread->aggregator, header, 0, from, why);
}

void unknown_comm_echo(struct thread *thread, const struct wire_control *header,
                       const struct udp_address *from)
{
	struct wire_control echo = *header;

	if (header->flags & WIRE_ECHO || !is_answered(thread, header))
		return;
	echo.flags = WIRE_ECHO;
	thread_send(thread, &echo, sizeof(echo), from);
}

void unknown_comm_answer(struct thread *thread, const struct wire_control *header,
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
	char host[WIRE_NAME_MAX] = "", address[OWN_NAME_MAX];

	if (!is_answered(thread, header))
		return;
	gethostname(host, sizeof(host) - 1);
	snprintf(packet.abort.text, sizeof(packet.abort.text),
	         "the aggregator at %s (host %s, pid %d) does not know communicator %u of job %u: "
	         "the aggregator was restarted, or the communicator has ended",
	         own_name(aggregator, from, address), host, (int)getpid(), header->comm,
	         header->job);
	thread_send(thread, &packet, sizeof(packet), from);
}
