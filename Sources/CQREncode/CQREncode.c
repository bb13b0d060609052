#include "CQREncode.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The part of libqrencode.so.4's interface that is used; its header is not needed to build. */
struct code {
  int version;
  int width;
  unsigned char *data; /* bit 0: dark */
};
typedef struct code *encode_data(int size, const unsigned char *data, int version, int level);

enum { ANY_VERSION = 0, LEVEL_L = 0, MOST_BYTES = 2953 };
/* Milliseconds that the child has for each part of its answer; it needs a few for all of it. */
enum { PATIENCE = 2000 };

static void put(int descriptor, const void *bytes, size_t count) {
  const char *rest = bytes;
  while (count > 0) {
    ssize_t done = write(descriptor, rest, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;
    rest += done;
    count -= (size_t)done;
  }
}

/* In the child: writes the width and the modules. Bytes that are missing tell of a failure. */
static _Noreturn void send_code(int descriptor, const struct code *code) {
  if (code != NULL && code->width >= 1 && code->width <= QR_LARGEST_SIDE) {
    size_t count = (size_t)code->width * (size_t)code->width;
    for (size_t index = 0; index < count; index++) code->data[index] &= 1;
    put(descriptor, &code->width, sizeof code->width);
    put(descriptor, code->data, count);
  }
  _exit(0);
}

/* Reads exactly so many bytes, or fails. */
static int take(int descriptor, void *bytes, size_t count) {
  char *rest = bytes;
  while (count > 0) {
    struct pollfd waits = {descriptor, POLLIN, 0};
    int ready = poll(&waits, 1, PATIENCE);
    if (ready < 0 && errno == EINTR) continue;
    ssize_t done = ready > 0 ? read(descriptor, rest, count) : 0;
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    rest += done;
    count -= (size_t)done;
  }
  return 1;
}

static int receive(int descriptor, unsigned char *cells) {
  int width = 0;
  if (!take(descriptor, &width, sizeof width) || width < 1 || width > QR_LARGEST_SIDE) return 0;
  return take(descriptor, cells, (size_t)width * (size_t)width) ? width : 0;
}

/* The child. It does not outlive the host: one that somebody has stopped, or that waits for a lock
   that another thread had at the fork, would stay for ever, with the text and the host's files. */
static _Noreturn void work(encode_data *encode, const void *text, int count, int descriptor,
                           pid_t host) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (getppid() != host) _exit(0);
  send_code(descriptor, encode(count, text, ANY_VERSION, LEVEL_L));
}

/* All zeros is a fork that sends the host no SIGCHLD, and in which nothing runs that the host has
   registered: its handlers of signals neither, for those stay blocked in the child. */
static pid_t fork_apart(void) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return -1;
  pid_t child = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
  if (child != 0) pthread_sigmask(SIG_SETMASK, &before, NULL);
  return child;
}

/* The library leaves the text in memory that it has freed, byte for byte and as code words, where
   nobody can wipe it. So it works in a child, whose memory ends with it. */
static int encode_apart(encode_data *encode, const void *text, int count, unsigned char *cells) {
  int ends[2], side = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) return 0;
  pid_t host = getpid(), child = fork_apart();
  if (child == 0) work(encode, text, count, ends[1], host);
  close(ends[1]);
  if (child > 0) {
    side = receive(ends[0], cells);
    kill(child, SIGKILL); /* one that has not answered is not waited for */
    while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR) continue;
  }
  close(ends[0]);
  return side;
}

int qr_encode(const void *text, size_t count, unsigned char *cells) {
  if (count < 1 || count > MOST_BYTES) return 0;
  void *library = dlopen("libqrencode.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
  encode_data *encode = (encode_data *)dlsym(library, "QRcode_encodeData");
  int side = encode == NULL ? 0 : encode_apart(encode, text, (int)count, cells);
  dlclose(library);
  return side;
}
