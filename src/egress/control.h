/* Messages between holtd and holt-net.
 *
 * They are JSON objects, one in each packet of a SOCK_SEQPACKET pair, at most CONTROL_MESSAGE_MAX
 * bytes. holt-net has its end as descriptor 3 and exits when the other end is closed. Every message
 * has "do"; those about a sandbox have "machine", the number by which holtd knows it.
 *
 * From holtd:
 * - {"do":"hello","config":{"resolvers":["10.0.0.2"],"hasIpv6":true,"bounds":{...}}}: first, and
 *   again when one of them has changed: the name servers to ask, whether the host has an IPv6
 *   route, and the bounds of each sandbox, see hello_handle. Optional in config:
 *   "zones":[{"name":"corp.example","servers":["10.0.0.53"]}], the URL of the host's "proxy" with
 *   its login, and "direct", rules for what is dialed without it
 * - {"do":"add","machine":7,"id":"sb-...","owner":"alice","policy":{...},"bytesOut":0} with two
 *   descriptors: the TCP listener and the UDP socket of the resolver; bytesOut is what the sandbox
 *   has sent by an earlier holt-net
 * - {"do":"set","machine":7,"policy":{...}}: answered by "done" once forbidden connections are cut
 * - {"do":"remove","machine":7}: ends all of its connections; answered by "done"
 *   "set" and "remove" of a sandbox that is not known change nothing and are answered as well
 * - {"do":"granted","machine":7,"ticket":3,"ok":true}
 *
 * From holt-net:
 * - {"do":"ready"}: once, when it has given up its privileges
 * - {"do":"done","machine":7}: answers "add", "set" and "remove", in order
 * - {"do":"grant","machine":7,"ticket":3,"addresses":["203.0.113.9"]}: make them local in the
 *   sandbox; answered by "granted"
 * - {"do":"revoke","machine":7,"addresses":[...]}: no longer; not answered
 * - {"do":"log","machine":7,"line":{...}}: the fields of struct net_log_line, see host/net/net.h
 * - {"do":"active","machines":[7,9],"out":[812,0]}: they sent or received something in the last
 *   second; the bytes that each has sent since its network began
 * - {"do":"limit","machine":7,"resource":"connections"}: the sandbox has reached a bound; once a
 *   minute at most for each
 * - {"do":"counters", ...}: totals since its start, once a second while they change
 */
#pragma once

enum {
    CONTROL_FD = 3,
    CONTROL_MESSAGE_MAX = 256 * 1024,
    CONTROL_FDS = 2,
    CONTROL_ADDRESSES_MAX = 96, /* in one grant: all of a DNS reply */
};
