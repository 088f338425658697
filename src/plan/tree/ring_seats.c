/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/tree/ring_seats.h"

#include "base/status.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "ring(";

bool ring_seats_are(const char *plan)
{
	return !strncmp(plan, head, sizeof(head) - 1);
}

static int family_of(const struct ring_seat *seat)
{
	return seat->family == 4 ? AF_INET : AF_INET6;
}

size_t ring_seats_print(const struct ring_seat *seats, unsigned n, char *out, size_t size)
{
	size_t used = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct ring_seat *seat = &seats[i];
		bool six = seat->family != 4;
		char address[INET6_ADDRSTRLEN];

		inet_ntop(family_of(seat), seat->address, address, sizeof(address));
		used += (size_t)snprintf(used < size ? out + used : NULL,
		                         used < size ? size - used : 0, "%s%s%s%s:%u/%u%s%s",
		                         i ? "," : head, six ? "[" : "", address, six ? "]" : "",
		                         seat->port, seat->payload, seat->rdma ? "r" : "",
		                         i + 1 == n ? ")" : "");
	}
	return used;
}

/* A number up to `most`, and the character behind it. */
static bool take_number(const char **at, unsigned long most, char behind, unsigned long *out)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*out = strtoul(*at, &end, 10);
	if (*out > most || (behind && *end != behind))
		return false;
	*at = end + (behind != '\0');
	return true;
}

/* "10.0.0.1:40001/1448" */
static bool take_seat(const char **at, struct ring_seat *seat)
{
	bool six = **at == '[';
	size_t length = strcspn(*at + six, six ? "]" : ":");
	char address[INET6_ADDRSTRLEN];
	unsigned long port, payload;

	*seat = (struct ring_seat){ .family = six ? 6 : 4 };
	*at += six;
	if (length >= sizeof(address))
		return false;
	memcpy(address, *at, length);
	address[length] = '\0';
	*at += length;
	if (inet_pton(family_of(seat), address, seat->address) != 1)
		return false;
	if ((six && *(*at)++ != ']') || *(*at)++ != ':')
		return false;
	if (!take_number(at, UINT16_MAX, '/', &port) ||
	    !take_number(at, UINT16_MAX, '\0', &payload) || !port)
		return false;
	seat->port = (uint16_t)port;
	seat->payload = (uint32_t)payload;
	seat->rdma = **at == 'r';
	*at += seat->rdma;
	return true;
}

static trib_status fail_at(const char *at)
{
	return status_fail(TRIB_ERR_CONFIG, "this is no ring of ranks, from here on: \"%.60s\"",
	                   at);
}

trib_status ring_seats_parse(const char *plan, struct ring_seat seats[TREE_RANKS_MAX], unsigned *n)
{
	const char *at = plan + sizeof(head) - 1;

	*n = 0;
	if (!ring_seats_are(plan))
		return fail_at(plan);
	for (;; at++) {
		const char *from = at;

		if (*n == TREE_RANKS_MAX || !take_seat(&at, &seats[*n]))
			return fail_at(from);
		++*n;
		if (*at != ',')
			break;
	}
	if (*at != ')' || (at[1] && at[1] != '|'))
		return fail_at(at);
	return TRIB_OK;
}
