/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/common/datagrams.h"

#include "base/log.h"
#include "wire/parse.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RX_MESSAGES 16u
#define TX_MESSAGES 512u

trib_status datagrams_open(struct thread *thread, const struct udp_address *listen)
{
	struct aggregator *aggregator = thread->aggregator;
	bool gso;
	trib_status status = udp_open(listen, NULL, &aggregator->options.socket, &thread->fd, &gso);

	if (status != TRIB_OK)
		return status;
	if (thread->index == 0) {
		struct udp_address bound = { .length = sizeof(bound.storage) };

		if (getsockname(thread->fd, (void *)&bound.storage, &bound.length))
			return status_fail_errno("cannot read back the port");
		aggregator->port = udp_port(&bound);
	}
	thread->rx = udp_rx_new(RX_MESSAGES, true);
	thread->tx = udp_tx_new(TX_MESSAGES, gso);
	thread->group_rx = udp_rx_new(RX_MESSAGES, true);
	if (!thread->rx || !thread->tx || !thread->group_rx)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
	return TRIB_OK;
}

void datagrams_close(struct thread *thread)
{
	if (thread->fd >= 0)
		close(thread->fd);
	udp_rx_free(thread->rx);
	udp_rx_free(thread->group_rx);
	udp_tx_free(thread->tx);
}

void datagrams_answer(struct thread *thread, void *packet, uint32_t bytes,
                      const struct udp_address *to)
{
	wire_seal(packet, bytes);
	if (sendto(thread->fd, packet, bytes, 0, (const void *)&to->storage, to->length) < 0)
		log_debug("cannot answer with %u bytes: %s", bytes, strerror(errno));
}
