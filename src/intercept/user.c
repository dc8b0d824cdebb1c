/* SPDX-License-Identifier: MIT */
/* Memory of the program as the kernel would read it: a bad pointer is an answer, not a crash. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

/* Where the system call is not allowed, as in some containers. */
static bool copy_by_file(void *to, uint64_t from, size_t size)
{
    int memory = ic_real()->open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (memory < 0)
        return false;
    ssize_t done = pread(memory, to, size, (off_t)from);
    ic_real()->close(memory);
    return done == (ssize_t)size;
}

bool ic_copy(void *to, uint64_t from, size_t size)
{
    struct iovec here = {to, size}, there = {(void *)(uintptr_t)from, size};
    if (!size)
        return true;
    if (!from || from != (uintptr_t)from)
        return false;
    ssize_t done = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (done == (ssize_t)size)
        return true;
    return done < 0 && copy_by_file(to, from, size);
}

void *ic_copy_array(uint64_t from, size_t count, size_t size, size_t most)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > most)
        return NULL;
    void *copied = malloc(bytes ? bytes : 1);
    if (copied && ic_copy(copied, from, bytes))
        return copied;
    free(copied);
    return NULL;
}
