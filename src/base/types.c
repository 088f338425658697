/* SPDX-License-Identifier: Apache-2.0 */
#include "tributary.h"

size_t trib_type_size(trib_type type)
{
	static const unsigned char size[] = {
		[TRIB_I8] = 1,  [TRIB_I32] = 4, [TRIB_I64] = 8,    [TRIB_U8] = 1,
		[TRIB_U32] = 4, [TRIB_U64] = 8, [TRIB_F16] = 2,    [TRIB_BF16] = 2,
		[TRIB_F32] = 4, [TRIB_F64] = 8, [TRIB_F8E4M3] = 1, [TRIB_F8E5M2] = 1,
	};

	return (unsigned)type < sizeof(size) ? size[type] : 0;
}
