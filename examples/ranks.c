/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *b = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ b[i]) * 0x100000001b3ull;
	return hash;
}

void ranks_require(const trib_comm *comm, trib_status status, const char *what)
{
	if (status == TRIB_OK)
		return;
	if (comm)
		fprintf(stderr, "train: rank %d: %s: %s\n", trib_rank(comm), what,
		        trib_last_error());
	else
		fprintf(stderr, "train: %s: %s\n", what, trib_last_error());
	exit(EXIT_FAILURE);
}

bool ranks_agree(trib_comm *comm, uint64_t hash, const char *what)
{
	int size = trib_size(comm), others = 0;
	uint64_t *all = calloc((size_t)size, sizeof(*all));

	if (!all) {
		fprintf(stderr, "train: rank %d: no memory\n", trib_rank(comm));
		exit(EXIT_FAILURE);
	}
	ranks_require(comm, trib_allgather(comm, &hash, all, 1, TRIB_U64), what);
	for (int i = 1; i < size; i++) {
		if (all[i] == all[0])
			continue;
		if (trib_rank(comm) == 0 && others == 0)
			fprintf(stderr, "train: %s differ from rank 0's on rank", what);
		if (trib_rank(comm) == 0)
			fprintf(stderr, "%s %d", others ? "," : "", i);
		others++;
	}
	if (trib_rank(comm) == 0 && others > 0)
		fputc('\n', stderr);
	free(all);
	return others == 0;
}
