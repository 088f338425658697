/* SPDX-License-Identifier: Apache-2.0 */
/* client_options: from the user's options and settings to what a table needs, checked. */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_OPTIONS_H
#define TRIB_SPARSE_CLIENT_CLIENT_OPTIONS_H

#include "sparse/client/sparse_client.h"

/* Fills hello, width, shards with their addresses, and the like. */
trib_status client_options_take(trib_sparse *table, const trib_sparse_options *given);

#endif
