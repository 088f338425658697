/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random_bits.h"
#include "tribverbs.h"

#include <stdlib.h>

#define BUCKETS 1024u

struct number {
	struct ibv_context *context;
	uint32_t number;
	struct link_qp *link;
	unsigned place;
	struct number *next;
};

struct key {
	uint32_t lkey, rkey;
	struct key *next;
};

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
struct link_qp *links;
static struct number *numbers[BUCKETS];
static struct key *keys[BUCKETS];
static struct shared_cq *cqs[BUCKETS];

static unsigned bucket(uint64_t key)
{
	return (unsigned)(bits_mix(key) % BUCKETS);
}

static struct number *find_number(const struct ibv_context *context, uint32_t number)
{
	struct number *at = numbers[bucket(number)];

	while (at && (at->number != number || at->context != context))
		at = at->next;
	return at;
}

void table_add_number(struct ibv_context *context, uint32_t number, struct link_qp *link,
                      unsigned place)
{
	struct number **list = &numbers[bucket(number)], *entry;

	pthread_rwlock_wrlock(&table_lock);
	entry = find_number(context, number);
	if (!entry) {
		entry = malloc(sizeof(*entry));
		if (!entry)
			abort(); /* completions could not be told apart any more */
		*entry = (struct number){ .context = context, .number = number, .next = *list };
		*list = entry;
	}
	entry->link = link;
	entry->place = place;
	pthread_rwlock_unlock(&table_lock);
}

void table_remove_number(struct ibv_context *context, uint32_t number)
{
	table_add_number(context, number, NULL, GONE_QP);
}

void table_forget_number(struct ibv_context *context, uint32_t number)
{
	pthread_rwlock_wrlock(&table_lock);
	for (struct number **at = &numbers[bucket(number)]; *at; at = &(*at)->next) {
		struct number *entry = *at;

		if (entry->number == number && entry->context == context) {
			*at = entry->next;
			free(entry);
			break;
		}
	}
	pthread_rwlock_unlock(&table_lock);
}

struct link_qp *table_hold_number(const struct ibv_context *context, uint32_t number,
                                  unsigned *place)
{
	const struct number *entry;
	struct link_qp *link;

	pthread_rwlock_rdlock(&table_lock);
	entry = find_number(context, number);
	*place = entry ? entry->place : OTHER_QP;
	link = entry ? entry->link : NULL;
	if (link)
		atomic_fetch_add(&link->users, 1);
	pthread_rwlock_unlock(&table_lock);
	return link;
}

struct link_qp *table_find_qp(struct ibv_qp *qp)
{
	const struct number *entry;
	struct link_qp *link;

	pthread_rwlock_rdlock(&table_lock);
	entry = find_number(qp->context, qp->qp_num);
	link = entry && entry->place == OWN_QP ? entry->link : NULL;
	pthread_rwlock_unlock(&table_lock);
	return link;
}

void table_add_cq(struct shared_cq *cq)
{
	struct shared_cq **list = &cqs[bucket((uintptr_t)cq->cq)];

	pthread_rwlock_wrlock(&table_lock);
	cq->next = *list;
	*list = cq;
	pthread_rwlock_unlock(&table_lock);
}

void table_remove_cq(struct shared_cq *cq)
{
	pthread_rwlock_wrlock(&table_lock);
	for (struct shared_cq **at = &cqs[bucket((uintptr_t)cq->cq)]; *at; at = &(*at)->next) {
		if (*at == cq) {
			*at = cq->next;
			break;
		}
	}
	pthread_rwlock_unlock(&table_lock);
}

struct shared_cq *table_find_cq(const struct ibv_cq *cq)
{
	struct shared_cq *at;

	pthread_rwlock_rdlock(&table_lock);
	for (at = cqs[bucket((uintptr_t)cq)]; at && at->cq != cq; at = at->next)
		;
	pthread_rwlock_unlock(&table_lock);
	return at;
}

void table_add_mr(const struct ibv_mr *mr)
{
	struct key *entry = malloc(sizeof(*entry));
	struct key **list = &keys[bucket(mr->lkey)];

	if (!entry)
		return; /* SENDs to this memory are not split */
	pthread_rwlock_wrlock(&table_lock);
	*entry = (struct key){ mr->lkey, mr->rkey, *list };
	*list = entry;
	pthread_rwlock_unlock(&table_lock);
}

void table_remove_mr(const struct ibv_mr *mr)
{
	pthread_rwlock_wrlock(&table_lock);
	for (struct key **at = &keys[bucket(mr->lkey)]; *at; at = &(*at)->next) {
		struct key *entry = *at;

		if (entry->lkey == mr->lkey) {
			*at = entry->next;
			free(entry);
			break;
		}
	}
	pthread_rwlock_unlock(&table_lock);
}

bool table_find_key(uint32_t lkey, uint32_t *rkey)
{
	const struct key *at;

	pthread_rwlock_rdlock(&table_lock);
	for (at = keys[bucket(lkey)]; at && at->lkey != lkey; at = at->next)
		;
	if (at)
		*rkey = at->rkey;
	pthread_rwlock_unlock(&table_lock);
	return at != NULL;
}
