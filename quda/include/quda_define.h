/* Made of the tables of the crate ferrite-quda; do not edit. Compile applications against this header, and link them to
   libferrite_quda. It has the names of QUDA's C interface, and a layout of its own. */
#pragma once
#define QUDA_TARGET_CUDA
