// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "base/err.h"
#include "store/import/import.h"

enum { REPORT_BYTES = 16 << 20, REPORT_FILES = 512 };

static void budget_report(struct import_budget *budget)
{
    if (!budget->progress || (budget->bytes - budget->reported_bytes < REPORT_BYTES &&
                              budget->files - budget->reported_files < REPORT_FILES))
        return;
    budget->reported_bytes = budget->bytes;
    budget->reported_files = budget->files;
    budget->progress(budget->bytes, budget->files, budget->context);
}

int budget_spend(struct import_budget *budget, uint64_t files, uint64_t bytes, struct err *err)
{
    if (bytes > budget->bytes_max - budget->bytes)
        return err_set(err, ERR_EXHAUSTED, "it unpacks to more than %" PRIu64 " bytes",
                       budget->bytes_max);
    if (files > budget->files_max - budget->files)
        return err_set(err, ERR_EXHAUSTED, "it unpacks to more than %" PRIu64 " files",
                       budget->files_max);
    budget->bytes += bytes;
    budget->files += files;
    budget_report(budget);
    return 0;
}
