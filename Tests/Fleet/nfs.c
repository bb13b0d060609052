/* Preloaded into a program where a test needs every file to lie on NFS. */
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NFS = 0x6969 };

int statfs(const char *path, struct statfs *found) {
  int done = (int)syscall(SYS_statfs, path, found);
  if (done == 0) found->f_type = NFS;
  return done;
}

int fstatfs(int file, struct statfs *found) {
  int done = (int)syscall(SYS_fstatfs, file, found);
  if (done == 0) found->f_type = NFS;
  return done;
}
