/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd/explain.h"
#include "query/remote.h"
#include "worker/dense/round.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	trib_type type;
	const char *name;
} types[] = { { TRIB_F8E4M3, "f8e4m3" },
	      { TRIB_F8E5M2, "f8e5m2" },
	      { TRIB_BF16, "bf16" },
	      { TRIB_F16, "f16" },
	      { TRIB_F32, "f32" } };
#define TYPES (sizeof(types) / sizeof(types[0]))

static const char *const settings[] = { "auto", "32", "16", "8" };
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* The bits of an element in a sum of a large vector. */
static unsigned width(trib_type type, unsigned ranks, unsigned wire_bits)
{
	unsigned per_word = round_per_word(type, SIZE_MAX, ranks, wire_bits);

	return per_word ? 64 / per_word : 32;
}

/* "bf16 and f16 16 bits an element, f32 32 bits", from the least width on */
static void tell_widths(unsigned ranks, unsigned wire_bits, FILE *out)
{
	const char *between = "", *unit = "bits an element";

	for (unsigned bits = 1; bits <= 32; bits++) {
		const char *names[TYPES] = { NULL };
		size_t n = 0;

		for (size_t i = 0; i < TYPES; i++)
			if (width(types[i].type, ranks, wire_bits) == bits)
				names[n++] = types[i].name;
		for (size_t i = 0; i < n; i++)
			fprintf(out, "%s%s", !i ? between : i + 1 < n ? ", " : " and ", names[i]);
		if (!n)
			continue;
		fprintf(out, " %u %s", bits, unit);
		between = ", ";
		unit = "bits";
	}
}

/* "16: ranks 0; 32: ranks 1-3" */
static void tell_settings(const json_t *ranks, FILE *out)
{
	const char *between = "";

	for (size_t k = 0; k < SETTINGS; k++) {
		json_t *same = json_array();
		char text[200];

		for (size_t i = 0; i < json_array_size(ranks); i++)
			if (!strcmp(remote_text(json_array_get(ranks, i), "wire"), settings[k]))
				json_array_append_new(same, json_integer((json_int_t)i));
		remote_ranks(same, text, sizeof(text));
		if (*text) {
			fprintf(out, "%s%s: ranks %s", between, settings[k], text);
			between = "; ";
		}
		json_decref(same);
	}
}

void explain_wire(const json_t *communicator, FILE *out)
{
	size_t ranks = json_array_size(json_object_get(communicator, "members"));
	const char *wire = remote_text(communicator, "wire");

	if (!strcmp(wire, "mixed")) {
		fprintf(out, "  The ranks have different values of TRIB_WIRE (");
		tell_settings(json_object_get(communicator, "ranks"), out);
		fprintf(out, "), so sums of large vectors fail if their widths differ.\n");
	}
	for (size_t k = 0; k < SETTINGS && ranks; k++) {
		if (strcmp(wire, settings[k]))
			continue;
		fprintf(out, "  On the wire, in sums of large vectors: ");
		tell_widths((unsigned)ranks, (unsigned)strtoul(wire, NULL, 10), out); /* auto: 0 */
		fprintf(out, " (TRIB_WIRE=%s).\n", wire);
	}
}
