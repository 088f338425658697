/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state: what the controller knows, and how it is kept across restarts.
 *
 * This folder owns the records of the controller (this header: data only), the store on disk
 * (store.h) and the history of plans (plan_history.h). It decides nothing, sends nothing and calls
 * none of the acting folders: telemetry, placement, sharing, migration, jobs, api, server. They all
 * share these records, and hold the controller's lock while they use them.
 */
#ifndef TRIB_CONTROL_STATE_CONTROLLER_STATE_H
#define TRIB_CONTROL_STATE_CONTROLLER_STATE_H

#include "base/tally.h"
#include "base/secret.h"
#include "control/policy/host_policy.h"
#include "control/policy/migration_policy.h"
#include "control/policy/rank_health.h"
#include "control/policy/rendezvous.h"
#include "control/policy/throughput.h"
#include "control/policy/turn_policy.h"
#include "control/policy/turn_protocol.h"
#include "control/state/store.h"
#include "control/transport/state_dir.h"
#include "path/udp.h"
#include "wire/packet.h"

#include <jansson.h>
#include <pthread.h>

#define JOBS_MAX 65536u
#define MEMBERSHIPS_MAX 256u /* communicators of one job */
#define HISTORY_MAX 8u       /* plans that are remembered for one communicator */

/* Where to answer a rank. */
struct contact {
	struct udp_address from;
	uint32_t bytes; /* length of the rank's question; an answer is at least as long */
	uint8_t child;
};

/* One entry of the history: a plan, or a change to a plan, and its reason. */
struct plan_note {
	uint32_t generation;
	int64_t made_at; /* seconds since 1970 */
	char why[320];
};

/* The last decision about migrating a plan: migration/migration.c. */
struct migration_note {
	uint32_t generation; /* of the plan; 0: no decision yet */
	bool leaves;         /* true: the plan leaves the node; false: it stays */
	bool about_node;     /* the reason is this node; false: it is the whole plan */
	char node[TREE_NAME_MAX], name[NODE_NAME_MAX], why[MIGRATION_WHY_MAX];
};

/* What the ranks and aggregators of the newest plan report: telemetry/rank_telemetry.c. */
struct rank_telemetry {
	struct rank_sample all[SEATS_MAX]; /* index: rank in the plan */
	double share;                  /* of a step that communication takes; below 0: unknown */
	int side;                      /* of the exit limit: migration_side */
	uint64_t since;                /* when `side` last changed; 0: unknown */
	uint64_t looked_at;            /* when links were last judged */
	uint8_t slow_looks[SEATS_MAX]; /* by rank: judgements in a row that found its link slow */
	uint64_t links_changed_at;     /* as in struct running_plan */
	struct throughput throughput;  /* by the roots of the plan's trees */
	double rate_bps;               /* measured throughput; 0: unknown */
	double away; /* how many times as fast the ring is that large vectors take; 0: they take the
	              * trees */
	uint64_t late_since; /* since when the plan is too slow (rank_health_late); 0: it is not */
	uint64_t rechecked_at; /* when slowness last made its nodes probe their links; 0: never */
};

/* One communicator of a job. */
struct membership_entry {
	struct membership_entry *next;
	struct membership membership;
	struct contact contacts[SEATS_MAX];
	struct plan_verdict verdict;     /* of the newest plan; no trees: unknown */
	uint64_t asked_at;               /* when a rank last asked; 0: not since the start */
	uint64_t planned_at;             /* when the newest plan was made; 0: before the start */
	uint64_t first_plan_waits_since; /* the first plan waits for link probes; 0: it does not */
	struct migration_note migration;
	struct rank_telemetry telemetry;
	uint32_t epoch;      /* by which aggregators know it (wire/key.h); 0: not seen yet */
	char rack[RACK_MAX]; /* the common beginning of its hosts' racks */
	bool has_rack;       /* false: a host's rack is unknown */
	char star_wanted[TREE_NAME_MAX]; /* aggregator chosen for its turns; "": none */
	uint32_t star_wanted_after;      /* generation for which star_wanted was chosen */
	/* After its shared star was lost: sharing/star_migration.c. */
	uint64_t without_star;       /* ranks, as bits, that have confirmed that they use no star */
	uint64_t next_star_at;       /* it gets no new star before; 0: none was lost lately */
	unsigned failed_joins;       /* consecutive stars that not all ranks could join */
	uint64_t serials[SEATS_MAX]; /* newest serial number heard from each rank */
	bool tried_frugal;           /* a plan without servers was tried and was too slow */
	struct plan_note history[HISTORY_MAX]; /* ring buffer */
	unsigned n_history;                    /* notes written since the start */
};

/* The hosts of a job that asked for some: placement/host_lease.c. */
struct hosting {
	uint32_t hosts, per_host; /* hosts 0: the job did not ask */
	uint64_t ordinal;         /* waiting jobs are served in this order */
	uint32_t before;          /* jobs that wait ahead of this one */
	char *placed;             /* addresses, separated by commas; NULL: it waits */
	uint64_t placed_at;
	uint64_t heard_at;    /* last sign of life of its ranks */
	uint64_t lease_until; /* the job is kept until then at least; 0: no lease */
	bool has_come;        /* a rank was heard since placement, or since the start */
};

struct job_entry {
	struct job job;
	struct hosting hosting;
	uint64_t cookie;
	uint64_t ended_at; /* when its ranks were first seen to have left; 0: they have not */
	unsigned n_memberships;
	struct membership_entry *memberships;
};

/* A communicator's use of a shared aggregator, under one plan and one star. */
struct sharer {
	struct turns_share share; /* must be the first field */
	uint16_t job;
	uint64_t cookie, key, peer_key;
	uint32_t generation, star;
	char to[TREE_NAME_MAX];             /* aggregator it migrates to after its turn; "": none */
	char why[MIGRATION_WHY_MAX];        /* reason of the migration to `to` */
	uint64_t nonces[SEATS_MAX];         /* index: rank in the plan */
	struct udp_address from[SEATS_MAX]; /* of each rank; length 0: not heard yet */
	struct turn_job told;               /* step profile and progress, from rank 0 */
	uint64_t heard_at;                  /* last packet of rank 0 */
	uint64_t moved_at;                  /* when rank 0 last began a request */
	uint64_t held_at;                   /* when the turn began; 0: it has none */
	uint64_t fence_at;                  /* when the aggregator was last told to fence it */
	uint64_t counted_change, seen_change;
	bool is_in; /* all ranks have joined its star, and that was logged */
};

#define SHARERS_MAX 256u /* compared when a turn is given; further ones wait */

/* All sharers of one aggregator. */
struct sharing_group {
	struct sharing_group *next;
	char address[TREE_NAME_MAX];
	struct turns turns;
	uint64_t given, refused, fenced, held_ns;
	uint64_t agree_ns;   /* smoothed time that ranks take to agree on a turn */
	uint64_t idle_until; /* the next decision is not made before */
};

enum controller_count {
	COUNT_JOINS,
	COUNT_DROPS,
	COUNT_PLANS,
	COUNT_REFUSALS,
	COUNT_MIGRATIONS,
	COUNTS_END
};

struct aggregator;
struct http_server;

struct controller {
	char state_dir[STATE_DIR_PATH_MAX];
	char address[400];
	uint64_t started_at;
	uint64_t heartbeat_ns;
	struct node_limits limits;
	double exit_below;        /* as in struct migration_policy */
	unsigned fan_in, stripes; /* limits of plans; 0: none */
	bool probes_links;        /* TRIB_GAUGE: nodes measure their links */
	struct secret secret;
	struct secret address_secret; /* of address_token; drawn when the process starts */
	struct store *store;
	struct http_server *http;
	/* The lock guards all fields below: HTTP and the worker server have a thread each. */
	pthread_mutex_t lock;
	struct nodes nodes;
	struct job_entry *jobs[JOBS_MAX]; /* index: job id; NULL: no such job */
	uint16_t last_job;
	json_t *roster; /* cached result of job_table_roster; NULL: the jobs have changed */
	uint64_t counts[COUNTS_END];
	struct tally strangers; /* JOINs of unknown jobs or with a wrong cookie */
	struct tally unstored;  /* plans and goodbyes that could not be stored */
	struct sharing_group *groups;
	enum turn_policy turn_policy;
	enum host_policy placement;
	double alpha;                    /* of HOST_POLICY_SMART */
	uint64_t start_within;           /* TRIB_START_WITHIN, in nanoseconds */
	uint64_t keep_ended;             /* TRIB_KEEP_ENDED, in nanoseconds */
	uint64_t last_ordinal;           /* of struct hosting */
	uint64_t next_admission_at;      /* when waiting jobs are looked at again */
	uint64_t next_expiry_at;         /* when leases are looked at again */
	uint64_t next_probe_at;          /* the next link probe starts no sooner */
	double guess_bps;                /* cached result of planner_guess */
	uint64_t guess_at;               /* when it was computed; 0: never */
	uint32_t hosts[HOST_STATES_END]; /* counts at the last request for hosts */
	bool told_cut;                   /* the warning about unequal racks was logged */
	uint64_t session;                /* higher than that of every earlier controller */
	struct aggregator *aggregator;   /* NULL: none runs in this process */
	/* Used by the worker server's thread. */
	int fd;
	pthread_t worker_thread;
	bool worker_thread_runs;
	_Atomic bool stop;
};

/* The communicator with this key; NULL: unknown. */
static inline struct membership_entry *membership_find(const struct controller *controller,
                                                       uint16_t job, uint64_t key)
{
	struct membership_entry *entry =
		controller->jobs[job] ? controller->jobs[job]->memberships : NULL;

	while (entry && entry->membership.key != key)
		entry = entry->next;
	return entry;
}

#endif
