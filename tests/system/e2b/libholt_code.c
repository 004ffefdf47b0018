// SPDX-License-Identifier: Apache-2.0
/* A foreign program that runs code with libholt; interpreter_life_test compiles it and runs it with
 * $HOLT_HOST. usage: libholt_code SANDBOX */
#include <holt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(claim)                                                                               \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            (void)printf("line %d: %s (%s: %s)\n", __LINE__, #claim, error.code, error.message);   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct holt_error error;
static struct holt *holt;

static struct holt_tool_result *run_code(const char *sandbox, const char *params)
{
    struct holt_tool_call call = HOLT_INIT(holt_tool_call);
    struct holt_tool_result *result;

    call.tool = "run_code";
    call.params = params;
    CHECK(holt_tool_execute(holt, sandbox, &call, HOLT_NO_DEADLINE, &result, &error) == 0);
    CHECK(!result->is_error && result->has_exit_code);
    return result;
}

static void variables_stay(const char *sandbox)
{
    struct holt_tool_result *result =
        run_code(sandbox, "{\"code\":\"n = 41\",\"context\":\"libholt\",\"language\":\"python\"}");

    CHECK(result->exit_code == 0);
    holt_free(result);
    result = run_code(sandbox, "{\"code\":\"n + 1\",\"context\":\"libholt\"}");
    CHECK(result->exit_code == 0 && strncmp(result->content, "42\n", 3) == 0);
    holt_free(result);
    result = run_code(sandbox, "{\"code\":\"1 / 0\",\"context\":\"libholt\"}");
    CHECK(result->exit_code == 1 && strstr(result->content, "ZeroDivisionError"));
    holt_free(result);
}

static void images_are_blocks(const char *sandbox)
{
    struct holt_tool_result *result = run_code(
        sandbox, "{\"code\":\"from IPython.display import Image\\nImage(data=b'dr\\\\0wn', "
                 "format='png')\",\"context\":\"libholt\"}");

    CHECK(result->block_count == 2 && strncmp(result->blocks[0]->data, "[image 1]\n", 10) == 0);
    CHECK(strcmp(result->blocks[1]->mime_type, "image/png") == 0);
    CHECK(result->blocks[1]->len == 5 && memcmp(result->blocks[1]->data, "dr\0wn", 5) == 0);
    holt_free(result);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && holt_open(NULL, HOLT_NO_DEADLINE, &holt, &error) == 0);
    variables_stay(argv[1]);
    images_are_blocks(argv[1]);
    holt_free(run_code(argv[1], "{\"action\":\"remove\",\"context\":\"libholt\"}"));
    holt_close(holt);
    return 0;
}
