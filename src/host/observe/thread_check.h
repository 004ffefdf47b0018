/* State of host_check_threads; must outlive the reactor. */
#pragma once

struct thread_check;

struct thread_check *thread_check_new(void);
void thread_check_free(struct thread_check *thread_check);
