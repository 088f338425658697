/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows from text: numbers are the nearest floats, good rows are what a simple reader takes them
 * for, and every bad row is named by file and line, with the reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/text/csv_guess.h"
#include "glm/text/number_text.h"
#include "glm/text/row_reader.h"
#include "glm_files.h"
#include "short.h"

#include <locale.h>
#include <math.h>
#include <string.h>

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % below);
}

static void number_is_nearest(const char *text)
{
	const char *end;
	char *after;
	float value, expected = strtof(text, &after);
	enum number_text kind = number_text_read(text, &end, &value);

	if (kind != (isinf(expected) ? NUMBER_TOO_LARGE : NUMBER_OK) || end != after ||
	    value != expected || signbit(value) != signbit(expected))
		fail_msg("%s: %.9g, not %.9g", text, value, expected);
}

static void numbers_are_nearest(void **state)
{
	static const char *const hard[] = {
		"0",
		"-0",
		"1",
		"+7",
		"16777217",
		"16777219",
		"33554435",
		"0.1",
		".5",
		"5.",
		"1e10",
		"1E-10",
		"1e22",
		"1e23",
		"3.4028235e38",
		"3.4028236e38",
		"1.17549435e-38",
		"1.17549429e-38",
		"1e-45",
		"7e-46",
		"1e-400",
		"1e-99999999999",
		"0e99999",
		"8589973504.5",
		"0.000000000000000000000000000000000000000000001",
		"123456789012345678901234567890",
		"0.12345678901234567890123456789",
		"1.000000059604644775390625",
		"1.00000005960464477539062500000000000000000000001",
		"1.00000005960464477539062499999999999999999999999",
		"9007199791611905",
		"00000000000000000000000000000000001.5",
	};
	uint64_t i, n = test_cases("numbers", 3000000);
	char text[64];

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (i = 0; i < sizeof(hard) / sizeof(*hard); i++)
		number_is_nearest(hard[i]);
	for (i = 0; i < n; i++) {
		uint32_t bits = draw(1u << 16) << 16 | draw(1u << 16);
		float value, middle;

		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		snprintf(text, sizeof(text), "%.*g", (int)draw(20) + 1, (double)value);
		number_is_nearest(text);
		/* Halfway between two floats, and right beside it. */
		middle = nextafterf(value, 0);
		snprintf(text, sizeof(text), "%.*g", (int)draw(12) + 16,
		         ((double)value + middle) / 2);
		number_is_nearest(text);
		snprintf(text, sizeof(text), "%u.%ue%d", draw(1000000), draw(100000000),
		         (int)draw(60) - 30);
		number_is_nearest(text);
	}
}

static void words_are_not_numbers(void **state)
{
	static const struct {
		const char *text;
		enum number_text kind;
		size_t length;
	} words[] = {
		{ "", NUMBER_NONE, 0 },           { "-", NUMBER_NONE, 0 },
		{ ".", NUMBER_NONE, 0 },          { "-.e5", NUMBER_NONE, 0 },
		{ "x", NUMBER_NONE, 0 },          { "nan", NUMBER_NOT_FINITE, 3 },
		{ "-Inf", NUMBER_NOT_FINITE, 4 }, { "infinity", NUMBER_NOT_FINITE, 8 },
		{ "1e", NUMBER_OK, 1 },           { "1e+", NUMBER_OK, 1 },
		{ "0x10", NUMBER_OK, 1 },         { "1,5", NUMBER_OK, 1 },
		{ "1e39", NUMBER_TOO_LARGE, 4 },  { "-1e999", NUMBER_TOO_LARGE, 6 },
	};
	const char *end;
	unsigned i;
	float value;

	(void)state;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		assert_int_equal(number_text_read(words[i].text, &end, &value), words[i].kind);
		assert_int_equal(end - words[i].text, words[i].length);
	}
}

/* A number that takes the slow path, in a locale with a decimal comma. */
static void locale_has_no_influence(void **state)
{
	const char *end;
	float value;

	(void)state;
	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
		printf("omitted: the locale de_DE.UTF-8 is not installed\n");
	assert_int_equal(number_text_read("1.5e-40", &end, &value), NUMBER_OK);
	setlocale(LC_NUMERIC, "C");
	assert_true(value == 1.5e-40f);
}

/* One random file: what stands in it, and what a reader must say. */
struct expected {
	float label;
	uint32_t n, column[40];
	float value[40];
};

static int number_print(char *to, float *value)
{
	static const char *const forms[] = { "%.0f", "%.3f", "%.9g", "%.17g", "%.2e", "%+.4f" };
	double drawn = ((double)draw(2000001) - 1000000) / (1 << draw(24));
	int n = sprintf(to, forms[draw(6)], drawn);

	*value = strtof(to, NULL);
	return n;
}

static size_t svm_print(char *to, struct expected *row, uint32_t base)
{
	static const char *const blanks[] = { " ", "  ", "\t", " \t " };
	uint32_t index = base - 1, features = draw(40), i;
	char *at = to;

	at += draw(5) ? 0 : sprintf(at, " ");
	at += number_print(at, &row->label);
	at += draw(6) ? 0 : sprintf(at, " qid:%u", draw(100));
	row->n = 0;
	for (i = 0; i < features; i++) {
		index += 1 + draw(1u << draw(12));
		at += sprintf(at, "%s%u:", blanks[draw(4)], index);
		row->column[row->n] = index - base;
		at += number_print(at, &row->value[row->n]);
		row->n += row->value[row->n] != 0;
	}
	at += draw(5) ? 0 : sprintf(at, " # 3:4 comment");
	at += sprintf(at, draw(3) ? "\n" : "\r\n");
	at += draw(9) ? 0 : sprintf(at, draw(2) ? "\n" : "  # nothing\n");
	return (size_t)(at - to);
}

static size_t csv_print(char *to, struct expected *row, uint32_t fields, uint32_t label,
                        char between)
{
	char *at = to;
	uint32_t i, column = 0;
	float value;

	row->n = 0;
	for (i = 0; i < fields; i++) {
		bool quoted = !draw(8);

		if (i)
			*at++ = between;
		at += draw(9) || between == ' ' ? 0 : sprintf(at, " ");
		at += quoted ? sprintf(at, "\"") : 0;
		at += draw(3) ? number_print(at, &value) : (value = 0, sprintf(at, "0"));
		at += quoted ? sprintf(at, "\"") : 0;
		at += draw(9) || between == ' ' ? 0 : sprintf(at, " ");
		if (i == label) {
			row->label = value;
			continue;
		}
		row->column[row->n] = column++;
		row->value[row->n] = value;
		row->n += value != 0;
	}
	at += sprintf(at, draw(3) ? "\n" : "\r\n");
	at += draw(9) ? 0 : sprintf(at, "# nothing\n");
	return (size_t)(at - to);
}

static void rows_are(const struct glm_source *source, const struct expected *rows, uint32_t n)
{
	struct glm_rules rules = { 0 };
	struct glm_problem problem;
	struct row_reader *reader;
	struct glm_row *row;
	uint32_t i;

	if (row_reader_open(&reader, source, &rules, &problem) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	for (i = 0; i < n; i++) {
		if (row_reader_next(reader, &row) != TRIB_OK)
			fail_msg("%s", trib_last_error());
		assert_non_null(row);
		assert_true(row->label == rows[i].label);
		assert_int_equal(row->n, rows[i].n);
		assert_memory_equal(row->column, rows[i].column, row->n * sizeof(*row->column));
		assert_memory_equal(row->value, rows[i].value, row->n * sizeof(*row->value));
	}
	assert_int_equal(row_reader_next(reader, &row), TRIB_OK);
	assert_null(row);
	row_reader_close(reader);
}

/* The same text plain and compressed, also in two parts. */
static void file_is(struct glm_source source, const char *text, size_t length,
                    const struct expected *rows, uint32_t n)
{
	static const enum packing packings[] = { PACK_PLAIN, PACK_GZIP, PACK_XZ, PACK_GZIP_PARTS,
		                                 PACK_XZ_PARTS };
	unsigned i;

	for (i = 0; i < sizeof(packings) / sizeof(*packings); i++) {
		source.path = file_write(text, length, packings[i]);
		if (source.path)
			rows_are(&source, rows, n);
	}
}

static void random_libsvm_is_read(void **state)
{
	uint64_t cases = test_cases("files", 300), c;
	struct expected rows[100];
	char *text = malloc(1 << 20);

	(void)state;
	assert_non_null(text);
	for (c = 0; c < cases; c++) {
		struct glm_source source = { .base = draw(2) ? GLM_BASE_ONE : GLM_BASE_ZERO };
		uint32_t n = 1 + draw(100), i;
		size_t length = 0;

		for (i = 0; i < n; i++)
			length += svm_print(text + length, &rows[i], source.base == GLM_BASE_ONE);
		file_is(source, text, length, rows, n);
	}
	free(text);
}

static void random_csv_is_read(void **state)
{
	uint64_t cases = test_cases("files", 300), c;
	struct expected rows[100];
	char *text = malloc(1 << 20), label_text[32];

	(void)state;
	assert_non_null(text);
	for (c = 0; c < cases; c++) {
		uint32_t n = 1 + draw(100), fields = 2 + draw(38), label = draw(fields), i;
		char between = ",\t;| "[draw(5)];
		bool header = draw(2), named = header && draw(2);
		struct glm_source source = { .label = label_text, .format = GLM_CSV };
		size_t length = 0;

		snprintf(label_text, sizeof(label_text), "%s%d", named ? "c" : "",
		         named || draw(2) ? (int)label + 1 : (int)label - (int)fields);
		for (i = 0; header && i < fields; i++)
			length += (size_t)sprintf(text + length, "%sc%u\"",
			                          i ? (char[]){ between, '"', 0 } : "\"", i + 1);
		length += header ? (size_t)sprintf(text + length, "\n") : 0;
		for (i = 0; i < n; i++)
			length += csv_print(text + length, &rows[i], fields, label, between);
		file_is(source, text, length, rows, n);
	}
	free(text);
}

struct bad {
	const char *text, *says; /* behind "FILE:" */
	struct glm_source source;
};

static const struct bad bad_rows[] = {
	{ "1 2:1\n1 0:1\n",
	  "2: feature index 0: indices begin with 1, unless --base says that the "
	  "file begins with 0",
	  { 0 } },
	{ "1 x:1\n", "1: the feature index 'x' is not a number", { .format = GLM_LIBSVM } },
	{ "1 -3:1\n", "1: the feature index '-3' is not a number", { 0 } },
	{ "1 1.5:1\n", "1: the feature index '1.5' is not a number", { 0 } },
	{ "1 99999999999999999:1\n",
	  "1: feature index 99999999999999999 has too many digits",
	  { 0 } },
	{ "1 67108865:1\n",
	  "1: feature index 67108865 is above the limit of 67108864 columns",
	  { 0 } },
	{ "1 1:1\n\n# no\n-1 3:1 2:1\n", "4: feature 2 comes after 3: indices must ascend", { 0 } },
	{ "1 3:1 3:1\n", "1: feature 3 occurs twice", { 0 } },
	{ "1 3:0 3:1\n", "1: feature 3 occurs twice", { 0 } },
	{ "1 0:1 0:2\n", "1: feature 0 occurs twice", { .base = GLM_BASE_ZERO } },
	{ "1 3:nan\n", "1: the value 'nan' of feature 3 is not finite", { 0 } },
	{ "1 3:-inf 4:1\n", "1: the value '-inf' of feature 3 is not finite", { 0 } },
	{ "1 3:1e39\n", "1: the value '1e39' of feature 3 is too large for a float", { 0 } },
	{ "1 3:1x 4:1\n", "1: the value '1x' of feature 3 is not a number", { 0 } },
	{ "1 3:nano\n", "1: the value 'nano' of feature 3 is not a number", { 0 } },
	{ "1 3: 4:1\n", "1: the value of feature 3 is missing", { 0 } },
	{ "1 3:1 qid:4 4:1\n", "1: the feature index 'qid' is not a number", { 0 } },
	{ "1 3:1 4\n", "1: the feature '4' has no ':'", { 0 } },
	{ "nan 3:1\n", "1: the label 'nan' is not finite", { 0 } },
	{ "1 1:1\n3:1\n", "2: the label is missing", { 0 } },
	{ "1 1:1\n1,2 3:1\n", "2: the label '1,2' is not a number", { 0 } },
	{ "1 1:1\nspam 3:1\n", "2: the label 'spam' is not a number", { 0 } },
	{ "1 1:1\n\x01\xff 3:1\n", "2: the label '?\?' is not a number", { 0 } },
	{ "1 1:1\nthis-is-a-very-long-word-for-a-label 3:1\n",
	  "2: the label 'this-is-a-very-long-word...' is not a number",
	  { 0 } },
	{ "1 1:1\n1 3:1 14:",
	  "2: the value of feature 14 is missing (the file ends in this line, "
	  "without a newline: it may be cut)",
	  { 0 } },
	{ "1 1:1\n1 3:1 1",
	  "2: the feature '1' has no ':' (the file ends in this line, without a "
	  "newline: it may be cut)",
	  { 0 } },
	{ "1,2,3\n1,2\n", "2: 2 fields, but the first line has 3", { 0 } },
	{ "1,2,3\n1,2,3,4\n", "2: more than 3 fields, unlike the first line", { 0 } },
	{ "y,a,b\n1,2,\n", "2: field 3 is missing (--missing zero takes it for 0)", { 0 } },
	{ "1,2,NA\n", "1: field 3 is missing (--missing zero takes it for 0)", { 0 } },
	{ "1,2,3\n1,2,?\n", "2: field 3 is missing (--missing zero takes it for 0)", { 0 } },
	{ "1,2,3\n,2,3\n", "2: field 1: the label is missing", { .missing = GLM_MISSING_ZERO } },
	{ "1,2,3\n1,2,inf\n", "2: field 3: 'inf' is not finite", { 0 } },
	{ "1,2,3\n1,\"b,c\",3\n", "2: field 2: '\"b,c\"' is not a number", { 0 } },
	{ "1,2,3\n1,\"2,3\n", "2: field 2: '\"2,3' is not a number", { 0 } },
	{ "1,2,3\nyes,2,3\n", "2: field 1: the label 'yes' is not a number", { 0 } },
	{ "1,2,3\nnan,2,3\n", "2: field 1: the label is missing", { 0 } },
	{ "1,2,3\n1e50,2,3\n", "2: field 1: the label '1e50' is too large for a float", { 0 } },
	{ "1\n2\n",
	  "1: one column only: a label and a feature are needed, or another delimiter",
	  { .format = GLM_CSV } },
	{ "a,b\n1,2\n", " the header has no column 'c' for the label", { .label = "c" } },
	{ "1,2\n",
	  " the label is said to be column 'c', but the file has no header with names",
	  { .label = "c" } },
	{ "1,2\n", " the label is said to be column 3, but there are 2 columns", { .label = "3" } },
	{ "1,2\n", " the label is said to be column 0, but there are 2 columns", { .label = "0" } },
};

static trib_status read_all(const struct glm_source *source, const struct glm_rules *rules,
                            struct glm_problem *problem, uint32_t *rows)
{
	struct row_reader *reader;
	struct glm_row *row = NULL;
	trib_status status = row_reader_open(&reader, source, rules, problem);

	*rows = 0;
	if (status != TRIB_OK)
		return status;
	while ((status = row_reader_next(reader, &row)) == TRIB_OK && row)
		++*rows;
	row_reader_close(reader);
	return status;
}

static void bad_rows_are_named(void **state)
{
	struct glm_rules rules = { 0 };
	struct glm_problem problem;
	char expected[GLM_SENTENCE];
	uint32_t rows;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(bad_rows) / sizeof(*bad_rows); i++) {
		struct glm_source source = bad_rows[i].source;

		source.path = file_write(bad_rows[i].text, strlen(bad_rows[i].text), PACK_PLAIN);
		snprintf(expected, sizeof(expected), "%s:%s", source.path, bad_rows[i].says);
		assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
		assert_string_equal(trib_last_error(), expected);
		assert_string_equal(problem.sentence[0], expected);
		assert_int_equal(problem.skipped, 0);
	}
}

/* The line number is right anywhere in a file that is longer than the buffers. */
static void lines_are_counted(void **state)
{
	uint64_t cases = test_cases("files", 60), c;
	struct glm_rules rules = { 0 };
	struct glm_problem problem;
	char expected[GLM_SENTENCE], *text = malloc(1 << 20);
	uint32_t rows;

	(void)state;
	assert_non_null(text);
	for (c = 0; c < cases; c++) {
		static const char *const lines[] = { "1 1:1 5:2.5\n", "\n", "# comment\r\n",
			                             "0 2:1\r\n" };
		uint32_t n = 1 + draw(60000), bad = 1 + draw(n), i;
		struct glm_source source = { 0 };
		size_t length = 0;

		for (i = 1; i <= n; i++)
			length += (size_t)sprintf(text + length, "%s",
			                          i == bad ? "1 7:1 7:1\n" : lines[draw(4)]);
		source.path = file_write(text, length, draw(2) ? PACK_PLAIN : PACK_GZIP);
		if (!source.path)
			continue;
		snprintf(expected, sizeof(expected), "%s:%u: feature 7 occurs twice", source.path,
		         bad);
		assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
		assert_string_equal(trib_last_error(), expected);
	}
	free(text);
}

static void bad_rows_are_skipped_if_asked(void **state)
{
	static const char text[] = "1 1:1\n1 2:1 1:1\n-1 1:1 3:1\nx\n1 3:1 3:1\n1 0:1\n1 :\n"
				   "1 4:nan\n1 5:5\n1 5:";
	struct glm_source source = { 0 };
	struct glm_rules rules = { .skip = true };
	struct glm_problem problem;
	char expected[GLM_SENTENCE];
	uint32_t rows;

	(void)state;
	source.path = file_write(text, strlen(text), PACK_PLAIN);
	assert_int_equal(read_all(&source, &rules, &problem, &rows), TRIB_OK);
	assert_int_equal(rows, 3);
	assert_int_equal(problem.skipped, 7);
	assert_int_equal(problem.kept, GLM_PROBLEMS_KEPT);
	snprintf(expected, sizeof(expected), "%s:5: feature 3 occurs twice", source.path);
	assert_string_equal(problem.sentence[2], expected);
	assert_true(problem.no_newline);

	rules.skip_max = 6;
	assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
	snprintf(expected, sizeof(expected),
	         "%s:10: bad row 7, and 6 may be skipped: the value of feature 5 is missing",
	         source.path);
	assert_memory_equal(trib_last_error(), expected, strlen(expected));
}

static void a_byte_0_is_no_text(void **state)
{
	static const char svm[] = "1 1:1\n1 2:\0001\n", csv[] = "1,2\n1,\0002\n",
			  blank[] = "1 1:1\n\0\n";
	static const struct {
		const char *text;
		size_t length;
		const char *says;
	} cases[] = { { svm, sizeof(svm) - 1, "2: the value of feature 2 is missing" },
		      { csv, sizeof(csv) - 1, "2: field 2 is missing" },
		      { blank, sizeof(blank) - 1, "2: the label '' is not a number" },
		      { "1 1:1\0002\n", 8, "1: a byte 0: this is not text" },
		      { "1,1\0002\n", 6, "1: a byte 0: this is not text" } };
	struct glm_rules rules = { 0 };
	struct glm_problem problem;
	uint32_t rows;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct glm_source source = { .path = file_write(cases[i].text, cases[i].length,
			                                        PACK_PLAIN) };

		assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
		assert_non_null(strstr(trib_last_error(), cases[i].says));
	}
}

/* Each place where an archive can be cut: an error that names the file, and no crash. */
static void cut_archives_are_errors(void **state)
{
	static const enum packing packings[] = { PACK_GZIP, PACK_XZ };
	struct glm_rules rules = { .skip = true };
	struct glm_problem problem;
	char text[20000];
	size_t length = 0, cut, whole;
	uint32_t rows;
	unsigned i;

	(void)state;
	while (length < sizeof(text) - 100)
		length += (size_t)sprintf(text + length, "%d %u:%u.%u\n", draw(2) ? 1 : -1,
		                          draw(1000) + 1, draw(1000), draw(1000));
	for (i = 0; i < 2; i++) {
		struct glm_source source = { .path = file_write(text, length, packings[i]) };

		if (!source.path)
			continue;
		assert_int_equal(read_all(&source, &rules, &problem, &rows), TRIB_OK);
		whole = file_size(source.path);
		for (cut = whole - 1; cut > 6; cut -= 1 + draw(40) % cut) {
			file_cut(source.path, cut);
			assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
			assert_memory_equal(trib_last_error(), source.path, strlen(source.path));
			assert_non_null(strstr(trib_last_error(),
			                       " data end in the middle: the file is cut"));
		}
	}
}

static void damaged_archives_are_errors(void **state)
{
	struct glm_rules rules = { 0 };
	struct glm_problem problem;
	uint32_t rows;
	struct glm_source source = { .path = file_write("1 1:1\n", 6, PACK_GZIP) };

	(void)state;
	if (source.path) {
		file_flip(source.path, 12);
		assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
		assert_non_null(strstr(trib_last_error(), ":1: the gzip data are damaged"));
		source.path = file_write("1 1:1\n", 6, PACK_GZIP);
		file_append(source.path, "junk", 4);
		assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
		assert_non_null(strstr(trib_last_error(), ":2: the gzip data are damaged"));
		source.path = file_write("1 1:1\n", 6, PACK_GZIP);
		file_append(source.path, "\0\0\0\0", 4);
		assert_int_equal(read_all(&source, &rules, &problem, &rows), TRIB_OK);
	}
	source.path = file_write("1 1:1\n", 6, PACK_XZ);
	if (source.path) {
		file_flip(source.path, 30);
		assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
		assert_non_null(strstr(trib_last_error(), ":1: the xz data are damaged"));
	}
	source.path = file_write("PK\3\4....", 8, PACK_PLAIN);
	assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
	assert_non_null(strstr(trib_last_error(), " is a zip archive; text"));
	source.path = "/no/such/file";
	assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
	assert_string_equal(trib_last_error(), "/no/such/file: No such file or directory");
	source.path = "/";
	assert_true(read_all(&source, &rules, &problem, &rows) != TRIB_OK);
	assert_string_equal(trib_last_error(), "/ is a folder");
}

static void long_lines_have_a_limit(void **state)
{
	struct glm_rules rules = { .line_max = 1 << 20, .skip = true };
	struct glm_problem problem;
	struct glm_source source = { 0 };
	size_t room = 3 << 20, length, i;
	char *text = malloc(room), expected[GLM_SENTENCE];
	uint32_t rows;

	(void)state;
	assert_non_null(text);
	length = (size_t)sprintf(text, "1 1:1\n1");
	for (i = 1; length < (1 << 20) - 100; i++)
		length += (size_t)sprintf(text + length, " %zu:1", i);
	length += (size_t)sprintf(text + length, "\n1");
	for (i = 1; length < room - 100; i++)
		length += (size_t)sprintf(text + length, " %zu:1", i);
	length += (size_t)sprintf(text + length, "\n1 7:1\n-1 3:1\n");
	source.path = file_write(text, length, PACK_PLAIN);
	assert_int_equal(read_all(&source, &rules, &problem, &rows), TRIB_OK);
	assert_int_equal(rows, 4);
	assert_int_equal(problem.skipped, 1);
	snprintf(expected, sizeof(expected), "%s:3: the line is longer than 1048576 bytes",
	         source.path);
	assert_string_equal(problem.sentence[0], expected);
	rules.line_max = 0;
	assert_int_equal(read_all(&source, &rules, &problem, &rows), TRIB_OK);
	assert_int_equal(rows, 5);
	free(text);
}

static void formats_are_found(void **state)
{
	static const struct {
		const char *line;
		enum glm_format format;
		char delimiter;
		bool header;
	} cases[] = {
		{ "1 1:1", GLM_LIBSVM, 0, false },      { "-1", GLM_LIBSVM, 0, false },
		{ "1 # empty", GLM_LIBSVM, 0, false },  { "3 qid:1 1:1", GLM_LIBSVM, 0, false },
		{ "1,2,3", GLM_CSV, ',', false },       { "1 2 3", GLM_CSV, ' ', false },
		{ "1\t2\t3", GLM_CSV, '\t', false },    { "a;b;c", GLM_CSV, ';', true },
		{ "1,,NA,?,nan", GLM_CSV, ',', false }, { "1,2,x", GLM_CSV, ',', true },
		{ "\"a,b\"|2", GLM_CSV, '|', true },    { "time:ms,2", GLM_CSV, ',', true },
		{ "\"1\",\"2\"", GLM_CSV, ',', false },
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(format_guess(cases[i].line), cases[i].format);
		if (cases[i].format == GLM_LIBSVM)
			continue;
		assert_int_equal(delimiter_guess(cases[i].line), cases[i].delimiter);
		assert_int_equal(header_guess(cases[i].line, cases[i].delimiter), cases[i].header);
	}
}

static void missing_fields_can_be_zero(void **state)
{
	static const char text[] = "\xef\xbb\xbfy,a,b,c\n1,,2,NA\n0,\"\", nan ,3\n0,?,null,4\n";
	static const struct expected rows[] = { { 1, 1, { 1 }, { 2 } },
		                                { 0, 1, { 2 }, { 3 } },
		                                { 0, 1, { 2 }, { 4 } } };
	struct glm_source source = { .missing = GLM_MISSING_ZERO, .label = "y" };

	(void)state;
	file_is(source, text, strlen(text), rows, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_nearest),
		cmocka_unit_test(words_are_not_numbers),
		cmocka_unit_test(locale_has_no_influence),
		cmocka_unit_test(random_libsvm_is_read),
		cmocka_unit_test(random_csv_is_read),
		cmocka_unit_test(bad_rows_are_named),
		cmocka_unit_test(lines_are_counted),
		cmocka_unit_test(bad_rows_are_skipped_if_asked),
		cmocka_unit_test(a_byte_0_is_no_text),
		cmocka_unit_test(cut_archives_are_errors),
		cmocka_unit_test(damaged_archives_are_errors),
		cmocka_unit_test(long_lines_have_a_limit),
		cmocka_unit_test(formats_are_found),
		cmocka_unit_test(missing_fields_can_be_zero),
	};
	const char *given = getenv("TRIB_TEST_SEED");
	int failed;

	if (given)
		seed = strtoull(given, NULL, 10);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	files_remove();
	return failed;
}
