/* The state of holt-net. It has one thread and one epoll loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/buf.h"
#include "egress/dns.h"
#include "egress/http_head.h"
#include "egress/secret/needle.h"
#include "egress/secret/secret.h"
#include "net/address.h"
#include "net/policy.h"
#include "net/proxy.h"

enum {
    RESOLVERS_MAX = 8,
    GUEST_CONNECTIONS_MAX = 2500, /* defaults of the bounds, which hello may change */
    GUEST_CONNECTS_PER_SECOND = 500,
    GUEST_QUERIES_PER_SECOND = 1000,
    GUEST_LINES_PER_SECOND = 500, /* of the log */
    IDLE_SECONDS = 3600,
    TOTAL_SECONDS = 24 * 3600,
    GRANT_CHAINS = 64,
    GRANTS_MAX = 4096, /* addresses of one sandbox */
    CANDIDATES_MAX = 8,
    UPSTREAM_ADDRESSES_MAX = 8,
    HOPS_MAX = 2,
    ZONES_MAX = 32,
    ZONE_SERVERS_MAX = 4,
    NAME_SERVER_TRIES_MAX = 4, /* for one question */
};

struct agent;
struct egress;
struct guest;
struct connection;
struct session;
struct trust;
struct authority;
struct llm_exchange;
struct llm_table;

/* A descriptor in the epoll loop. */
struct watch {
    int fd;
    uint32_t events;     /* 0: not watched */
    bool is_late;        /* an event of it was left for the next turn */
    struct guest *guest; /* whose time is used; NULL: nobody's */
    void (*ready)(struct watch *watch, uint32_t events);
};

struct pipe {
    int fds[2];
    struct pipe *next;
};

/* A private zone of the host: names at and below it are asked at its own name servers. */
struct zone {
    char name[NET_NAME_SIZE];
    struct sockaddr_storage servers[ZONE_SERVERS_MAX];
    size_t server_count;
};

/* A proxy that connections go through, with the addresses of its name. */
struct upstream {
    struct watch watch; /* first; of a query for the name */
    struct egress *egress;
    struct net_proxy proxy;
    struct net_address addresses[UPSTREAM_ADDRESSES_MAX];
    size_t address_count;
    uint64_t until_ms; /* the addresses, or that there are none, are known for so long */
    bool is_asking;
    struct dns_query question;
    uint16_t id;
    unsigned tries;
    uint64_t deadline_ms;
    struct upstream *next_dead;
};

struct proxy_talk;

/* The way of a connection: through the hops in their order, directly if there are none. */
struct route {
    struct upstream *hops[HOPS_MAX];
    size_t hop_count, hop_next;
    struct net_address own_address; /* of the sandbox's proxy */
    size_t address_next;            /* of the first proxy */
    bool is_waiting;                /* for the addresses of a proxy */
    struct proxy_talk *talk;        /* under way; NULL: none */
};

/* What all sandboxes of one owner use together. */
struct egress_owner {
    struct egress_owner *next;
    unsigned guests;
    unsigned connections;
    unsigned pipes;
    unsigned queries;
    unsigned sessions;
    size_t llm_held;
    char name[];
};

struct egress_counters {
    uint64_t connections;
    uint64_t open;
    uint64_t denied;
    uint64_t failed_dials;
    uint64_t limited;
    uint64_t queries;
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t leaks; /* of secrets, that were cut */
};

enum egress_bound {
    BOUND_CONNECTIONS,
    BOUND_CONNECTS,
    BOUND_QUERIES,
    BOUND_BYTES_OUT,
    BOUND_HOST, /* what all sandboxes use together */
    BOUND_COUNT,
};

struct egress_bounds {
    uint32_t connections;
    uint32_t connects_per_second;
    uint32_t queries_per_second;
    uint32_t idle_seconds;
    uint32_t total_seconds;
    uint64_t bytes_out; /* of one sandbox; 0: no limit */
};

/* A name that an address was given out for. */
struct grant_name {
    struct grant_name *next;
    uint64_t until_ms;
    char name[];
};

/* An address that the sandbox may connect to. */
struct grant {
    struct grant *next;
    struct net_address address;
    unsigned users; /* connections */
    bool is_routed; /* holtd was asked for a route */
    bool is_ready;  /* and has added it */
    struct grant_name *names;
};

struct guest {
    struct egress *egress;
    struct guest *next;
    uint64_t number;
    char *id;
    struct egress_owner *owner;
    struct net_policy policy;
    enum net_mode mode;
    bool inspects;             /* the first bytes of connections are looked at */
    bool denies_bytes;         /* a rule denies names or requests, which only bytes tell */
    struct upstream *upstream; /* the proxy of the sandbox; NULL: none */
    struct broker_secrets *secrets;
    char *ca_bundle;     /* PEM; NULL: none */
    struct trust *trust; /* with the bundle; NULL: not needed yet */
    unsigned sessions;   /* connections whose TLS ends here */
    uint32_t leaks;      /* that were told in this second */
    struct watch listener, resolver;
    uint64_t turn;    /* the last one in which an event of it was handled */
    uint64_t used_ns; /* in that turn */
    bool is_waiting;  /* the listener, for the next tick */
    uint32_t tokens;  /* connects that it may still make in this second */
    bool is_resolver_waiting;
    uint32_t query_tokens; /* queries that it may still send in this second */
    uint32_t lines;        /* of the log, in this second */
    uint64_t lines_dropped;
    uint64_t limited_ms[BOUND_COUNT]; /* when holtd was told; 0: never */
    struct connection *connections;
    unsigned connection_count;
    unsigned query_count;
    uint64_t bytes_out;
    bool is_active;      /* it sent or received something since the last report */
    struct agent *agent; /* egress/agent.h; NULL: none */
    struct grant *grants[GRANT_CHAINS];
    unsigned grant_count;
    char *llm_token; /* of its requests to models */
    struct net_address llm_address;
    size_t llm_held; /* bytes of its requests to models that are not sent yet */
};

enum connection_state {
    CONNECTION_PEEK, /* waits for the client's first bytes */
    CONNECTION_DIAL,
    CONNECTION_RELAY,
    CONNECTION_DNS,      /* DNS over TCP */
    CONNECTION_FAREWELL, /* a reply was sent; waits for the client to close */
    CONNECTION_LLM,      /* to llm.holt, see llm/llm.h */
};

struct side {
    struct watch watch; /* first */
    struct connection *connection;
    bool is_eof;  /* nothing more comes from it */
    bool is_shut; /* nothing more goes to it */
};

/* Bytes on the way from one side to the other. */
struct flow {
    struct pipe *pipe; /* NULL: none borrowed */
    size_t len;
    bool is_blocked; /* without a pipe: the receiver takes no more for now */
    uint64_t total;
};

struct connection {
    struct guest *guest;
    struct connection *next, **slot;
    struct connection *next_dead;
    bool is_dead;
    enum connection_state state;
    struct side client, server;
    struct net_address destination; /* first that of the client, then the one that is dialed */
    uint16_t port;
    struct grant *grant; /* of the client's address, whose route it needs; counted as user */
    enum net_protocol protocol;
    char name[NET_NAME_SIZE];
    char granted_name[NET_NAME_SIZE]; /* the destination was given out for it; "": none */
    char method[HTTP_METHOD_MAX + 1]; /* of the last request that was allowed */
    char *path;                       /* of it; NULL: none yet */
    char rule[NET_VERDICT_SIZE];
    bool is_decided;       /* the first bytes were seen and allowed */
    bool is_allowed;       /* for the log */
    bool is_raw;           /* nothing more is looked at */
    bool awaits_upgrade;   /* the server's reply decides whether more is looked at */
    unsigned upgrade_seen; /* bytes of that reply that were looked at */
    bool has_request;      /* an HTTP request was passed */
    bool was_silent;       /* in CONNECTION_PEEK: decided by what has come so far */
    struct buf in;         /* bytes from the client; the first `cleared` may be sent */
    size_t cleared;
    struct http_stream http;
    struct needle_stream seen; /* of plain HTTP, for placeholders */
    struct session *session;   /* TLS ends here; NULL: it does not */
    struct flow up, down;
    struct net_address candidates[CANDIDATES_MAX];
    size_t candidate_count, candidate_next;
    int dial_errno;
    struct route route;   /* the proxies on the way to the candidate */
    unsigned dns_pending; /* queries under way for a CONNECTION_DNS */
    bool is_handled;      /* its buffered queries are, further up the stack */
    struct buf out;       /* of a CONNECTION_DNS */
    struct llm_exchange *llm;
    uint64_t began_ms, active_ms, deadline_ms;
};

struct query;

struct egress {
    int epoll_fd;
    int route_fd; /* asks the kernel for routes */
    struct watch control;
    char *control_text; /* what was received last; wiped. NULL: nothing yet */
    struct buf unsent;  /* u32 length and text of messages that did not fit */
    struct guest *guests;
    struct egress_owner *owners;
    struct connection *dead;
    struct guest *dead_guests;
    unsigned owner_count;
    unsigned peeking; /* connections that wait for their first bytes */
    struct pipe *pipes;
    unsigned pipe_count; /* all, also those in use */
    unsigned pipes_lent;
    unsigned connection_max;
    bool is_ending;
    bool has_ipv6;
    struct sockaddr_storage resolvers[RESOLVERS_MAX];
    size_t resolver_count;
    struct zone zones[ZONES_MAX];
    size_t zone_count;
    struct upstream *upstream; /* the proxy of the host; NULL: none */
    struct net_rules direct;   /* what is dialed without it */
    struct upstream *dead_upstreams;
    unsigned lookups;            /* of names of proxies and providers, under way */
    struct authority *authority; /* makes certificates; NULL: no TLS ends here */
    int trust_fd;                /* the certificate authorities of the host */
    struct trust *trust;         /* NULL: not read yet */
    unsigned sessions;           /* connections whose TLS ends here */
    struct llm_table *llm;       /* NULL: none yet */
    size_t llm_held;             /* bytes of requests to models that are not sent yet */
    struct egress_bounds bounds;
    struct query *queries;
    unsigned query_count;
    uint64_t last_ticket;
    struct egress_counters counters, reported;
    uint64_t now_ms;
    uint64_t turn;           /* of the loop */
    uint64_t slice_until_ns; /* of the sandbox whose event is handled */
};

/* --- loop.c --- */

/* Sets the events that a descriptor is watched for; 0 takes it out of the loop. */
void watch_set(struct egress *egress, struct watch *watch, uint32_t events);

/* Takes the descriptor out and closes it. */
void watch_close(struct egress *egress, struct watch *watch);

/* Borrows a pipe, or returns NULL if there is none, or none for this owner when they are scarce. */
struct pipe *pipe_borrow(struct guest *guest);

/* Gives an empty pipe back. */
void pipe_return(struct guest *guest, struct pipe *pipe);

/* Gives a pipe back that has bytes in it. */
void pipe_discard(struct guest *guest, struct pipe *pipe);

/* Returns whether an owner that uses `own` of something may use one more. When it becomes scarce,
 * an owner gets no more than its share. */
bool owner_may_use(const struct egress *egress, uint64_t own, uint64_t used, uint64_t max);

/* Returns whether the sandbox whose event is handled has used its time of this turn: others are to
 * have theirs. What is left to do must come back as an event. */
bool slice_is_over(const struct egress *egress);

/* Runs until the control socket is closed. */
void egress_run(struct egress *egress);

/* --- guest.c --- */

/* Makes a sandbox known. Takes the descriptors and the policy. */
struct guest *egress_guest_add(struct egress *egress, uint64_t number, const char *id,
                               const char *owner);
void egress_guest_start(struct guest *guest, int listener_fd, int resolver_fd);
struct guest *egress_guest_find(struct egress *egress, uint64_t number);

/* Takes over what replaces placeholders; requests under way go on with what they began with. */
void egress_guest_set_secrets(struct guest *guest, struct broker_secrets *secrets);

/* Takes over the certificate authorities of servers (NULL: none), and cuts the connections whose
 * servers were verified by others. */
void egress_guest_set_bundle(struct guest *guest, const char *ca_bundle);

/* Takes a policy over, and cuts what it forbids. Call it last. */
void egress_guest_set(struct guest *guest, struct net_policy *policy);
void egress_guest_remove(struct guest *guest);

/* Does what is due once in a short while: the listeners that wait, deadlines, grants. */
void egress_guests_tick(struct egress *egress, bool is_second);

/* --- grant.c --- */

struct grant *grant_find(struct guest *guest, const struct net_address *address);

/* Returns whether the address was given out for the name, which is normalized. */
bool grant_has_name(const struct grant *grant, const char *name, uint64_t now_ms);

/* Notes that an address was given out; NULL if the sandbox has too many. */
struct grant *grant_add(struct guest *guest, const struct net_address *address, const char *name,
                        uint32_t ttl);

/* Returns whether the address needs a route of its own. */
bool grant_needs_route(const struct guest *guest, const struct net_address *address);

/* Removes grants whose time is over, or, when the policy has changed, that it does not allow. */
void grants_expire(struct guest *guest, bool has_changed);

/* Asks for the routes that the grants need after a change of the policy. */
void grants_reroute(struct guest *guest);
void grants_free(struct guest *guest);

/* Adds the addresses that were given out for a name, other than those in the list. */
size_t grants_of_name(const struct guest *guest, const char *name, struct net_address *list,
                      size_t count, size_t max);

/* Returns whether an allow rule names a range with this address, which is not public, that is not
 * wider than the special range of the address. */
bool policy_names_special(const struct net_policy *policy, const struct net_address *address);

/* Returns whether the address is one of this host. The kernel is asked each time, so the answer is
 * never out of date. */
bool address_is_own(const struct egress *egress, const struct net_address *address);

/* Returns whether only a rule for its range allows the address, and why: it is not public, or one
 * of this host. */
bool address_is_special(const struct egress *egress, const struct net_address *address,
                        const char **ret_reason);
void address_to_socket(const struct net_address *address, uint16_t port,
                       struct sockaddr_storage *ret, socklen_t *ret_len);
void address_to_text(const struct net_address *address, char ret[NET_PREFIX_TEXT_SIZE]);

/* --- decide.c --- */

struct asked {
    const char *name; /* NULL: none */
    enum net_protocol protocol;
    const char *method;
    const char *path;
    const char *granted_name; /* needs no grant any more, see struct connection; NULL: none */
    bool is_nameless;         /* the names of the address do not count either */
};

/* Decides a connection to an address by what is known of it. A name counts only for an address that
 * was given out for it. */
bool guest_decide(struct guest *guest, const struct net_address *address, uint16_t port,
                  const struct asked *asked, struct net_verdict *ret);

/* --- connection.c --- */

void connection_accept(struct guest *guest, int fd);

/* Ends a connection: with a reset, or in order. `how` goes to the log. */
void connection_end(struct connection *connection, bool is_reset, const char *how);
/* Frees what has ended in this turn: events of it may still be queued. */
void connections_free_dead(struct egress *egress);
void guests_free_dead(struct egress *egress);
void connection_tick(struct connection *connection);

/* Cuts the connection if the policy does not allow it any more. */
void connection_review(struct connection *connection);

/* Takes the name by which the sandbox most likely knows the address, for the log. */
void connection_guess_name(struct connection *connection);

/* Goes on once the client has sent something. */
void connection_dial(struct connection *connection);

/* Dials the next address, or ends the connection. */
void connection_dial_next(struct connection *connection);

/* Starts to move bytes: the server is connected. */
void connection_relay(struct connection *connection);

/* --- inspect.c --- */

/* Looks at the client's bytes and clears those that may be sent. Returns 1 when there is a decision
 * that allows them, 0 if more are needed; -EACCES after a refusal, which has ended the connection
 * or has begun its farewell. */
int connection_inspect(struct connection *connection);

/* Decides a request inside TLS that ends here. The rule is noted in any case. */
bool connection_allows_request(struct connection *connection, const char *method, const char *path);

/* --- relay.c --- */

void relay_start(struct connection *connection);
void relay_pump(struct connection *connection);

/* Counts what has passed since the totals were these. Returns false if the sandbox has sent more
 * than it may, or has done so before; the connection has then ended. */
bool relay_note(struct connection *connection, uint64_t up_before, uint64_t down_before);

/* --- resolver.c --- */

void resolver_ready(struct watch *watch, uint32_t events);

/* Reads queries again, when the sandbox may send more. */
void resolver_resume(struct guest *guest);

/* --- resolver_tcp.c --- */

void resolver_tcp_ready(struct connection *connection);

/* --- resolver_query.c --- */

void resolver_granted(struct egress *egress, uint64_t ticket, bool is_ok);
void resolver_tick(struct egress *egress);
void resolver_forget_guest(struct guest *guest);
void resolver_forget_connection(struct connection *connection);

/* --- name_server.c --- */

/* Asks the next name server for a name, from a socket of its own, so that port and id cannot be
 * guessed. Returns the socket, on which the reply comes, or -ENOENT when no server is left. */
int name_server_ask(const struct egress *egress, const struct dns_query *question, unsigned *tries,
                    uint16_t *ret_id);

/* --- upstream.c --- */

/* Chooses the proxies on the way to an address. Returns false if it is dialed directly. */
bool upstream_choose(struct connection *connection, const struct net_address *address);

/* Dials the first proxy of the route, or waits until its name is resolved. Returns false when no
 * address of it is left; dial_errno then says why. The connection may have ended. */
bool upstream_dial(struct connection *connection);

/* Goes on when the first proxy refuses the connection (dial_errno), or does not answer in time. */
void upstream_refused(struct connection *connection);
void upstream_late(struct connection *connection);

/* Talks to the proxies of the route, the first of which is connected. */
void upstream_ready(struct connection *connection);

/* Ends the connection if it would go another way now. */
void upstream_review(struct connection *connection);

/* Frees what the connection has of its route. */
void upstream_forget(struct connection *connection);

/* --- upstream_name.c --- */

/* Replaces a proxy; NULL: none. Returns whether it is another one. The caller reviews the
 * connections afterwards. */
bool upstream_set(struct egress *egress, struct upstream **slot, const struct net_proxy *proxy);

/* Returns whether the addresses of a proxy are known, possibly none; else they are asked for. */
bool upstream_is_known(struct upstream *upstream);
void upstream_tick(struct upstream *upstream);
void upstreams_tick(struct egress *egress);
void upstreams_free_dead(struct egress *egress);

/* --- control.c --- */

void control_ready(struct watch *watch, uint32_t events);
void control_send(struct egress *egress, json_t *message);
void control_flush(struct egress *egress);

/* Sends a line of the log. */
struct egress_line {
    const char *protocol, *name, *rule, *end;
    const struct net_address *address; /* NULL: none */
    uint16_t port;
    bool is_allowed;
    bool is_special; /* only a rule for its range allows the address */
    uint64_t bytes_out, bytes_in, duration_ms;
};
void report_line(struct guest *guest, const struct egress_line *line);

/* Says how many lines were dropped because there were too many in a second. */
void report_dropped(struct guest *guest);
void report_counters(struct egress *egress);

/* Tells holtd that the sandbox has reached a bound, once a minute at most. */
void report_limit(struct guest *guest, enum egress_bound bound);

/* Tells holtd that a secret was seen where it must not be. */
struct egress_leak {
    const char *secret, *id; /* id NULL: the key of a provider of models */
    const char *host;
    uint16_t port;
    const char *where; /* a word of control.h */
};
void report_leak(struct guest *guest, const struct egress_leak *leak);

/* Reports the sandboxes that were active since the last call. */
void report_active(struct egress *egress);

/* --- confine.c --- */

/* Gives up all privileges and allows only the system calls that the loop needs. Returns 0 or
 * -errno. */
int confine(void);
