// SPDX-License-Identifier: Apache-2.0
#include "api/plain/patience.h"

#include "base/clock.h"
#include "http/exchange.h"
#include "http/limits.h"

void patience_start(struct exchange *exchange, struct patience *patience)
{
    patience->left_ms = CONNECTION_BODY_MS;
    patience_begin(exchange, patience);
}

void patience_begin(struct exchange *exchange, struct patience *patience)
{
    patience->waiting_ms = clock_ms();
    client_connection_allow(exchange->client, patience->left_ms);
}

void patience_end(struct exchange *exchange, struct patience *patience, size_t len)
{
    uint64_t taken = clock_ms() - patience->waiting_ms;

    patience->left_ms -= taken < patience->left_ms ? taken : patience->left_ms;
    patience->left_ms += len * 1000 / CONNECTION_BYTES_PER_S + 1;
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
}
