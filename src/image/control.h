/* Messages between holtd and holt-image, the program that talks to registries for it.
 *
 * They are JSON objects, one in each packet of a SOCK_SEQPACKET pair. holt-image has its end as
 * descriptor 3, pulls or pushes one image, or checks a login, and exits; it also exits when the
 * other end is closed.
 *
 * From holtd:
 * - {"do":"pull","endpoints":[{"url":"https://registry.example","mirror":false,"insecure":false,
 *   "private":false}],"repository":"library/debian","reference":"12","arch":"amd64",
 *   "user":"","password":""}: first. Endpoints are tried in order; credentials go to those that are
 *   no mirrors. insecure: http:// and certificates that nobody signed are allowed; private: so are
 *   addresses that are not public
 * - {"do":"push", and the same fields but "arch", "type":"application/...",
 *   "manifest":{"digest":"sha256:...","size":1}, "blobs":[{"digest":"sha256:...","size":1,
 *   "from":"other/repository"}]}: first. The manifest, of this media type, gets the name
 * "reference" when all blobs are there; those with "from" are perhaps in that repository of the
 * registry
 * - {"do":"login"} with "endpoints", "repository":"", "user" and "password": first. The last
 *   endpoint, the registry itself, is asked whether it accepts the credentials
 * - {"do":"file"} with a descriptor to read: answers "send"
 * - {"do":"have"} or {"do":"fetch"} with a descriptor: answers "want". Bytes that the file has
 *   already are not fetched again
 * - {"do":"ok"} or {"do":"again"}: answers "got"; after "again" the file is empty
 *
 * From holt-image:
 * - {"do":"want","digest":"sha256:...","size":123}: before a blob is fetched
 * - {"do":"send","digest":"sha256:..."}: asks for a blob or the manifest
 * - {"do":"got","digest":"sha256:..."}: the file has all bytes; holtd verifies them
 * - {"do":"progress","bytes":1,"total":2}: from time to time
 * - {"do":"done","digest":"sha256:..."}: the last message: all blobs below this index or manifest
 *   were answered by "have" or "ok"; the manifest was pushed; or
 *   the login is valid, and there is no digest
 * - {"do":"failed","kind":"unavailable","message":"..."}: the last message otherwise
 */
#pragma once

enum { IMAGE_CONTROL_FD = 3, IMAGE_MESSAGE_MAX = 64 * 1024 };
