/* Turns the difference of two trees into the upper directory of an overlay. */
#pragma once

struct err;

/* Fills an empty upper directory so that an overlay of it above `lower` shows `tree`. */
int layer_fill(int upper_fd, int lower_fd, int tree_fd, struct err *err);
