/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

#include <stdio.h>

double result_accuracy(const struct result *r)
{
	return r->tested ? (double)r->correct / (double)r->tested : 0;
}

static double result_step(const struct result *r)
{
	return r->step_total_s / (double)r->steps;
}

void result_print(const struct result *r, struct progress *p)
{
	progress_say(p, "test accuracy %.2f %% (%zu of %zu)", 100 * result_accuracy(r), r->correct,
	             r->tested);
	if (r->weights_equal && r->workers > 1)
		progress_say(p, "weights       bitwise equal on all %d workers", r->workers);
	progress_say(p, "time          %.1f s in all, %zu steps of %.1f ms", r->total_s, r->steps,
	             1e3 * result_step(r));
	progress_say(p,
	             "              %.1f s computing, %.1f s waiting for communication (%.0f %%)",
	             r->step_total_s - r->comm_s, r->comm_s, 100 * r->comm_s / r->step_total_s);
	progress_say(p, "gradient      %zu bytes a step, in %zu all-reduce%s", r->gradient_bytes,
	             r->buckets, r->buckets == 1 ? "" : "s");
}

int result_write(const struct result *r, const char *path)
{
	FILE *file = fopen(path, "w");
	int failed;

	if (!file)
		return -1;
	fprintf(file,
	        "{\n"
	        "  \"data\": \"%s\",\n"
	        "  \"model\": \"%s\",\n"
	        "  \"workers\": %d,\n"
	        "  \"batch\": %zu,\n"
	        "  \"hidden\": %zu,\n"
	        "  \"buckets\": %zu,\n"
	        "  \"accuracy\": %.6f,\n"
	        "  \"loss\": %.6f,\n"
	        "  \"steps\": %zu,\n"
	        "  \"step_s\": %.9f,\n"
	        "  \"compute_s\": %.6f,\n"
	        "  \"comm_s\": %.6f,\n"
	        "  \"total_s\": %.6f,\n"
	        "  \"gradient_bytes\": %zu,\n"
	        "  \"weights_equal\": %s,\n"
	        "  \"curve\": ",
	        r->data, r->model, r->workers, r->batch, r->hidden, r->buckets, result_accuracy(r),
	        r->loss, r->steps, result_step(r), r->step_total_s - r->comm_s, r->comm_s,
	        r->total_s, r->gradient_bytes, r->weights_equal ? "true" : "false");
	curve_print_json(&r->curve, file);
	fprintf(file, "\n}\n");
	failed = ferror(file);
	return fclose(file) != 0 || failed ? -1 : 0;
}
