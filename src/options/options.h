/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: what programs take from their users and write for them. options.h parses
 * options from one table, from which --help and error messages come too.
 * command_table.h runs a command out of a table. net_options.h takes options of links and faults,
 * text.h reads files, json.h writes JSON strings, json_writer.h all of JSON, setting_names.h
 * finds misspelt settings.
 *
 * This room must not include src/launch, src/bench, src/cli or src/daemon: they stand
 * above it. It asks no daemon: src/query does.
 */
#ifndef TRIB_OPTIONS_OPTIONS_H
#define TRIB_OPTIONS_OPTIONS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define EXIT_USAGE 2 /* exit code of a command whose usage is wrong */
#define OPTIONS_MAX 48

enum option_type {
	OPTION_FLAG,    /* bool; takes no argument */
	OPTION_TEXT,    /* const char * */
	OPTION_COUNT,   /* uint64_t, "3" */
	OPTION_BYTES,   /* uint64_t, "64M" */
	OPTION_RATE,    /* uint64_t, "1gbit" */
	OPTION_SECONDS, /* double, above 0 */
	OPTION_HOOK,    /* struct option_hook; for options that may be repeated */
	/* --json[=FILE] has one meaning: print JSON, or write it to FILE; "-" is stdout. */
	OPTION_JSON,      /* bool; with FILE, stdout becomes FILE: nothing else is printed */
	OPTION_JSON_FILE, /* const char *; also taken as "--json FILE" */
};

/* Takes one argument; an error's sentence says what is expected. */
struct option_hook {
	trib_status (*take)(void *context, const char *text);
	void *context;
};

struct option_row {
	const char *name; /* long, without dashes; NULL ends the table */
	char letter;      /* short option, or 0 */
	enum option_type type;
	void *target;
	const char *argument; /* name of the argument in the help; NULL for a flag */
	const char *help;
	const char *example; /* example of the argument, or NULL */
};

struct options {
	const char *usage; /* "trib run [OPTION]... -- COMMAND [ARGUMENT]..." */
	const char *about; /* a sentence or two */
	const char *example;
	const struct option_row *rows;
};

/*
 * Returns the index of the first operand, at most argc. Options may stand behind operands, which
 * are moved to the end of argv, but not if the operands are a COMMAND. Returns -1 if the command
 * has to end with *exit_code: --help was printed, or the usage is wrong and was explained.
 */
int options_parse(const struct options *options, int argc, char **argv, int *exit_code);

/*
 * Parses options before and behind operands, `most` at most. Returns how many operands there are;
 * -1: the command has to end with *exit_code.
 */
int options_parse_mixed(const struct options *options, int argc, char **argv, const char **operands,
                        int most, int *exit_code);

/* For commands that take options alone. False: the command has to end and return *code. */
bool options_parse_all(const struct options *options, int argc, char **argv, int *code);

/* Prints what is wrong with the usage, and where the help is; returns EXIT_USAGE. */
int options_fail(const struct options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
