/* QR codes from libqrcodegen, linked statically. The library allocates nothing, keeps no state and
   makes no system calls, but it aborts the process if an assertion fails: qr_encode limits its
   input. */
#pragma once

#include <stddef.h>

#pragma clang assume_nonnull begin

/* The largest code is of version 21 (ISO/IEC 18004), enough for the longest otpauth URI (868 bytes).
   Its modules on a side, and its capacity in bytes in 8-bit mode at error correction level L. */
#define QR_LARGEST_SIDE 101
#define QR_LONGEST_TEXT 929

/* Encodes `count` bytes in 8-bit mode as the smallest QR code that holds them at error correction
   level L, then raises the level as far as the size allows. Writes one byte per module, row by row,
   1 for a dark one. Returns the number of modules on a side, or 0 if `count` is 0 or exceeds
   QR_LONGEST_TEXT. `cells` must hold at least QR_LARGEST_SIDE squared bytes. */
int qr_encode(const void *text, size_t count, unsigned char *cells);

#pragma clang assume_nonnull end
