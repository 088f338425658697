/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: how figures are condensed (samples.h), printed (table.h), written as
 * JSON (json_report.h) and drawn (chart.h), and how CPU time is read (cpu_time.h).
 * This room knows no benchmark: it must not include any other room of src/bench.
 *
 * table: rows of values, shown as an aligned table for people and as JSON for
 * programs. A benchmark describes its columns once and sets each value once.
 */
#ifndef TRIB_BENCH_REPORT_TABLE_H
#define TRIB_BENCH_REPORT_TABLE_H

#include "options/json_writer.h"

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 64u

struct table_column {
	const char *header; /* in the table; NULL: the column is in JSON alone */
	const char *format; /* in the table: printf's for a double; NULL: text, aligned left */
	double scale;       /* in the table: numbers times this; 0: as they are */
	const char *unit;   /* in the table: behind a number; NULL: nothing */
	bool positive;      /* in the table: a number that is not above 0 is a "-" */
	/* In the table: writes the number instead of `format`, if it is not NULL. */
	void (*show)(double value, char *out, size_t size);
	const char *field; /* name in JSON; NULL: the column is in the table alone */
	const char *json;  /* in JSON: printf's for a double; NULL: text, or true and false */
};

struct table_row;

struct table {
	const struct table_column *columns;
	unsigned n_columns, n;
	struct table_row *rows;
};

void table_open(struct table *table, const struct table_column *columns, unsigned n);
void table_close(struct table *table);

/*
 * Begins a row; the functions below set its cells. A cell that is not set is
 * blank in the table and absent in JSON.
 */
void table_add(struct table *table);
/* NaN is "-" in the table and null in JSON. */
void table_number(struct table *table, unsigned column, double value);
/* The text is copied. NULL is "-" in the table and null in JSON. */
void table_text(struct table *table, unsigned column, const char *text);
/* A text of any length behind the row's last cell that is set; not in JSON. */
void table_note(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For `show`: "1.250 s", "3.20 ms", "41.0 us". */
void table_seconds(double seconds, char *out, size_t size);

void table_print(const struct table *table, FILE *out);
/* All rows as a list of objects. */
void table_json(const struct table *table, struct json_writer *json, const char *name);

#endif
