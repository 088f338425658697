/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/api/api.h"

#include "base/log.h"
#include "base/settings.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVE_BYTES (8 << 20)
#define SEND_BYTES (256 << 10)
#define CONTROLLER_PORT 7600
#define RENDEZVOUS_PORT 7650
#define TIMEOUT_MAX 4e6 /* seconds: in milliseconds it fits 32 bits on the wire */

static trib_status read_place(const trib_options *options, struct comm_config *config)
{
	uint64_t rank = 0, size = 1;
	trib_status status;

	if (options && options->has_rank) {
		if (options->rank < 0 || options->size < 1 || options->rank >= options->size)
			return status_fail(TRIB_ERR_ARGUMENT, "rank %d of %d is not a rank",
			                   options->rank, options->size);
		config->rank = options->rank;
		config->size = options->size;
		return TRIB_OK;
	}
	if (setting_text(SETTING_RANK, NULL) && (status = setting_count(SETTING_RANK, &rank)))
		return status;
	if (setting_text(SETTING_SIZE, NULL) && (status = setting_count(SETTING_SIZE, &size)))
		return status;
	if (rank >= size || size > INT32_MAX)
		return status_fail(
			TRIB_ERR_CONFIG,
			"rank %llu of %llu is not a rank; set TRIB_RANK and TRIB_SIZE, or "
			"start with trib run, mpirun, srun or torchrun",
			(unsigned long long)rank, (unsigned long long)size);
	config->rank = (int)rank;
	config->size = (int)size;
	return TRIB_OK;
}

static trib_status read_trees(const char *text, struct comm_config *config)
{
	uint64_t all = config->size >= 64 ? ~0ull : (1ull << config->size) - 1;
	trib_status status;

	config->trees = malloc(sizeof(*config->trees));
	if (!config->trees)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for trees");
	status = forest_parse(config->trees, text);
	if (status == TRIB_OK && config->trees->trees[0].nodes[0].ranks != all)
		status = status_fail(
			TRIB_ERR_CONFIG,
			"TRIB_TREES does not have the ranks 0 to %d of this job: \"%s\"",
			config->size - 1, text);
	return status;
}

/* host:port, perhaps followed by "#" and the fingerprint for HTTPS. */
static trib_status read_controller(const char *text, struct comm_config *config)
{
	char address[256];

	snprintf(address, sizeof(address), "%.*s", (int)strcspn(text, "#"), text);
	return udp_resolve(address, CONTROLLER_PORT, &config->controller);
}

/* Rank 0 lets in who shows the cookie. Without one, strangers of other hosts must not reach it. */
static trib_status read_rendezvous(const char *text, struct comm_config *config)
{
	trib_status status = udp_resolve(text, RENDEZVOUS_PORT, &config->rendezvous);

	if (status != TRIB_OK || config->cookie || udp_is_loopback(&config->rendezvous))
		return status;
	return status_fail(TRIB_ERR_CONFIG,
	                   "TRIB_COOKIE is not set, so ranks meet on loopback alone, and not at "
	                   "TRIB_RENDEZVOUS=%s: draw a cookie with trib cookie and give it to all "
	                   "ranks",
	                   text);
}

/*
 * A star, trees, or a controller. Options of trib_init win over settings. The machine's controller
 * is used only by jobs that name no aggregator.
 */
static trib_status read_aggregator(const trib_options *options, struct comm_config *config)
{
	const char *star = options->aggregator, *trees = options->trees;
	const char *controller = options->controller;

	if (!star && !trees && !controller) {
		trees = setting_text(SETTING_TREES, NULL);
		star = setting_text(SETTING_AGGREGATOR, NULL);
		controller = setting_text(SETTING_CONTROLLER, NULL);
	}
	if (trees)
		return read_trees(trees, config);
	if (!star && controller)
		return read_controller(controller, config);
	if (star)
		return udp_resolve(star, UDP_DEFAULT_PORT, &config->aggregator);
	if (config->size == 1)
		return TRIB_OK; /* one rank: nothing to send */
	if (setting_text(SETTING_RENDEZVOUS, NULL))
		return read_rendezvous(setting_text(SETTING_RENDEZVOUS, NULL), config);
	return status_fail(TRIB_ERR_CONFIG,
	                   "%d ranks, but no aggregator: set TRIB_AGGREGATOR=host:port to where "
	                   "tribd listens, or start with trib run; without an aggregator, set "
	                   "TRIB_RENDEZVOUS=host:port to where rank 0 shall listen",
	                   config->size);
}

/* The option, or if that is 0 the setting. */
static trib_status number(uint64_t option, enum setting_id id, uint64_t *value)
{
	if (!option)
		return setting_count(id, value);
	*value = option;
	return TRIB_OK;
}

/* Cores for this worker, if `local` workers share the host. */
static unsigned cores_each(unsigned local)
{
	cpu_set_t set;
	unsigned cores = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);

	return local && cores > local ? cores / local : 1;
}

static bool is_off(const char *text)
{
	return !text || !strcmp(text, "off") || !strcmp(text, "0") || !strcmp(text, "no");
}

static trib_status read_all(const trib_options *given, struct comm_config *config)
{
	trib_options options = TRIB_OPTIONS_INIT;
	uint64_t job, lanes, local, mtu, wire, busy_poll, plane, pacing, engine, slots, ring;
	trib_status status;

	memset(config, 0, sizeof(*config));
	if (given) { /* compiled against an older or newer header: the fields that both know */
		if (given->struct_size < sizeof(size_t))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "trib_options.struct_size is not set");
		memcpy(&options, given,
		       given->struct_size < sizeof(options) ? given->struct_size : sizeof(options));
	}
	if (setting_text(SETTING_LOG, NULL) && log_set_level_name(setting_text(SETTING_LOG, NULL)))
		return status_fail(TRIB_ERR_CONFIG,
		                   "TRIB_LOG=\"%s\": expected error, warn, notice, info or debug",
		                   setting_text(SETTING_LOG, NULL));
	config->timeout_s = options.timeout_s;
	if ((status = read_place(&options, config)) ||
	    (status = setting_count(SETTING_COOKIE, &config->cookie)) ||
	    (status = read_aggregator(&options, config)) ||
	    (status = setting_count(SETTING_JOB, &job)) ||
	    (status = number(options.pool_bytes, SETTING_POOL, &config->pool_bytes)) ||
	    (status = number(options.rate_bps, SETTING_RATE_LIMIT, &config->rate_bps)) ||
	    (status = number((uint64_t)options.lanes, SETTING_LANES, &lanes)) ||
	    (status = setting_count(SETTING_LOCAL_SIZE, &local)) ||
	    (status = setting_count(SETTING_MTU, &mtu)) ||
	    (status = setting_count(SETTING_WIRE, &wire)) ||
	    (status = setting_count(SETTING_ENGINE, &engine)) ||
	    (status = setting_count(SETTING_SLOTS, &slots)) ||
	    (status = setting_count(SETTING_RING, &ring)) ||
	    (status = setting_count(SETTING_PLANE, &plane)) ||
	    (status = setting_count(SETTING_PACING, &pacing)) ||
	    (status = setting_count(SETTING_BUSY_POLL, &busy_poll)))
		return status;
	if (config->timeout_s <= 0 &&
	    (status = setting_seconds(SETTING_TIMEOUT, &config->timeout_s)))
		return status;
	if (!(config->timeout_s >= 0.1 && config->timeout_s <= TIMEOUT_MAX))
		return status_fail(TRIB_ERR_CONFIG, "a timeout of %g s: 0.1 to %g s are possible",
		                   config->timeout_s, TIMEOUT_MAX);
	if (job > UINT16_MAX)
		return status_fail(TRIB_ERR_CONFIG, "TRIB_JOB=%llu: at most 65535",
		                   (unsigned long long)job);
	if (lanes > WIRE_LANES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "%llu lanes: at most %u are possible",
		                   (unsigned long long)lanes, WIRE_LANES_MAX);
	if (!is_wire_bits(options.wire_bits))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "trib_options.wire_bits is %d: expected 8, 16 "
		                   "or 32, or 0 for TRIB_WIRE",
		                   options.wire_bits);
	if (config->size > (int)WIRE_CHILDREN_MAX)
		return status_fail(TRIB_ERR_CONFIG, "%d ranks: one aggregator takes at most %u",
		                   config->size, WIRE_CHILDREN_MAX);
	config->seat = config->rank;
	config->seats = config->size;
	config->asks = !options.has_rank && !setting_text(SETTING_RANK, NULL);
	if (config->controller.length && config->asks)
		config->seat = -1; /* any free seat */
	config->job = (uint16_t)job;
	config->lanes = (unsigned)lanes;
	config->cores = cores_each((unsigned)local);
	config->mtu = (unsigned)mtu;
	config->wire_bits = wire == WIDTH_AUTO ? 0 : 64u >> wire;
	if (options.wire_bits)
		config->wire_bits = (unsigned)options.wire_bits;
	config->tcp = plane == PLANE_TCP;
	config->engine = (enum engine_choice)engine;
	config->ring = (enum ring_choice)ring;
	config->slots = (uint32_t)slots;
	config->bucket = pacing == PACING_BUCKET;
	config->multicast = !is_off(setting_text(SETTING_MULTICAST, NULL));
	config->pin =
		is_off(setting_text(SETTING_PIN, NULL)) ? NULL : setting_text(SETTING_PIN, NULL);
	config->socket.offload = !is_off(setting_text(SETTING_OFFLOAD, NULL));
	config->socket.busy_poll = (unsigned)busy_poll;
	config->socket.receive_bytes = RECEIVE_BYTES;
	config->socket.send_bytes = SEND_BYTES;
	return TRIB_OK;
}

trib_status comm_config_read(const trib_options *options, struct comm_config *config)
{
	trib_status status = read_all(options, config);

	if (status != TRIB_OK) {
		free(config->trees);
		config->trees = NULL;
	}
	return status;
}
