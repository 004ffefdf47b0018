/* Makes the template of an agent type: its npm packages on a base. */
#pragma once

#include <stdbool.h>

struct holt;
struct holt_network_rules;

/* Installs the packages in a sandbox that reaches the registry of npm's configuration on this
 * machine, or what network allows, and makes a template of it. Does nothing if the template exists,
 * unless renews is set, and for a type without packages. Returns 0, or the exit status after a
 * report. */
int agent_install(struct holt *holt, const char *name, const struct holt_network_rules *network,
                  bool renews);
