/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/unknown_comm.h"

#include "plane/core/aggregator_state.h"
#include "plane/core/cookies.h"

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
	char host[WIRE_NAME_MAX] = "", address[64];

	if (!is_answered(thread, header))
		return;
	gethostname(host, sizeof(host) - 1);
	snprintf(packet.abort.text, sizeof(packet.abort.text),
	         "the aggregator at %s (host %s, pid %d) does not know communicator %u of job %u: "
	         "the aggregator was restarted, or the communicator has ended",
	         udp_text(&aggregator->options.listen, address, sizeof(address)), host,
	         (int)getpid(), header->comm, header->job);
	thread_send(thread, &packet, sizeof(packet), from);
}
