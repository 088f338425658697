/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences of errors. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/status.h"

#include <errno.h>
#include <string.h>

static void a_sentence_may_quote_the_one_before(void **state)
{
	(void)state;
	status_fail(TRIB_ERR_CONFIG, "%s is wrong", "this");
	assert_int_equal(status_fail(TRIB_ERR_PEER, "%d: %s", 3, trib_last_error()), TRIB_ERR_PEER);
	assert_string_equal(trib_last_error(), "3: this is wrong");
	errno = ENOENT;
	assert_int_equal(status_fail_errno("%s", trib_last_error()), TRIB_ERR_SYSTEM);
	assert_string_equal(trib_last_error(), "3: this is wrong: No such file or directory");
	assert_int_equal(trib_set_error(TRIB_ERR_PEER, trib_last_error() + 3), TRIB_ERR_PEER);
	assert_string_equal(trib_last_error(), "this is wrong: No such file or directory");
}

static void long_sentences_are_cut(void **state)
{
	static char words[2 * STATUS_SENTENCE];

	(void)state;
	memset(words, 'w', sizeof(words) - 1);
	status_fail(TRIB_ERR_CONFIG, "%s", words);
	assert_int_equal(strlen(trib_last_error()), STATUS_SENTENCE - 1);
	trib_set_error(TRIB_ERR_CONFIG, words);
	assert_int_equal(strlen(trib_last_error()), STATUS_SENTENCE - 1);
	errno = ENOENT;
	status_fail_errno("%.*s", (int)STATUS_SENTENCE - 4, words);
	assert_string_equal(trib_last_error() + STATUS_SENTENCE - 4, ": N");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sentence_may_quote_the_one_before),
		cmocka_unit_test(long_sentences_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
