/* SPDX-License-Identifier: Apache-2.0 */
/* XDP and tc as kernel parts of a plane. In a build without BPF, opening one fails and says why. */
#ifndef TRIB_PLANE_XDP_KERNEL_XDP_H
#define TRIB_PLANE_XDP_KERNEL_XDP_H

#include "plane/core/kernel.h"

extern const struct kernel_ops kernel_xdp;
extern const struct kernel_ops kernel_tc; /* small vectors only */

#endif
