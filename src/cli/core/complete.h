/* What could stand in the place of the last word of a command line. */
#pragma once

/* Writes one "WORD<tab>WHAT IT IS" a line for the last of the words behind "holt", which may be "";
 * or ":files" where the shell's own completion of paths is wanted. */
void complete_words(int count, char *const *words);

/* One candidate, if it begins with start. */
void complete_offer(const char *start, const char *word, const char *what);

/* The names of a kind of thing that the daemon knows: the kind is what operands and arguments are
 * called in --help ("ID", "TEMPLATE", "SNAPSHOT", "PROCESS", "SHELL", "TOOL"), or "ID:"; sandbox is
 * whose, or NULL. Asks a daemon that is there, quickly, and is silent about everything else. */
void complete_names(const char *kind, const char *sandbox, const char *start);
