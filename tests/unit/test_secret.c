/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies derived from a secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/secret.h"

#include <string.h>

static struct secret counting(void)
{
	struct secret secret;

	for (unsigned i = 0; i < SECRET_BYTES; i++)
		secret.bytes[i] = (uint8_t)i;
	return secret;
}

/* The example in the appendix of the SipHash paper, and lengths around a word. */
static void test_is_siphash(void **state)
{
	const struct secret secret = counting();
	uint8_t text[16];

	(void)state;
	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)i;
	assert_true(secret_hash(&secret, text, 15) == 0xa129ca6149be45e5);
	assert_true(secret_hash(&secret, text, 0) == 0x726fdb47dd0e0e31);
	assert_true(secret_hash(&secret, text, 7) == 0xab0200f58b01d137);
	assert_true(secret_hash(&secret, text, 8) == 0x93f5f5799a932462);
}

static void test_each_job_has_its_own(void **state)
{
	struct secret secret = counting(), other = counting();
	uint64_t seen[256];

	(void)state;
	other.bytes[15] ^= 1;
	for (unsigned job = 0; job < 256; job++) {
		seen[job] = secret_cookie(&secret, (uint16_t)(job * 257));
		assert_true(seen[job] != 0);
		assert_true(seen[job] != secret_cookie(&other, (uint16_t)(job * 257)));
		for (unsigned i = 0; i < job; i++)
			assert_true(seen[i] != seen[job]);
	}
}

static void test_knows_its_tickets(void **state)
{
	struct secret secret = counting(), other = counting();

	(void)state;
	other.bytes[0] ^= 1;
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t random = i * 2654435761u;
		uint64_t ticket = secret_ticket(&secret, 7, random);

		assert_true(secret_made(&secret, 7, ticket));
		assert_false(secret_made(&secret, 8, ticket));
		assert_false(secret_made(&other, 7, ticket));
		assert_false(secret_made(&secret, 7, ticket ^ 1ull << i % 64));
	}
}

static void test_reads_what_it_prints(void **state)
{
	const struct secret secret = counting();
	char text[SECRET_TEXT];
	struct secret again;

	(void)state;
	secret_print(&secret, text);
	assert_string_equal(text, "000102030405060708090a0b0c0d0e0f");
	assert_true(secret_parse(&again, text));
	assert_memory_equal(&again, &secret, sizeof(secret));
	assert_false(secret_parse(&again, ""));
	assert_false(secret_parse(&again, "000102030405060708090a0b0c0d0e0"));
	assert_false(secret_parse(&again, "000102030405060708090a0b0c0d0e0f0"));
	assert_false(secret_parse(&again, "000102030405060708090a0b0c0d0e0x"));
}

static void test_compares(void **state)
{
	(void)state;
	assert_true(secret_same("token", "token"));
	assert_true(secret_same("", ""));
	assert_false(secret_same("token", "tokem"));
	assert_false(secret_same("token", "Token"));
	assert_false(secret_same("token", "toke"));
	assert_false(secret_same("toke", "token"));
	assert_false(secret_same("tt", "t"));
	assert_false(secret_same("t", "tt"));
	assert_false(secret_same("token", ""));
	assert_false(secret_same("", "token"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_siphash),
		cmocka_unit_test(test_each_job_has_its_own),
		cmocka_unit_test(test_knows_its_tickets),
		cmocka_unit_test(test_reads_what_it_prints),
		cmocka_unit_test(test_compares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
