/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse status: asks parameter servers how they are. */
#include "cli/sparse/sparse_command.h"

#include "base/clock.h"
#include "base/settings.h"
#include "path/tcp.h"
#include "sparse/server/sparse_server.h"
#include "sparse/wire/sparse_message.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 5000
#define CHUNK (64u << 10)
#define SERVERS_MAX 64u

static bool as_json;

static const struct option_row rows[] = {
	{ "json", 'j', OPTION_JSON, &as_json, "FILE", "print JSON, one line for each server",
	  NULL },
	{ 0 },
};

static const struct options options = {
	"trib sparse status [OPTION]... [HOST:PORT]...",
	"Shows rows, clients, log and hot rows of parameter servers. Without an address it asks\n"
	"those of TRIB_SPARSE_SERVERS.",
	"trib sparse status 10.0.0.9:7800",
	rows,
};

/* Reads until the message of the server is complete. */
static trib_status answer_read(int fd, struct byte_buffer *in, struct message *message)
{
	uint64_t until = clock_now() + WAIT_MS * (NSEC_PER_SEC / 1000);
	struct message_header header;
	trib_status status;

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (buffer_bytes(in) >= MESSAGE_HEADER) {
			status = message_header_read(buffer_front(in), &header);
			if (status != TRIB_OK)
				return status;
			if (buffer_bytes(in) >= MESSAGE_HEADER + header.bytes)
				return message_parse(&header, buffer_front(in) + MESSAGE_HEADER,
				                     message);
		}
		if (clock_now() > until || poll(&wait, 1, WAIT_MS) <= 0)
			return status_fail(TRIB_ERR_TIMEOUT, "no answer within 5 s");
		if (!buffer_reserve(in, CHUNK))
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory");
		n = recv(fd, in->data + in->used, CHUNK, 0);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return status_fail_errno("no answer");
		if (!n)
			return status_fail(TRIB_ERR_REFUSED, "the connection was closed");
		in->used += (size_t)n;
	}
}

static trib_status status_ask(int fd, struct byte_buffer *in, struct message *message)
{
	const struct message_header about = { .kind = MESSAGE_STATUS,
		                              .flags = as_json ? 0 : MESSAGE_PLAIN };
	struct byte_buffer out = { 0 };
	trib_status status = TRIB_OK;

	if (!message_add(&out, &about))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory");
	if (send(fd, buffer_front(&out), buffer_bytes(&out), MSG_NOSIGNAL) !=
	    (ssize_t)buffer_bytes(&out))
		status = status_fail_errno("cannot ask");
	buffer_free(&out);
	if (status == TRIB_OK)
		status = answer_read(fd, in, message);
	if (status == TRIB_OK && message->kind != MESSAGE_STATUS)
		status = status_fail(TRIB_ERR_REFUSED, "the answer is a %s message",
		                     message_name(message->kind));
	return status;
}

/* A server is not trusted with the terminal. */
static void text_print(const char *text, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		putchar(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~') ? text[i] : '?');
}

static trib_status server_print(const char *where)
{
	struct byte_buffer in = { 0 };
	struct udp_address address;
	struct message message = { 0 };
	trib_status status = udp_resolve(where, SPARSE_SERVER_PORT, &address);
	int fd;

	if (status != TRIB_OK)
		return status;
	fd = tcp_connect(&address, WAIT_MS);
	if (fd < 0)
		return status_fail(TRIB_ERR_SYSTEM, "cannot connect: %s", strerror(-fd));
	status = status_ask(fd, &in, &message);
	if (status == TRIB_OK) {
		text_print(message.text, message.count);
		printf("\n");
	}
	close(fd);
	buffer_free(&in);
	return status;
}

static int servers_print(const char *list)
{
	int code = 0;

	while (list && *list) {
		char where[256];
		size_t n = strcspn(list, ",");

		snprintf(where, sizeof(where), "%.*s", (int)n, list);
		if (server_print(where) != TRIB_OK) {
			fprintf(stderr, "trib sparse status: %s: %s\n", where, trib_last_error());
			code = 1;
		}
		list += n + (list[n] == ',');
	}
	return code;
}

int sparse_status_command(int argc, char **argv)
{
	const char *servers[SERVERS_MAX], *list = setting_text(SETTING_SPARSE_SERVERS, NULL);
	int code = 0, n = options_parse_mixed(&options, argc, argv, servers, SERVERS_MAX, &code);

	if (n < 0)
		return code;
	if (!n && !list)
		return options_fail(&options,
		                    "say which server: HOST:PORT, or set TRIB_SPARSE_SERVERS");
	if (!n)
		return servers_print(list);
	for (int i = 0; i < n; i++)
		code |= servers_print(servers[i]);
	return code;
}
