#include "CSystem.h"

/* Not in the header, as they need _GNU_SOURCE, which Swift's importer does not set. */

/* musl has no names for them; its strerror(3) changes nothing. */
#ifdef __GLIBC__
const char *sys_errno_name(int number) { return strerrorname_np(number); }

const char *sys_errno_text(int number) { return strerrordesc_np(number); }
#else
const char *sys_errno_name(int number) { return NULL; }

const char *sys_errno_text(int number) { return strerror(number); }
#endif
