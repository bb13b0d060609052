#include "CSystem.h"

/* Here and not in the header: Swift's importer does not set _GNU_SOURCE. */

const char *sys_errno_name(int number) { return strerrorname_np(number); }

const char *sys_errno_text(int number) { return strerrordesc_np(number); }
