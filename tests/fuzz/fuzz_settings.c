/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and rates as users type them. Any text is parsed, or refused with a sentence. A refused
 * text leaves the value unchanged.
 */
#include "base/settings.h"
#include "fuzz.h"

#include <string.h>

#define UNTOUCHED 0x5e771465u

static void parse_try(trib_status (*parse)(const char *, uint64_t *), const char *text)
{
	uint64_t value = UNTOUCHED;
	trib_status status = parse(text, &value);

	demand(status <= TRIB_OK);
	if (status != TRIB_OK)
		demand(value == UNTOUCHED && *trib_last_error());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	demand(text);
	memcpy(text, data, size);
	text[size] = '\0';
	parse_try(parse_bytes, text);
	parse_try(parse_rate, text);
	free(text);
	return 0;
}
