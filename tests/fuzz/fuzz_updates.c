/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data set of trib sparse hot. The first byte chooses format and rows. Every file is read, or
 * refused with a sentence that names it. Counts agree with records, and every study of them ends.
 */
#include "fuzz.h"
#include "sparse/data/hot_study.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void counts_check(const struct update_data *data)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < data->index.n; i++)
		total += data->counts[i];
	demand(total == data->total);
	demand(data->format == UPDATES_COUNTS || total == data->records * data->per_record);
	for (size_t i = 0; i < data->records * data->per_record; i++)
		demand(data->updates[i] < data->index.n);
}

static void study_try(const struct update_data *data, uint8_t choice)
{
	struct hot_sample sample = { .share = 0.5, .by_group = choice & 1 };
	struct hot_link link = { .workers = 2, .batch = 3, .rows = { 1, 5 }, .n = 2 };
	struct hot_layout layout = { .layout = { 1 + choice % 4, 3 }, .batch = 7 };
	struct hot_study study;

	demand(hot_study_open(&study, data, choice) == TRIB_OK);
	sample.limits = HEAT_LIMITS_PAPER;
	sample.limits.step = 2;
	demand(hot_study_sample(&study, &sample) == TRIB_OK);
	demand(hot_precision(&sample) <= 1.000001 && hot_right(&sample.found) <= 1.000001);
	demand(sample.sure.n <= sample.found.n && hot_right(&sample.sure) <= 1.000001);
	demand(hot_updates(&sample.found) <= 1.000001 && sample.found.best <= 1.000001);
	demand(hot_study_link(&study, &link) == TRIB_OK);
	demand(link.with[0] <= link.all && link.with[1] <= link.with[0]);
	layout.rows = (uint32_t)(study.n < 9 ? study.n : 9);
	demand(hot_study_layout(&study, &layout) == TRIB_OK);
	demand(layout.heat.packets >= layout.heat_in_order.packets);
	hot_study_close(&study);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct update_data data = { 0 };
	char path[64];
	int file;

	if (size < 1)
		return 0;
	data.format = (enum update_format)(bytes[0] % 5);
	data.rows = (enum update_rows)(bytes[0] / 5 % 3);
	file = memfd_create("updates", MFD_CLOEXEC);
	demand(file >= 0 && write(file, bytes + 1, size - 1) == (ssize_t)(size - 1));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (update_data_read(&data, path) != TRIB_OK) {
		demand(*trib_last_error());
		demand(strstr(trib_last_error(), path));
	} else {
		counts_check(&data);
		if (data.total)
			study_try(&data, bytes[0]);
	}
	update_data_free(&data);
	close(file);
	return 0;
}
