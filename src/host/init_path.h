/* Where holt-init is. */
#pragma once

struct err;

/* Beside this program in a build tree, in libexec when installed. The caller frees *ret. */
int init_path_find(char **ret, struct err *err);
