/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "path/channel/io_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

trib_status channel_listen(const struct udp_address *at, struct channel_listener **out)
{
	struct udp_options options = { .receive_bytes = 1 << 18, .send_bytes = 1 << 16 };
	struct channel_listener *listener = calloc(1, sizeof(*listener));
	trib_status status;
	int shared = 1;
	bool gso;

	if (!listener)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to listen for peers");
	status = udp_open(at, NULL, &options, &listener->fd, &gso);
	if (status != TRIB_OK) {
		free(listener);
		return status;
	}
	listener->rx = udp_rx_new(4, true);
	listener->at.length = sizeof(listener->at.storage);
	/* From now on the sockets of paths may use the same port. */
	if (!listener->rx ||
	    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &shared, sizeof(shared)) ||
	    getsockname(listener->fd, (void *)&listener->at.storage, &listener->at.length)) {
		status = status_fail_errno("cannot listen for peers");
		channel_listener_free(listener);
		return status;
	}
	*out = listener;
	return TRIB_OK;
}

void channel_listener_free(struct channel_listener *listener)
{
	if (!listener)
		return;
	close(listener->fd);
	udp_rx_free(listener->rx);
	free(listener);
}

uint16_t channel_listener_port(const struct channel_listener *listener)
{
	return udp_port(&listener->at);
}

int channel_listener_fd(const struct channel_listener *listener)
{
	return listener->fd;
}

trib_status channel_accept(struct channel_listener *listener,
                           const struct channel_io_config *config, uint64_t now,
                           struct channel_io **out)
{
	trib_status status = channel_io_new(config, false, CHANNEL_UNIT_MAX, now, out);

	if (status != TRIB_OK)
		return status;
	(*out)->listener = listener;
	(*out)->next = listener->channels;
	listener->channels = *out;
	return TRIB_OK;
}

/* The answer tells a caller of another version which version this is. */
static void refuse_version(struct channel_listener *listener, const struct udp_address *from,
                           unsigned version)
{
	struct path_control answer = { .magic = PATH_MAGIC, .kind = PATH_WELCOME | PATH_ANSWERS };
	char text[64];

	if (!listener->warned)
		log_warn("%s speaks version %c of the path protocol, this process version %c",
		         udp_text(from, text, sizeof(text)), version, PATH_MAGIC >> 8);
	listener->warned = true;
	(void)!sendto(listener->fd, &answer, sizeof(answer), MSG_DONTWAIT,
	              (const void *)&from->storage, from->length);
}

static void set_addresses(struct channel_io *io, const struct udp_address *peer)
{
	struct udp_address own[PATH_ADDRESSES];
	struct path_address wire[PATH_ADDRESSES] = { 0 };
	unsigned n = carrier_takes_all(io->carrier) ? io->carrier->addresses(own, PATH_ADDRESSES)
	                                            : discovery_own(peer, own, PATH_ADDRESSES);

	for (unsigned i = 0; i < n; i++) {
		wire[i] = path_address_of(&own[i]);
		wire[i].port = channel_listener_port(io->listener);
	}
	channel_set_addresses(io->channel, wire, n);
}

/* The socket of a new path: from the address that was called to the caller. */
static bool open_socket(struct channel_io *io, unsigned path, const struct path_address *at,
                        const struct udp_address *from)
{
	struct udp_address own;

	if (at->size != 4 && at->size != 16)
		return false;
	udp_from_raw(at->raw, at->size, channel_listener_port(io->listener), &own);
	if (own.storage.ss_family != from->storage.ss_family)
		return false;
	if (path_socket_open(&io->sockets[path], &own, from, true)) {
		if (!(io->failed_paths & 1ull << path))
			log_notice("path %u to %s is not used: %s", path, io->name,
			           trib_last_error());
		io->failed_paths |= 1ull << path;
		return false;
	}
	if (io->n_sockets <= path)
		io->n_sockets = path + 1;
	return true;
}

static void take_hello(struct channel_listener *listener, const struct udp_message *message,
                       uint64_t now)
{
	const struct path_control *head;
	const struct path_hello *hello;
	struct channel_io *io = listener->channels;
	unsigned version;

	if (!channel_hello(message->data, message->bytes, &head, &hello, &version)) {
		if (version && version != PATH_MAGIC >> 8)
			refuse_version(listener, &message->from, version);
		return;
	}
	while (io && (io->key != hello->key || io->peer != hello->from || io->self != hello->to))
		io = io->next;
	if (!io || !channel_is_called_by(io->channel, head->id) ||
	    (io->sockets[head->path].fd < 0 &&
	     !open_socket(io, head->path, &hello->at, &message->from)))
		return;
	set_addresses(io, &message->from);
	channel_receive(io->channel, head->path, now, message->data, message->bytes);
}

void channel_listener_step(struct channel_listener *listener, uint64_t now)
{
	int n;

	do {
		n = udp_receive(listener->rx, listener->fd);
		for (int i = 0; i < n; i++)
			take_hello(listener, udp_message(listener->rx, i), now);
	} while (n > 0 && udp_rx_was_full(listener->rx));
}
