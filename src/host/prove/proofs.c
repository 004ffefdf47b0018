// SPDX-License-Identifier: Apache-2.0
/* The results: read from the lines of holt-prove, judged, and printed. */
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "host/prove/prove_internal.h"

static const char *const verdict_names[] = {
    [PROOF_NOT_RUN] = "not-run", [PROOF_HELD] = "held",     [PROOF_UNPROVEN] = "unproven",
    [PROOF_REACHED] = "reached", [PROOF_FAILED] = "failed",
};

struct proof *proofs_get(struct proofs *proofs, const char *prefix, const char *name)
{
    char whole[sizeof(proofs->items[0].name)];
    struct proof *proof;

    (void)snprintf(whole, sizeof(whole), "%.16s%.30s", prefix, name);
    for (size_t i = 0; i < proofs->count; i++)
        if (strcmp(proofs->items[i].name, whole) == 0)
            return &proofs->items[i];
    if (proofs->count == PROOFS_MAX)
        return NULL;
    proof = &proofs->items[proofs->count++];
    memcpy(proof->name, whole, sizeof(whole));
    return proof;
}

static enum proof_verdict verdict_read(const char *word)
{
    if (strcmp(word, "reached") == 0)
        return PROOF_REACHED;
    return strcmp(word, "held") == 0 || strcmp(word, "absent") == 0 ? PROOF_HELD : PROOF_FAILED;
}

static void result_put(struct proof *proof, struct proof_place place,
                       const struct proof_result *result)
{
    for (int i = 0; i < PROOF_RUNTIMES_MAX; i++)
        if (place.runtime == PROOF_EVERY || place.runtime == i)
            *(place.is_control ? &proof->controls[i] : &proof->inside[i]) = *result;
}

static void line_read(struct proofs *proofs, const char *prefix, struct proof_place place,
                      char *line)
{
    struct proof_result result = { .verdict = PROOF_NOT_RUN };
    char *fields[4], *rest = line;
    struct proof *proof;

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        fields[i] = strsep(&rest, "\t");
    proof = fields[3] ? proofs_get(proofs, prefix, fields[0]) : NULL;
    if (!proof)
        return;
    result.verdict = verdict_read(fields[1]);
    (void)snprintf(result.detail, sizeof(result.detail), "%s", fields[3]);
    result_put(proof, place, &result);
    if (!*proof->about)
        (void)snprintf(proof->about, sizeof(proof->about), "%s%s",
                       *prefix ? "in another sandbox: " : "", fields[2]);
}

void proofs_read(struct proofs *proofs, const char *prefix, struct proof_place place,
                 const char *text)
{
    char line[512];

    while (*text) {
        size_t len = strcspn(text, "\n");

        (void)snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : 0), text);
        line_read(proofs, prefix, place, line);
        text += len + (text[len] == '\n');
    }
}

void proof_set(struct proofs *proofs, const char *name, const char *about, struct proof_place place,
               const struct proof_result *result)
{
    struct proof *proof = proofs_get(proofs, "", name);

    if (!proof)
        return;
    (void)snprintf(proof->about, sizeof(proof->about), "%s", about);
    result_put(proof, place, result);
}

bool proofs_judge(struct proofs *proofs)
{
    bool all_held = proofs->count > 0;

    for (size_t i = 0; i < proofs->count; i++) {
        struct proof *proof = &proofs->items[i];

        for (size_t j = 0; j < proofs->runtime_count; j++) {
            struct proof_result *result = &proof->inside[j];

            if (result->verdict == PROOF_HELD && proof->controls[j].verdict != PROOF_REACHED)
                result->verdict = PROOF_UNPROVEN;
            if (proofs->runtimes[j].works && result->verdict != PROOF_HELD &&
                result->verdict != PROOF_UNPROVEN)
                all_held = false;
            if (proofs->runtimes[j].breaks)
                all_held = false;
        }
    }
    return all_held;
}

static const char *cell_text(const struct proofs *proofs, const struct proof *proof, size_t runtime)
{
    enum proof_verdict verdict = proof->inside[runtime].verdict;

    if (!proofs->runtimes[runtime].works)
        return "-";
    return verdict == PROOF_REACHED ? "REACHED" : verdict_names[verdict];
}

/* What was reached or broke, and what this machine cannot show. */
static void details_print(const struct proofs *proofs, FILE *out)
{
    for (size_t i = 0; i < proofs->count; i++) {
        const struct proof *proof = &proofs->items[i];

        for (size_t j = 0; j < proofs->runtime_count; j++)
            if (proofs->runtimes[j].works && (proof->inside[j].verdict == PROOF_REACHED ||
                                              proof->inside[j].verdict == PROOF_FAILED))
                (void)fprintf(out, "%s, %s in %s: %s\n", proof->name,
                              verdict_names[proof->inside[j].verdict], proofs->runtimes[j].name,
                              proof->inside[j].detail);
    }
    for (size_t j = 0; j < proofs->runtime_count; j++)
        if (*proofs->runtimes[j].problem)
            (void)fprintf(out, "%s %s: %s\n", proofs->runtimes[j].name,
                          proofs->runtimes[j].works ? "broke off" : "does not work here",
                          proofs->runtimes[j].problem);
}

/* Says for how many of the runtimes that work the control succeeded. */
static const char *control_text(const struct proofs *proofs, const struct proof *proof)
{
    size_t working = 0, reached = 0;

    for (size_t j = 0; j < proofs->runtime_count; j++) {
        working += proofs->runtimes[j].works;
        reached += proofs->runtimes[j].works && proof->controls[j].verdict == PROOF_REACHED;
    }
    if (reached == 0)
        return "not here";
    return reached == working ? "works" : "partly";
}

void proofs_print(const struct proofs *proofs, FILE *out)
{
    (void)fprintf(out, "%-22s %-9s", "ATTEMPT", "CONTROL");
    for (size_t j = 0; j < proofs->runtime_count; j++)
        (void)fprintf(out, " %-9s", proofs->runtimes[j].name);
    (void)fprintf(out, " ABOUT\n");
    for (size_t i = 0; i < proofs->count; i++) {
        const struct proof *proof = &proofs->items[i];

        (void)fprintf(out, "%-22s %-9s", proof->name, control_text(proofs, proof));
        for (size_t j = 0; j < proofs->runtime_count; j++)
            (void)fprintf(out, " %-9s", cell_text(proofs, proof, j));
        (void)fprintf(out, " %s\n", proof->about);
    }
    details_print(proofs, out);
}

static json_t *inside_json(const struct proofs *proofs, const struct proof *proof)
{
    json_t *list = json_array();

    for (size_t j = 0; j < proofs->runtime_count; j++)
        if (proofs->runtimes[j].works)
            (void)json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:b, s:s}", "runtime", proofs->runtimes[j].name,
                                "verdict", verdict_names[proof->inside[j].verdict], "detail",
                                proof->inside[j].detail, "controlWorks",
                                proof->controls[j].verdict == PROOF_REACHED, "control",
                                proof->controls[j].detail));
    return list;
}

void proofs_print_json(const struct proofs *proofs, bool all_held, FILE *out)
{
    cleanup_json json_t *attempts = json_array(), *runtimes = json_array(), *report = NULL;

    for (size_t j = 0; j < proofs->runtime_count; j++)
        (void)json_array_append_new(
            runtimes, json_pack("{s:s, s:b, s:s}", "name", proofs->runtimes[j].name, "works",
                                proofs->runtimes[j].works, "problem", proofs->runtimes[j].problem));
    for (size_t i = 0; i < proofs->count; i++) {
        const struct proof *proof = &proofs->items[i];

        (void)json_array_append_new(attempts,
                                    json_pack("{s:s, s:s, s:o}", "attempt", proof->name, "about",
                                              proof->about, "results", inside_json(proofs, proof)));
    }
    report = json_pack("{s:b, s:O, s:O}", "allHeld", all_held, "runtimes", runtimes, "attempts",
                       attempts);
    (void)json_dumpf(report, out, isatty(fileno(out)) ? JSON_INDENT(2) : JSON_COMPACT);
    (void)fputc('\n', out);
}
