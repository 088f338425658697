/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <string.h>

static _Thread_local char sentence[STATUS_SENTENCE] = "no error";

const char *trib_last_error(void)
{
	return sentence;
}

trib_status trib_set_error(trib_status status, const char *words)
{
	size_t n = strnlen(words, sizeof(sentence) - 1);

	memmove(sentence, words, n); /* the words may be the sentence itself */
	sentence[n] = '\0';
	return status;
}

const char *trib_version(void)
{
	return TRIB_VERSION;
}

const char *trib_status_name(trib_status status)
{
	switch (status) {
	case TRIB_OK:
		return "ok";
	case TRIB_IN_PROGRESS:
		return "in progress";
	case TRIB_ERR_ARGUMENT:
		return "wrong argument";
	case TRIB_ERR_CONFIG:
		return "wrong configuration";
	case TRIB_ERR_NO_MEMORY:
		return "no memory";
	case TRIB_ERR_SYSTEM:
		return "system error";
	case TRIB_ERR_TIMEOUT:
		return "timeout";
	case TRIB_ERR_PEER:
		return "peer lost";
	case TRIB_ERR_AGGREGATOR:
		return "aggregator lost";
	case TRIB_ERR_MISMATCH:
		return "mismatch between ranks";
	case TRIB_ERR_REFUSED:
		return "refused";
	case TRIB_ERR_CLOSED:
		return "closed";
	}
	return "unknown status";
}
