/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: questions to running daemons. query.h asks an aggregator for its state: one
 * page of JSON in a packet. remote.h asks a controller over HTTP, and reads its
 * answers.
 *
 * This room must not include src/launch, src/bench or src/cli: they stand above it.
 * It prints no table: commands do.
 */
#ifndef TRIB_QUERY_QUERY_H
#define TRIB_QUERY_QUERY_H

#include "path/udp.h"
#include "wire/packet.h"

#define QUERY_PAGE 4096     /* bytes that hold a page */
#define QUERY_PAGES_MAX 96u /* of one kind */

/* Page 0 is the aggregator, page n its n-th communicator; "{}": there is no such page. */
trib_status query_page(const char *aggregator, unsigned page, double timeout_s, char *out,
                       size_t size);

/* Is the packet an answer to this query? Then its page is in `out`, cleaned. Pure. */
bool query_read(const struct wire_control *query, const void *packet, size_t bytes, char *out,
                size_t size);

/* Did a controller answer? Workers may use its address in place of an aggregator's. */
bool page_is_controllers(const char *page);
/* The number behind "name": in a page of our own aggregator; 0: it is missing. */
double page_number(const char *page, const char *name);
/* The string behind "name":; empty: it is missing. */
void page_text(const char *page, const char *name, char *out, size_t size);

#endif
