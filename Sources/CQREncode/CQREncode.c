#include "CQREncode.h"

#include <string.h>

/* ISO/IEC 18004: a text in 8-bit mode, error correction level L, in the smallest version. All that
   is made of the text lies in one struct on the stack, which is wiped. */

typedef unsigned char byte;
enum { DARK = 1, FIXED = 2 };                    /* of a module; FIXED: no data lies there */
enum { MOST_WORDS = 3706, MOST_CORRECTING = 30 };

struct symbol {
  byte *cells;
  int version, side, data_count, word_count; /* code words of data, and of all */
  byte data[MOST_WORDS], words[MOST_WORDS], correcting[MOST_CORRECTING], divisor[MOST_CORRECTING];
};

/* Table 9, level L: code words for error correction in each block, and blocks. */
static const byte correcting_words[40] = {
  7,  10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28,
  28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30};
static const byte blocks[40] = {1,  1,  1,  1,  1,  2,  2,  2,  2,  4,  4,  4,  4,  4,
                                6,  6,  6,  6,  7,  8,  8,  9,  9,  10, 12, 12, 12, 13,
                                14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25};

/* MARK: size */

/* Alignment patterns on a side (annex E). */
static int alignments(int version) { return version == 1 ? 0 : version / 7 + 2; }

/* The middle of the alignment pattern of that number: evenly from the far end, the first at 6. */
static int alignment(const struct symbol *s, int number) {
  int count = alignments(s->version), gaps = 2 * (count - 1);
  int step = s->version == 32 ? 26 : (4 * s->version + 2 * count + 1) / gaps * 2;
  return number == 0 ? 6 : s->side - 7 - step * (count - 1 - number);
}

/* Modules that are left for data and error correction. */
static int room(int version) {
  int side = 4 * version + 17, count = alignments(version);
  int left = side * side - 3 * 64 - 2 * (side - 16) - 31; /* finders, timing, format */
  if (count > 0) left -= 25 * (count * count - 3) - 10 * (count - 2);
  return version < 7 ? left : left - 36;
}

static int count_bits(int version) { return version < 10 ? 8 : 16; }

static int fits(struct symbol *s, size_t count) {
  for (s->version = 1; s->version <= 40; s->version++) {
    int index = s->version - 1;
    s->side = 4 * s->version + 17;
    s->word_count = room(s->version) / 8;
    s->data_count = s->word_count - correcting_words[index] * blocks[index];
    if (4 + count_bits(s->version) + 8 * (int)count <= 8 * s->data_count) return 1;
  }
  return 0;
}

/* MARK: code words */

static void add_bits(struct symbol *s, int *at, unsigned value, int count) {
  for (; count > 0; count--, ++*at)
    if (value >> (count - 1) & 1) s->data[*at >> 3] |= (byte)(0x80 >> (*at & 7));
}

static void make_data(struct symbol *s, const byte *text, size_t count) {
  int at = 0;
  add_bits(s, &at, 4, 4);
  add_bits(s, &at, (unsigned)count, count_bits(s->version));
  for (size_t index = 0; index < count; index++) add_bits(s, &at, text[index], 8);
  unsigned pad = 0xec; /* behind the terminator, which is zeros up to the next whole word */
  for (int index = (at + 4 + 7) / 8; index < s->data_count; index++, pad ^= 0xec ^ 0x11)
    s->data[index] = (byte)pad;
}

/* In GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1. */
static byte product(byte a, byte b) {
  unsigned sum = 0;
  for (int bit = 7; bit >= 0; bit--) {
    sum = sum << 1 ^ (sum >> 7) * 0x11d;
    if (b >> bit & 1) sum ^= a;
  }
  return (byte)sum;
}

/* (x - 1)(x - 2)(x - 4)… without its first coefficient. */
static void make_divisor(byte *divisor, int degree) {
  byte root = 1;
  memset(divisor, 0, (size_t)degree);
  divisor[degree - 1] = 1;
  for (int factor = 0; factor < degree; factor++, root = product(root, 2))
    for (int index = 0; index < degree; index++) {
      divisor[index] = product(divisor[index], root);
      if (index + 1 < degree) divisor[index] ^= divisor[index + 1];
    }
}

static void correct(struct symbol *s, const byte *data, int count, int degree) {
  memset(s->correcting, 0, sizeof s->correcting);
  for (int index = 0; index < count; index++) {
    byte factor = data[index] ^ s->correcting[0];
    memmove(s->correcting, s->correcting + 1, (size_t)degree - 1);
    s->correcting[degree - 1] = 0;
    for (int place = 0; place < degree; place++)
      s->correcting[place] ^= product(s->divisor[place], factor);
  }
}

/* The words of the blocks in turn, all data before all correction; the later blocks are longer. */
static void interleave(struct symbol *s) {
  int count = blocks[s->version - 1], degree = correcting_words[s->version - 1];
  int shortest = s->data_count / count, shorter = count - s->data_count % count;
  const byte *data = s->data;
  make_divisor(s->divisor, degree);
  for (int block = 0; block < count; block++) {
    int length = shortest + (block >= shorter);
    correct(s, data, length, degree);
    for (int index = 0; index < shortest; index++) s->words[index * count + block] = data[index];
    if (length > shortest) s->words[shortest * count + block - shorter] = data[shortest];
    for (int index = 0; index < degree; index++)
      s->words[s->data_count + index * count + block] = s->correcting[index];
    data += length;
  }
}

/* MARK: modules */

static byte *cell(const struct symbol *s, int row, int column) {
  return s->cells + row * s->side + column;
}

static void fix(const struct symbol *s, int row, int column, int dark) {
  if (row < 0 || column < 0 || row >= s->side || column >= s->side) return;
  *cell(s, row, column) = (byte)(FIXED | (dark ? DARK : 0));
}

/* Rings around a middle; `light`: those rings are light. */
static void fix_rings(const struct symbol *s, int row, int column, int radius, int light) {
  for (int y = -radius; y <= radius; y++)
    for (int x = -radius; x <= radius; x++) {
      int far = y < 0 ? -y : y, wide = x < 0 ? -x : x;
      fix(s, row + y, column + x, !(light >> (far > wide ? far : wide) & 1));
    }
}

static void fix_patterns(const struct symbol *s) {
  int end = s->side - 1, count = alignments(s->version);
  for (int index = 0; index <= end; index++) {
    fix(s, 6, index, index % 2 == 0);
    fix(s, index, 6, index % 2 == 0);
  }
  for (int corner = 0; corner < 3; corner++)
    fix_rings(s, corner == 1 ? end - 3 : 3, corner == 2 ? end - 3 : 3, 4, 1 << 2 | 1 << 4);
  for (int y = 0; y < count; y++)
    for (int x = 0; x < count; x++) {
      int taken = (x == 0 && y == 0) || (x == 0 && y == count - 1) || (x == count - 1 && y == 0);
      if (!taken) fix_rings(s, alignment(s, y), alignment(s, x), 2, 1 << 1);
    }
}

/* Value and remainder of a BCH code, `generator` of that degree. */
static unsigned checked(unsigned value, unsigned generator, int degree) {
  unsigned rest = value;
  for (int step = 0; step < degree; step++)
    rest = rest << 1 ^ (rest >> (degree - 1) & 1) * generator;
  return value << degree | (rest & ((1u << degree) - 1));
}

/* Level L and the mask, twice (7.9); the version, twice (7.10). */
static void fix_format(const struct symbol *s, int mask) {
  unsigned bits = checked(1u << 3 | (unsigned)mask, 0x537, 10) ^ 0x5412;
  int end = s->side - 1;
  for (int index = 0; index < 15; index++) {
    int dark = bits >> index & 1;
    fix(s, index < 6 ? index : index < 8 ? index + 1 : end - 14 + index, 8, dark);
    fix(s, 8, index < 8 ? end - index : index == 8 ? 7 : 14 - index, dark);
  }
  fix(s, end - 7, 8, 1);
  if (s->version < 7) return;
  bits = checked((unsigned)s->version, 0x1f25, 12);
  for (int index = 0; index < 18; index++) {
    fix(s, index / 3, end - 10 + index % 3, bits >> index & 1);
    fix(s, end - 10 + index % 3, index / 3, bits >> index & 1);
  }
}

/* Two columns at a time from the right, up and down, past the column of the timing (7.7.3). */
static void place(const struct symbol *s) {
  int at = 0, upwards = 1;
  for (int right = s->side - 1; right > 0; right -= 2, upwards = !upwards) {
    if (right == 6) right--;
    for (int step = 0; step < 2 * s->side; step++) {
      int row = upwards ? s->side - 1 - step / 2 : step / 2;
      byte *one = cell(s, row, right - step % 2);
      if (*one & FIXED) continue;
      *one = at < 8 * s->word_count ? s->words[at >> 3] >> (7 - (at & 7)) & DARK : 0;
      at++;
    }
  }
}

/* Table 10. */
static int is_masked(int mask, int y, int x) {
  switch (mask) {
  case 0: return (y + x) % 2 == 0;
  case 1: return y % 2 == 0;
  case 2: return x % 3 == 0;
  case 3: return (y + x) % 3 == 0;
  case 4: return (y / 2 + x / 3) % 2 == 0;
  case 5: return y * x % 2 + y * x % 3 == 0;
  case 6: return (y * x % 2 + y * x % 3) % 2 == 0;
  default: return ((y + x) % 2 + y * x % 3) % 2 == 0;
  }
}

/* Puts a mask on, or takes it off. */
static void put_mask(const struct symbol *s, int mask) {
  for (int row = 0; row < s->side; row++)
    for (int column = 0; column < s->side; column++)
      if (!(*cell(s, row, column) & FIXED) && is_masked(mask, row, column))
        *cell(s, row, column) ^= DARK;
}

/* Of one row or column: runs of five and more, and what looks like a finder (7.8.3.1). */
static int line_penalty(const struct symbol *s, int number, int is_column) {
  int sum = 0, run = 0, last = -1;
  unsigned window = 0; /* the last eleven modules; light outside */
  for (int index = 0; index < s->side + 4; index++) {
    int dark = 0;
    if (index < s->side)
      dark = *cell(s, is_column ? index : number, is_column ? number : index) & DARK;
    window = (window << 1 | (unsigned)dark) & 0x7ff;
    if (window == 0x5d || window == 0x5d0) sum += 40;
    if (index >= s->side) continue;
    run = dark == last ? run + 1 : 1;
    last = dark;
    if (run >= 5) sum += run == 5 ? 3 : 1;
  }
  return sum;
}

static int penalty(const struct symbol *s) {
  int sum = 0, dark = 0, all = s->side * s->side;
  for (int row = 0; row < s->side; row++) {
    sum += line_penalty(s, row, 0) + line_penalty(s, row, 1);
    for (int column = 0; column < s->side; column++) {
      int here = *cell(s, row, column) & DARK;
      dark += here;
      if (row == 0 || column == 0) continue;
      int three = (*cell(s, row - 1, column) & DARK) + (*cell(s, row, column - 1) & DARK) +
                  (*cell(s, row - 1, column - 1) & DARK);
      if (three == 3 * here) sum += 3;
    }
  }
  int away = 20 * dark - 10 * all; /* 1 % is all / 5 */
  return sum + (away < 0 ? -away : away) / all * 10;
}

static void mask_best(const struct symbol *s) {
  int best = 0, least = -1;
  for (int mask = 0; mask < 8; mask++) {
    fix_format(s, mask);
    put_mask(s, mask);
    int found = penalty(s);
    put_mask(s, mask);
    if (least >= 0 && found >= least) continue;
    least = found;
    best = mask;
  }
  fix_format(s, best);
  put_mask(s, best);
}

int qr_encode(const void *text, size_t count, unsigned char *cells) {
  struct symbol s = {.cells = cells};
  if (count < 1 || count > MOST_WORDS || !fits(&s, count)) return 0;
  make_data(&s, text, count);
  interleave(&s);
  memset(cells, 0, (size_t)(s.side * s.side));
  fix_patterns(&s);
  fix_format(&s, 0);
  place(&s);
  mask_best(&s);
  int side = s.side;
  for (int index = 0; index < side * side; index++) cells[index] &= DARK;
  explicit_bzero(&s, sizeof s);
  return side;
}
