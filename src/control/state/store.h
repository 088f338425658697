/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What survives a restart of the controller: its secret, jobs, the plans of their communicators,
 * and nodes. It is an SQLite database in the state folder. A change is stored when the call
 * returns. Only one controller at a time may use a state folder.
 */
#ifndef TRIB_CONTROL_STATE_STORE_H
#define TRIB_CONTROL_STATE_STORE_H

#include "base/secret.h"
#include "control/policy/rendezvous.h"

#define JOB_NAME_MAX 64

struct job {
	uint16_t id;
	char name[JOB_NAME_MAX];
	enum policy policy;
	uint32_t size;   /* 0: as the first rank says */
	uint32_t min;    /* POLICY_SHRINK: fewest ranks */
	int64_t made_at; /* seconds since 1970 */
};

/* The stored part of struct hosting. */
struct placement_row {
	uint16_t job;
	uint32_t hosts, per_host;
	uint64_t ordinal;   /* waiting jobs are served in this order */
	bool leased;        /* the job has a lease */
	const char *placed; /* addresses, separated by commas; empty: it waits */
};

struct store;
trib_status store_open(const char *state_dir, struct store **out);
void store_close(struct store *store);

/* The secret is made with the store. */
trib_status store_secret(struct store *store, struct secret *out);

/* The last id that was given: ids are reused late, because a job's cookie follows from its id. */
trib_status store_last_job(struct store *store, uint16_t *id);
trib_status store_put_job(struct store *store, const struct job *job);
/* Also drops what belongs to the job. */
trib_status store_drop_job(struct store *store, uint16_t id);
/* A placement is dropped with its job. */
trib_status store_put_placement(struct store *store, const struct placement_row *row);
/* To be called when the plan of a communicator has changed. */
trib_status store_put_membership(struct store *store, const struct membership *membership,
                                 const struct plan_verdict *verdict);
/* Stores which members have left since the plan was made. */
trib_status store_put_left(struct store *store, const struct membership *membership);
trib_status store_drop_membership(struct store *store, uint16_t job, uint64_t key);
trib_status store_put_node(struct store *store, const struct node *node);
trib_status store_drop_node(struct store *store, const char *address);

/* Calls back for each stored record, jobs first. An error of a callback ends it and is returned. */
struct store_loader {
	trib_status (*job)(void *context, const struct job *job);
	trib_status (*placement)(void *context, const struct placement_row *row);
	/* A verdict without trees is unknown. */
	trib_status (*membership)(void *context, const struct membership *membership,
	                          const struct plan_verdict *verdict);
	trib_status (*node)(void *context, const struct node *node);
	void *context;
};
trib_status store_load(struct store *store, const struct store_loader *loader);

#endif
