/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about the paths of an RDMA connection: what is accepted is within its bounds, and is
 * written again as it was. */
#include "fuzz.h"
#include "path/verbs/pact.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[PACT_BYTES_MAX];
	struct pact pact, again;
	size_t n;

	if (pact_parse(data, size, &pact) != TRIB_OK)
		return 0;
	demand(pact.n_paths <= PATHS_MAX && pact.notes && !(pact.notes & (pact.notes - 1)));
	demand(pact.receives && pact.receives <= pact.notes);
	n = pact_write(&pact, bytes);
	demand(n == size && n <= sizeof(bytes));
	demand(pact_parse(bytes, n, &again) == TRIB_OK);
	demand(memcmp(&pact, &again, sizeof(pact)) == 0);
	return 0;
}
