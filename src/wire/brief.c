/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/brief.h"

#include "wire/parse.h"

#include <string.h>

#define WORDS (WIRE_GROUP / 64)
#define WORD 8u /* bytes */

static uint32_t cut_report(const struct wire_report *report)
{
	uint32_t n = WORDS;

	while (n && !report->missing[n - 1])
		n--;
	return WIRE_CONTROL + WIRE_REPORT_LEAST + n * WORD;
}

static uint32_t cut_status(struct wire_status *status)
{
	uint8_t *bitmaps = (uint8_t *)status + WIRE_STATUS_LEAST;
	uint32_t n = WORDS;

	while (n && !(status->missing[n - 1] | status->complete[n - 1]))
		n--;
	memmove(bitmaps + (size_t)n * WORD, bitmaps + (size_t)WORDS * WORD, (size_t)n * WORD);
	return WIRE_CONTROL + WIRE_STATUS_LEAST + 2 * n * WORD;
}

uint32_t wire_cut(void *packet)
{
	struct wire_control *control = packet;
	void *body = control + 1;

	return control->type == WIRE_REPORT ? cut_report(body) : cut_status(body);
}

const struct wire_control *wire_make_whole(const struct wire_control *control, size_t bytes,
                                           struct wire_whole *room)
{
	const uint8_t *body = wire_payload(control);
	size_t half;

	bytes -= WIRE_CONTROL;
	if ((control->type != WIRE_REPORT || bytes == sizeof(struct wire_report)) &&
	    (control->type != WIRE_STATUS || bytes == sizeof(struct wire_status)))
		return control;
	memset(room, 0, sizeof(*room));
	room->header = *control;
	if (control->type == WIRE_REPORT) {
		memcpy(&room->report, body, bytes);
	} else {
		half = (bytes - WIRE_STATUS_LEAST) / 2;
		memcpy(&room->status, body, WIRE_STATUS_LEAST + half);
		memcpy(room->status.complete, body + WIRE_STATUS_LEAST + half, half);
	}
	return &room->header;
}
