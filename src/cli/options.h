/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a subcommand as one table: parsing, --help and the errors come
 * from it.
 */
#ifndef TRIB_CLI_OPTIONS_H
#define TRIB_CLI_OPTIONS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_MAX 40

enum option_type {
	OPTION_FLAG,    /* bool; takes no argument */
	OPTION_TEXT,    /* const char * */
	OPTION_COUNT,   /* uint64_t, "3" */
	OPTION_BYTES,   /* uint64_t, "64M" */
	OPTION_RATE,    /* uint64_t, "1gbit" */
	OPTION_SECONDS, /* double, above 0 */
	OPTION_HOOK,    /* struct option_hook; for options that may be repeated */
};

/* Takes one argument; an error's sentence says what is expected. */
struct option_hook {
	trib_status (*take)(void *context, const char *text);
	void *context;
};

struct option_row {
	const char *name; /* long, without dashes; NULL ends the table */
	char letter;      /* short, or 0 */
	enum option_type type;
	void *target;
	const char *argument; /* its name in the help; NULL for a flag */
	const char *help;
	const char *example; /* of an argument, or NULL */
};

struct options {
	const char *usage; /* "trib run [OPTION]... -- COMMAND [ARGUMENT]..." */
	const char *about; /* a sentence or two */
	const char *example;
	const struct option_row *rows;
};

/*
 * Returns the index of the first operand (what follows the options, or "--"),
 * at most argc; or -1 when the command has to end with *exit_code: --help was
 * asked for and printed, or the usage is wrong and was explained.
 */
int options_parse(const struct options *options, int argc, char **argv, int *exit_code);

/* The same for commands that take nothing but options. False: done, or wrong; *code is to be
 * returned. */
bool options_parse_all(const struct options *options, int argc, char **argv, int *code);

/* Says what is wrong with the usage, and where the help is; returns EXIT_USAGE. */
int options_fail(const struct options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
