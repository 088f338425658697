/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a controller hears: bodies of its HTTP interface, and packets of workers and aggregators at
 * its port, from senders that know a job's cookie and from those that do not. Every request gets a
 * reply, and every refusal has a sentence. The first byte chooses the route, or the port.
 */
#include "base/log.h"
#include "base/secret.h"
#include "control/api/routes.h"
#include "control/server/controller.h"
#include "control/state/controller_state.h"
#include "fuzz.h"
#include "wire/parse.h"

#include <ftw.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/fuzz-controller-XXXXXX";
static struct controller *controller;
static int sender = -1;

static int drop_file(const char *path, const struct stat *about, int kind, struct FTW *place)
{
	(void)about;
	(void)kind;
	(void)place;
	return remove(path);
}

static void end(void)
{
	close(sender);
	controller_stop(controller);
	nftw(folder, drop_file, 8, FTW_DEPTH | FTW_PHYS);
}

static void begin(void)
{
	struct controller_options options = { .state = folder, .exit_below = -1 };
	struct udp_options socket_options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	struct udp_address at;
	bool gso;

	log_set_level(LOG_ERROR);
	setenv("TRIB_TOKEN", "a-token-for-fuzzing", 1);
	demand(mkdtemp(folder));
	demand(udp_resolve("127.0.0.1:0", 0, &options.listen) == TRIB_OK);
	demand(controller_start(&options, &controller) == TRIB_OK);
	demand(udp_resolve(controller_address(controller), 0, &at) == TRIB_OK);
	demand(udp_open(NULL, &at, &socket_options, &sender, &gso) == TRIB_OK);
	atexit(end);
}

static void try_route(const struct http_route *route, const uint8_t *data, size_t size)
{
	const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
	size_t part = line ? (size_t)(line - data) : 0;
	char name[64];
	json_t *json = json_loadb((const char *)data + part, size - part, 0, NULL);
	struct http_request request = { .path = route->path, .json = json };
	struct http_reply reply = { 0 };

	snprintf(name, sizeof(name), "%.*s", (int)part, (const char *)data);
	if (strchr(route->path, '*'))
		request.part = name;
	route->handle(controller, &request, &reply);
	if (reply.status && reply.status >= 400)
		demand(json_is_string(json_object_get(reply.json, "error")));
	json_decref(reply.json);
	free(reply.text);
	json_decref(json);
}

/* The packet is made sound, and may show the cookie of its job. */
static void try_packet(uint8_t form, const uint8_t *data, size_t size)
{
	static union {
		struct wire_control control;
		uint8_t bytes[WIRE_PACKET_MAX];
	} packet;
	size_t bytes = (size < WIRE_CONTROL ? WIRE_CONTROL : size) & ~7ul;

	if (bytes > sizeof(packet))
		bytes = sizeof(packet);
	memset(&packet, 0, sizeof(packet));
	memcpy(&packet, data, size < bytes ? size : bytes);
	packet.control.job &= 3;
	if (form & 1)
		packet.control.cookie = secret_cookie(&controller->secret, packet.control.job);
	wire_seal(&packet, bytes);
	demand(send(sender, &packet, bytes, 0) == (ssize_t)bytes || wire_parse(&packet, bytes));
	while (recv(sender, &packet, sizeof(packet), MSG_DONTWAIT) >= 0)
		demand(packet.control.magic == WIRE_MAGIC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned routes = 0;

	if (!controller)
		begin();
	while (api_routes[routes].path)
		routes++;
	if (size && data[0] % 16 < routes)
		try_route(&api_routes[data[0] % 16], data + 1, size - 1);
	else if (size)
		try_packet(data[0] >> 4, data + 1, size - 1);
	return 0;
}
