/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/json_report.h"

trib_status json_report_write(const struct json_report *kind, const void *report, const char *path)
{
	struct json_writer json;
	struct table table;
	trib_status status = json_start(&json, path);

	if (status != TRIB_OK)
		return status;
	json_open_object(&json, "settings");
	json_put_text(&json, "version", TRIB_VERSION);
	kind->settings(&json, report);
	json_close(&json);
	kind->rows(report, &table);
	table_json(&table, &json, "results");
	table_close(&table);
	if (kind->curves) {
		json_open_list(&json, "curves");
		kind->curves(&json, report);
		json_close(&json);
	}
	return json_finish(&json, path);
}
