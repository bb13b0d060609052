#include "CSystem.h"

/* Not in the header, as they need _GNU_SOURCE, which Swift's importer does not set. */

const char *sys_errno_name(int number) { return strerrorname_np(number); }

const char *sys_errno_text(int number) { return strerrordesc_np(number); }
