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

static const char *const verdict_names[ENGINE_COUNTED] = {
	[ENGINE_ADDED] = "added",         [ENGINE_COMPLETE] = "completed",
	[ENGINE_DUPLICATE] = "duplicate", [ENGINE_FINISHED] = "finished",
	[ENGINE_STALE] = "stale",         [ENGINE_AHEAD] = "ahead",
	[ENGINE_LOWER] = "lower",         [ENGINE_MISMATCH] = "mismatch",
	[ENGINE_STRANGER] = "stranger",   [ENGINE_SUMMED] = "summed",
};

const char *verdict_name(unsigned verdict)
{
	return verdict_names[verdict];
}

const char *drop_name(unsigned drop)
{
	return drop_names[drop];
}
