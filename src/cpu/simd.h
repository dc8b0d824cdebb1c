/* SPDX-License-Identifier: MIT */
/*
 * Inner loops are plain C that compilers vectorise. On x86-64, whose baseline
 * has short vectors, each is compiled a second time for AVX2 and chosen at run
 * time. Other machines need one version only.
 */
#ifndef MICA_CPU_SIMD_H
#define MICA_CPU_SIMD_H

#include <stdbool.h>

/* Should the second version run? */
bool mica_cpu_wide(void);
/* For tests, which compare the two: false forbids the second version. */
void mica_cpu_allow_wide(bool allow);

#define MICA_INLINE static inline __attribute__((always_inline))

/*
 * MICA_CPU_WIDE(name, (parameters), (arguments)) makes `name` of the always
 * inlined `name##_body`.
 */
#if defined(__x86_64__)
#define MICA_CPU_WIDE(name, parameters, arguments)                     \
    static __attribute__((target("avx2"))) void name##_avx2 parameters \
    {                                                                  \
        name##_body arguments;                                         \
    }                                                                  \
    static void name parameters                                        \
    {                                                                  \
        if (mica_cpu_wide())                                           \
            name##_avx2 arguments;                                     \
        else                                                           \
            name##_body arguments;                                     \
    }
#else
#define MICA_CPU_WIDE(name, parameters, arguments) \
    static void name parameters                    \
    {                                              \
        name##_body arguments;                     \
    }
#endif

#endif
