// SPDX-License-Identifier: Apache-2.0
#include "daemon/command_line.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

static int set_ready_fd(void *into, const char *value, struct err *err)
{
    struct command_line *line = into;
    uint64_t fd;

    if (line->is_again)
        return 0;
    if (parse_u64(value, &fd) < 0 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0)
        return err_set(err, ERR_INVALID, "--ready-fd: '%s' is not an open descriptor", value);
    line->ready_fd = (int)fd;
    return 0;
}

static const struct option_row own_rows[] = {
    { "config", 'c', "FILE", "read this file, not /etc/holt/holt.conf",
      OPTION_TEXT(struct command_line, config_path) },
    { "print-config", 0, NULL, "print the configuration in effect and exit",
      OPTION_FLAG(struct command_line, print_config) },
    { "doctor", 0, NULL, "check whether sandboxes work on this machine, and exit",
      OPTION_FLAG(struct command_line, doctor) },
    { "json", 0, NULL, "with --doctor or --prove: print JSON",
      OPTION_FLAG(struct command_line, json) },
    { "fix", 0, NULL, "with --doctor: apply remedies that are safe",
      OPTION_FLAG(struct command_line, fix) },
    { "prove", 0, NULL, "try to escape from a sandbox of each runtime, print what held, and exit",
      OPTION_FLAG(struct command_line, prove) },
    { "stop-all", 0, NULL, "stop all sandboxes on exit instead of leaving them running",
      OPTION_FLAG(struct command_line, config.stop_all) },
    { "ready-fd", 0, "N", "write \"ready\" or \"error: ...\" to descriptor N",
      OPTION_CALL(set_ready_fd) },
    { "version", 'V', NULL, "print the version and exit",
      OPTION_FLAG(struct command_line, version) },
    { "help", 'h', NULL, "print this help and exit", OPTION_FLAG(struct command_line, help) },
};

/* Joins the daemon's own rows and those of the configuration. The caller frees the rows. */
static struct option_table table_join(struct option_row **ret_rows)
{
    struct option_table keys = config_options();
    struct option_row *rows = xcalloc(ARRAY_SIZE(own_rows) + keys.count, sizeof(*rows));

    memcpy(rows, own_rows, sizeof(own_rows));
    memcpy(rows + ARRAY_SIZE(own_rows), keys.rows, keys.count * sizeof(*rows));
    *ret_rows = rows;
    return (struct option_table){ .rows = rows, .count = ARRAY_SIZE(own_rows) + keys.count };
}

static int words_read(int argc, char *const *argv, struct command_line *line, struct err *err)
{
    cleanup_free struct option_row *rows = NULL;
    struct option_table table = table_join(&rows);
    int next = 0;
    int r = options_parse(&table, line, argc, argv, &next, err);

    if (r == 0 && next < argc)
        r = err_set(err, ERR_INVALID, "unexpected argument '%.100s'", argv[next]);
    return r;
}

/* Reads the arguments twice: first to find --config, then to override the file and the environment.
 */
static int all_read(int argc, char *const *argv, struct command_line *ret, struct err *err)
{
    int r = words_read(argc, argv, ret, err);

    config_done(&ret->config);
    if (r < 0 || ret->help || ret->version)
        return r;
    r = config_load(ret->config_path, &ret->config, err);
    if (r < 0)
        return r;
    return words_read(argc, argv, ret, err);
}

int command_line_read(int argc, char *const *argv, struct command_line *ret, struct err *err)
{
    *ret = (struct command_line){ .ready_fd = -1 };
    return all_read(argc, argv, ret, err);
}

int command_line_read_again(int argc, char *const *argv, struct command_line *ret, struct err *err)
{
    *ret = (struct command_line){ .ready_fd = -1, .is_again = true };
    return all_read(argc, argv, ret, err);
}

void command_line_help(FILE *out)
{
    cleanup_free struct option_row *rows = NULL;
    struct option_table table = table_join(&rows);

    (void)fputs("usage: holtd [OPTIONS]\n\nThe Holt daemon: a sandbox host for AI agents.\n\n",
                out);
    options_help(&table, out);
}

void command_line_done(struct command_line *line)
{
    config_done(&line->config);
}
