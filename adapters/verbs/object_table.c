/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random_bits.h"
#include "tribverbs.h"

#include <stdlib.h>

#define BUCKETS 1024u

/*
 * An entry stays for good, so threads read without a lock. Its value changes. Numbers of QPs and
 * addresses of CQs come again, so entries do, too.
 */
struct entry {
	const void *object; /* the context of a QP, or a CQ */
	uint32_t number;    /* of the QP; 0 for a CQ */
	_Atomic(const void *) value;
	struct entry *next;
};

struct key {
	uint32_t lkey, rkey;
	struct key *next;
};

static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t keys_lock = PTHREAD_RWLOCK_INITIALIZER;
struct link_qp *links;
pthread_mutex_t world = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct entry *) entries[BUCKETS];
static struct key *keys[BUCKETS];
static const struct seat gone = { NULL, GONE_QP }, other = { NULL, OTHER_QP };

static unsigned bucket(uint64_t key)
{
	return (unsigned)(bits_mix(key) % BUCKETS);
}

static _Atomic(struct entry *) *list_of(const void *object, uint32_t number)
{
	return &entries[bucket((uintptr_t)object + number)];
}

static struct entry *find_entry(const void *object, uint32_t number)
{
	struct entry *at = atomic_load_explicit(list_of(object, number), memory_order_acquire);

	while (at && (at->number != number || at->object != object))
		at = at->next;
	return at;
}

static const void *get(const void *object, uint32_t number)
{
	const struct entry *entry = find_entry(object, number);

	return entry ? atomic_load_explicit(&entry->value, memory_order_acquire) : NULL;
}

static void set(const void *object, uint32_t number, const void *value)
{
	_Atomic(struct entry *) *list = list_of(object, number);
	struct entry *entry;

	pthread_mutex_lock(&entries_lock);
	entry = find_entry(object, number);
	if (!entry) {
		entry = malloc(sizeof(*entry));
		if (!entry)
			abort(); /* completions could not be told apart any more */
		*entry = (struct entry){ .object = object, .number = number, .next = *list };
		atomic_store_explicit(list, entry, memory_order_release);
	}
	atomic_store_explicit(&entry->value, value, memory_order_release);
	pthread_mutex_unlock(&entries_lock);
}

void table_add_number(const struct ibv_context *context, uint32_t number, const struct seat *seat)
{
	set(context, number, seat);
}

void table_remove_number(const struct ibv_context *context, uint32_t number)
{
	set(context, number, &gone);
}

void table_forget_number(const struct ibv_context *context, uint32_t number)
{
	if (find_entry(context, number))
		set(context, number, &other);
}

const struct seat *table_find_number(const struct ibv_context *context, uint32_t number)
{
	const struct seat *seat = get(context, number);

	return seat ? seat : &other;
}

struct link_qp *table_find_qp(const struct ibv_qp *qp)
{
	const struct seat *seat = get(qp->context, qp->qp_num);

	return seat && seat->place == OWN_QP ? seat->link : NULL;
}

void table_add_cq(const struct shared_cq *cq)
{
	set(cq->cq, 0, cq);
}

void table_remove_cq(const struct shared_cq *cq)
{
	set(cq->cq, 0, NULL);
}

struct shared_cq *table_find_cq(const struct ibv_cq *cq)
{
	return (struct shared_cq *)get(cq, 0);
}

void table_add_mr(const struct ibv_mr *mr)
{
	struct key *entry = malloc(sizeof(*entry));
	struct key **list = &keys[bucket(mr->lkey)];

	if (!entry)
		return; /* SENDs to this memory are not split */
	pthread_rwlock_wrlock(&keys_lock);
	*entry = (struct key){ mr->lkey, mr->rkey, *list };
	*list = entry;
	pthread_rwlock_unlock(&keys_lock);
}

void table_remove_mr(const struct ibv_mr *mr)
{
	pthread_rwlock_wrlock(&keys_lock);
	for (struct key **at = &keys[bucket(mr->lkey)]; *at; at = &(*at)->next) {
		struct key *entry = *at;

		if (entry->lkey == mr->lkey) {
			*at = entry->next;
			free(entry);
			break;
		}
	}
	pthread_rwlock_unlock(&keys_lock);
}

bool table_find_key(uint32_t lkey, uint32_t *rkey)
{
	const struct key *at;

	pthread_rwlock_rdlock(&keys_lock);
	for (at = keys[bucket(lkey)]; at && at->lkey != lkey; at = at->next)
		;
	if (at)
		*rkey = at->rkey;
	pthread_rwlock_unlock(&keys_lock);
	return at != NULL;
}
