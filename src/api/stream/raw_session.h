/* The daemon's side of a raw stream (wire/raw.h): a process's output to its client, and its
 * client's input to the process. */
#pragma once

struct raw_client;
struct stream;
struct stream_owner;
struct upgraded_connections;
struct upload;

/* Copies both ways until the process has ended or the client has gone. Takes the stream, which must
 * be raw. */
void raw_session_run(struct upgraded_connections *upgraded, struct stream *stream,
                     const struct stream_owner *owner, const struct raw_client *client);

/* Does the same for a client stream that has begun: handles what the client sends and replies.
 * Takes the upload. */
void raw_upload_run(struct upgraded_connections *upgraded, struct upload *upload,
                    const struct stream_owner *owner, const struct raw_client *client);
