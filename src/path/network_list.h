/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that a user names: "10.0.0.0/8,fd00::/8". */
#ifndef TRIB_PATH_NETWORK_LIST_H
#define TRIB_PATH_NETWORK_LIST_H

#include "path/udp.h"

#define NETWORKS_MAX 32u

struct network {
	uint8_t raw[16]; /* IPv6, or IPv4 in the first four bytes */
	uint8_t bytes;   /* of an address: 4 or 16 */
	uint8_t prefix;  /* bits that are the network's */
};

struct network_list {
	unsigned n;
	struct network all[NETWORKS_MAX];
};

/* An address without a prefix is a network of one host. */
trib_status network_list_parse(struct network_list *list, const char *text);
bool network_list_has(const struct network_list *list, const struct udp_address *address);

#endif
