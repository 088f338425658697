/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/counters.h"

static const char *const drop_names[DROPS_END] = {
	[WIRE_FAULT_LENGTH] = "length",   [WIRE_FAULT_MAGIC] = "magic",
	[WIRE_FAULT_TYPE] = "type",       [WIRE_FAULT_CHECK] = "checksum",
	[WIRE_FAULT_CONTENT] = "content", [DROP_UNKNOWN] = "unknown",
	[DROP_COOKIE] = "cookie",         [DROP_UNPROVEN] = "unproven",
	[DROP_EPOCH] = "epoch",           [DROP_LANE] = "lane",
	[DROP_STRANGER] = "stranger",     [DROP_REPLAYED] = "replayed",
	[DROP_UNEXPECTED] = "unexpected", [DROP_REFUSED] = "refused",
	[DROP_RESULT] = "result",
};

static const char *const verdict_names[DENSE_VERDICTS_END] = {
	[DENSE_ADDED] = "added",         [DENSE_COMPLETE] = "completed",
	[DENSE_DUPLICATE] = "duplicate", [DENSE_FINISHED] = "finished",
	[DENSE_STALE] = "stale",         [DENSE_AHEAD] = "ahead",
	[DENSE_LOWER] = "lower",         [DENSE_MISMATCH] = "mismatch",
	[DENSE_STRANGER] = "stranger",   [DENSE_SUMMED] = "summed",
};

const char *verdict_name(unsigned verdict)
{
	return verdict_names[verdict];
}

const char *drop_name(unsigned drop)
{
	return drop_names[drop];
}
