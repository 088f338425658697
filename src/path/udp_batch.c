/* SPDX-License-Identifier: Apache-2.0 */
#include "path/udp.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONTROL_BYTES (CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct timespec)))
#define TX_CONTROL_BYTES (CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(uint64_t)))
#define SEND_AT_ONCE 64u
#define SEND_VECTORS (4 * UDP_GSO_SEGMENTS) /* pieces of memory in the messages sent at once */
/* Buffers start at different offsets of a page, so that they do not evict each other from the
 * cache. */
#define RX_STEP (UDP_MESSAGE_MAX + 1536u)
#define SINGLE_MAX 9216u /* bytes of the longest single packet */

struct udp_rx {
	unsigned n, few;
	unsigned ask; /* messages to ask for in the next call */
	bool was_full;
	bool senders;
	struct udp_message *messages;
	struct mmsghdr *headers;
	struct iovec *vectors;
	uint8_t *control;
	uint8_t *buffer;
};

/* Resets the lengths that the kernel overwrote. */
static void header_ready(const struct udp_rx *rx, struct msghdr *header)
{
	header->msg_namelen = rx->senders ? sizeof(rx->messages[0].from.storage) : 0;
	header->msg_controllen = CONTROL_BYTES;
}

struct udp_rx *udp_rx_new(unsigned few, bool senders)
{
	unsigned messages = few > UDP_RX_MANY ? few : UDP_RX_MANY;
	struct udp_rx *rx = calloc(1, sizeof(*rx));

	if (!rx)
		return NULL;
	rx->n = messages;
	rx->few = rx->ask = few;
	rx->senders = senders;
	rx->messages = calloc(messages, sizeof(*rx->messages));
	rx->headers = calloc(messages, sizeof(*rx->headers));
	rx->vectors = calloc(messages, sizeof(*rx->vectors));
	rx->control = calloc(messages, CONTROL_BYTES);
	rx->buffer = aligned_alloc(64, (size_t)messages * RX_STEP);
	if (!rx->messages || !rx->headers || !rx->vectors || !rx->control || !rx->buffer) {
		udp_rx_free(rx);
		return NULL;
	}
	for (unsigned i = 0; i < messages; i++) {
		struct msghdr *header = &rx->headers[i].msg_hdr;

		rx->messages[i].data = rx->buffer + (size_t)i * RX_STEP;
		rx->vectors[i] = (struct iovec){ rx->messages[i].data, UDP_MESSAGE_MAX };
		header->msg_iov = &rx->vectors[i];
		header->msg_iovlen = 1;
		header->msg_name = senders ? &rx->messages[i].from.storage : NULL;
		header->msg_control = rx->control + i * CONTROL_BYTES;
		header_ready(rx, header);
	}
	return rx;
}

void udp_rx_free(struct udp_rx *rx)
{
	if (!rx)
		return;
	free(rx->messages);
	free(rx->headers);
	free(rx->vectors);
	free(rx->control);
	free(rx->buffer);
	free(rx);
}

/* What the kernel says beside the bytes: the length of joined packets, and the time. */
static void take_control(struct msghdr *header, struct udp_message *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			int segment;

			memcpy(&segment, CMSG_DATA(c), sizeof(segment));
			if (segment > 0)
				message->segment = (uint32_t)segment;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec at;

			memcpy(&at, CMSG_DATA(c), sizeof(at));
			message->stamp = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
		}
	}
}

static void take_header(struct udp_rx *rx, int i, uint32_t bytes)
{
	struct udp_message *message = &rx->messages[i];
	struct msghdr *header = &rx->headers[i].msg_hdr;

	message->bytes = bytes;
	message->segment = bytes;
	message->stamp = 0;
	take_control(header, message);
	message->from.length = header->msg_namelen;
	header_ready(rx, header);
}

int udp_receive(struct udp_rx *rx, int fd)
{
	bool singly = true;
	int n;

	do
		n = recvmmsg(fd, rx->headers, rx->ask, MSG_DONTWAIT, NULL);
	while (n < 0 && errno == EINTR);
	rx->was_full = n == (int)rx->ask;
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		take_header(rx, i, rx->headers[i].msg_len);
		singly &= rx->messages[i].bytes <= SINGLE_MAX;
	}
	rx->ask = singly ? rx->n : rx->few;
	return n;
}

int udp_receive_one(struct udp_rx *rx, int fd)
{
	ssize_t bytes = recvmsg(fd, &rx->headers[0].msg_hdr, MSG_DONTWAIT);

	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	take_header(rx, 0, (uint32_t)bytes);
	return 1;
}

int udp_receive_single(struct udp_rx *rx, int fd)
{
	struct udp_message *message = &rx->messages[0];
	ssize_t bytes = recv(fd, message->data, UDP_MESSAGE_MAX, MSG_DONTWAIT);

	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	message->bytes = message->segment = (uint32_t)bytes;
	message->stamp = 0;
	message->from.length = 0;
	return 1;
}

bool udp_rx_was_full(const struct udp_rx *rx)
{
	return rx->was_full;
}

const struct udp_message *udp_message(const struct udp_rx *rx, int index)
{
	return &rx->messages[index];
}

struct tx_entry {
	const uint8_t *data;
	uint32_t bytes, segment;
	uint32_t apart; /* bytes from the start of a packet to the next one's */
	uint32_t split; /* packets that have only `head` bytes here; the rest is in `bodies` */
	uint32_t head;
	const uint8_t *bodies;
	uint64_t time; /* departure time; 0: at once */
	struct udp_address to;
};

struct udp_tx {
	bool gso;
	unsigned room, first, n; /* entries[first..n) are queued */
	uint64_t time;           /* departure time of the entries added next */
	struct tx_entry *entries;
};

struct udp_tx *udp_tx_new(unsigned messages, bool gso)
{
	struct udp_tx *tx = calloc(1, sizeof(*tx));

	if (!tx)
		return NULL;
	tx->gso = gso;
	tx->room = messages;
	tx->entries = calloc(messages, sizeof(*tx->entries));
	if (!tx->entries) {
		free(tx);
		return NULL;
	}
	return tx;
}

void udp_tx_free(struct udp_tx *tx)
{
	if (!tx)
		return;
	free(tx->entries);
	free(tx);
}

unsigned udp_tx_room(const struct udp_tx *tx)
{
	return tx->room - tx->n;
}

bool udp_tx_is_empty(const struct udp_tx *tx)
{
	return tx->first == tx->n;
}

void udp_tx_clear(struct udp_tx *tx)
{
	tx->first = tx->n = 0;
}

bool udp_tx_joins(const struct udp_tx *tx)
{
	return tx->gso;
}

void udp_tx_at(struct udp_tx *tx, uint64_t time)
{
	tx->time = time;
}

void udp_tx_add_apart(struct udp_tx *tx, const void *data, uint32_t bytes, uint32_t segment,
                      uint32_t apart, const struct udp_address *to)
{
	struct tx_entry *entry = &tx->entries[tx->n++];

	entry->data = data;
	entry->bytes = bytes;
	entry->segment = segment;
	entry->apart = apart;
	entry->split = 0;
	entry->time = tx->time;
	entry->to.length = 0;
	if (to)
		entry->to = *to;
}

void udp_tx_add(struct udp_tx *tx, const void *data, uint32_t bytes, uint32_t segment,
                const struct udp_address *to)
{
	udp_tx_add_apart(tx, data, bytes, segment, segment, to);
}

void udp_tx_add_split(struct udp_tx *tx, uint8_t *data, uint32_t bytes, uint32_t segment,
                      const uint8_t *bodies, unsigned n, uint32_t head)
{
	struct tx_entry *entry = &tx->entries[tx->n];

	udp_tx_add(tx, data, bytes, segment, NULL);
	entry->bodies = bodies;
	entry->split = n;
	entry->head = head;
}

/* The messages of one sendmmsg: whole entries with GSO, single packets without. */
struct tx_batch {
	struct mmsghdr headers[SEND_AT_ONCE];
	struct iovec vectors[SEND_VECTORS];
	_Alignas(8) uint8_t control[SEND_AT_ONCE][TX_CONTROL_BYTES];
	uint32_t bytes[SEND_AT_ONCE];
	unsigned n, n_vectors;
};

/* Adds one control message; msg_control of `header` has room for it. */
static void header_add(struct msghdr *header, int level, int type, const void *data, size_t bytes)
{
	struct cmsghdr *c = (void *)((uint8_t *)header->msg_control + header->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(c), data, bytes);
	header->msg_controllen += CMSG_SPACE(bytes);
}

static struct iovec piece(const uint8_t *data, uint32_t bytes)
{
	return (struct iovec){ (void *)(uintptr_t)data, bytes };
}

/* Writes the pieces of memory that `bytes` of the entry from packet `k` on are. Packets that lie
 * side by side are one. Returns how many; 0: more than `room`. */
static unsigned entry_pieces(const struct tx_entry *entry, unsigned k, uint32_t bytes,
                             struct iovec *vectors, unsigned room)
{
	const uint32_t body = entry->segment - entry->head;
	unsigned n = 0;

	for (uint32_t here; bytes; bytes -= here, k++) {
		const uint8_t *data = entry->data + (size_t)k * entry->apart;

		here = bytes < entry->segment ? bytes : entry->segment;
		if (n + 2 > room)
			return 0;
		if (k < entry->split) {
			vectors[n++] = piece(data, entry->head);
			vectors[n++] = piece(entry->bodies + (size_t)k * body, here - entry->head);
			continue;
		}
		if (entry->apart == entry->segment)
			here = bytes;
		vectors[n++] = piece(data, here);
	}
	return n;
}

/* `bytes` of the entry from packet `k` on. False: there is no room left for it. */
static bool batch_add(struct tx_batch *batch, struct tx_entry *entry, unsigned k, uint32_t bytes)
{
	const unsigned i = batch->n;
	struct msghdr *header;
	struct iovec *vectors = batch->vectors + batch->n_vectors;
	unsigned pieces;

	if (i >= SEND_AT_ONCE)
		return false;
	pieces = entry_pieces(entry, k, bytes, vectors, SEND_VECTORS - batch->n_vectors);
	if (!pieces)
		return false;
	header = &batch->headers[i].msg_hdr;
	batch->n++;
	batch->n_vectors += pieces;
	batch->bytes[i] = bytes;
	*header = (struct msghdr){ .msg_iov = vectors, .msg_iovlen = pieces };
	if (entry->to.length) {
		header->msg_name = &entry->to.storage;
		header->msg_namelen = entry->to.length;
	}
	if (bytes > entry->segment || entry->time)
		header->msg_control = batch->control[i];
	if (bytes > entry->segment) {
		uint16_t segment = (uint16_t)entry->segment;

		header_add(header, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	}
	if (entry->time)
		header_add(header, SOL_SOCKET, SCM_TXTIME, &entry->time, sizeof(entry->time));
	return true;
}

static void batch_fill(struct tx_batch *batch, struct udp_tx *tx)
{
	batch->n = batch->n_vectors = 0;
	for (unsigned e = tx->first; e < tx->n; e++) {
		struct tx_entry *entry = &tx->entries[e];
		uint32_t most = tx->gso ? entry->bytes : entry->segment;
		unsigned k = 0;

		for (uint32_t left = entry->bytes, now; left; left -= now) {
			now = left < most ? left : most;
			if (!batch_add(batch, entry, k++, now))
				return;
		}
	}
}

/* Removes the batch's first `sent` messages from the queue. */
static void tx_consume(struct udp_tx *tx, const struct tx_batch *batch, unsigned sent)
{
	for (unsigned i = 0; i < sent; i++) {
		struct tx_entry *entry = &tx->entries[tx->first];
		uint32_t packets = batch->bytes[i] / entry->segment;

		entry->data += (size_t)packets * entry->apart;
		if (entry->split) {
			entry->bodies += (size_t)packets * (entry->segment - entry->head);
			entry->split -= packets < entry->split ? packets : entry->split;
		}
		entry->bytes -= batch->bytes[i];
		if (!entry->bytes)
			tx->first++;
	}
	if (tx->first == tx->n)
		tx->first = tx->n = 0;
}

/* What is queued does not need its bodies any more. */
static void tx_settle(struct udp_tx *tx)
{
	for (unsigned e = tx->first; e < tx->n; e++) {
		struct tx_entry *entry = &tx->entries[e];
		const uint32_t body = entry->segment - entry->head;

		for (unsigned k = 0; k < entry->split; k++) {
			uint32_t left = entry->bytes - k * entry->segment - entry->head;

			memcpy((uint8_t *)(uintptr_t)entry->data + (size_t)k * entry->apart +
			               entry->head,
			       entry->bodies + (size_t)k * body, left < body ? left : body);
		}
		entry->split = 0;
	}
}

int udp_send(struct udp_tx *tx, int fd)
{
	struct tx_batch batch;

	while (tx->first < tx->n) {
		int sent;

		batch_fill(&batch, tx);
		do
			sent = sendmmsg(fd, batch.headers, batch.n, MSG_DONTWAIT);
		while (sent < 0 && errno == EINTR);
		if (sent > 0) {
			tx_consume(tx, &batch, (unsigned)sent);
			continue;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
			tx_settle(tx);
			return -EAGAIN;
		}
		/* The device or the path does not support GSO: send packet by packet from now on.
		 */
		if ((errno == EIO || errno == EINVAL) && tx->gso) {
			tx->gso = false;
			continue;
		}
		int error = errno;
		tx_consume(tx, &batch, 1);
		tx_settle(tx);
		return -error;
	}
	return 0;
}
