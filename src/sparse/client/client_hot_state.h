/* SPDX-License-Identifier: Apache-2.0 */
/* client_hot_state: hot rows of one shard; client_hot.c and client_pull.c share it. */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_HOT_STATE_H
#define TRIB_SPARSE_CLIENT_CLIENT_HOT_STATE_H

#include "sparse/heat/heat_watch.h"
#include "sparse/child/sparse_child.h"
#include "sparse/client/client_hot.h"
#include "sparse/hot/hot_map.h"
#include "sparse/hot/hot_puller.h"
#include "sparse/hot/hot_sender.h"

struct client_hot {
	struct message_hot about;
	uint32_t incarnation; /* 0: none */
	uint32_t missed; /* an incarnation that was told while this one was not sealed; 0: none */
	bool is_told;    /* LOST was sent on this connection */
	struct sparse_child *child;
	struct hot_sender sender;
	struct hot_puller puller; /* if the aggregator keeps values */
	bool has_sender;
	uint32_t rows; /* that the aggregator has room for */
	struct hot_maps maps;
	/* Values at the aggregator have all pushes of this worker that have ended, if pushes to the
	   server up to `barrier` are acknowledged, and the round that the ACK named has ended. */
	uint64_t barrier;
	bool is_acked;       /* such an ACK has come */
	bool has_cold;       /* the push that is being made has rows of the map for the server */
	uint32_t ack_epoch;  /* the round that the last ACK named */
	uint32_t safe_epoch; /* the round that it named */
	uint32_t epoch;      /* the last round that has ended, as far as heard */
	double unit;         /* of a hot integer */
	uint64_t heat_at, heat_gap; /* ns: when counts are told, and after what time */
	uint32_t *counts;           /* pushes of each row since counts were last told */
	bool hurries;               /* the user waits for pushes that were posted */
	uint32_t looked, known;     /* rows of the push that is being made; those of the map */
	struct heat_watch watch;
	uint32_t n;                   /* rows of the push that is being made */
	uint32_t *order;              /* of each: row << 16 | number */
	uint32_t *values;             /* of each, as they were taken */
	uint16_t *numbers;            /* sorted */
	uint32_t *sorted;             /* values of the sorted rows */
	size_t *places;               /* of a pull that is being made */
	uint64_t *keys;               /* of rows that go to the server */
	float *floats;                /* of these rows */
	struct hot_sender_stats told; /* what the table's statistics have */
};

/* The map that rows are taken by; NULL: rows go to the server. */
static inline const struct hot_map *client_hot_map(const struct client_hot *hot)
{
	const struct hot_map *map = hot ? hot_maps_newest(&hot->maps) : NULL;

	if (!map || !hot->has_sender || child_state(hot->child) != CHILD_JOINED ||
	    (uint16_t)map->generation != hot->sender.generation)
		return NULL;
	return map;
}

/* ---- client_pull.c ---- */

/* Until the server says otherwise, values at the aggregator may lack pushes of this worker. */
void client_pull_bar(struct shard *shard, uint64_t push);
/* hot_puller.values */
void client_pull_values(void *context, uint64_t tag, const struct hot_rows *rows);

#endif
