/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What survives a restart of the controller: its secret, jobs, the plans of
 * their communicators, nodes. SQLite, in the state folder; a change is on the
 * disk when the call returns. One controller at a time has the folder.
 */
#ifndef TRIB_CONTROL_STORE_H
#define TRIB_CONTROL_STORE_H

#include "base/secret.h"
#include "control/rendezvous.h"

#define JOB_NAME_MAX 64

struct job {
	uint16_t id;
	char name[JOB_NAME_MAX];
	enum policy policy;
	uint32_t size;   /* 0: as many ranks as the first one says */
	uint32_t min;    /* POLICY_SHRINK: not below */
	int64_t made_at; /* seconds since 1970 */
};

/* What a job has that asked for hosts: struct hosting is what else is known of it. */
struct placement_row {
	uint16_t job;
	uint32_t hosts, per_host;
	uint64_t ordinal;   /* of those who wait the lowest is first */
	bool leased;        /* it ends with a lease */
	const char *placed; /* addresses, a comma between them; empty: it waits */
};

struct store;
trib_status store_open(const char *folder, struct store **out);
void store_close(struct store *store);

/* Made when the store was. */
trib_status store_secret(struct store *store, struct secret *out);

/* The highest id that a job has had; it is not given again soon, since its cookie is the same. */
trib_status store_last_job(struct store *store, uint16_t *id);
trib_status store_put_job(struct store *store, const struct job *job);
/* With all that belongs to it. */
trib_status store_drop_job(struct store *store, uint16_t id);
/* It goes with its job. */
trib_status store_put_placement(struct store *store, const struct placement_row *row);
/* A gathering when its plan has changed, and why that is as it is. */
trib_status store_put_gathering(struct store *store, const struct gathering *gathering,
                                const struct plan_verdict *verdict);
/* Those of its members that have left since. */
trib_status store_put_left(struct store *store, const struct gathering *gathering);
trib_status store_drop_gathering(struct store *store, uint16_t job, uint64_t key);
trib_status store_put_node(struct store *store, const struct node *node);
trib_status store_drop_node(struct store *store, const char *address);

/* All that is there, jobs first. A visitor's error ends it and is returned. */
struct store_visitor {
	trib_status (*job)(void *context, const struct job *job);
	trib_status (*placement)(void *context, const struct placement_row *row);
	/* The verdict has no trees where it is not known. */
	trib_status (*gathering)(void *context, const struct gathering *gathering,
	                         const struct plan_verdict *verdict);
	trib_status (*node)(void *context, const struct node *node);
	void *context;
};
trib_status store_load(struct store *store, const struct store_visitor *visitor);

#endif
