/* Images as templates of `holt run` and `holt create`. */
#pragma once

/* Pulls the image if the word is a reference and no template has it, with progress on stderr.
 * Accepts NULL. Returns an exit status. */
int pull_if_missing(const char *template);
