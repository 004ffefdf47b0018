// SPDX-License-Identifier: Apache-2.0
#include "unit/tools_call.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--answer") == 0)
        return tools_answer_lines();
    return 0;
}
