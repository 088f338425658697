/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment that look like settings, and are none: most likely misspelt. */
#ifndef TRIB_OPTIONS_SETTING_NAMES_H
#define TRIB_OPTIONS_SETTING_NAMES_H

/* `hint` says what to do about the variable `name`. */
typedef void setting_name_tell(void *context, const char *name, const char *hint);

/* Calls `tell` for each variable TRIB_... that is not a setting. */
void setting_names_check(setting_name_tell *tell, void *context);

#endif
