/* Made of the tables of the crate ferrite-quda; do not edit. Compile applications against this header, and link them to
   libferrite_quda. It has the names of QUDA's C interface, and a layout of its own. */
#pragma once
#define QUDA_VERSION_MAJOR 1
#define QUDA_VERSION_MINOR 1
#define QUDA_VERSION_SUBMINOR 0
#define QUDA_VERSION ((QUDA_VERSION_MAJOR << 16) | (QUDA_VERSION_MINOR << 8) | QUDA_VERSION_SUBMINOR)
#define QUDA_MAX_DIM 6
#define QUDA_MAX_GEOMETRY 8
#define QUDA_MAX_MULTI_SHIFT 32
#define QUDA_MAX_MULTI_SRC 128
#define QUDA_MAX_DWF_LS 32
#define QUDA_MAX_MG_LEVEL 5
