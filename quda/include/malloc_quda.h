/* Made of the tables of the crate ferrite-quda; do not edit. Compile applications against this header, and link them to
   libferrite_quda. It has the names of QUDA's C interface, and a layout of its own. */
#pragma once
#include <cstddef>
#include <cstdio>
#include <cstdlib>
static inline void *pool_device_malloc(std::size_t) {
  std::fprintf(stderr, "ferrite: there is no pool of device memory for applications: use_malloc_quda has to be False\n");
  std::abort();
}
static inline void pool_device_free(void *) {}
