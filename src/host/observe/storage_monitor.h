/* The storage monitor: a thread that polls the storage and reports when its state changes. */
#pragma once

struct err;
struct host;
struct storage_monitor;

int storage_monitor_start(struct host *host, struct storage_monitor **ret, struct err *err);

/* Makes the thread check the storage now. */
void storage_monitor_wake(struct storage_monitor *storage_monitor);

/* Ends the thread. Accepts NULL. */
void storage_monitor_stop(struct storage_monitor *storage_monitor);
