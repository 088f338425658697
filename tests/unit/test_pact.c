/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agreement of two sides about a path, on a network that loses, doubles and reorders messages.
 * Paths fail at random. A side never sends data into a QP of another epoch, what failed is fenced
 * before it goes again, and a path that works again is usable again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "path/verbs/pact.h"
#include "short.h"

#include <string.h>

#define ON_THE_WAY 4u

struct side {
	struct pact_path own, peer;
	uint32_t serial, heard;
	bool connected;    /* the QP is connected, in this epoch, to this packet number */
	uint32_t expected; /* of the peer */
	unsigned posted;   /* requests without a completion */
	struct {
		uint32_t serial;
		struct pact_path path;
	} mail[ON_THE_WAY]; /* from the peer */
	unsigned n_mail;
};

struct net {
	struct side sides[2];
	uint64_t seed;
	uint32_t psns;
	unsigned used, renewed;
};

static unsigned draw(struct net *net, unsigned below)
{
	return (unsigned)(random_next(&net->seed) % below);
}

static void tell(struct net *net, unsigned from)
{
	struct side *to = &net->sides[!from];
	unsigned place = to->n_mail < ON_THE_WAY ? to->n_mail++ : draw(net, ON_THE_WAY);

	to->mail[place].serial = net->sides[from].serial;
	to->mail[place].path = net->sides[from].own;
}

/* Any message that is on the way; it may come again. */
static void hear(struct net *net, struct side *side)
{
	unsigned place;

	if (!side->n_mail)
		return;
	place = draw(net, side->n_mail);
	if (side->mail[place].serial >= side->heard) {
		side->heard = side->mail[place].serial;
		side->peer = side->mail[place].path;
	}
	if (draw(net, 2))
		side->mail[place] = side->mail[--side->n_mail];
}

static void break_path(struct net *net, unsigned which)
{
	struct side *side = &net->sides[which];

	if (side->own.phase != PACT_OPEN)
		return;
	side->own.phase = PACT_FAILED;
	side->connected = false;
	side->serial++;
	tell(net, which);
}

static void renew(struct net *net, struct side *side, const struct side *other, bool had_failed,
                  uint32_t epoch)
{
	assert_int_equal(side->posted, 0);
	/* What was sent in that epoch cannot arrive: the other QP is closed, or of a later epoch.
	 */
	if (had_failed)
		assert_false(other->connected && other->own.epoch == epoch);
	side->own.psn = ++net->psns;
	side->connected = false;
	net->renewed++;
}

static void step(struct net *net, unsigned which)
{
	struct side *side = &net->sides[which], *other = &net->sides[!which];
	bool had_failed = side->own.phase == PACT_FAILED;
	uint32_t epoch = side->own.epoch;
	enum pact_step next = pact_next(&side->own, &side->peer, !side->posted);

	if (next == PACT_FAIL) {
		side->connected = false;
	} else if (next == PACT_RENEW) {
		renew(net, side, other, had_failed, epoch);
	} else if (next == PACT_JOIN) {
		side->connected = true;
		side->expected = side->peer.psn;
	}
	if (next != PACT_STAY) {
		side->serial++;
		tell(net, which);
	}
	if (pact_is_usable(&side->own, &side->peer) && side->posted < 3 && draw(net, 2)) {
		side->posted++;
		net->used++;
		/* The peer may have failed in between; it is never in an older epoch. */
		assert_true(other->own.epoch >= side->own.epoch);
		if (other->connected && other->own.epoch == side->own.epoch)
			assert_int_equal(other->expected, side->own.psn);
	}
	if (side->posted && draw(net, 2))
		side->posted--;
}

static void run(uint64_t seed)
{
	struct net net = { .seed = seed };
	unsigned used;

	for (unsigned i = 0; i < 2; i++) {
		net.sides[i].serial = 1;
		net.sides[i].own.epoch = 1;
		net.sides[i].own.psn = ++net.psns;
	}
	for (unsigned i = 0; i < 3000; i++) {
		unsigned which = draw(&net, 2);

		if (draw(&net, 40) == 0)
			break_path(&net, which);
		if (draw(&net, 4) == 0)
			tell(&net, which);
		hear(&net, &net.sides[which]);
		step(&net, which);
	}
	assert_true(net.renewed > 4);
	used = net.used;
	for (unsigned i = 0; i < 200; i++) {
		tell(&net, i % 2);
		hear(&net, &net.sides[!(i % 2)]);
		step(&net, !(i % 2));
	}
	assert_true(net.used > used);
}

static void random_failures(void **state)
{
	uint64_t n = test_cases("random runs", 1500);

	(void)state;
	for (uint64_t seed = 1; seed <= n; seed++)
		run(seed);
}

static void messages_keep_all_fields(void **state)
{
	struct pact pact = { .serial = 7,
		             .heard = 6,
		             .qpn = 0x123456,
		             .peer = 0xabcdef,
		             .nonce = 0x1122334455667788,
		             .echo = 9,
		             .leaving = true,
		             .notes = 1024,
		             .receives = 512,
		             .rings = 0xfedcba9876543210,
		             .key = 0x99887766,
		             .app = { .psn = 0xfedcba, .epoch = 0x87654321, .phase = PACT_FAILED },
		             .via = PATHS_MAX - 1,
		             .consumed = 0x8877665544332211,
		             .n_paths = PATHS_MAX };
	uint8_t bytes[PACT_BYTES_MAX];
	struct pact back;
	size_t n;

	(void)state;
	for (unsigned i = 0; i < PATHS_MAX; i++)
		pact.paths[i] = (struct pact_path){ .address = { [15] = (uint8_t)i },
			                            .qpn = i + 1,
			                            .psn = 0xffffff - i,
			                            .epoch = i * 3,
			                            .phase = (enum pact_phase)(i % 3) };
	n = pact_write(&pact, bytes);
	assert_true(n <= sizeof(bytes));
	assert_int_equal(pact_parse(bytes, n, &back), TRIB_OK);
	assert_memory_equal(&back, &pact, sizeof(pact));
	for (size_t cut = 0; cut < n; cut++)
		assert_int_not_equal(pact_parse(bytes, cut, &back), TRIB_OK);
	bytes[4]++;
	assert_int_not_equal(pact_parse(bytes, n, &back), TRIB_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_failures),
		cmocka_unit_test(messages_keep_all_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
