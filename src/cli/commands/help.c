// SPDX-License-Identifier: Apache-2.0
/* The commands about holt itself: help, version and shell completion. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/complete.h"
#include "cli/core/report.h"

/* --- completion ------------------------------------------------------------------------------- */

/* The scripts call `holt completion words` for every key, so they never have to be updated. */
static const char bash_script[] =
    "# Completion of holt for bash: source <(holt completion bash)\n"
    "_holt() {\n"
    "    local line\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) compopt -o default 2>/dev/null ;;\n"
    "        *:$'\\t'*) compopt -o nospace 2>/dev/null; COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"$1\" completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _holt holt\n";

static const char zsh_script[] =
    "#compdef holt\n"
    "# Completion of holt for zsh: holt completion zsh >\"${fpath[1]}/_holt\", or source it.\n"
    "_holt() {\n"
    "    local line\n"
    "    local -a found\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) _files ;;\n"
    "        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done < <(\"$words[1]\" completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( $#found )) && _describe holt found\n"
    "}\n"
    "compdef _holt holt\n";

static const char fish_script[] =
    "# Completion of holt for fish: holt completion fish >~/.config/fish/completions/holt.fish\n"
    "function __holt_words\n"
    "    set -l before (commandline -opc)\n"
    "    for line in ($before[1] completion words -- $before[2..-1] (commandline -ct) "
    "2>/dev/null)\n"
    "        if test \"$line\" = :files\n"
    "            __fish_complete_path (commandline -ct)\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c holt -f -a '(__holt_words)'\n";

static const struct {
    const char *shell, *script;
} scripts[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };

static int completion_run(int argc, char **argv)
{
    struct common_options options = { .wants_help = false };
    int next, status;

    if (!command_parse(&command_completion, &options, argc, argv, &next, &status))
        return status;
    if (next < argc && strcmp(argv[next], "words") == 0) {
        next++;
        next += next < argc && strcmp(argv[next], "--") == 0;
        complete_words(argc - next, argv + next);
        return command_printed();
    }
    for (size_t i = 0; next + 1 == argc && i < ARRAY_SIZE(scripts); i++) {
        if (strcmp(argv[next], scripts[i].shell) != 0)
            continue;
        (void)printf("%s", scripts[i].script);
        return command_printed();
    }
    return command_misused(&command_completion, "needs bash, zsh or fish");
}

const struct command command_completion = {
    .group = "Host",
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Print a script that completes commands, options and names",
    .example = "source <(holt completion bash)",
    .options = &option_table_help,
    .takes_command = true,
    .run = completion_run,
};

/* --- help, version ---------------------------------------------------------------------------- */

static int help_run(int argc, char **argv)
{
    struct common_options options = { .wants_help = false };
    int next, status;

    if (!command_parse(&command_help, &options, argc, argv, &next, &status))
        return status;
    return commands_help(argc - next, argv + next);
}

const struct command command_help = {
    .group = "Host",
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "Show the help of holt or of one of its commands",
    .options = &option_table_help,
    .run = help_run,
};

static const struct option_row version_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_HELP };

static const struct option_table version_table = { version_rows, ARRAY_SIZE(version_rows), NULL };

static int version_run(int argc, char **argv)
{
    struct output_options options = { .wants_json = false };
    int next, status;

    if (!command_parse(&command_version, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_version, "takes no arguments");
    (void)printf(options.wants_json ? "{\"version\":\"" HOLT_VERSION "\"}\n"
                                    : "holt " HOLT_VERSION "\n");
    return command_printed();
}

const struct command command_version = {
    .group = "Host",
    .name = "version",
    .operands = "",
    .summary = "Show the version",
    .options = &version_table,
    .run = version_run,
};
