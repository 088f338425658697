/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char config_path[] = "/tmp/test_settings.XXXXXX";

/* Every test starts without settings from the machine or a launcher. */
static int environment_clear(void **state)
{
	(void)state;
	for (int i = 0; i < SETTINGS_N; i++) {
		char *list = strdup(settings[i].elsewhere ? settings[i].elsewhere : ""),
		     *rest = list;

		for (char *name; (name = strsep(&rest, " "));)
			unsetenv(name);
		free(list);
		unsetenv(settings[i].name);
	}
	return setenv("TRIB_CONFIG", "/dev/null", 1);
}

/* A new name each time, because a process reads a file once. */
static void config_write(const char *text)
{
	strcpy(config_path, "/tmp/test_settings.XXXXXX");
	int fd = mkstemp(config_path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	setenv("TRIB_CONFIG", config_path, 1);
}

static void assert_error_has(const char *word)
{
	if (!strstr(trib_last_error(), word))
		fail_msg("\"%s\" is not in the error: %s", word, trib_last_error());
}

static void table_is_complete(void **state)
{
	(void)state;
	for (int i = 0; i < SETTINGS_N; i++) {
		assert_non_null(settings[i].name);
		assert_int_equal(strncmp(settings[i].name, "TRIB_", 5), 0);
		assert_true(strlen(settings[i].help) > 10);
	}
}

static void defaults_are_valid(void **state)
{
	const char *origin;
	uint64_t count;
	double seconds;

	(void)state;
	for (int i = 0; i < SETTINGS_N; i++) {
		const char *text = setting_text((enum setting_id)i, &origin);

		if (!settings[i].fallback) {
			assert_null(text);
			assert_string_equal(origin, "not set");
			continue;
		}
		assert_string_equal(text, settings[i].fallback);
		assert_string_equal(origin, "default");
		if (settings[i].type == SETTING_SECONDS)
			assert_int_equal(setting_seconds((enum setting_id)i, &seconds), TRIB_OK);
		else if (i != SETTING_PIN && i != SETTING_PATHS)
			assert_int_equal(setting_count((enum setting_id)i, &count), TRIB_OK);
	}
	assert_int_equal(setting_count(SETTING_POOL, &count), TRIB_OK);
	assert_int_equal(count, 64 << 20);
	assert_int_equal(setting_count(SETTING_LOG, &count), TRIB_OK);
	assert_int_equal(count, LOG_NOTICE);
}

static void environment_goes_before_file(void **state)
{
	const char *origin;
	char expected[64];

	(void)state;
	config_write("# a comment\n\n  TRIB_JOB = 7   # ours\nTRIB_LANES=2\nTRIB_JOB=8\nTRIB_LOG=");
	setenv("TRIB_LANES", "3", 1);
	assert_string_equal(setting_text(SETTING_LANES, &origin), "3");
	assert_string_equal(origin, "environment");
	assert_string_equal(setting_text(SETTING_JOB, &origin), "8");
	snprintf(expected, sizeof(expected), "%s:5", config_path);
	assert_string_equal(origin, expected);
	/* An empty value counts as unset, in the environment and in the file. */
	assert_string_equal(setting_text(SETTING_LOG, &origin), "notice");
	setenv("TRIB_LANES", "", 1);
	assert_string_equal(setting_text(SETTING_LANES, NULL), "2");
	unlink(config_path);
}

static void file_with_nonsense_is_survived(void **state)
{
	uint64_t job;

	(void)state;
	log_set_level(LOG_ERROR);
	config_write("no equals sign\n=\n= 3\nTRIB_NO_SUCH=1\n\xff\xfe=\nTRIB_JOB=9");
	assert_int_equal(setting_count(SETTING_JOB, &job), TRIB_OK);
	assert_int_equal(job, 9);
	unlink(config_path);
	setenv("TRIB_CONFIG", "/nonexistent/tributary.conf", 1);
	assert_int_equal(setting_count(SETTING_JOB, &job), TRIB_OK);
	assert_int_equal(job, 1);
	log_set_level(LOG_NOTICE);
}

static void launchers_give_rank_and_size(void **state)
{
	static const char *const pairs[][2] = {
		{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		{ "PMI_RANK", "PMI_SIZE" },
		{ "PMIX_RANK", "SLURM_NTASKS" },
		{ "SLURM_PROCID", "SLURM_NTASKS" },
		{ "RANK", "WORLD_SIZE" },
	};
	const char *origin;
	uint64_t rank, size;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		environment_clear(state);
		setenv(pairs[i][0], "3", 1);
		setenv(pairs[i][1], "8", 1);
		assert_int_equal(setting_count(SETTING_RANK, &rank), TRIB_OK);
		assert_int_equal(setting_count(SETTING_SIZE, &size), TRIB_OK);
		assert_int_equal(rank, 3);
		assert_int_equal(size, 8);
		setting_text(SETTING_RANK, &origin);
		assert_string_equal(origin, pairs[i][0]);
		setenv("TRIB_RANK", "1", 1);
		assert_string_equal(setting_text(SETTING_RANK, &origin), "1");
		assert_string_equal(origin, "environment");
	}
}

static void launchers_are_not_mixed(void **state)
{
	(void)state;
	/* An incomplete torchrun environment, and a complete one of srun. */
	setenv("RANK", "5", 1);
	setenv("SLURM_PROCID", "2", 1);
	setenv("SLURM_NTASKS", "4", 1);
	assert_string_equal(setting_text(SETTING_RANK, NULL), "2");
	/* torchrun started by srun: the inner launcher wins. */
	setenv("WORLD_SIZE", "32", 1);
	assert_string_equal(setting_text(SETTING_RANK, NULL), "5");
	assert_string_equal(setting_text(SETTING_SIZE, NULL), "32");
	environment_clear(state);
	setenv("RANK", "5", 1);
	assert_null(setting_text(SETTING_RANK, NULL));
	setenv("TRIB_SIZE", "9", 1);
	assert_string_equal(setting_text(SETTING_RANK, NULL), "5");
}

static void errors_name_variable_value_and_expectation(void **state)
{
	static const struct {
		enum setting_id id;
		const char *value, *expected;
	} wrong[] = {
		{ SETTING_RANK, "-1", "a whole number from 0" },
		{ SETTING_RANK, "1x", "a whole number from 0" },
		{ SETTING_RANK, " 1", "a whole number from 0" },
		{ SETTING_SIZE, "0", "a whole number from 1" },
		{ SETTING_SIZE, "99999999999999999999", "a whole number from 1" },
		{ SETTING_JOB, "65536", "0 to 65535" },
		{ SETTING_LANES, "17", "0 to 16" },
		{ SETTING_POOL, "-64M", "64M or 1.5G" },
		{ SETTING_POOL, "0", "64M or 1.5G" },
		{ SETTING_RATE_LIMIT, "fast", "1gbit" },
		{ SETTING_MULTICAST, "on", "off auto" },
		{ SETTING_OFFLOAD, "maybe", "off on" },
		{ SETTING_LOG, "loud", "error warn notice info debug" },
	};
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv(settings[wrong[i].id].name, wrong[i].value, 1);
		assert_int_equal(setting_count(wrong[i].id, &value), TRIB_ERR_CONFIG);
		assert_error_has(settings[wrong[i].id].name);
		assert_error_has(wrong[i].value);
		assert_error_has(wrong[i].expected);
		assert_int_equal(value, 77);
	}
	environment_clear(state);
	assert_int_equal(setting_count(SETTING_RANK, &value), TRIB_ERR_CONFIG);
	assert_error_has("TRIB_RANK is not set");
	assert_error_has("SLURM_PROCID");
}

static void check_tells_every_malformed_setting(void **state)
{
	static const struct {
		enum setting_id id;
		const char *good, *bad;
	} cases[] = {
		{ SETTING_AGGREGATOR, "[::1]:4840", "host" },
		{ SETTING_AGGREGATOR, "h:1", ":1" },
		{ SETTING_PIN, "0,12", "0,,1" },
		{ SETTING_PIN, "off", "1," },
		{ SETTING_PATHS, "xor:4", "xor:" },
		{ SETTING_PATHS, "off", "0" },
		{ SETTING_PATHS, "16", "17" },
		{ SETTING_PATHS, "addresses", "address" },
		{ SETTING_TIMEOUT, "3", "3x" },
		{ SETTING_LANES, "2", "two" },
	};

	(void)state;
	for (int i = 0; i < SETTINGS_N; i++)
		assert_int_equal(setting_check((enum setting_id)i), TRIB_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setenv(settings[cases[i].id].name, cases[i].good, 1);
		assert_int_equal(setting_check(cases[i].id), TRIB_OK);
		setenv(settings[cases[i].id].name, cases[i].bad, 1);
		assert_int_equal(setting_check(cases[i].id), TRIB_ERR_CONFIG);
		assert_error_has(settings[cases[i].id].name);
	}
}

static void paths_have_a_search_and_a_number(void **state)
{
	static const struct {
		const char *text;
		enum path_search search;
		unsigned most;
	} cases[] = {
		{ "auto", PATHS_PROBED, 8 }, { "off", PATHS_OFF, 1 },
		{ "3", PATHS_PROBED, 3 },    { "addresses", PATHS_ADDRESSES, 16 },
		{ "xor:4", PATHS_XOR, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum path_search search;
		unsigned most;

		setenv("TRIB_PATHS", cases[i].text, 1);
		assert_int_equal(setting_paths(&search, &most), TRIB_OK);
		assert_int_equal(search, cases[i].search);
		assert_int_equal(most, cases[i].most);
	}
}

static void cookie_is_hex_and_secret(void **state)
{
	uint64_t cookie;

	(void)state;
	setenv("TRIB_COOKIE", "Deadbeef00112233", 1);
	assert_int_equal(setting_count(SETTING_COOKIE, &cookie), TRIB_OK);
	assert_true(cookie == 0xdeadbeef00112233);
	setenv("TRIB_COOKIE", "5eed", 1); /* a short cookie could be guessed */
	assert_int_equal(setting_count(SETTING_COOKIE, &cookie), TRIB_ERR_CONFIG);
	setenv("TRIB_COOKIE", "00deadbeef00112233f", 1);
	assert_int_equal(setting_count(SETTING_COOKIE, &cookie), TRIB_ERR_CONFIG);
	assert_null(strstr(trib_last_error(), "deadbeef"));
}

static void seconds_are_strict(void **state)
{
	static const char *const wrong[] = { "0",   "-1",  "nan", "inf", "1e10", "0x10",
		                             "1 s", "30m", "1,5", ".",   "1e",   "s" };
	double seconds = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("TRIB_TIMEOUT", wrong[i], 1);
		if (setting_seconds(SETTING_TIMEOUT, &seconds) == TRIB_OK)
			fail_msg("%s was taken", wrong[i]);
		assert_error_has(wrong[i]);
		assert_true(seconds == 5);
	}
	setenv("TRIB_TIMEOUT", "200ms", 1);
	assert_int_equal(setting_seconds(SETTING_TIMEOUT, &seconds), TRIB_OK);
	assert_true(seconds == 0.2);
	setenv("TRIB_TIMEOUT", "1.5s", 1);
	assert_int_equal(setting_seconds(SETTING_TIMEOUT, &seconds), TRIB_OK);
	assert_true(seconds == 1.5);
}

static void bytes_and_rates_parse(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes, rate; /* UINT64_MAX - 1 is refused */
	} cases[] = {
#define NO (UINT64_MAX - 1)
		{ "0", 0, 0 },
		{ "10", 10, 10 },
		{ "64M", 64 << 20, 64000000 },
		{ "64MiB", 64 << 20, NO },
		{ "64mb", 64 << 20, NO },
		{ "1gbit", NO, 1000000000 },
		{ "1Gbit/s", NO, 1000000000 },
		{ "2.5e9", 2500000000, 2500000000 },
		{ "1.1e6", 1100000, 1100000 },
		{ "1.5K", 1536, 1500 },
		{ "1T", 1ull << 40, 1000000000000 },
		{ "18446744073709551615", UINT64_MAX, UINT64_MAX },
		{ "18446744073709551616", NO, NO },
		{ "16777216T", NO, 16777216000000000000u },
		{ "1e99999", NO, NO },
		{ "1e-99999", NO, NO },
		{ "0.5", NO, NO },
		{ "", NO, NO },
		{ "M", NO, NO },
		{ "-1", NO, NO },
		{ "+1", NO, NO },
		{ " 1", NO, NO },
		{ "1 ", NO, NO },
		{ "1 M", NO, NO },
		{ "1KK", NO, NO },
		{ "1bps", NO, NO },
		{ "0x10", NO, NO },
		{ "1..5", NO, NO },
		{ "00000000000000000000000000000000000000000000000000000000000000001", NO, NO },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t bytes = NO, rate = NO;

		parse_bytes(cases[i].text, &bytes);
		parse_rate(cases[i].text, &rate);
		if (bytes != cases[i].bytes || rate != cases[i].rate)
			fail_msg("\"%s\": %llu bytes, %llu bit/s", cases[i].text,
			         (unsigned long long)bytes, (unsigned long long)rate);
	}
	assert_int_equal(parse_rate("fast", &(uint64_t){ 0 }), TRIB_ERR_ARGUMENT);
	assert_error_has("\"fast\"");
	assert_error_has("500mbit");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(table_is_complete, environment_clear),
		cmocka_unit_test_setup(defaults_are_valid, environment_clear),
		cmocka_unit_test_setup(environment_goes_before_file, environment_clear),
		cmocka_unit_test_setup(file_with_nonsense_is_survived, environment_clear),
		cmocka_unit_test_setup(launchers_give_rank_and_size, environment_clear),
		cmocka_unit_test_setup(launchers_are_not_mixed, environment_clear),
		cmocka_unit_test_setup(errors_name_variable_value_and_expectation,
		                       environment_clear),
		cmocka_unit_test_setup(check_tells_every_malformed_setting, environment_clear),
		cmocka_unit_test_setup(paths_have_a_search_and_a_number, environment_clear),
		cmocka_unit_test_setup(cookie_is_hex_and_secret, environment_clear),
		cmocka_unit_test_setup(seconds_are_strict, environment_clear),
		cmocka_unit_test_setup(bytes_and_rates_parse, environment_clear),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
