// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"

static char scratch[] = "/tmp/holt-io-test.XXXXXX";
static int scratch_fd = -EBADF;

static void *write_slowly(void *fd)
{
    for (int i = 0; i < 100; i++)
        CHECK(write_all(*(int *)fd, "0123456789", 10) == 0);
    CHECK(close(*(int *)fd) == 0);
    return NULL;
}

static void a_full_read_collects_what_comes_in_pieces(void)
{
    char got[2000];
    pthread_t writer;
    int pipe_fds[2];

    CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
    CHECK(pthread_create(&writer, NULL, write_slowly, &pipe_fds[1]) == 0);
    CHECK(read_full(pipe_fds[0], got, 995) == 995);
    CHECK(read_full(pipe_fds[0], got, sizeof(got)) == 5, "(the end of file ends it early)");
    CHECK(memcmp(got, "56789", 5) == 0);
    CHECK(pthread_join(writer, NULL) == 0);
    CHECK(close(pipe_fds[0]) == 0);
}

static void errors_come_back_as_negative_errno(void)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(10);
    char byte;

    CHECK(read_full(-1, &byte, 1) == -EBADF);
    CHECK(write_all(-1, "x", 1) == -EBADF);
    CHECK(file_read_at(scratch_fd, "missing", &content) == -ENOENT);
    CHECK(file_write_at(scratch_fd, "missing", "x") == -ENOENT, "(it never creates)");
}

static void a_file_is_created_replaced_and_read_whole(void)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(100);
    struct stat st;

    CHECK(file_create_at(scratch_fd, "file", 0640, "the first, longer text") == 0);
    CHECK(file_create_at(scratch_fd, "file", 0600, "second") == 0);
    CHECK(fstatat(scratch_fd, "file", &st, 0) == 0 && (st.st_mode & 07777) == 0640);
    CHECK(file_read_at(scratch_fd, "file", &content) == 0);
    CHECK_TEXT(content.data, "second");
}

static void a_file_longer_than_the_buffer_is_refused(void)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(5);

    CHECK(file_create_at(scratch_fd, "long", 0600, "123456") == 0);
    CHECK(file_read_at(scratch_fd, "long", &content) == -ENOBUFS);
}

static void an_empty_file_reads_as_empty_text(void)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(5);
    long long number = 7;
    char *garbage = malloc(256);

    /* Fills memory that the allocator will reuse, so that a missing terminator shows. */
    CHECK(garbage);
    memset(garbage, '5', 256);
    free(garbage);
    CHECK(file_create_at(scratch_fd, "empty", 0600, "") == 0);
    CHECK(file_read_at(scratch_fd, "empty", &content) == 0);
    CHECK(content.len == 0 && content.data && content.data[0] == '\0');
    CHECK(file_read_number_at(scratch_fd, "empty", &number) == -EINVAL && number == 7);
}

static void a_symlink_is_not_written_through(void)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(100);

    CHECK(file_create_at(scratch_fd, "victim", 0600, "untouched") == 0);
    CHECK(symlinkat("victim", scratch_fd, "link") == 0);
    CHECK(file_create_at(scratch_fd, "link", 0600, "overwritten") == -ELOOP);
    CHECK(file_read_at(scratch_fd, "victim", &content) == 0);
    CHECK_TEXT(content.data, "untouched");
}

static void a_number_alone_in_a_file_is_read(void)
{
    long long number = 0;

    CHECK(file_create_at(scratch_fd, "number", 0600, "-42\n") == 0);
    CHECK(file_read_number_at(scratch_fd, "number", &number) == 0 && number == -42);
    CHECK(file_create_at(scratch_fd, "number", 0600, "max\n") == 0);
    CHECK(file_read_number_at(scratch_fd, "number", &number) == -EINVAL);
}

static void remove_scratch(void)
{
    static const char *const names[] = { "file", "long", "empty", "link", "victim", "number" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        (void)unlinkat(scratch_fd, names[i], 0);
    (void)rmdir(scratch);
}

static void parts_that_were_sent_are_taken_off(void)
{
    char data[] = "abcdef";

    for (size_t n = 0; n <= 6; n++) {
        struct iovec parts[] = { { data, 2 }, { data + 2, 0 }, { data + 2, 4 } };
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
        char left[8] = "";

        iov_advance(&message, n);
        for (size_t i = 0; i < message.msg_iovlen; i++)
            (void)strncat(left, message.msg_iov[i].iov_base, message.msg_iov[i].iov_len);
        CHECK_TEXT(left, data + n);
    }
}

static void all(void)
{
    CHECK(mkdtemp(scratch));
    scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(scratch_fd >= 0);
    CHECK(atexit(remove_scratch) == 0);

    RUN(a_full_read_collects_what_comes_in_pieces);
    RUN(errors_come_back_as_negative_errno);
    RUN(a_file_is_created_replaced_and_read_whole);
    RUN(a_file_longer_than_the_buffer_is_refused);
    RUN(an_empty_file_reads_as_empty_text);
    RUN(a_symlink_is_not_written_through);
    RUN(parts_that_were_sent_are_taken_off);
    RUN(a_number_alone_in_a_file_is_read);
}

int main(void)
{
    RUN(all);
    return 0;
}
