/* A disk whose every write and flush is written down: one file in a FUSE file system of its own, to
 * be mounted through a loop device. What reaches it is what the block device is given, in order.
 *
 *   disk IMAGE LOG DIRECTORY
 *
 * The file DIRECTORY/disk shows IMAGE. LOG grows by a record for each write (offset, length, then the
 * bytes) and each flush (offset -1, length 0): 64-bit and 32-bit numbers of this machine. A record
 * stands there before the kernel hears that the write or the flush is done. Ends with the mount.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { THE_FILE = 2, LONGEST = 1 << 17 };

static int fuse, image, logfile;
static char request[LONGEST + 8192], content[LONGEST];

static void answer(const struct fuse_in_header *in, int error, const void *data, size_t size) {
  struct fuse_out_header out = {(uint32_t)(sizeof out + size), error, in->unique};
  struct iovec parts[2] = {{&out, sizeof out}, {(void *)data, size}};
  if (writev(fuse, parts, size == 0 ? 1 : 2) < 0 && errno != ENOENT) exit(71);
}

static struct fuse_attr facts(uint64_t node) {
  struct stat s;
  struct fuse_attr a = {.ino = node, .nlink = 1, .blksize = 4096, .mode = S_IFDIR | 0755};
  if (node == THE_FILE && fstat(image, &s) == 0) {
    a.mode = S_IFREG | 0600;
    a.size = (uint64_t)s.st_size;
    a.blocks = (uint64_t)s.st_blocks;
  }
  return a;
}

static void record(uint64_t offset, uint32_t length, const void *data) {
  char head[12];
  struct iovec parts[2] = {{head, sizeof head}, {(void *)data, length}};
  memcpy(head, &offset, 8);
  memcpy(head + 8, &length, 4);
  if (writev(logfile, parts, 2) != (ssize_t)(sizeof head + length)) exit(74);
}

static void begin(const struct fuse_in_header *in, const struct fuse_init_in *init) {
  struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = LONGEST,
                              .max_readahead = init->max_readahead, .max_background = 16,
                              .congestion_threshold = 12, .time_gran = 1,
                              .flags = init->flags & (FUSE_BIG_WRITES | FUSE_MAX_PAGES),
                              .max_pages = LONGEST / 4096};
  answer(in, 0, &out, sizeof out);
}

static void find(const struct fuse_in_header *in, const char *name) {
  if (strcmp(name, "disk") != 0) return answer(in, -ENOENT, NULL, 0);
  struct fuse_entry_out out = {.nodeid = THE_FILE, .attr_valid = 3600, .entry_valid = 3600,
                               .attr = facts(THE_FILE)};
  answer(in, 0, &out, sizeof out);
}

static void show(const struct fuse_in_header *in) {
  struct fuse_attr_out out = {.attr_valid = 3600, .attr = facts(in->nodeid)};
  answer(in, 0, &out, sizeof out);
}

static void read_some(const struct fuse_in_header *in, const struct fuse_read_in *wanted) {
  uint32_t size = wanted->size < LONGEST ? wanted->size : LONGEST;
  ssize_t done = pread(image, content, size, (off_t)wanted->offset);
  answer(in, done < 0 ? -EIO : 0, content, done < 0 ? 0 : (size_t)done);
}

static void write_some(const struct fuse_in_header *in, const struct fuse_write_in *given) {
  struct fuse_write_out out = {.size = given->size};
  if (pwrite(image, given + 1, given->size, (off_t)given->offset) != (ssize_t)given->size)
    return answer(in, -EIO, NULL, 0);
  record(given->offset, given->size, given + 1);
  answer(in, 0, &out, sizeof out);
}

static void serve(const struct fuse_in_header *in, const void *rest) {
  struct fuse_open_out opened = {.open_flags = FOPEN_KEEP_CACHE};
  switch (in->opcode) {
    case FUSE_INIT: return begin(in, rest);
    case FUSE_LOOKUP: return find(in, rest);
    case FUSE_GETATTR: case FUSE_SETATTR: return show(in);
    case FUSE_OPEN: case FUSE_OPENDIR: return answer(in, 0, &opened, sizeof opened);
    case FUSE_READ: return read_some(in, rest);
    case FUSE_WRITE: return write_some(in, rest);
    case FUSE_FSYNC: record(UINT64_MAX, 0, ""); return answer(in, 0, NULL, 0);
    case FUSE_FLUSH: case FUSE_RELEASE: case FUSE_RELEASEDIR: return answer(in, 0, NULL, 0);
    case FUSE_FORGET: case FUSE_BATCH_FORGET: case FUSE_INTERRUPT: return;
    default: return answer(in, -ENOSYS, NULL, 0);
  }
}

int main(int argc, char **argv) {
  char options[128];
  if (argc != 4) return 64;
  image = open(argv[1], O_RDWR | O_CLOEXEC);
  logfile = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
  if (image < 0 || logfile < 0 || mount("disk", argv[3], "fuse", 0, options) != 0) {
    perror("disk");
    return 71;
  }
  puts("ready");
  fflush(stdout);
  for (;;) {
    ssize_t size = read(fuse, request, sizeof request);
    if (size < 0 && errno == ENODEV) return 0; /* the mount is gone */
    if (size < 0 && errno != EINTR && errno != ENOENT && errno != EAGAIN) return 74;
    if (size >= (ssize_t)sizeof(struct fuse_in_header))
      serve((struct fuse_in_header *)request, request + sizeof(struct fuse_in_header));
  }
}
