/* SPDX-License-Identifier: Apache-2.0 */
/* XDP as the kernel part of a plane. In a build without XDP, opening it fails and says why. */
#ifndef TRIB_PLANE_XDP_KERNEL_XDP_H
#define TRIB_PLANE_XDP_KERNEL_XDP_H

#include "plane/core/kernel.h"

extern const struct kernel_ops kernel_xdp;

#endif
