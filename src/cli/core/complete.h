/* Completion of the last word of a command line. */
#pragma once

/* Writes a line "WORD<tab>DESCRIPTION" for each completion of the last of the words after "holt",
 * which may be ""; or ":files" if the shell should complete paths. */
void complete_words(int count, char *const *words);

/* Writes one candidate if it begins with start. */
void complete_offer(const char *start, const char *word, const char *what);

/* Writes the names of objects of a kind that the daemon has. The kind is the word that --help uses
 * for operands and arguments ("ID", "TEMPLATE", "SNAPSHOT", "PROCESS", "SHELL", "TOOL") or "ID:";
 * sandbox is the sandbox that they belong to, or NULL. Never starts a daemon, waits only briefly,
 * and prints no errors. */
void complete_names(const char *kind, const char *sandbox, const char *start);
