// SPDX-License-Identifier: Apache-2.0
/* The TLS front over real sockets whose buffers are small, so that they are full at every point. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "check.h"
#include "http/tls/certificate.h"
#include "http/tls/front.h"

enum { SIZE_STEP = 512, SIZE_MAX_BYTES = 16 * 1024, SMALL_BUFFER = 4096, RECORD = 1024 };

static void files_make(const char *cert_path, const char *key_path)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);
    FILE *cert_file = fopen(cert_path, "we"), *key_file = fopen(key_path, "we");

    CHECK(key && cert && cert_file && key_file);
    CHECK(ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) == 1);
    CHECK(X509_gmtime_adj(X509_getm_notBefore(cert), 0) &&
          X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
    CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost",
                                     -1, -1, 0) == 1);
    CHECK(X509_set_issuer_name(cert, name) == 1 && X509_set_pubkey(cert, key) == 1);
    CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
    CHECK(PEM_write_X509(cert_file, cert) == 1);
    CHECK(PEM_write_PrivateKey(key_file, key, NULL, NULL, 0, NULL, NULL) == 1);
    CHECK(fclose(cert_file) == 0 && fclose(key_file) == 0 && chmod(key_path, 0600) == 0);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* Serves one connection at a time: sends as many bytes as the client asks for and closes. */
struct server {
    struct thread thread;
    int fd;
};

static void serve(void *argument)
{
    struct server *server = argument;
    cleanup_close int fd = server->fd;
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    static const char bytes[SIZE_MAX_BYTES];
    uint32_t size = 0;

    if (poll(&ready, 1, -1) != 1 || recv(fd, &size, sizeof(size), 0) != sizeof(size))
        return;
    for (size_t at = 0; at < size;) {
        ssize_t n = send(fd, bytes + at, size - at, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN)
            return;
        at += n < 0 ? 0 : (size_t)n;
        ready.events = POLLOUT;
        (void)poll(&ready, 1, -1);
    }
}

static bool server_accept(void *context, int fd, const struct sockaddr *address, socklen_t len)
{
    struct server *server = context;

    (void)address, (void)len;
    server->fd = fd;
    return thread_start(&server->thread, "server", serve, server) == 0;
}

static int listener_open(struct sockaddr_in *ret)
{
    const struct sockaddr_in any = { .sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = sizeof(*ret);

    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ SMALL_BUFFER }, sizeof(int)) == 0);
    CHECK(bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0 && listen(fd, 16) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)ret, &len) == 0);
    return fd;
}

/* Reads nothing until the front has sent what fits, then everything. Returns how it ended. */
static int size_read(SSL_CTX *context, const struct sockaddr_in *address, uint32_t size)
{
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SSL *ssl = SSL_new(context);
    char data[RECORD];
    size_t total = 0;
    int n, why;

    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){ SMALL_BUFFER }, sizeof(int)) == 0);
    CHECK(connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0);
    CHECK(SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1);
    CHECK(SSL_write(ssl, &size, sizeof(size)) == sizeof(size));
    clock_sleep_ms(20);
    while ((n = SSL_read(ssl, data, sizeof(data))) > 0)
        total += (size_t)n;
    why = SSL_get_error(ssl, n);
    SSL_free(ssl);
    CHECK(total == size);
    return why;
}

static void a_slow_client_hears_the_end_too(void)
{
    char directory[] = "/tmp/holt-tls-XXXXXX", cert[64], key[64];
    cleanup_with(tls_done) struct tls tls = { 0 };
    cleanup_close int listen_fd = -EBADF;
    struct sockaddr_in address = { 0 };
    struct server server = { .fd = -EBADF };
    struct tls_front_options options = { .tls = &tls,
                                         .handshakes_max = 16,
                                         .handshakes_per_address = 16,
                                         .accept = server_accept,
                                         .context = &server };
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct tls_front *front = NULL;
    struct err err = { 0 };

    CHECK(mkdtemp(directory));
    (void)snprintf(cert, sizeof(cert), "%s/cert", directory);
    (void)snprintf(key, sizeof(key), "%s/key", directory);
    files_make(cert, key);
    CHECK(tls_load(cert, key, &tls, &err) == 0);
    CHECK(unlink(cert) == 0 && unlink(key) == 0 && rmdir(directory) == 0);
    options.listen_fd = listen_fd = listener_open(&address);
    CHECK(tls_front_start(&options, &front, &err) == 0);
    for (uint32_t size = SIZE_STEP; size < SIZE_MAX_BYTES; size += SIZE_STEP) {
        int why = size_read(context, &address, size);

        if (why != SSL_ERROR_ZERO_RETURN)
            (void)printf("    %u bytes: ended with %d\n", size, why);
        CHECK(why == SSL_ERROR_ZERO_RETURN);
        thread_join(&server.thread);
    }
    tls_front_stop(front);
    SSL_CTX_free(context);
}

int main(void)
{
    RUN(a_slow_client_hears_the_end_too);
    return 0;
}
