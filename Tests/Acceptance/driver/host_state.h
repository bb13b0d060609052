#pragma once

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a module must leave as it found it: descriptors, ids, umask, signals, environment. */
static void host_state(char *out, size_t size) {
  extern char **environ;
  char line[256];
  size_t used = 0, variables = 0;
  int descriptors = 0;
  FILE *status = fopen("/proc/self/status", "re");
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "Umask", 5) == 0 || strncmp(line, "Uid", 3) == 0 ||
        strncmp(line, "Gid", 3) == 0 || strncmp(line, "Cap", 3) == 0 ||
        (strncmp(line, "Sig", 3) == 0 && line[3] != 'Q')) /* SigQ counts all processes' signals */
      used += (size_t)snprintf(out + used, size - used, "%s", line);
  if (status != NULL) fclose(status);
  DIR *open_files = opendir("/proc/self/fd");
  while (open_files != NULL && readdir(open_files) != NULL) descriptors++;
  if (open_files != NULL) closedir(open_files);
  while (environ[variables] != NULL) variables++;
  if (getcwd(line, sizeof line) == NULL) *line = 0;
  snprintf(out + used, size - used, "descriptors %d variables %zu in %s\n", descriptors,
           variables, line);
}
