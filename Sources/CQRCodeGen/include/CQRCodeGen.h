/* QR codes by libqrcodegen, linked in from its static library. It allocates nothing, keeps nothing
   and makes no system call, but ends the process where one of its assertions does not hold: what
   goes in is bounded here. */
#pragma once

#include <stddef.h>

#pragma clang assume_nonnull begin

/* The largest code that is made is of version 21 (ISO/IEC 18004), which holds the longest otpauth
   URI, of 868 bytes. Modules on a side of it, and bytes that it holds in 8-bit mode at error
   correction level L. */
#define QR_LARGEST_SIDE 101
#define QR_LONGEST_TEXT 929

/* Encodes `count` bytes in 8-bit mode as the smallest QR code that holds them at error correction
   level L, at the highest level at which it is no larger. Writes one byte per module, row by row,
   1 where it is dark. Returns the number of modules on a side; 0 where `count` is 0 or above
   QR_LONGEST_TEXT. `cells` holds at least QR_LARGEST_SIDE squared bytes. */
int qr_encode(const void *text, size_t count, unsigned char *cells);

#pragma clang assume_nonnull end
