/* SPDX-License-Identifier: Apache-2.0 */
#include "options/options.h"
#include "base/settings.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_ONLY 256 /* getopt values above every letter: LONG_ONLY + row */
#define HELP_COLUMN 26

/* The length of "trib run" in "trib run [OPTION]...". */
static int command_length(const struct options *options)
{
	const char *end = strstr(options->usage, " [");

	return (int)(end ? end - options->usage : (long)strlen(options->usage));
}

int options_fail(const struct options *options, const char *format, ...)
{
	int length = command_length(options);
	va_list args;

	fprintf(stderr, "%.*s: ", length, options->usage);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nTry: %.*s --help\n", length, options->usage);
	return EXIT_USAGE;
}

/* In getopt's words. */
static int argument_of(const struct option_row *row)
{
	_Static_assert(no_argument == 0 && required_argument == 1 && optional_argument == 2,
	               "so many colons are behind a letter");
	if (row->type == OPTION_FLAG)
		return no_argument;
	return row->type == OPTION_JSON || row->type == OPTION_JSON_FILE ? optional_argument
	                                                                 : required_argument;
}

static void options_print(const struct options *options)
{
	printf("Usage: %s\n\n%s\n\nOptions:\n", options->usage, options->about);
	for (const struct option_row *row = options->rows; row->name; row++) {
		char left[64], letter[8] = "    ";

		if (row->letter)
			snprintf(letter, sizeof(letter), "-%c, ", row->letter);
		snprintf(left, sizeof(left),
		         argument_of(row) == optional_argument ? "%s--%s[=%s]"
		         : row->argument                       ? "%s--%s %s"
		                                               : "%s--%s%s",
		         letter, row->name, row->argument ? row->argument : "");
		printf("  %-*s %s", HELP_COLUMN, left, row->help);
		printf(row->example ? ", e.g. %s\n" : "\n", row->example);
	}
	printf("  %-*s %s\n\nExample:\n  %s\n", HELP_COLUMN, "-h, --help", "this text",
	       options->example);
}

static trib_status count_parse(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	/* strtoull would accept "-1" and " 1". */
	if (*text < '0' || *text > '9' || *end || errno)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not a whole number", text);
	return TRIB_OK;
}

static trib_status seconds_parse(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value) || *value <= 0)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not a number of seconds above 0",
		                   text);
	return TRIB_OK;
}

static trib_status option_store(const struct option_row *row, const char *text)
{
	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)row->target = true;
		return TRIB_OK;
	case OPTION_TEXT:
		*(const char **)row->target = text;
		return TRIB_OK;
	case OPTION_COUNT:
		return count_parse(text, row->target);
	case OPTION_BYTES:
		return parse_bytes(text, row->target);
	case OPTION_RATE:
		return parse_rate(text, row->target);
	case OPTION_SECONDS:
		return seconds_parse(text, row->target);
	case OPTION_JSON:
		*(bool *)row->target = true;
		if (text && strcmp(text, "-") != 0 && !freopen(text, "we", stdout))
			return status_fail_errno("cannot write %s", text);
		return TRIB_OK;
	case OPTION_JSON_FILE:
		*(const char **)row->target = text ? text : "-";
		return TRIB_OK;
	case OPTION_HOOK: {
		const struct option_hook *hook = row->target;

		return hook->take(hook->context, text);
	}
	}
	return TRIB_ERR_ARGUMENT;
}

/* The FILE of "--json FILE", which getopt takes for an operand; NULL: none. */
static char *next_file(int argc, char **argv)
{
	if (optind >= argc || (argv[optind][0] == '-' && argv[optind][1]))
		return NULL;
	return argv[optind++];
}

/* Fills getopt's two tables from ours. */
static void getopt_fill(const struct options *options, struct option *longs, char *shorts)
{
	unsigned n = 0;

	/* The options of a COMMAND are its own: stop there. */
	if (strstr(options->usage, "COMMAND"))
		*shorts++ = '+';
	*shorts++ = ':'; /* tell a missing argument from a wrong option */
	*shorts++ = 'h';
	for (const struct option_row *row = options->rows; row->name && n < OPTIONS_MAX; row++) {
		int argument = argument_of(row);

		longs[n] = (struct option){ row->name, argument, NULL, LONG_ONLY + (int)n };
		n++;
		if (row->letter) {
			*shorts++ = row->letter;
			for (int i = 0; i < argument; i++)
				*shorts++ = ':';
		}
	}
	*shorts = '\0';
	longs[n] = (struct option){ "help", no_argument, NULL, 'h' };
}

static const struct option_row *row_find(const struct options *options, int found)
{
	const struct option_row *row = options->rows;

	if (found >= LONG_ONLY)
		return row + (found - LONG_ONLY);
	while (row->name && row->letter != found)
		row++;
	return row;
}

/* Explains an error of getopt, which is in its return value and in optopt. */
static int getopt_explain(const struct options *options, int found, const char *word)
{
	if (found == ':')
		return options_fail(options, "%s needs an argument", word);
	if (optopt >= LONG_ONLY)
		return options_fail(options, "%s: this option takes no argument", word);
	if (optopt)
		return options_fail(options, "-%c is not an option here", optopt);
	return options_fail(options, "%s is not an option here", word);
}

int options_parse(const struct options *options, int argc, char **argv, int *exit_code)
{
	struct option longs[OPTIONS_MAX + 2] = { 0 };
	char shorts[3 * OPTIONS_MAX + 4];
	int found;

	getopt_fill(options, longs, shorts);
	optind = 0; /* glibc: 0 starts anew, since another parser may have run before */
	opterr = 0;
	while ((found = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_row *row;

		if (found == 'h') {
			options_print(options);
			*exit_code = 0;
			return -1;
		}
		if (found == ':' || found == '?') {
			*exit_code = getopt_explain(options, found, argv[optind - 1]);
			return -1;
		}
		row = row_find(options, found);
		if (row->type == OPTION_JSON_FILE && !optarg)
			optarg = next_file(argc, argv);
		if (option_store(row, optarg) != TRIB_OK) {
			*exit_code =
				options_fail(options, "--%s: %s", row->name, trib_last_error());
			return -1;
		}
	}
	return optind;
}

int options_parse_mixed(const struct options *options, int argc, char **argv, const char **operands,
                        int most, int *exit_code)
{
	int n = 0;

	/* The parser stops at an operand; options may stand behind it. */
	for (int at = 0; at < argc;) {
		int first = options_parse(options, argc - at, argv + at, exit_code);

		if (first < 0)
			return -1;
		at += first;
		if (at >= argc)
			break;
		if (n == most) {
			*exit_code = options_fail(options, "%s: unexpected argument", argv[at]);
			return -1;
		}
		operands[n++] = argv[at];
	}
	return n;
}

bool options_parse_all(const struct options *options, int argc, char **argv, int *code)
{
	int first = options_parse(options, argc, argv, code);

	if (first >= 0 && first < argc)
		*code = options_fail(options,
		                     "%s: unexpected argument; this command takes only options",
		                     argv[first]);
	return first == argc;
}
