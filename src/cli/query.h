/* SPDX-License-Identifier: Apache-2.0 */
/* Asks an aggregator how it is: one page of JSON a packet. */
#ifndef TRIB_CLI_QUERY_H
#define TRIB_CLI_QUERY_H

#include "path/udp.h"

/* Page 0 is the aggregator, page n its n-th communicator; "{}" is past the last. */
trib_status query_page(const char *aggregator, unsigned page, double timeout_s, char *out,
                       size_t size);

#endif
