#include "CQREncode.h"

#include <dlfcn.h>
#include <string.h>

/* The part of libqrencode.so.4's interface that is used; its header is not needed to build. */
struct code {
  int version;
  int width;
  unsigned char *data; /* bit 0: dark */
};
typedef struct code *encode_data(int size, const unsigned char *data, int version, int level);
typedef void free_code(struct code *code);

enum { ANY_VERSION = 0, LEVEL_L = 0, MOST_BYTES = 2953 };

static int copy_cells(const struct code *code, unsigned char *cells) {
  if (code->width < 1 || code->width > QR_LARGEST_SIDE) return 0;
  size_t count = (size_t)code->width * (size_t)code->width;
  for (size_t index = 0; index < count; index++) cells[index] = code->data[index] & 1;
  explicit_bzero(code->data, count);
  return code->width;
}

int qr_encode(const void *text, size_t count, unsigned char *cells) {
  if (count < 1 || count > MOST_BYTES) return 0;
  void *library = dlopen("libqrencode.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
  int side = 0;
  encode_data *encode = (encode_data *)dlsym(library, "QRcode_encodeData");
  free_code *release = (free_code *)dlsym(library, "QRcode_free");
  if (encode != NULL && release != NULL) {
    struct code *code = encode((int)count, text, ANY_VERSION, LEVEL_L);
    if (code != NULL) {
      side = copy_cells(code, cells);
      release(code);
    }
  }
  dlclose(library);
  return side;
}
