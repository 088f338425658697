/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent hears: the answer to a heartbeat, from any JSON, and requests for link probes. An
 * answer is parsed or ignored field by field, and its texts are printable. A request without the
 * secret, or for another connection, is never good.
 */
#include "control/agent/probe_ask.h"
#include "control/transport/heartbeat_answer.h"
#include "fuzz.h"

static void demand_plain(const char *text, size_t room)
{
	demand(memchr(text, 0, room));
	for (; *text; text++)
		demand(*text >= ' ' && *text <= '~');
}

static void try_answer(const uint8_t *data, size_t size)
{
	static struct heartbeat_answer answer;
	json_t *json = json_loadb((const char *)data, size, 0, NULL);

	heartbeat_answer_parse(&answer, json);
	demand(!answer.heartbeat_ns || answer.heartbeat_ns >= 1000000);
	demand(answer.n_leaves <= ANSWER_LEAVES_MAX && answer.probe.enough_bps);
	demand_plain(answer.probe.with, sizeof(answer.probe.with));
	demand_plain(answer.probe.at, sizeof(answer.probe.at));
	for (unsigned i = 0; i < answer.n_leaves; i++) {
		demand(answer.leaves[i].job && answer.leaves[i].generation);
		demand_plain(answer.leaves[i].why, sizeof(answer.leaves[i].why));
	}
	demand(job_roster_allows(&answer.roster, 0));
	json_decref(json);
}

static void try_ask(const uint8_t *data, size_t size)
{
	static const struct secret secret = { { 1, 2, 3 } };
	struct probe_ask ask = { 0 };

	memcpy(&ask, data, size < sizeof(ask) ? size : sizeof(ask));
	demand(!probe_ask_is_good(&ask, &secret, ask.challenge)); /* the secret was not known */
	ask.magic = PROBE_ASK_MAGIC;
	probe_ask_seal(&ask, &secret);
	demand(!probe_ask_is_good(&ask, &secret, ask.challenge ^ 1));
	if (probe_ask_is_good(&ask, &secret, ask.challenge))
		demand_plain(ask.from, sizeof(ask.from));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_answer(data, size);
	try_ask(data, size);
	return 0;
}
