"""Runs inside a sandbox whose policy allows only http(s)://example.com, ssh.test:22 and *.wild.test,
and tries to reach something else. Each attempt is a function that returns what it got through, or
None. Prints for each "ok: NAME_is_refused", or "not ok: NAME_is_refused: WHAT GOT THROUGH".

    attempts.py [NAME...]      with the environment that attempts_test sets
"""
import sys

import attempts_host, attempts_names, attempts_web  # noqa: F401 (they fill the list)
from attempt import attempts


def main():
    wanted = sys.argv[1:]
    for function in attempts:
        name = function.__name__
        if wanted and name not in wanted:
            continue
        try:
            got = function()
        except Exception as error:  # an attempt that breaks proves nothing
            got = f"exception {type(error).__name__}: {error}"
        print(f"not ok: {name}_is_refused: {got}" if got else f"ok: {name}_is_refused", flush=True)


if __name__ == "__main__":
    main()
