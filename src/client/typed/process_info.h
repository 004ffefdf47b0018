/* The outcome of a process in public structs. */
#pragma once

struct holt_end;
struct msg_ended;

void end_fill(struct holt_end *end, const struct msg_ended *message);
