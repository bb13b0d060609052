/* QR codes by libqrencode, looked up when one is wanted: neither the module nor the command
   depends on the library. */
#pragma once

#include <stddef.h>

#pragma clang assume_nonnull begin

/* Modules on a side of the largest QR code (ISO/IEC 18004, version 40). */
#define QR_LARGEST_SIDE 177

/* Encodes `count` bytes in 8-bit mode at error correction level L. Writes one byte per module,
   row by row, 1 where it is dark. The number of modules on a side, or 0: no library, text too
   long, memory short, or no process to be had. `cells` holds at least QR_LARGEST_SIDE squared bytes. */
int qr_encode(const void *text, size_t count, unsigned char *cells);

#pragma clang assume_nonnull end
