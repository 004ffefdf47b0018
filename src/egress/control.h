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
 *   its login, "direct", rules for what is dialed without it, and "ca":{"certificate":PEM,
 *   "key":PEM}, by which certificates are made for hosts whose TLS is ended here
 * - {"do":"add","machine":7,"id":"sb-...","owner":"alice","policy":{...},"bytesOut":0} with two
 *   descriptors: the TCP listener and the UDP socket of the resolver; bytesOut is what the sandbox
 *   has sent by an earlier holt-net. Optional here and in "set": "secrets" and "caBundle", see
 *   below
 * - {"do":"set","machine":7,"policy":{...}}: answered by "done" once forbidden connections are cut
 * - {"do":"secrets","machine":7,"secrets":[...],"caBundle":"..."}: replaces these alone; requests
 *   under way go on with the secrets that they began with; answered by "done"
 * - {"do":"remove","machine":7}: ends all of its connections; answered by "done"
 *   "set", "secrets" and "remove" of a sandbox that is not known change nothing and are answered as
 *   well
 * - {"do":"agent","machine":7,"keys":[{"name":"deploy","key":"...","hostKeys":["ssh-ed25519
 * ..."]}]} with a unix socket as descriptor, on which holt-init listens soon: the ssh-agent of the
 * sandbox. Without one: it has other keys now. Not answered; nothing happens for a sandbox that is
 * not known
 * - {"do":"granted","machine":7,"ticket":3,"ok":true}
 *
 * From holt-net:
 * - {"do":"ready"}: once, when it has given up its privileges
 * - {"do":"done","machine":7}: answers "add", "set", "secrets" and "remove", in order
 * - {"do":"grant","machine":7,"ticket":3,"addresses":["203.0.113.9"]}: make them local in the
 *   sandbox; answered by "granted"
 * - {"do":"revoke","machine":7,"addresses":[...]}: no longer; not answered
 * - {"do":"log","machine":7,"line":{...}}: the fields of struct net_log_line, see host/net/net.h
 * - {"do":"active","machines":[7,9],"out":[812,0]}: they sent or received something in the last
 *   second; the bytes that each has sent since its network began
 * - {"do":"limit","machine":7,"resource":"connections"}: the sandbox has reached a bound; once a
 *   minute at most for each
 * - {"do":"leak","machine":7,"secret":"NAME","id":"ID","host":"evil.example","port":443,
 *   "where":"header","cut":true}: a placeholder was seen where it is worthless (where: "header",
 *   "query", "body", "plain", "path": the way of the sandbox is not the secret's owner's), or the
 *   value in a reply ("reply"); the connection was cut; at most LEAKS_PER_SECOND for each sandbox
 * - {"do":"counters", ...}: totals since its start, once a second while they change; with "leaks"
 *
 * "secrets" is a list of at most 64 of {"name":"API","id":"sec-1","placeholder":"holt-...",
 * "value":"...","hosts":["api.example.com:443","*.example.org"],"place":"header","field":
 * "Authorization","template":"Bearer {}","mayUseOwnPath":true}. The port is 443 unless it is given;
 * the place is "header", "basic" (the password of Authorization: Basic; a template "user:{}" also
 * fixes the user), "query" (field: the parameter) or "json" (field: the JSON pointer of a string).
 * mayUseOwnPath says that the sandbox's proxy and CA bundle were set by the owner of the secret.
 * A placeholder has 16 to 256 bytes of letters, digits, '-' and '_'; a value at most 8192, without
 * control bytes; one of less than 6 bytes cannot be searched for in replies.
 * The place "set" is a header that is set on all requests to the hosts, and has no placeholder; of
 * several that name a host, those with the longest pattern count, and before them those with the
 * name itself. Without a value, requests to these hosts are refused.
 * "caBundle" is PEM: certificates that servers of this sandbox may have besides those of the host.
 */
#pragma once

enum {
    CONTROL_FD = 3,
    CONTROL_MESSAGE_MAX = 320 * 1024,
    CONTROL_FDS = 2,
    CONTROL_ADDRESSES_MAX = 96, /* in one grant: all of a DNS reply */
};
