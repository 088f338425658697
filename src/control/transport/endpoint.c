/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/endpoint.h"

#include "control/control.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static trib_status fail(const char *text, const char *why)
{
	return status_fail(TRIB_ERR_CONFIG,
	                   "\"%s\" is not the address of a controller: %s; expected HOST:PORT, or "
	                   "HOST:PORT#sha256//PIN as tribd --controller prints it",
	                   text, why);
}

/* Judged by the text alone: a name server could lie. */
static bool host_is_loopback(const char *host)
{
	struct in_addr four;

	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return !strcmp(host, "::1") || !strcmp(host, "localhost");
}

static bool host_is_good(const char *host)
{
	for (const char *p = host; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(".-_:%", *p))
			return false;
	return *host != '\0';
}

static trib_status take_pin(struct endpoint *endpoint, const char *text, const char *pin)
{
	size_t length = strlen(pin);

	if (strncmp(pin, "sha256//", 8) || length != 52 || pin[51] != '=')
		return fail(text, "behind # stands no pin");
	for (const char *p = pin + 8; p < pin + 51; p++)
		if (!isalnum((unsigned char)*p) && *p != '+' && *p != '/')
			return fail(text, "behind # stands no pin");
	snprintf(endpoint->pin, sizeof(endpoint->pin), "%s", pin);
	return TRIB_OK;
}

static trib_status take_place(struct endpoint *endpoint, const char *text, char *place)
{
	char *port = strrchr(place, ':'), *host = place, *end;
	unsigned long number = CONTROL_PORT;

	if (*place == '[') {
		char *close = strchr(place, ']');

		if (!close || (close[1] && close[1] != ':'))
			return fail(text, "a bracket is not closed");
		*close = '\0';
		host = place + 1;
		port = close[1] ? close + 1 : NULL;
	} else if (port && strchr(place, ':') != port) {
		port = NULL; /* a bare IPv6 address */
	}
	if (port) {
		*port++ = '\0';
		number = strtoul(port, &end, 10);
		if (!isdigit((unsigned char)*port) || *end || number < 1 || number > 65535)
			return fail(text, "the port is not one");
	}
	if (!host_is_good(host))
		return fail(text, "the host is not one");
	snprintf(endpoint->host, sizeof(endpoint->host), "%s", host);
	endpoint->port = (uint16_t)number;
	return TRIB_OK;
}

trib_status endpoint_parse(struct endpoint *endpoint, const char *text)
{
	const char *rest = text, *hash;
	char place[256];
	bool http = false, https = false;
	trib_status status;

	memset(endpoint, 0, sizeof(*endpoint));
	if (!strncmp(text, "http://", 7))
		http = true, rest += 7;
	else if (!strncmp(text, "https://", 8))
		https = true, rest += 8;
	hash = strchr(rest, '#');
	if (hash && (status = take_pin(endpoint, text, hash + 1)) != TRIB_OK)
		return status;
	if (http && hash)
		return fail(text, "plain HTTP has no key to pin");
	if ((size_t)snprintf(place, sizeof(place), "%.*s",
	                     (int)(hash ? hash - rest : (long)strlen(rest)), rest) >= sizeof(place))
		return fail(text, "it is too long");
	status = take_place(endpoint, text, place);
	endpoint->tls = https || hash || (!http && !host_is_loopback(endpoint->host));
	return status;
}

void endpoint_url(const struct endpoint *endpoint, char *out, size_t size)
{
	bool six = strchr(endpoint->host, ':') != NULL;

	snprintf(out, size, "%s://%s%s%s:%u", endpoint->tls ? "https" : "http", six ? "[" : "",
	         endpoint->host, six ? "]" : "", endpoint->port);
}

void endpoint_print(const struct endpoint *endpoint, char *out, size_t size)
{
	bool six = strchr(endpoint->host, ':') != NULL;
	/* The scheme is printed only if a reader would assume the other one. */
	const char *scheme = "";

	if (!endpoint->pin[0] && endpoint->tls == host_is_loopback(endpoint->host))
		scheme = endpoint->tls ? "https://" : "http://";
	snprintf(out, size, "%s%s%s%s:%u%s%s", scheme, six ? "[" : "", endpoint->host,
	         six ? "]" : "", endpoint->port, endpoint->pin[0] ? "#" : "", endpoint->pin);
}
