// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/daemon.h"
#include "cli/core/report.h"

/* The daemon's binary looks itself, because a machine where no daemon can start is the very one
 * that needs a doctor. */
static int doctor_run(int argc, char **argv)
{
    struct output_options options = { .wants_json = false };
    char name[] = "holtd", doctor[] = "--doctor", json[] = "--json";
    char *const words[] = { name, doctor, NULL, NULL };
    char *const json_words[] = { name, doctor, json, NULL };
    cleanup_free char *binary = daemon_find();
    int next, status;

    if (!command_parse(&command_doctor, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_doctor, "takes no arguments");
    (void)execvp(binary, options.wants_json ? json_words : words);
    return errno == ENOENT ? report("holtd is neither beside holt nor in PATH")
                           : report("cannot run %s: %s", binary, strerror(errno));
}

static const struct option_row rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_doctor = {
    .group = "Host",
    .name = "doctor",
    .operands = "",
    .summary = "Say what this machine can and cannot do, with cause and remedy",
    .options = &table,
    .run = doctor_run,
};
