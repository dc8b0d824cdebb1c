/* SPDX-License-Identifier: MIT */
/*
 * A simulated device's address space: 4 GiB, page-granular, reserved in the
 * host's address space so that neighbouring buffers are neighbours in both.
 * Every access of a simulator goes through mica_device_at(), which refuses
 * what the device's own page tables would.
 */
#ifndef MICA_NPU_DEVICE_MEMORY_H
#define MICA_NPU_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define MICA_DEVICE_PAGE 4096u
#define MICA_DEVICE_SPACE (UINT64_C(1) << 32)

struct mica_device_memory {
    uint8_t *base;  /* host address of device address 0 */
    uint8_t *pages; /* per page: enum mica_access bits that the running submission has; 0 = fault */
};

int mica_device_memory_create(struct mica_device_memory *memory); /* 0 or negative errno */
void mica_device_memory_destroy(struct mica_device_memory *memory);

/* Backs [address, address + size) with zeroed memory / takes it away again. Both page aligned. */
int mica_device_memory_map(struct mica_device_memory *memory, uint64_t address, uint64_t size);
/* The same with the pages of a file, shared with all others that map it. */
int mica_device_memory_map_file(struct mica_device_memory *memory, uint64_t address, uint64_t size, int fd);
void mica_device_memory_unmap(struct mica_device_memory *memory, uint64_t address, uint64_t size);

/* What the device may do in [address, address + size), page aligned, from now on: enum mica_access bits, 0 = nothing.
 */
void mica_device_memory_protect(struct mica_device_memory *memory, uint64_t address, uint64_t size, unsigned access);

/*
 * Host pointer to [address, address + size), or NULL when any page of it lacks
 * `access`; *fault then gets the first bad address. size 0 is valid anywhere.
 */
void *mica_device_at(const struct mica_device_memory *memory, uint64_t address, uint64_t size, unsigned access,
                     uint64_t *fault);

#endif
