/* SPDX-License-Identifier: Apache-2.0 */
/* What all files of the client may say to the table: it fails, or its thread has work. */
#include "sparse/client/sparse_client.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void client_fail(trib_sparse *table, trib_status status, const char *format, ...)
{
	va_list args;

	if (table->failed != TRIB_OK)
		return;
	table->failed = status;
	va_start(args, format);
	vsnprintf(table->sentence, sizeof(table->sentence), format, args);
	va_end(args);
	pthread_cond_broadcast(&table->changed);
}

bool client_is_awaited(const trib_sparse *table)
{
	return table->is_bounded && table->hello.workers > 1;
}

void client_wake(trib_sparse *table)
{
	uint64_t one = 1;

	/* It cannot be full: the thread empties it. */
	if (write(table->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void client_hurry(trib_sparse *table)
{
	table->hurries = true;
	client_wake(table);
}
