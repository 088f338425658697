/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ANSWER to a QUERY, and what is read from its page. The first byte says how the packet is
 * prepared: as it is, or with a right checksum, cookie and page number, since a fuzzer finds none
 * of these. A page is clean text that ends within its buffer, and so are its fields.
 */
#include "fuzz.h"
#include "query/query.h"
#include "wire/brief.h"
#include "wire/parse.h"

#include <string.h>

#define PAGE 3u

enum { SEALED = 1, OURS = 2 }; /* of the first byte */

static size_t prepare(void *packet, uint8_t how, const struct wire_control *query, size_t bytes)
{
	struct wire_control *header = packet;

	if (!(how & SEALED) || bytes < WIRE_CONTROL)
		return bytes;
	bytes &= ~(size_t)7;
	if (how & OURS) {
		header->type = WIRE_ANSWER;
		header->child = 0;
		header->cookie = query->cookie;
		header->pos = query->pos;
	}
	wire_seal(packet, bytes);
	return bytes;
}

static void look_at(const char *text, size_t size)
{
	demand(memchr(text, 0, size));
	for (; *text; text++)
		demand(*text >= ' ' && *text <= '~');
}

static void read_page(const char *page)
{
	static const char *const names[] = { "job", "state", "why", "parent", "present", "" };
	char field[16];

	page_is_controllers(page);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		page_number(page, names[i]);
		page_text(page, names[i], field, sizeof(field));
		look_at(field, sizeof(field));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct wire_control query = { .cookie = 0x5eed, .pos = wire_pos(0, PAGE) };
	size_t bytes = size ? size - 1 : 0;
	char page[QUERY_PAGE], few[16];
	void *packet;

	/* The exact size, so that a sanitizer detects reads beyond the end. */
	bytes = bytes < WIRE_PACKET_MAX ? bytes : WIRE_PACKET_MAX;
	packet = malloc(bytes ? bytes : 1);
	demand(packet);
	if (bytes)
		memcpy(packet, data + 1, bytes);
	bytes = prepare(packet, size ? data[0] : 0, &query, bytes);
	if (query_read(&query, packet, bytes, page, sizeof(page))) {
		look_at(page, sizeof(page));
		read_page(page);
		demand(query_read(&query, packet, bytes, few, sizeof(few)));
		look_at(few, sizeof(few));
		demand(!strncmp(few, page, sizeof(few) - 1));
	}
	free(packet);
	return 0;
}
