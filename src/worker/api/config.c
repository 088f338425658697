/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/api/api.h"

#include "base/log.h"
#include "base/settings.h"
#include "path/rdma/rdma.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVE_BYTES (8 << 20)
#define SEND_BYTES (256 << 10)
#define CONTROLLER_PORT 7600
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

/*
 * A star, trees, a controller, or a place where ranks without all these meet. Options of trib_init
 * win over settings. The machine's controller is used only by jobs that name no aggregator.
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
	if (options->exchange && !setting_text(SETTING_RENDEZVOUS, NULL))
		return TRIB_OK; /* the ranks will introduce themselves */
	return meeting_place_read(config);
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

/* Settings as numbers, before they are checked together. */
struct counts {
	uint64_t job, lanes, local, mtu, wire, busy_poll, plane, pacing, engine, slots, ring, way;
};

/* The fields that both sides know, if the caller was compiled against another header. */
static trib_status copy_options(const trib_options *given, trib_options *options)
{
	if (!given)
		return TRIB_OK;
	if (given->struct_size < sizeof(size_t))
		return status_fail(TRIB_ERR_ARGUMENT, "trib_options.struct_size is not set");
	memcpy(options, given,
	       given->struct_size < sizeof(*options) ? given->struct_size : sizeof(*options));
	return TRIB_OK;
}

static trib_status read_log_level(void)
{
	const char *level = setting_text(SETTING_LOG, NULL);

	if (level && log_set_level_name(level))
		return status_fail(TRIB_ERR_CONFIG,
		                   "TRIB_LOG=\"%s\": expected error, warn, notice, info or debug",
		                   level);
	return TRIB_OK;
}

static trib_status read_counts(const trib_options *options, struct comm_config *config,
                               struct counts *counts)
{
	const struct {
		enum setting_id id;
		uint64_t option; /* 0: the setting counts */
		uint64_t *value;
	} all[] = {
		{ SETTING_COOKIE, 0, &config->cookie },
		{ SETTING_JOB, 0, &counts->job },
		{ SETTING_POOL, options->pool_bytes, &config->pool_bytes },
		{ SETTING_RATE_LIMIT, options->rate_bps, &config->rate_bps },
		{ SETTING_LANES, (uint64_t)options->lanes, &counts->lanes },
		{ SETTING_LOCAL_SIZE, 0, &counts->local },
		{ SETTING_MTU, 0, &counts->mtu },
		{ SETTING_WIRE, 0, &counts->wire },
		{ SETTING_ENGINE, 0, &counts->engine },
		{ SETTING_SLOTS, 0, &counts->slots },
		{ SETTING_RING, 0, &counts->ring },
		{ SETTING_WAY, 0, &counts->way },
		{ SETTING_PLANE, 0, &counts->plane },
		{ SETTING_PACING, 0, &counts->pacing },
		{ SETTING_BUSY_POLL, 0, &counts->busy_poll },
	};
	trib_status status = TRIB_OK;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && status == TRIB_OK; i++) {
		if (all[i].option)
			*all[i].value = all[i].option;
		else
			status = setting_count(all[i].id, all[i].value);
	}
	return status;
}

/* What other rooms read: a wrong value is told before the first call. */
static trib_status check_others(void)
{
	static const enum setting_id all[] = { SETTING_TRANSPORT, SETTING_PATHS,  SETTING_BALANCER,
		                               SETTING_MONITOR,   SETTING_CHUNK,  SETTING_PIN,
		                               SETTING_MULTICAST, SETTING_OFFLOAD };
	trib_status status = TRIB_OK;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && status == TRIB_OK; i++)
		status = setting_check(all[i]);
	return status;
}

static trib_status read_timeout(const trib_options *options, struct comm_config *config)
{
	trib_status status;

	config->timeout_s = options->timeout_s;
	if (config->timeout_s <= 0 &&
	    (status = setting_seconds(SETTING_TIMEOUT, &config->timeout_s)))
		return status;
	if (!(config->timeout_s >= 0.1 && config->timeout_s <= TIMEOUT_MAX))
		return status_fail(TRIB_ERR_CONFIG, "a timeout of %g s: 0.1 to %g s are possible",
		                   config->timeout_s, TIMEOUT_MAX);
	return TRIB_OK;
}

static trib_status check_limits(const trib_options *options, const struct comm_config *config,
                                const struct counts *counts)
{
	if (counts->job > UINT16_MAX)
		return status_fail(TRIB_ERR_CONFIG, "TRIB_JOB=%llu: at most 65535",
		                   (unsigned long long)counts->job);
	if (counts->lanes > WIRE_LANES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "%llu lanes: at most %u are possible",
		                   (unsigned long long)counts->lanes, WIRE_LANES_MAX);
	if (!is_wire_bits(options->wire_bits))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "trib_options.wire_bits is %d: expected 8, 16 "
		                   "or 32, or 0 for TRIB_WIRE",
		                   options->wire_bits);
	if (config->size > (int)WIRE_CHILDREN_MAX)
		return status_fail(TRIB_ERR_CONFIG, "%d ranks: one aggregator takes at most %u",
		                   config->size, WIRE_CHILDREN_MAX);
	return TRIB_OK;
}

static void set_seat(const trib_options *options, struct comm_config *config)
{
	config->seat = config->rank;
	config->seats = config->size;
	config->key = options->key;
	config->asks = !options->has_rank && !setting_text(SETTING_RANK, NULL);
	if (config->controller.length && config->asks)
		config->seat = -1; /* any free seat */
}

static void set_choices(const trib_options *options, const struct counts *counts,
                        struct comm_config *config)
{
	const char *pin = setting_text(SETTING_PIN, NULL);

	config->idle = options->idle;
	config->idle_context = options->idle_context;
	config->job = (uint16_t)counts->job;
	config->lanes = (unsigned)counts->lanes;
	config->cores = cores_each((unsigned)counts->local);
	config->mtu = (unsigned)counts->mtu;
	config->wire_bits = counts->wire == WIDTH_AUTO ? 0 : 64u >> counts->wire;
	if (options->wire_bits)
		config->wire_bits = (unsigned)options->wire_bits;
	config->tcp = counts->plane == PLANE_TCP;
	config->engine = (enum engine_choice)counts->engine;
	config->ring = (enum ring_choice)counts->ring;
	config->way = (enum way_wish)counts->way;
	config->slots = (uint32_t)counts->slots;
	config->bucket = counts->pacing == PACING_BUCKET;
	config->multicast = !is_off(setting_text(SETTING_MULTICAST, NULL));
	config->pin = is_off(pin) ? NULL : pin;
	config->socket.offload = !is_off(setting_text(SETTING_OFFLOAD, NULL));
	config->socket.busy_poll = (unsigned)counts->busy_poll;
	config->socket.receive_bytes = RECEIVE_BYTES;
	config->socket.send_bytes = SEND_BYTES;
}

static trib_status read_all(const trib_options *given, struct comm_config *config)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct counts counts;
	trib_status status;

	memset(config, 0, sizeof(*config));
	if ((status = copy_options(given, &options)) || (status = read_log_level()) ||
	    (status = read_place(&options, config)) ||
	    (status = read_counts(&options, config, &counts)) || (status = check_others()) ||
	    (status = read_aggregator(&options, config)) ||
	    (status = read_timeout(&options, config)) ||
	    (status = check_limits(&options, config, &counts)))
		return status;
	set_seat(&options, config);
	set_choices(&options, &counts, config);
	if (config->tcp)
		rdma_streams_start();
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
