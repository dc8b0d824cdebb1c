/* SPDX-License-Identifier: MIT */
/* Requests of the DRM core that make and end buffers. */
#include "uapi/drm.h"

#include <unistd.h>

#include "intercept/intercept.h"

bool ic_drm_before(struct ic_call *call)
{
    struct mica_drm_gem_close close;
    if (!ic_is(call, MICA_DRM_GEM_CLOSE))
        return false;
    ic_argument(call, &close, sizeof close);
    struct ic_buffer *buffer = ic_buffer_find(call->file, close.handle);
    if (buffer)
        ic_buffer_hide(call->file, buffer);
    return true;
}

/* An imported buffer's size is what seeking in it says. */
static void imported(struct ic_call *call)
{
    struct mica_drm_prime prime;
    if (!ic_answer(call, &prime, sizeof prime) || ic_buffer_find(call->file, prime.handle))
        return;
    off_t size = lseek(prime.fd, 0, SEEK_END);
    if (size > 0)
        ic_buffer_add(call->file, prime.handle, (uint64_t)size);
}

bool ic_drm_after(struct ic_call *call)
{
    struct mica_drm_gem_close close;
    if (ic_is(call, MICA_DRM_PRIME_FD_TO_HANDLE)) {
        imported(call);
        return true;
    }
    if (!ic_is(call, MICA_DRM_GEM_CLOSE))
        return false;
    ic_argument(call, &close, sizeof close);
    if (call->result >= 0)
        ic_buffer_remove(call->file, close.handle);
    return true;
}
