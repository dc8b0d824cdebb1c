/* SPDX-License-Identifier: MIT */
/* Memory of the process as the kernel would treat it: copied once, and a bad pointer is an error. */
#include "vnpu/user.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int copy(uint64_t pointer, void *ours, size_t size, bool in)
{
    struct iovec here = {ours, size}, there = {(void *)(uintptr_t)pointer, size};
    if (size == 0)
        return 0;
    if (!pointer)
        return -EFAULT;
    ssize_t done =
        in ? process_vm_readv(getpid(), &here, 1, &there, 1, 0) : process_vm_writev(getpid(), &here, 1, &there, 1, 0);
    if (done == (ssize_t)size)
        return 0;
    if (done >= 0 || (errno != ENOSYS && errno != EPERM))
        return -EFAULT;
    memcpy(in ? ours : there.iov_base, in ? there.iov_base : ours, size); /* where the system call is not allowed */
    return 0;
}

int vnpu_copy_in(void *to, uint64_t pointer, size_t size)
{
    return copy(pointer, to, size, true);
}

int vnpu_copy_out(uint64_t pointer, const void *from, size_t size)
{
    return copy(pointer, (void *)from, size, false);
}

int vnpu_copy_array(uint64_t pointer, size_t count, size_t size, void **array)
{
    size_t bytes;
    *array = NULL;
    if (__builtin_mul_overflow(count, size, &bytes))
        return -EINVAL;
    void *copied = malloc(bytes ? bytes : 1);
    if (!copied)
        return -ENOMEM;
    int error = vnpu_copy_in(copied, pointer, bytes);
    if (error)
        free(copied);
    else
        *array = copied;
    return error;
}
