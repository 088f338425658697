/* SPDX-License-Identifier: Apache-2.0 */
/* client_thread: the thread of a table, which sends, receives and connects. */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_THREAD_H
#define TRIB_SPARSE_CLIENT_CLIENT_THREAD_H

#include "sparse/client/sparse_client.h"

trib_status client_thread_start(trib_sparse *table);
/* Ends the thread. Messages that wait are not sent any more. */
void client_thread_end(trib_sparse *table);

#endif
