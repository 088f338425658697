/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* The slot engine's program for the hook tc. tc.bpf.c calls it. */
#define TRIB_HOOK_TC
#include "plane/xdp/bpf/slot.bpf.c"
