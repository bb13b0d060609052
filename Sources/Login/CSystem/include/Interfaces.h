/* Questions of SallyportSystem about this machine's network. Results as in CSystem.h. */
#pragma once

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* Whether the kernel delivers packets for an address (16 bytes, network order, IPv4 as
   ::ffff:a.b.c.d) to this machine itself: 1, 0, or a negative errno. It is asked for the one route
   (rtnetlink(7), RTM_GETROUTE): a list of all interfaces costs ten times as much, and does not have
   the addresses that are this machine's by a route alone. */
static inline int sys_is_own_address(const unsigned char *address) {
  static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const int skipped = memcmp(address, mapped, sizeof mapped) == 0 ? sizeof mapped : 0;
  struct {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr attribute;
    unsigned char destination[16];
  } question = {
    .head = {.nlmsg_len = sizeof question - skipped, .nlmsg_type = RTM_GETROUTE,
             .nlmsg_flags = NLM_F_REQUEST},
    .route = {.rtm_family = skipped > 0 ? AF_INET : AF_INET6, .rtm_dst_len = 128 - 8 * skipped},
    .attribute = {.rta_len = RTA_LENGTH(16) - skipped, .rta_type = RTA_DST},
  };
  memcpy(question.destination, address + skipped, 16 - skipped);
  struct { struct nlmsghdr head; struct rtmsg route; char more[1024]; } answer = {0};
  const int line = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (line < 0) return -errno;
  ssize_t size = send(line, &question, question.head.nlmsg_len, 0);
  if (size >= 0) size = recv(line, &answer, sizeof answer, MSG_DONTWAIT);
  /* The answer is there when send returns. */
  const int error = size < 0 ? errno : 0;
  close(line);
  if (error != 0) return -error;
  if (size < (ssize_t)NLMSG_LENGTH(sizeof answer.route)) return -EIO;
  if (answer.head.nlmsg_type == NLMSG_ERROR) {
    int why = 0;
    memcpy(&why, NLMSG_DATA(&answer.head), sizeof why); /* struct nlmsgerr begins with it */
    /* No route leads there, or one on which nothing is sent: then it is nobody's here. */
    return why == -ENETUNREACH || why == -EHOSTUNREACH || why == -EACCES || why == -EINVAL ? 0
         : why < 0 ? why : -EIO;
  }
  return answer.head.nlmsg_type == RTM_NEWROUTE ? answer.route.rtm_type == RTN_LOCAL : -EIO;
}

#pragma clang assume_nonnull end
