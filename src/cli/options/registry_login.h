/* Credentials for registries, as docker, podman and skopeo keep them on the user's machine. */
#pragma once

struct registry_login {
    char *user, *password; /* NULL: none */
};

/* Reads the credentials of a registry from $DOCKER_CONFIG/config.json or ~/.docker/config.json. A
 * file that is missing or has none for it leaves *ret empty. */
void registry_login_find(const char *registry, struct registry_login *ret);

/* Erases and frees the credentials. */
void registry_login_done(struct registry_login *login);
