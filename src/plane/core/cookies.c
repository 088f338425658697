/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/cookies.h"

#include "plane/core/aggregator_state.h"

#include <sys/random.h>

bool cookie_is_good(struct aggregator *aggregator, uint16_t job, uint64_t cookie)
{
	uint64_t own = aggregator->options.cookie;
	bool good;

	pthread_mutex_lock(&aggregator->secret_lock);
	/* An agent that has no secret yet lets nobody in. */
	good = cookie == own && (own || (aggregator->options.open && !aggregator->has_secret));
	if (!good && aggregator->has_secret)
		good = cookie == secret_cookie(&aggregator->secret, job);
	pthread_mutex_unlock(&aggregator->secret_lock);
	return good;
}

bool cookie_has_ended(struct aggregator *aggregator, uint16_t job, uint64_t cookie)
{
	bool ended;

	pthread_mutex_lock(&aggregator->secret_lock);
	ended = cookie != aggregator->options.cookie && aggregator->has_roster &&
	        !job_roster_allows(&aggregator->roster, job);
	pthread_mutex_unlock(&aggregator->secret_lock);
	return ended;
}

bool cookie_make(struct aggregator *aggregator, uint16_t job, uint64_t *out)
{
	if (getrandom(out, sizeof(*out), 0) != sizeof(*out))
		return false;
	pthread_mutex_lock(&aggregator->secret_lock);
	if (aggregator->has_secret)
		*out = secret_ticket(&aggregator->secret, job, (uint32_t)*out);
	pthread_mutex_unlock(&aggregator->secret_lock);
	return true;
}

bool cookie_was_made(struct aggregator *aggregator, uint16_t job, uint64_t cookie)
{
	bool made;

	pthread_mutex_lock(&aggregator->secret_lock);
	made = !aggregator->has_secret || secret_made(&aggregator->secret, job, cookie);
	pthread_mutex_unlock(&aggregator->secret_lock);
	return made;
}
