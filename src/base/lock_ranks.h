/* Every lock of Holt. A thread that holds one takes only locks further down this table; no thread
 * holds two locks of one row. docs/locks.md repeats the table. */
#pragma once

/* row(rank, module, what it protects) */
#define LOCK_TABLE(row)                                                                            \
    /* front ends */                                                                               \
    row(LOCK_CONNECTION_LIMITS, "http", "the connections, their deadlines and limits")             \
        row(LOCK_RAW_SESSIONS, "http", "the sessions that have left HTTP") row(                    \
            LOCK_FEED, "http", "the lines that a stream's own thread has produced")                \
            row(LOCK_TEMPLATE_IMPORT, "api", "the progress of one import") row(                    \
                LOCK_MCP_SANDBOX, "mcp", "the creation of an MCP session's sandbox")               \
                row(LOCK_MCP_SESSIONS, "mcp", "the MCP sessions") row(                             \
                    LOCK_E2B_WAKE, "e2b", "the resume of a paused sandbox by a request")           \
                    row(LOCK_E2B_WATCHERS, "e2b", "the directory watchers") row(                   \
                        LOCK_E2B_RESETS, "e2b", "the connections to reset when a sandbox ends")    \
                        row(LOCK_E2B_BUILDS, "e2b",                                                \
                            "the builds, and changes to templates in the object store")            \
                            row(LOCK_E2B_OBJECTS, "e2b",                                           \
                                "the object store, also while a file is written")                  \
                                row(LOCK_E2B_HISTORY, "e2b", "the recorded usage of sandboxes")    \
                                    row(LOCK_TOKEN_CHANGE, "auth",                                 \
                                        "changes of the token list and its file")                  \
                                        row(LOCK_TOKENS, "auth", "the token list") row(            \
                                            LOCK_WATCHDOG, "daemon",                               \
                                            "the stop of the watchdog") /* host: what starts and   \
                                                                           ends sandboxes */       \
        row(LOCK_BUILD, "builder", "the state and log of one build") row(                          \
            LOCK_BUILD_QUEUE, "builder",                                                           \
            "the builds that wait for their turn") row(LOCK_TOOL_RESULTS, "toolbox",               \
                                                       "the kept results of tools")                \
            row(LOCK_TOOL_JOBS, "toolbox", "the threads of jobs without a caller") row(            \
                LOCK_TOOL_JOB, "toolbox",                                                          \
                "the state of one job") row(LOCK_EXPIRY, "host",                                   \
                                            "the wake-up of the expiry thread")                    \
                row(LOCK_STORAGE_MONITOR, "host", "the wake-up of the storage monitor") row(       \
                    LOCK_TREE_CLEANER, "host",                                                     \
                    "the trees to remove") row(LOCK_FORK, "host", "the result of one fork")        \
                    row(LOCK_HOST, "host", "the table of sandboxes, the limits, the uid slots")    \
                        row(LOCK_SANDBOX, "host", "one sandbox") row(                              \
                            LOCK_POOL, "host",                                                     \
                            "the warm pool") row(LOCK_TIMERS, "host",                              \
                                                 "the reactor's timers, also while one fires")     \
                            row(LOCK_ACKNOWLEDGEMENT, "host",                                      \
                                "the acknowledgements of one process") row(LOCK_MACHINE, "host",   \
                                                                           "one machine, its "     \
                                                                           "processes and shells") \
                                row(LOCK_PROCESS_TABLE, "host",                                    \
                                    "the process table of one sandbox")                            \
                                    row(LOCK_RECORD, "host", "the record of one process") row(     \
                                        LOCK_FILE_POOL, "host",                                    \
                                        "the idle file workers of one machine")                    \
                                        row(LOCK_PORTS, "host", "the forwarded ports") row(        \
                                            LOCK_PROCESS_WRITER, "host",                           \
                                            "the processes that the writer looks at next")         \
                                            row(LOCK_AUDIT, "host", "the audit log") row(          \
                                                LOCK_EVENTS, "host",                               \
                                                "the event ring") row(LOCK_JOURNAL, "host",        \
                                                                      "the journal's connection "  \
                                                                      "and statements")            \
                                                row(LOCK_REGISTRY, "host",                         \
                                                    "the registry's connection and statements")    \
                                                    row(LOCK_ZYGOTES, "runtime",                   \
                                                        "the zygotes that wait for use")           \
                                                        row(LOCK_STORE, "store",                   \
                                                            "the use counts of templates")         \
                                                            row(LOCK_BTRFS, "store",               \
                                                                "the quota groups of a btrfs "     \
                                                                "store")                           \
                                                                row(LOCK_ZFS_FILL, "store",        \
                                                                    "the creation of a zfs "       \
                                                                    "template")                    \
                                                                    row(LOCK_ZFS_RECLAIM, "store", \
                                                                        "the removal of old "      \
                                                                        "datasets")                \
                                                                        row(LOCK_CHANNEL, "host",  \
                                                                            "the frames to one "   \
                                                                            "guest") /* client     \
                                                                                        programs   \
                                                                                      */           \
        row(LOCK_BRIDGE, "cli", "the calls of an MCP bridge")                                      \
            row(LOCK_BRIDGE_SANDBOX, "cli", "the sandbox of an MCP bridge")                        \
                row(LOCK_BRIDGE_OUTPUT, "cli", "standard output of an MCP bridge")                 \
                    row(LOCK_CLIENT, "client", "the connections of a handle")                      \
                        row(LOCK_TLS_SESSION, "client",                                            \
                            "the TLS session that later connections resume")                       \
                            row(LOCK_SEARCH, "tools", "the jobs and results of a parallel search")

enum lock_rank {
#define LOCK_RANK(rank, module, protects) rank,
    LOCK_TABLE(LOCK_RANK)
#undef LOCK_RANK
};
