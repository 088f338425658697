/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/sparse/push_lines.h"

#include "bench/bed/size_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool push_sample_read(const char *line, unsigned *iteration, double *seconds, double *hot_share)
{
	return sscanf(line, "SAMPLE %u %lf %lf", iteration, seconds, hot_share) == 3 &&
	       *seconds > 0;
}

static double number_after(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtod(at + strlen(key), NULL) : 0;
}

void push_figures_add(struct push_figures *sum, const struct push_figures *one)
{
	sum->rows += one->rows;
	sum->hot_rows += one->hot_rows;
	sum->packets += one->packets;
	sum->repeats += one->repeats;
	sum->server_bytes += one->server_bytes;
	sum->step_bytes = one->step_bytes;
	sum->hot_set = one->hot_set;
	sum->switch_packets += one->switch_packets;
	sum->recirculations += one->recirculations;
	sum->added_bytes += one->added_bytes;
	sum->kernel_bytes += one->kernel_bytes;
}

bool push_figures_read(const char *line, struct push_figures *figures)
{
	struct push_figures one = { 0 };

	if (strncmp(line, "{\"tribd\":", 9) == 0) {
		figures->recirculations += number_after(line, "\"switch_recirculations\":");
		figures->switch_packets += number_after(line, "\"switch_packets\":");
		figures->added_bytes += number_after(line, "\"payload_bytes\":");
		figures->kernel_bytes += number_after(line, "\"kernel_payload_bytes\":");
		return true;
	}
	if (sscanf(line, "FIGURES %lf %lf %lf %lf %lf %lf %lf", &one.rows, &one.hot_rows,
	           &one.packets, &one.repeats, &one.server_bytes, &one.step_bytes,
	           &one.hot_set) != 7)
		return false;
	push_figures_add(figures, &one);
	return true;
}

trib_status push_losses_parse(const char *text, double *out, unsigned most, unsigned *n)
{
	char word[32], *end;

	for (*n = 0; *text; (*n)++) {
		double value;

		text = list_word_next(text, word, sizeof(word));
		value = strtod(word, &end);
		if (end == word || *end || !(value >= 0 && value < 1))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "\"%s\" is not a probability from 0 to below 1", word);
		for (unsigned i = 0; i < *n; i++)
			if (out[i] == value)
				return status_fail(TRIB_ERR_ARGUMENT, "%s is there twice", word);
		if (*n == most)
			return status_fail(TRIB_ERR_ARGUMENT, "more than %u probabilities", most);
		out[*n] = value;
	}
	return TRIB_OK;
}
