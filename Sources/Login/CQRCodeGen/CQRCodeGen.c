#include "CQRCodeGen.h"

#include <qrcodegen/qrcodegen.h>
#include <string.h>

enum { LARGEST = 21, BUFFER = qrcodegen_BUFFER_LEN_FOR_VERSION(LARGEST) };

int qr_encode(const void *text, size_t count, unsigned char *cells) {
  if (count < 1 || count > QR_LONGEST_TEXT) return 0;
  uint8_t work[BUFFER], code[BUFFER];
  memcpy(work, text, count);
  int side = 0;
  if (qrcodegen_encodeBinary(work, count, code, qrcodegen_Ecc_LOW, qrcodegen_VERSION_MIN, LARGEST,
                             qrcodegen_Mask_AUTO, true))
    side = qrcodegen_getSize(code);
  for (int row = 0; row < side; row++)
    for (int column = 0; column < side; column++)
      *cells++ = qrcodegen_getModule(code, column, row);
  explicit_bzero(work, sizeof work);
  explicit_bzero(code, sizeof code);
  return side;
}
