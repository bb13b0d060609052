#pragma once

/* What a module leaves in registers that a call may change. The next call that is bound lazily saves
 * them on the stack, where they then are a part of the host's memory; here each phase ends so. Those
 * who look into this memory find them in `registers_left`. */

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>

static struct {
  uint64_t general[9];
  _Alignas(64) unsigned char vectors[8192];
} registers_left;

static inline void keep_registers(void) {
  asm volatile(
      "movq %%rax, 0(%0); movq %%rcx, 8(%0); movq %%rdx, 16(%0); movq %%rsi, 24(%0);"
      "movq %%rdi, 32(%0); movq %%r8, 40(%0); movq %%r9, 48(%0); movq %%r10, 56(%0)"
      : : "r"(registers_left.general) : "memory");
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE))
    asm volatile("xsave %0" : "+m"(registers_left.vectors) : "a"(0xe7), "d"(0)); /* not AMX's */
  else
    asm volatile("fxsave %0" : "+m"(registers_left.vectors));
}
#elif defined(__aarch64__)
static _Alignas(16) unsigned char registers_left[32 * 16];

#define KEEP(n) "str q" #n ", [%0, #16 * " #n "];"
static inline void keep_registers(void) {
  asm volatile(
      KEEP(0) KEEP(1) KEEP(2) KEEP(3) KEEP(4) KEEP(5) KEEP(6) KEEP(7)
      KEEP(16) KEEP(17) KEEP(18) KEEP(19) KEEP(20) KEEP(21) KEEP(22) KEEP(23)
      KEEP(24) KEEP(25) KEEP(26) KEEP(27) KEEP(28) KEEP(29) KEEP(30) KEEP(31)
      : : "r"(registers_left) : "memory");
}
#endif
