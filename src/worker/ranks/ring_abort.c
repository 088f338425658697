/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/ring_abort.h"

#include <stdio.h>
#include <string.h>

bool ring_abort_write(struct trib_comm *comm, struct ring_abort *abort)
{
	*abort = (struct ring_abort){
		.head = { .version = RING_VERSION, .phase = RING_ABORT, .hops = 1 },
		.rank = UINT32_MAX
	};
	pthread_mutex_lock(&comm->lock);
	abort->status = comm->failed;
	snprintf(abort->text, sizeof(abort->text), "%s", comm->failure);
	pthread_mutex_unlock(&comm->lock);
	return abort->status != TRIB_OK;
}

void ring_abort_take(struct trib_comm *comm, const struct message *message)
{
	struct ring_abort abort;
	char text[sizeof(abort.text) + 1];

	if (message->bytes != sizeof(abort))
		return;
	memcpy(&abort, message->data, sizeof(abort));
	if (abort.head.version != RING_VERSION || abort.head.phase != RING_ABORT)
		return;
	snprintf(text, sizeof(text), "%.*s", (int)sizeof(abort.text), abort.text);
	comm_fail_told(comm, abort.status < 0 ? (trib_status)abort.status : TRIB_ERR_PEER,
	               abort.rank, text);
}
