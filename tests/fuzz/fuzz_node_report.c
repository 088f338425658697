/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node reports, and verdicts from the store: any JSON is parsed, or refused with a message. Parsed
 * texts are printable, and a report is the same after it was written and parsed again.
 */
#include "control/transport/node_report.h"
#include "fuzz.h"

#include <math.h>
#include <string.h>

static void demand_plain(const char *text)
{
	for (; *text; text++)
		demand(*text >= ' ' && *text <= '~' && *text != '"' && *text != '\\');
}

static void try_report(const json_t *json)
{
	struct node_report report, again;
	json_t *written;

	if (node_report_from_json(&report, json) != TRIB_OK) {
		demand(*trib_last_error());
		return;
	}
	demand(strchr(report.address, ':') && !strpbrk(report.address, "(),;*| "));
	demand_plain(report.address);
	demand_plain(report.name);
	demand_plain(report.planes);
	demand(isfinite(report.load) && report.load >= 0);
	written = node_report_to_json(&report);
	demand(written && node_report_from_json(&again, written) == TRIB_OK);
	demand(!memcmp(&report, &again, sizeof(report)));
	json_decref(written);
}

static void try_ways(json_t *json)
{
	struct link_sample samples[LINK_SAMPLES_MAX], again[LINK_SAMPLES_MAX];
	uint64_t now = 1000000000000ull;
	unsigned n = link_samples_from_json(samples, json_object_get(json, "ways"), now);
	json_t *written = link_samples_to_json(samples, n, now);

	demand(n <= LINK_SAMPLES_MAX && written);
	for (unsigned i = 0; i < n; i++) {
		demand_plain(samples[i].with);
		demand(samples[i].out_bps >= 0 && samples[i].in_bps >= 0 && samples[i].at <= now);
	}
	demand(link_samples_from_json(again, written, now) == n);
	json_decref(written);
}

static void try_verdict(json_t *json)
{
	struct plan_verdict verdict, again;
	json_t *written;

	if (!verdict_from_json(&verdict, json))
		return;
	written = verdict_to_json(&verdict);
	if (!written)
		return; /* a long sentence was cut inside a character */
	demand(verdict_from_json(&again, written));
	demand(!strcmp(verdict.limit, again.limit) && verdict.trees == again.trees);
	demand(verdict.rate_bps == again.rate_bps);
	json_decref(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);

	if (!json)
		return 0;
	try_report(json);
	try_ways(json);
	try_verdict(json);
	json_decref(json);
	return 0;
}
