/* Messages between holtd and holt-view, the file server of one sandbox's codebase.
 *
 * They are JSON objects, one in each packet of a SOCK_SEQPACKET connection. holtd starts holt-view
 * with four descriptors; a later holtd connects to the socket. holt-view has one connection at a
 * time, the last one, outlives it, and ends with the mount.
 *
 * From holtd:
 * - {"do":"rules","sequence":1,"generation":1,"rules":"..."}: first, and for every change
 * - {"do":"holders","sequence":2}
 * - {"do":"judge","sequence":4,"nodes":[[94000,true]]}: nodes of files that the kernel knows, and
 *   whether they are written
 * - {"do":"ping","sequence":3}
 *
 * From holt-view, with the sequence of the request:
 * - {"do":"rules","sequence":1,"open":0}: the rules are in force; so many open files have more than
 *   they grant now
 * - {"do":"holders","sequence":2,"files":[{"path":"/a","pid":1,"level":"none"}]}: those files, and
 *   the processes that opened them
 * - {"do":"judge","sequence":4,"files":[[true,false]]}: for each, whether the rules refuse that
 * now, and whether it is open
 * - {"do":"ping","sequence":3}
 * and without being asked:
 * - {"do":"unmounted"}: the last message; nothing uses the mount any more
 * - at most once in VIEW_DENIALS_MS
 * {"do":"denials","total":5,"last":[{"path":"/a","operation":"open","rule":0,"level":"view",
 *   "pid":1}]}: what was refused, of many only some; rule -1: no rule matches
 */
#pragma once

enum {
    VIEW_CONTROL_FD = 3, /* the first connection */
    VIEW_LISTEN_FD = 4,  /* a bound socket for the next ones */
    VIEW_ROOT_FD = 5,    /* the files */
    VIEW_FUSE_FD = 6,    /* /dev/fuse, of a mount that exists */
    VIEW_MESSAGE_MAX = 512 << 10,
    VIEW_HOLDERS_MAX = 256,
    VIEW_JUDGED_MAX = 256,
    VIEW_DENIALS_MS = 500,
};
