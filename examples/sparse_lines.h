/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse_lines: the lines of a text file. A file that ends in .xz or .gz is read through xz or
 * gzip. Every problem is named by file and line, and ends the program.
 */
#ifndef EXAMPLES_SPARSE_LINES_H
#define EXAMPLES_SPARSE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct lines {
	const char *path;
	FILE *file;
	pid_t reader; /* xz or gzip; 0: none */
	char *text;   /* the present line, without its end */
	size_t room, number;
};

void lines_open(struct lines *lines, const char *path);
/* False: the file is at its end. */
bool lines_next(struct lines *lines);
void lines_close(struct lines *lines);
/* "FILE:LINE: ...", and the end of the program. */
void lines_fail(const struct lines *lines, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* The first of FOLDER/NAME, FOLDER/NAME.xz and FOLDER/NAME.gz that exists. False: none. */
bool lines_find(const char *folder, const char *name, char *path, size_t room);

#endif
