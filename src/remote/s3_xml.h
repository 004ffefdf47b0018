/* Reads the XML of S3 servers: elements, attributes (which are skipped), text and character
 * references, in UTF-8. Everything else that XML has, such as document types and entities of their
 * own, is refused, so nothing grows and nothing is fetched. */
#pragma once

struct buf;

/* Called at the end of each element with its path ("Error/Code") and the text behind its last
 * child. Returns 0, or what s3_xml_read is to return. */
typedef int s3_xml_fn(void *context, const char *path, const char *text);

/* Reads a whole document. Returns 0, what `fn` returned if that is not 0, -EBADMSG for anything
 * else than such a document, -ENOBUFS for a path of over 256 bytes or a text of over 16 KiB, or
 * -ENOMEM. `fn` may have been called before. */
int s3_xml_read(const struct buf *document, s3_xml_fn *fn, void *context);
