/* SPDX-License-Identifier: Apache-2.0 */
/* Asks an aggregator how it is: one page of JSON a packet. */
#ifndef TRIB_CLI_QUERY_H
#define TRIB_CLI_QUERY_H

#include "path/udp.h"

#define QUERY_PAGE 4096     /* bytes that hold a page */
#define QUERY_PAGES_MAX 96u /* of one kind */

/* Page 0 is the aggregator, page n its n-th communicator; "{}" is past the last. */
trib_status query_page(const char *aggregator, unsigned page, double timeout_s, char *out,
                       size_t size);

/* Has a controller answered? To workers its address is as good as an aggregator's. */
bool page_is_controllers(const char *page);
/* The number behind "name": in a page that our own aggregator wrote; 0 where it is not. */
double page_number(const char *page, const char *name);
/* The same for a string; empty where it is not. */
void page_text(const char *page, const char *name, char *out, size_t size);

#endif
