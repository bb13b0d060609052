#include "CCommand.h"

static int count;
static char **words;

/* glibc passes main's arguments to constructors. */
__attribute__((constructor)) static void keep_arguments(int argc, char **argv) {
  count = argc;
  words = argv;
}

int process_argument_count(void) { return count; }

const char *process_argument(int index) { return index < count ? words[index] : NULL; }
