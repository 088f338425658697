/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/sparse_log.h"

#include <inttypes.h>

static void table_print(FILE *out, const struct sparse_entry *entry, bool json)
{
	const struct sparse_table_options *o = &entry->options;

	/* Names have letters, digits and a few signs only: see sparse_table_options_check. */
	fprintf(out,
	        json ? ",\"table\":%u,\"name\":\"%s\",\"parameters\":%" PRIu64
	               ",\"width\":%u,\"optimizer\":\"%s\",\"rate\":%.17g"
	             : " %u is %s: %" PRIu64 " parameters, width %u, %s, rate %g",
	        entry->table, o->name, o->parameters, o->width, sparse_optimizer_name(o->optimizer),
	        o->rate);
}

static void push_print(FILE *out, const struct sparse_entry *entry, bool json)
{
	fprintf(out,
	        json ? ",\"table\":%u,\"client\":\"%" PRIx64 "\",\"sequence\":%" PRIu64
	               ",\"rows\":%u"
	             : " table %u, client %" PRIx64 ", number %" PRIu64 ", %u rows",
	        entry->table, entry->client, entry->sequence, entry->n);
}

static void flush_print(FILE *out, const struct sparse_entry *entry, bool json)
{
	fprintf(out,
	        json ? ",\"table\":%u,\"incarnation\":%u,\"epoch\":%u,\"rows\":%u,\"low\":["
	             : " table %u, incarnation %u, epoch %u, %u rows, records from",
	        entry->table, entry->incarnation, entry->epoch, entry->n);
	for (uint32_t i = 0; i < entry->children; i++)
		fprintf(out, json ? "%s%" PRIu64 : "%s %" PRIu64, json && i ? "," : "",
		        entry->records[i].low);
	if (json)
		fputc(']', out);
}

static void kind_print(FILE *out, const struct sparse_entry *entry, bool json)
{
	switch (entry->kind) {
	case SPARSE_ENTRY_TABLE:
		table_print(out, entry, json);
		break;
	case SPARSE_ENTRY_PUSH:
		push_print(out, entry, json);
		break;
	case SPARSE_ENTRY_FLUSH:
		flush_print(out, entry, json);
		break;
	case SPARSE_ENTRY_CLIENT:
		fprintf(out,
		        json ? ",\"table\":%u,\"rank\":%u,\"client\":\"%" PRIx64 "\",\"left\":%s"
		             : " table %u, rank %u: %" PRIx64 " %s",
		        entry->table, entry->rank, entry->client,
		        json              ? (entry->has_left ? "true" : "false")
		        : entry->has_left ? "has left"
		                          : "is known");
		break;
	default:
		fprintf(out,
		        json ? ",\"table\":%u,\"incarnation\":%u" : " table %u, incarnation %u",
		        entry->table, entry->incarnation);
	}
}

void sparse_log_print(FILE *out, const struct sparse_log_visit *visit, bool json)
{
	fprintf(out,
	        json ? "{\"file\":\"%s\",\"offset\":%" PRIu64 ",\"kind\":\"%s\""
	             : "%s %" PRIu64 ": %s",
	        visit->file, visit->offset, sparse_entry_name(visit->entry->kind));
	kind_print(out, visit->entry, json);
	fputs(json ? "}\n" : "\n", out);
}
