/* SPDX-License-Identifier: Apache-2.0 */
#include "curve.h"

#include <stdlib.h>

int curve_add(struct curve *curve, struct curve_point point)
{
	struct curve_point *points =
		realloc(curve->points, (curve->count + 1) * sizeof(*curve->points));

	if (!points)
		return -1;
	curve->points = points;
	curve->points[curve->count++] = point;
	return 0;
}

void curve_free(struct curve *curve)
{
	free(curve->points);
	*curve = (struct curve){ 0 };
}

int curve_write(const struct curve *curve, const char *path)
{
	FILE *file = fopen(path, "w");
	int failed;

	if (!file)
		return -1;
	fprintf(file, "epoch,samples,loss,accuracy\n");
	for (size_t i = 0; i < curve->count; i++) {
		const struct curve_point *p = &curve->points[i];

		fprintf(file, "%.4f,%zu,%.6f,%.6f\n", p->epoch, p->samples, p->loss, p->accuracy);
	}
	failed = ferror(file);
	return fclose(file) != 0 || failed ? -1 : 0;
}

void curve_print_json(const struct curve *curve, FILE *file)
{
	fprintf(file, "[");
	for (size_t i = 0; i < curve->count; i++) {
		const struct curve_point *p = &curve->points[i];

		fprintf(file,
		        "%s\n    {\"epoch\": %.4f, \"samples\": %zu, \"loss\": %.6f, "
		        "\"accuracy\": %.6f}",
		        i ? "," : "", p->epoch, p->samples, p->loss, p->accuracy);
	}
	fprintf(file, curve->count ? "\n  ]" : "]");
}
