/* An extension is a module above the host that keeps data of its own with the host and with each
 * sandbox. The host stores two pointers and calls back; it knows nothing about the data. */
#pragma once

struct host;
struct sandbox;

struct host_extension {
    /* Makes the data of a new host. */
    void *(*host_new)(void);

    /* Frees the data of a host. All its machines are gone; threads of the extension may still run,
     * and this waits for them. */
    void (*host_free)(void *data);

    /* Makes the data of a sandbox, whose lock is held. */
    void *(*sandbox_new)(struct sandbox *sandbox);

    /* Frees the data of a sandbox, together with the last reference to it. */
    void (*sandbox_free)(void *data);

    /* Removes the files that the extension has stored for a sandbox that is being destroyed, and
     * stores none from then on. */
    void (*sandbox_remove)(struct sandbox *sandbox);
};

/* Returns the extension's data of the host. */
void *host_extension_data(struct host *host);

/* Returns the extension's data of the sandbox; the first call makes it. */
void *sandbox_extension_data(struct sandbox *sandbox);
