/* SPDX-License-Identifier: Apache-2.0 */
/* A controller's answer about a plan: any text is read, and what it says of one holds for older
 * ones. */
#include "worker/trees/plan_watch.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t generations[] = { 0, 1, 2, 3, 1000, 0x7fffffff, 0xffffffff };
	char *text = malloc(size + 1);
	bool newer = true;
	char silent[16];

	demand(text);
	memcpy(text, data, size);
	text[size] = 0;
	for (unsigned i = 0; i < sizeof(generations) / sizeof(generations[0]); i++) {
		bool given_up = plan_is_given_up(text, generations[i]);

		demand(newer || !given_up);
		newer = given_up;
		if (plan_has_silent(text, generations[i], silent, sizeof(silent)))
			demand(*silent && strlen(silent) < sizeof(silent) && strstr(text, silent));
	}
	free(text);
	return 0;
}
