#include "CSystem.h"

#include <math.h>

/* Not in the header, as they need _GNU_SOURCE, which Swift's importer does not set. */

/* musl has no names for them; its strerror(3) changes nothing. */
#ifdef __GLIBC__
const char *sys_errno_name(int number) { return strerrorname_np(number); }

const char *sys_errno_text(int number) { return strerrordesc_np(number); }
#else
const char *sys_errno_name(int number) { return NULL; }

const char *sys_errno_text(int number) { return strerror(number); }
#endif

/* Swift's Glibc names hypotf(3), which has a new version in glibc 2.35; nothing calls it. With one of
 * their own, which they do not export, the programs run on glibc 2.34. */
__attribute__((visibility("hidden"))) float hypotf(float x, float y) {
  return isinf(x) || isinf(y) ? INFINITY : (float)sqrt((double)x * x + (double)y * y);
}
