/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CELL_TEXT 256u /* bytes of a number in the table */

enum cell_kind { CELL_UNSET, CELL_NUMBER, CELL_WORD };

struct table_cell {
	enum cell_kind kind;
	double number;
	char *text; /* NULL: missing */
};

struct table_row {
	struct table_cell cells[TABLE_COLUMNS_MAX];
	char *note;
};

void table_open(struct table *table, const struct table_column *columns, unsigned n)
{
	*table = (struct table){ .columns = columns,
		                 .n_columns = n < TABLE_COLUMNS_MAX ? n : TABLE_COLUMNS_MAX };
}

void table_close(struct table *table)
{
	for (unsigned i = 0; i < table->n; i++) {
		for (unsigned k = 0; k < table->n_columns; k++)
			free(table->rows[i].cells[k].text);
		free(table->rows[i].note);
	}
	free(table->rows);
	table->rows = NULL;
	table->n = 0;
}

void table_add(struct table *table)
{
	struct table_row *rows = realloc(table->rows, (table->n + 1) * sizeof(*rows));

	if (!rows)
		abort();
	table->rows = rows;
	memset(&rows[table->n++], 0, sizeof(*rows));
}

static struct table_row *last(struct table *table)
{
	return &table->rows[table->n - 1];
}

void table_number(struct table *table, unsigned column, double value)
{
	last(table)->cells[column] = (struct table_cell){ .kind = CELL_NUMBER, .number = value };
}

void table_text(struct table *table, unsigned column, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		abort();
	last(table)->cells[column] = (struct table_cell){ .kind = CELL_WORD, .text = copy };
}

void table_note(struct table *table, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	free(last(table)->note);
	if (vasprintf(&last(table)->note, format, args) < 0)
		abort();
	va_end(args);
}

/* ---- for people ---- */

static const char *number_text(const struct table_column *column, double value, char *out)
{
	size_t used;

	if (isnan(value) || (column->positive && !(value > 0)))
		return "-";
	value *= column->scale > 0 ? column->scale : 1;
	if (column->show)
		column->show(value, out, CELL_TEXT);
	else
		snprintf(out, CELL_TEXT, column->format ? column->format : "%g", value);
	used = strlen(out);
	snprintf(out + used, CELL_TEXT - used, "%s", column->unit ? column->unit : "");
	return out;
}

static const char *cell_text(const struct table_column *column, const struct table_cell *cell,
                             char *out)
{
	if (cell->kind == CELL_UNSET)
		return "";
	if (cell->kind == CELL_NUMBER)
		return number_text(column, cell->number, out);
	return cell->text ? cell->text : "-";
}

/* A column that no row sets is left out. */
static bool column_is_shown(const struct table *table, unsigned column)
{
	bool is_set = false;

	for (unsigned i = 0; i < table->n; i++)
		is_set |= table->rows[i].cells[column].kind != CELL_UNSET;
	return is_set && table->columns[column].header;
}

static unsigned column_width(const struct table *table, unsigned column)
{
	size_t width = strlen(table->columns[column].header);
	char text[CELL_TEXT];

	for (unsigned i = 0; i < table->n; i++) {
		size_t length = strlen(
			cell_text(&table->columns[column], &table->rows[i].cells[column], text));

		width = length > width ? length : width;
	}
	return (unsigned)width;
}

/* One behind the last column that the row has in the table. */
static unsigned row_end(const struct table *table, const struct table_row *row)
{
	unsigned end = table->n_columns;

	while (end && (!table->columns[end - 1].header || row->cells[end - 1].kind == CELL_UNSET))
		end--;
	return end;
}

static void cell_print(FILE *out, bool left, unsigned width, const char *text, bool is_first)
{
	fprintf(out, left ? "%s%-*s" : "%s%*s", is_first ? "" : "  ", (int)width, text);
}

static void row_print(const struct table *table, const struct table_row *row,
                      const unsigned *widths, FILE *out)
{
	unsigned end = row_end(table, row);
	char text[CELL_TEXT];
	bool is_first = true;

	for (unsigned k = 0; k < end; k++) {
		const struct table_column *column = &table->columns[k];
		bool left = !column->format && !column->show;

		if (!widths[k])
			continue;
		/* No blanks at the end of a line. */
		cell_print(out, left, left && k + 1 == end && !row->note ? 0 : widths[k],
		           cell_text(column, &row->cells[k], text), is_first);
		is_first = false;
	}
	fprintf(out, "%s%s\n", row->note && !is_first ? "  " : "", row->note ? row->note : "");
}

void table_seconds(double seconds, char *out, size_t size)
{
	if (seconds >= 1)
		snprintf(out, size, "%.3f s", seconds);
	else if (seconds >= 1e-3)
		snprintf(out, size, "%.2f ms", seconds * 1e3);
	else
		snprintf(out, size, "%.1f us", seconds * 1e6);
}

void table_print(const struct table *table, FILE *out)
{
	unsigned widths[TABLE_COLUMNS_MAX] = { 0 }, shown = 0; /* 0: not in the table */
	bool is_first = true;

	for (unsigned k = 0; k < table->n_columns; k++)
		if (column_is_shown(table, k)) {
			widths[k] = column_width(table, k);
			shown = k + 1;
		}
	for (unsigned k = 0; k < shown; k++) {
		const struct table_column *column = &table->columns[k];
		bool left = !column->format && !column->show;

		if (!widths[k])
			continue;
		cell_print(out, left, left && k + 1 == shown ? 0 : widths[k], column->header,
		           is_first);
		is_first = false;
	}
	fputc('\n', out);
	for (unsigned i = 0; i < table->n; i++)
		row_print(table, &table->rows[i], widths, out);
}

/* ---- for programs ---- */

static void row_json(const struct table *table, unsigned row, struct json_writer *json)
{
	for (unsigned k = 0; k < table->n_columns; k++) {
		const struct table_column *column = &table->columns[k];
		const struct table_cell *cell = &table->rows[row].cells[k];

		if (!column->field || cell->kind == CELL_UNSET)
			continue;
		if (cell->kind == CELL_WORD)
			json_put_text(json, column->field, cell->text);
		else if (column->json)
			json_put_number(json, column->field, column->json, cell->number);
		else
			json_put_bool(json, column->field, cell->number > 0);
	}
}

void table_json(const struct table *table, struct json_writer *json, const char *name)
{
	json_open_list(json, name);
	for (unsigned i = 0; i < table->n; i++) {
		json_open_object(json, NULL);
		row_json(table, i, json);
		json_close(json);
	}
	json_close(json);
}
