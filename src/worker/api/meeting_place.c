/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where ranks meet that have neither an aggregator nor a controller: at TRIB_RENDEZVOUS, or where
 * the environment of their launcher says that rank 0 runs.
 */
#include "worker/api/api.h"

#include "base/launcher.h"
#include "base/log.h"
#include "base/settings.h"

#define RENDEZVOUS_PORT 7650

/* Rank 0 lets in processes that show the cookie. Without a cookie, other hosts must not reach it.
 */
static trib_status read_rendezvous(const char *text, struct comm_config *config)
{
	trib_status status = udp_resolve(text, RENDEZVOUS_PORT, &config->rendezvous);

	if (status != TRIB_OK || config->cookie || udp_is_loopback(&config->rendezvous))
		return status;
	return status_fail(TRIB_ERR_CONFIG,
	                   "TRIB_COOKIE is not set, so ranks meet on loopback alone, and not at "
	                   "the rendezvous %s: draw a cookie with trib cookie and give it to all "
	                   "ranks",
	                   text);
}

/* Are rank and size those that the launcher gave this process? The options may have others. */
static bool is_launched(const struct comm_config *config)
{
	uint64_t rank, size;

	return setting_text(SETTING_RANK, NULL) && setting_text(SETTING_SIZE, NULL) &&
	       setting_count(SETTING_RANK, &rank) == TRIB_OK &&
	       setting_count(SETTING_SIZE, &size) == TRIB_OK && rank == (uint64_t)config->rank &&
	       size == (uint64_t)config->size;
}

static trib_status fail_nowhere(const struct comm_config *config,
                                const struct launcher_meeting *meeting)
{
	return status_fail(TRIB_ERR_CONFIG,
	                   "%d ranks, but no aggregator: set TRIB_AGGREGATOR=host:port to where "
	                   "tribd listens, or start with trib run; without an aggregator, set "
	                   "TRIB_RENDEZVOUS=host:port to where rank 0 shall listen%s%s%s",
	                   config->size, meeting->why ? " (" : "", meeting->why ? meeting->why : "",
	                   meeting->why ? ")" : "");
}

/* Rank 0's name must not mean loopback on rank 0's own host: it would tell that to the others. */
static trib_status check_reachable(const struct comm_config *config,
                                   const struct launcher_meeting *meeting)
{
	char address[64];

	if (meeting->is_local || !udp_is_loopback(&config->rendezvous))
		return TRIB_OK;
	return status_fail(TRIB_ERR_CONFIG,
	                   "%s says that ranks meet at %s, which is %s on this host, so ranks of "
	                   "other hosts cannot: set TRIB_RENDEZVOUS=address:port on all ranks",
	                   meeting->launcher, meeting->at,
	                   udp_text(&config->rendezvous, address, sizeof(address)));
}

static trib_status meet_by_launcher(const struct launcher_meeting *meeting,
                                    struct comm_config *config)
{
	trib_status status;

	config->launcher = meeting->launcher;
	if (!config->cookie && (meeting->is_secret || meeting->is_local))
		config->cookie = meeting->identity; /* keeps jobs apart */
	status = read_rendezvous(meeting->at, config);
	if (status == TRIB_OK)
		status = check_reachable(config, meeting);
	if (status == TRIB_OK && config->rank == 0)
		log_notice("no aggregator is named: %d ranks sum among themselves, and meet at %s, "
		           "as %s says",
		           config->size, meeting->at, meeting->launcher);
	return status;
}

trib_status meeting_place_read(struct comm_config *config)
{
	const char *text = setting_text(SETTING_RENDEZVOUS, NULL);
	struct launcher_meeting meeting = { 0 };

	if (text)
		return read_rendezvous(text, config);
	if (is_launched(config))
		meeting = launcher_meet();
	return meeting.at[0] ? meet_by_launcher(&meeting, config) : fail_nowhere(config, &meeting);
}
