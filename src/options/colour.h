/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_OPTIONS_COLOUR_H
#define TRIB_OPTIONS_COLOUR_H

enum colour { COLOUR_NONE, COLOUR_DIM, COLOUR_BAD, COLOUR_GOOD, COLOUR_WARN };

/* What turns the colour on and off. "": stdout is no terminal, or NO_COLOR is set. */
const char *colour_on(enum colour colour);
const char *colour_off(void);

#endif
