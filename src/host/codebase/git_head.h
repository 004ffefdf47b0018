/* Which commit a tree with a .git directory is at. */
#pragma once

enum { GIT_HEAD_SIZE = 41 };

/* Reads the commit, as 40 digits; "": there is none yet. The tree is read as text, without its
 * objects. Returns -ENOENT if it is not the top of a git repository, or another -errno. */
int git_head_read(int tree_fd, char ret[GIT_HEAD_SIZE]);
