#include "CLinuxPAM.h"

// Here and not in the header: the importer of the header does not see _GNU_SOURCE.

const char *sp_errno_name(int number) { return strerrorname_np(number); }

const char *sp_errno_text(int number) { return strerrordesc_np(number); }
