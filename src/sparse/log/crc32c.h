/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C (Castagnoli), the checksum of log entries. */
#ifndef TRIB_SPARSE_LOG_CRC32C_H
#define TRIB_SPARSE_LOG_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues a checksum; the first one begins with 0. */
uint32_t crc32c(uint32_t sum, const void *bytes, size_t n);
/* The same for processors without an instruction for it. */
uint32_t crc32c_plain(uint32_t sum, const void *bytes, size_t n);

#endif
