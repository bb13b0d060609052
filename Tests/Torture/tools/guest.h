/* A host that looks at itself before and after a login: see guest.c. */
#ifndef GUEST_H
#define GUEST_H

#include <stddef.h>

enum { SNAPSHOT = 1 << 17 };

/* Everything a module must leave alone, as lines of "name value"; asks no file and no memory. */
void take_snapshot(char *text);

/* Puts this process in a condition of that name; 0 if there is none. */
int bring_about(const char *condition);

/* Ends what `bring_about` started, and tells what was wrong with it; "" if nothing was. */
const char *end_condition(void);

/* Plays `play` as the condition wants it: here, or on a thread with little stack. */
void in_condition(void (*play)(void));

#endif
