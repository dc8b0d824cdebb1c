/* SPDX-License-Identifier: MIT */
#include "cpu/simd.h"

#include <stdatomic.h>

static atomic_bool forbidden;

bool mica_cpu_wide(void)
{
#if defined(__x86_64__)
    return !atomic_load_explicit(&forbidden, memory_order_relaxed) && __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

void mica_cpu_allow_wide(bool allow)
{
    atomic_store(&forbidden, !allow);
}
