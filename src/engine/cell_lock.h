/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a cell that several cores sum in: the functions for user space. The
 * BPF program takes the same lock. If it cannot, it leaves the packet to the daemon.
 */
#ifndef TRIB_ENGINE_CELL_LOCK_H
#define TRIB_ENGINE_CELL_LOCK_H

#include <stdbool.h>
#include <stdint.h>

static inline void cell_lock(uint32_t *lock)
{
	uint32_t free = 0;

	while (!__atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQ_REL,
	                                    __ATOMIC_RELAXED))
		free = 0;
}

static inline void cell_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
