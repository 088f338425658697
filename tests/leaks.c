/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LeakSanitizer need not search where no more is allocated at the end than the program has to keep:
 * on aarch64 a search takes seconds, whatever there is to be found, and there are a hundred tests.
 * It looks for __lsan_is_turned_off by its name.
 */
#include "base/settings.h"

#include <stddef.h>
#include <stdio.h>

size_t __sanitizer_get_current_allocated_bytes(void);
int __lsan_is_turned_off(void);
/* Not every test has the settings or the linear programs, and not every C library has the second
 * one. */
extern __typeof__(setting_text) setting_text __attribute__((weak));
extern void __libc_freeres(void) __attribute__((weak));
extern int glp_free_env(void) __attribute__((weak));

static size_t at_start, kept;

__attribute__((constructor)) static void leaks_begin(void)
{
	static char lines[4096];

	/* Or stdio would allocate one, and keep it. */
	setvbuf(stdout, lines, _IOLBF, sizeof(lines));
	at_start = __sanitizer_get_current_allocated_bytes();
	/* The settings keep what they have read. */
	if (setting_text)
		setting_text(SETTING_LANES, NULL);
	kept = __sanitizer_get_current_allocated_bytes() - at_start;
}

/*
 * The C library keeps stacks of threads and the like, and can free them. It then frees the bytes of
 * `at_start`, too. cmocka keeps one byte. All this is the last thing that the program does.
 */
int __lsan_is_turned_off(void)
{
	if (__sanitizer_get_current_allocated_bytes() == at_start + kept)
		return 1;
	if (glp_free_env)
		glp_free_env();
	if (__libc_freeres)
		__libc_freeres();
	return __sanitizer_get_current_allocated_bytes() <= kept + 1;
}
