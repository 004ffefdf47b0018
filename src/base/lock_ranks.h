/* Every lock of Holt. A thread that holds one takes only locks further down this table; no thread
 * holds two locks of one row. ARCHITECTURE.md repeats the table (tools/print-locks,
 * tools/check-docs). */
#pragma once

/* row(rank, file, what it protects) */
/* clang-format off */
#define LOCK_TABLE(row)                                                                            \
    row(LOCK_SECRET_SOURCE, "host/secret/secret.c", "the values that a front end keeps")            \
    row(LOCK_MCP_SANDBOX, "mcp/session.c", "the creation of one MCP session's sandbox")            \
    row(LOCK_MCP_SESSIONS, "mcp/session.c", "the MCP sessions")                                    \
    row(LOCK_E2B_METADATA, "e2b/core/metadata.c", "a change of a sandbox's metadata")              \
    row(LOCK_E2B_RESETS, "e2b/core/reset.c", "the connections to reset when a sandbox ends")       \
    row(LOCK_E2B_WATCHERS, "e2b/envd/watcher.c", "the directory watchers")                         \
    row(LOCK_E2B_BUILDS, "e2b/template/build.c", "the builds, and changes of stored templates")    \
    row(LOCK_E2B_OBJECTS, "e2b/core/object_store.c", "the objects, also while one is written")     \
    row(LOCK_TEMPLATE_IMPORT, "api/template.c", "the progress of one import")                      \
    row(LOCK_FEED, "http/feed.c", "the lines that a stream's own thread has produced")             \
    row(LOCK_UPGRADED, "http/upgraded.c", "the connections that left HTTP")                           \
    row(LOCK_CONNECTION_LIMITS, "http/limits.c", "the connections, their deadlines and limits")    \
    row(LOCK_TLS_FRONT, "http/tls/front.c", "the TLS connections that the server has")             \
    row(LOCK_CONSOLE, "console/frontend.c", "the failed logins and tickets of the console")        \
    row(LOCK_CONSOLE_SWEEPER, "console/frontend.c", "the thread that ends sessions")               \
    row(LOCK_SESSIONS, "auth/session_store.c", "the sessions and login codes of the console")     \
    row(LOCK_TOKEN_CHANGE, "auth/token_store.c", "a change of the token list and its file")        \
    row(LOCK_TOKENS, "auth/token_store.c", "the token list")                                       \
    row(LOCK_BUILD, "builder/build.c", "the state and log of one build")                           \
    row(LOCK_TOOL_JOB, "toolbox/job.c", "the state of one job")                                    \
    row(LOCK_TOOL_RESULTS, "toolbox/bounded_dir.c", "the files of one bounded directory")          \
    row(LOCK_OWNERS, "host/owner/owner.c", "a change of the ceilings of an owner")                 \
    row(LOCK_SECRETS, "host/secret/secret.c", "the key of the secrets, and a change of one")       \
    row(LOCK_POOL, "host/machine/pool.c", "the warm machines")                                     \
    row(LOCK_HOST, "host/core/host.c", "the sandboxes, the limits, the slots of user ids")         \
    row(LOCK_SANDBOX, "host/sandbox/sandbox.c", "one sandbox")                                     \
    row(LOCK_TIMERS, "host/core/reactor.c", "the timers, also while one fires")                    \
    row(LOCK_ACKNOWLEDGEMENT, "host/process/process.c", "the acknowledgements of one process")     \
    row(LOCK_MACHINE, "host/machine/machine.c", "one machine, its processes and shells")           \
    row(LOCK_PROCESS_TABLE, "host/process/table.c", "the process table of one sandbox")            \
    row(LOCK_JOURNAL, "host/process/journal.c", "the journal's connection and statements")         \
    row(LOCK_RECORD, "host/process/record.c", "the record of one process")                         \
    row(LOCK_FILE_POOL, "host/worker/file_pool.c", "the workers of one machine")                   \
    row(LOCK_PORTS, "host/port/thread.c", "the forwarded connections")                             \
    row(LOCK_NET, "host/net/net.c", "the machines with a network, their log and the jobs")         \
    row(LOCK_VIEWS, "host/view/view.c", "the file servers of codebases and their answers")         \
    row(LOCK_PROCESS_WRITER, "host/process/writer.c", "the processes to write next")               \
    row(LOCK_EXPIRY, "host/sandbox/expiry.c", "the wake-up of the expiry thread")                  \
    row(LOCK_REMOTE_STORE, "host/backup/remote_store.c", "the object storage, while it is opened") \
    row(LOCK_SETTLE, "host/backup/settle.c", "the wake-up of the thread that tidies the storage")  \
    row(LOCK_STORAGE_MONITOR, "host/observe/storage_monitor.c", "the wake-up of the monitor")      \
    row(LOCK_MEMORY_GUARD, "host/observe/memory_guard.c", "the wake-up of the memory guard")       \
    row(LOCK_HISTORY, "host/observe/history.c", "the samples of the last hour")                   \
    row(LOCK_TREE_CLEANER, "host/sandbox/tree_cleaner.c", "the trees to remove")                   \
    row(LOCK_REAPER, "host/machine/reaper.c", "the machines that were killed last")                \
    row(LOCK_TOOL_JOBS, "toolbox/job_table.c", "the jobs, and threads of jobs without a caller")   \
    row(LOCK_BUILD_QUEUE, "builder/queue.c", "the builds that wait for their turn")                \
    row(LOCK_FORK, "host/sandbox/fork.c", "the result of one fork")                                \
    row(LOCK_WATCHDOG, "daemon/watchdog.c", "the end of the watchdog")                             \
    row(LOCK_E2B_HISTORY, "e2b/control/history.c", "the recorded usage of sandboxes")              \
    row(LOCK_AUDIT, "host/observe/audit.c", "the audit log")                                       \
    row(LOCK_OWNER_EVENTS, "host/observe/owner_events.c", "the rings of events of the owners")     \
    row(LOCK_EVENTS, "host/observe/event_ring.c", "the kept events and their readers")             \
    row(LOCK_LLM_MODELS, "host/llm/llm.c", "the models, providers and budgets")                    \
    row(LOCK_LLM, "host/llm/ledger.c", "the use of models and what is reserved of it")              \
    row(LOCK_REGISTRY, "host/registry/registry.c", "the registry's connection and statements")         \
    row(LOCK_FLUSH, "base/flush.c", "the writes to one file that wait for the disk")                \
    row(LOCK_ZYGOTES, "runtime/zygote.c", "the zygotes that wait for use")                         \
    row(LOCK_ZFS_FILL, "store/backend/zfs_template.c", "the creation of a template")               \
    row(LOCK_ZFS_RECLAIM, "store/backend/zfs_reclaim.c", "the removal of unused datasets")         \
    row(LOCK_BTRFS, "store/backend/btrfs.c", "the quota groups")                                   \
    row(LOCK_STORE, "store/store.c", "the use counts of templates")                                \
    row(LOCK_DISK, "store/disk.c", "the wake-up of the thread of the disk")                        \
    row(LOCK_ARCHIVE_PIPELINE, "remote/archive/pipeline.c", "the chunks under way")                \
    row(LOCK_ARCHIVE_NAMES, "remote/archive/names.c", "the chunks that an archive has so far")     \
    row(LOCK_REMOTE_FOLDERS, "remote/dir.c", "the folders of an object storage that come and go")  \
    row(LOCK_REMOTE_CONNECTIONS, "remote/s3_http.c", "the idle connections to an object storage")  \
    row(LOCK_CHANNEL, "host/machine/channel.c", "the frames to one guest")                         \
    row(LOCK_NAMES, "host/sandbox/name.c", "the names of sandboxes, for events")                   \
    row(LOCK_BRIDGE, "cli/mcp/bridge.c", "the calls under way")                                    \
    row(LOCK_TRANSFER, "cli/core/transfer.c", "the wake-up of the progress line")                  \
    row(LOCK_LESSON, "cli/commands/net_learn.c", "the state of the network that is learned")       \
    row(LOCK_BRIDGE_SANDBOX, "cli/mcp/sandbox.c", "the bridge's sandbox")                          \
    row(LOCK_BRIDGE_OUTPUT, "cli/mcp/bridge.c", "the bridge's standard output")                    \
    row(LOCK_CLIENT, "client/transport/handle.c", "the idle connections of one handle")            \
    row(LOCK_TLS_SESSION, "client/transport/tls.c", "the session that new connections resume")     \
    row(LOCK_VIEWFS_HANDLE, "viewfs/op_file.c", "the descriptor of one open file")                 \
    row(LOCK_VIEWFS_HANDLES, "viewfs/op_file.c", "the list of open files")                         \
    row(LOCK_VIEWFS_NODES, "viewfs/node.c", "the names that the kernel knows")                     \
    row(LOCK_VIEWFS_DENIALS, "viewfs/denial.c", "what was refused last")                           \
    row(LOCK_SEARCH, "tools/search/ordered.c", "the jobs and results of one search")
/* clang-format on */

enum lock_rank {
#define LOCK_RANK(rank, file, protects) rank,
    LOCK_TABLE(LOCK_RANK)
#undef LOCK_RANK
};
