/* SPDX-License-Identifier: Apache-2.0 */
/* Inside kernel only: the loops in use. */
#ifndef TRIB_GLM_KERNEL_CHOICE_H
#define TRIB_GLM_KERNEL_CHOICE_H

#include "glm/kernel/glm_loops.h"

const struct glm_loops *kernel_loops(void);

#endif
