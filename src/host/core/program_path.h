/* Where the programs are that Holt runs inside sandboxes: holt-init, holt-tools. */
#pragma once

struct err;

/* Beside this program in a build tree, in libexec when installed. The caller frees *ret. */
int init_path_find(const char *program, char **ret, struct err *err);
