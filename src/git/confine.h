/* The privileges of holt-git: those of the owner of the directory, which becomes its root. */
#pragma once

/* Makes the directory the root of this process, makes its owner the user, and gives up everything
 * else: capabilities, the network, and the right to execute any program. Returns 0 or -errno. */
int git_confine(int dir_fd);
