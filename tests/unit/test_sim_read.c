/* SPDX-License-Identifier: Apache-2.0 */
/* The input files of a simulation: read correctly, or refused with the line number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim/read.h"

#include <string.h>

static trib_status model_find(void *context, const char *name, uint32_t *step)
{
	(void)context;
	*step = 3;
	return strcmp(name, "known") ? status_fail(TRIB_ERR_CONFIG, "no such model") : TRIB_OK;
}

static const struct read_models models = { model_find, NULL, 64 };
static const double step_s[2] = { 0.5, 2 };
static const struct read_cluster cluster = {
	.step_s = step_s, .n_models = 2, .gpus_per_host = 8, .shrink = 10, .most = 16, .seed = 1
};

static void step_is_read(void **state)
{
	struct sim_step step;

	(void)state;
	assert_int_equal(read_step(&step, "{ \"note\": [1, {\"a\\\"b\": null}, true],\n"
	                                  " \"duration\": 0.25, \"allreduces\": [\n"
	                                  "{\"start\": 0.1, \"size\": 9446400},\n"
	                                  "{\"size\": 1e6, \"start\": 0.2, \"x\": \"y\"} ] }\n"),
	                 TRIB_OK);
	assert_int_equal(step.n, 2);
	assert_true(step.compute_s == 0.25 && step.start_s[1] == 0.2);
	assert_int_equal(step.bytes[0], 9446400);
	assert_int_equal(step.bytes[1], 1000000);
	step_free(&step);
}

static void bad_steps_name_their_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "1: expected {" },
		{ "{\n\"duration\" 1}", "2: expected a colon" },
		{ "{\"duration\": 1,\n\n\"allreduces\": [{\"start\": -1, \"size\": 1}]}", "3: an" },
		{ "{\"duration\": 1, \"allreduces\": [{\"start\": 1}]}",
		  "1: an allreduce has a \"size\"" },
		{ "{\"duration\": 0, \"allreduces\": []}", "1: a step has" },
		{ "{\"duration\": 1}", "1: a step has" },
		{ "{\"duration\": 1, \"allreduces\": []}\n}", "2: something follows" },
		{ "{\"duration\": nan, \"allreduces\": []}", "1: expected a number" },
		{ "{\"duration\": 1 \"allreduces\": []}", "1: expected a comma" },
		{ "{\"x\": \"no end\n\"}", "1: a text has no end" },
		{ "{\"x\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested" },
	};
	struct sim_step step;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_not_equal(read_step(&step, bad[i].text), TRIB_OK);
		assert_non_null(strstr(trib_last_error(), bad[i].says));
	}
}

static void jobs_are_read(void **state)
{
	struct sim_list list = { 0 };

	(void)state;
	assert_int_equal(read_jobs(&list,
	                           "# index,model,hosts,steps\n0,known,4,70\n\n"
	                           "1, known ,16,100,2.5\r\n2,known,1,1,0.5",
	                           &models),
	                 TRIB_OK);
	assert_int_equal(list.n, 3);
	assert_int_equal(list.jobs[0].hosts, 4);
	assert_int_equal(list.jobs[0].steps, 70);
	/* Sorted by arrival. */
	assert_int_equal(list.jobs[1].hosts, 1);
	assert_true(list.jobs[2].arrive_s == 2.5);
	assert_int_equal(list.jobs[2].step, 3);
	list_free(&list);
}

static void bad_jobs_name_their_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "0,known,4\n", "1: expected index" },
		{ "0,known,4,10\n1,known,x,10\n", "2: \"x\" is no number of hosts" },
		{ "0,known,0,10\n", "1: \"0\" is no number of hosts" },
		{ "0,known,4,0\n", "1: \"0\" is no number of steps" },
		{ "0,other,4,1\n", "1: no such model" },
		{ "\n\n0,known,4,1,-3\n", "3: \"-3\" is no time" },
		{ "0,known,4,1,1,1,1,1,1,1,1,1\n", "1: too many" },
		{ "0,known,64,1\n# all\n1,known,65,1\n",
		  "3: the job wants 65 hosts, and the fabric has 64" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sim_list list = { 0 };

		assert_int_not_equal(read_jobs(&list, bad[i].text, &models), TRIB_OK);
		assert_non_null(strstr(trib_last_error(), bad[i].says));
		list_free(&list);
	}
}

static void philly_is_read(void **state)
{
	struct sim_list list = { 0 };

	(void)state;
	assert_int_equal(read_philly(&list,
	                             "timestamp,duration,num_gpus,gpu_time,cluster\n"
	                             "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
	                             "2017-10-08 07:01:45,3000,24,72000,6214e9\n"
	                             "2017-10-09 07:02:55,1,4000,66.0,11cb48\n\n",
	                             &cluster),
	                 TRIB_OK);
	assert_int_equal(list.n, 3);
	/* Relative to the first arrival, ten times as fast, eight GPUs in a host. */
	assert_true(list.jobs[0].arrive_s == 0);
	assert_true(list.jobs[1].arrive_s == 8641);
	assert_int_equal(list.jobs[0].hosts, 3);
	assert_int_equal(list.jobs[0].steps, 3000 / 10 / step_s[list.jobs[0].step]);
	assert_int_equal(list.jobs[2].hosts, 16);
	assert_int_equal(list.jobs[2].steps, 1);
	list_free(&list);
}

/* Without a line of names, the first line is a job. */
static void philly_without_names(void **state)
{
	struct sim_list list = { 0 };

	(void)state;
	assert_int_equal(read_philly(&list,
	                             "2017-10-08 07:01:45,3000,24,72000,6214e9\n"
	                             "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n",
	                             &cluster),
	                 TRIB_OK);
	assert_int_equal(list.n, 2);
	assert_int_equal(list.jobs[0].hosts, 3);
	list_free(&list);
}

/* The traces of its physical cluster have ten fields, in another order. */
static void gavel_with_ten_fields(void **state)
{
	struct sim_list list = { 0 };

	(void)state;
	assert_int_equal(read_gavel(&list,
	                            "A\tx\tfolder\t-n\t1\t500\t16\t1\t-1.000000\t100\n"
	                            "B\tz\tfolder\t-n\t1\t40\t1\t1\t-1.000000\t300\n",
	                            &cluster),
	                 TRIB_OK);
	assert_int_equal(list.n, 2);
	assert_int_equal(list.jobs[0].steps, 50);
	assert_int_equal(list.jobs[0].hosts, 2);
	assert_true(list.jobs[1].arrive_s == 20);
	list_free(&list);
}

static void gavel_is_read(void **state)
{
	struct sim_list list = { 0 };

	(void)state;
	assert_int_equal(read_gavel(&list,
	                            "A (batch 1)\tcd x && y\t-n\t1\t500\t100.0\t16\n"
	                            "B\tz\t-n\t1\t40\t300\t1\n"
	                            "A (batch 1)\tz\t-n\t0\t9\t200\t2\n",
	                            &cluster),
	                 TRIB_OK);
	assert_int_equal(list.n, 3);
	assert_int_equal(list.jobs[0].steps, 50);
	assert_int_equal(list.jobs[0].hosts, 2);
	assert_true(list.jobs[1].arrive_s == 10);
	assert_int_equal(list.jobs[0].step, list.jobs[1].step);
	list_free(&list);
}

static void bad_traces_name_their_line(void **state)
{
	struct sim_list list = { 0 };

	(void)state;
	assert_int_not_equal(
		read_philly(&list, "a,b,c,d,e\n2017-13-09 07:01:55,6,1,6,x\n", &cluster), TRIB_OK);
	assert_non_null(strstr(trib_last_error(), "2: a timestamp"));
	assert_int_not_equal(
		read_philly(&list, "a,b,c,d,e\n\n2017-10-09 07:01:55,6,1,6\n", &cluster), TRIB_OK);
	assert_non_null(strstr(trib_last_error(), "3: expected timestamp"));
	assert_int_not_equal(read_gavel(&list, "A\tb\tc\td\t1\t1\n", &cluster), TRIB_OK);
	assert_non_null(strstr(trib_last_error(), "1: expected 7 fields"));
	assert_int_not_equal(read_gavel(&list,
	                                "A\tb\t-n\t1\t40\t3\t8\n"
	                                "A\tb\t-n\t1\t40\t3\t8\t1\n",
	                                &cluster),
	                     TRIB_OK);
	assert_non_null(strstr(trib_last_error(), "2: expected 7 fields"));
	assert_int_not_equal(
		read_gavel(&list, "A\tx\tf\t-n\t1\t500\t16\t1\t-1\t100\t1\t1\n", &cluster),
		TRIB_OK);
	list_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_is_read),
		cmocka_unit_test(bad_steps_name_their_line),
		cmocka_unit_test(jobs_are_read),
		cmocka_unit_test(bad_jobs_name_their_line),
		cmocka_unit_test(philly_is_read),
		cmocka_unit_test(philly_without_names),
		cmocka_unit_test(gavel_is_read),
		cmocka_unit_test(gavel_with_ten_fields),
		cmocka_unit_test(bad_traces_name_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
