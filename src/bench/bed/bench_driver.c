/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/bench_driver.h"

#include "bench/bed/size_list.h"

#include <stdio.h>
#include <string.h>

trib_status bench_sizes_take(void *options, const char *text)
{
	struct bench_options *o = options;

	return size_list_parse(text, o->sizes, BENCH_SIZES_MAX, &o->n_sizes);
}

static trib_status results_show(const struct bench_driver *driver)
{
	const struct bench_options *o = driver->asked;
	trib_status status = TRIB_OK;

	if (!o->json || strcmp(o->json, "-") != 0)
		driver->table_print(driver->report);
	if (o->json)
		status = json_report_write(driver->json, driver->report, o->json);
	if (o->plot && status == TRIB_OK)
		status = driver->plot_write(driver->report, o->plot);
	return status;
}

static trib_status report_make(const struct bench_driver *driver)
{
	const struct bench_options *o = driver->asked;
	trib_status status = output_try(o->json), stopped;

	if (status == TRIB_OK)
		status = output_try(o->plot);
	if (status == TRIB_OK)
		status = driver->prepare(driver->report);
	if (status != TRIB_OK)
		return status;
	stopped = bench_interleave(o, driver->results, *driver->n);
	status = results_show(driver);
	if (status == TRIB_OK)
		status = stopped;
	return status == TRIB_OK ? driver->judge(driver->report) : status;
}

int bench_drive(const struct bench_driver *driver, int argc, char **argv)
{
	const char *wrong;
	trib_status status;
	int code;

	if (!options_parse_all(driver->options, argc, argv, &code))
		return code;
	if ((wrong = driver->settle()))
		return options_fail(driver->options, "%s", wrong);
	status = report_make(driver);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench %s: %s\n", argv[0], trib_last_error());
	for (unsigned i = 0; i < driver->n_beds; i++)
		bench_place_close(&driver->beds[i]);
	return status == TRIB_OK ? 0 : status == TRIB_ERR_ARGUMENT ? EXIT_USAGE : 1;
}

trib_status bench_ours_check(const struct bench_result *results, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (results[i].failed && bench_system_is_ours(results[i].system))
			return status_fail(TRIB_ERR_PEER, "%s failed: %s", results[i].system->name,
			                   results[i].note);
	return TRIB_OK;
}
