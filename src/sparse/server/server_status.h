/* SPDX-License-Identifier: Apache-2.0 */
/* server_status: what a server tells of itself, as JSON. */
#ifndef TRIB_SPARSE_SERVER_SERVER_STATUS_H
#define TRIB_SPARSE_SERVER_SERVER_STATUS_H

#include "sparse/server/server_internal.h"

/* JSON, or with `plain` lines for people. To be freed; NULL: no memory. */
char *server_status_text(const struct sparse_server *server, bool plain, uint64_t now);
/* Rates of pushes and pulls since the last call. */
void server_rates_update(struct sparse_server *server, uint64_t now);
/* Writes the file of --status-file. */
void server_status_write(const struct sparse_server *server, uint64_t now);

#endif
