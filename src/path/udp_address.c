/* SPDX-License-Identifier: Apache-2.0 */
#include "path/udp.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

trib_status udp_resolve(const char *text, uint16_t default_port, struct udp_address *out)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM }, *found;
	char host[256], port[8];
	const char *colon = strrchr(text, ':');
	const char *end = colon ? colon : text + strlen(text);
	int error;

	if (colon && strchr(text, ':') != colon && text[0] != '[')
		end = text + strlen(text), colon = NULL; /* a bare IPv6 address */
	if (text[0] == '[' && end > text && end[-1] == ']')
		snprintf(host, sizeof(host), "%.*s", (int)(end - text - 2), text + 1);
	else
		snprintf(host, sizeof(host), "%.*s", (int)(end - text), text);
	if (colon)
		snprintf(port, sizeof(port), "%s", colon + 1);
	else
		snprintf(port, sizeof(port), "%u", default_port);
	if (!host[0]) {
		hints.ai_flags = AI_PASSIVE;
		hints.ai_family = AF_INET;
	}
	/* getaddrinfo would wrap a port above 65535. */
	if (!port[strspn(port, "0123456789")] && strtoul(port, NULL, 10) > UINT16_MAX)
		return status_fail(TRIB_ERR_CONFIG, "\"%s\": ports go up to %u", text, UINT16_MAX);
	error = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);
	if (error)
		return status_fail(TRIB_ERR_CONFIG, "cannot resolve \"%s\" as host:port: %s", text,
		                   gai_strerror(error));
	memset(out, 0, sizeof(*out));
	memcpy(&out->storage, found->ai_addr, found->ai_addrlen);
	out->length = found->ai_addrlen;
	freeaddrinfo(found);
	return TRIB_OK;
}

void udp_set_port(struct udp_address *address, uint16_t port)
{
	if (address->storage.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&address->storage)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&address->storage)->sin_port = htons(port);
}

uint16_t udp_port(const struct udp_address *address)
{
	if (address->storage.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
}

const void *udp_raw(const struct udp_address *address, size_t *size)
{
	if (address->storage.ss_family == AF_INET6) {
		*size = 16;
		return &((const struct sockaddr_in6 *)&address->storage)->sin6_addr;
	}
	*size = 4;
	return &((const struct sockaddr_in *)&address->storage)->sin_addr;
}

void udp_from_raw(const void *raw, size_t size, uint16_t port, struct udp_address *out)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&out->storage;
	struct sockaddr_in *four = (struct sockaddr_in *)&out->storage;

	memset(out, 0, sizeof(*out));
	if (size == 16) {
		six->sin6_family = AF_INET6;
		memcpy(&six->sin6_addr, raw, 16);
		out->length = sizeof(*six);
	} else {
		four->sin_family = AF_INET;
		memcpy(&four->sin_addr, raw, 4);
		out->length = sizeof(*four);
	}
	udp_set_port(out, port);
}

static bool same_host(const struct udp_address *a, const struct udp_address *b)
{
	size_t size;
	const void *one = udp_raw(a, &size), *two = udp_raw(b, &size);

	return a->storage.ss_family == b->storage.ss_family && memcmp(one, two, size) == 0;
}

bool udp_is_loopback(const struct udp_address *address)
{
	if (address->storage.ss_family == AF_INET) {
		const struct sockaddr_in *four = (const void *)&address->storage;

		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	}
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address->storage)->sin6_addr);
}

bool udp_same_host(const struct udp_address *a, const struct udp_address *b)
{
	size_t one, two;
	const void *raw = udp_raw(a, &one), *other = udp_raw(b, &two);

	return one == two && memcmp(raw, other, one) == 0;
}

bool udp_same(const struct udp_address *a, const struct udp_address *b)
{
	return same_host(a, b) && udp_port(a) == udp_port(b);
}

const char *udp_text(const struct udp_address *address, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "?";
	bool six = address->storage.ss_family == AF_INET6;
	size_t bytes;

	inet_ntop(address->storage.ss_family, udp_raw(address, &bytes), text, sizeof(text));
	snprintf(out, size, six ? "[%s]:%u" : "%s:%u", text, udp_port(address));
	return out;
}

unsigned udp_overhead(const struct udp_address *address)
{
	return address->storage.ss_family == AF_INET6 ? 48 : 28;
}

trib_status udp_local(const struct udp_address *peer, struct udp_address *local)
{
	int fd = socket(peer->storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	trib_status status = TRIB_OK;
	char text[64];

	local->length = sizeof(local->storage);
	if (fd < 0 || connect(fd, (const void *)&peer->storage, peer->length) ||
	    getsockname(fd, (void *)&local->storage, &local->length))
		status = status_fail_errno("no route to %s", udp_text(peer, text, sizeof(text)));
	if (fd >= 0)
		close(fd);
	return status;
}

trib_status udp_route(const struct udp_address *peer, struct udp_address *local, char *interface,
                      size_t size)
{
	trib_status status = udp_local(peer, local);
	struct ifaddrs *all = NULL;

	snprintf(interface, size, "?");
	if (status != TRIB_OK)
		return status;
	if (getifaddrs(&all))
		return TRIB_OK;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct udp_address one = { .length = local->length };

		if (!i->ifa_addr || i->ifa_addr->sa_family != local->storage.ss_family)
			continue;
		memcpy(&one.storage, i->ifa_addr, local->length);
		if (same_host(&one, local)) {
			snprintf(interface, size, "%s", i->ifa_name);
			break;
		}
	}
	freeifaddrs(all);
	return TRIB_OK;
}

bool udp_is_any(const struct udp_address *address)
{
	if (address->storage.ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(
			&((const struct sockaddr_in6 *)&address->storage)->sin6_addr);
	return !((const struct sockaddr_in *)&address->storage)->sin_addr.s_addr;
}
