#!/bin/sh
# behind.sh COMMAND...: runs a command with a low priority.
# Meson starts each test in a session of its own. The kernel gives every session the same share of the
# cores, whatever the nice values of its processes. So the session needs a nice value too (sched(7), autogroup).
{ echo 10 >/proc/self/autogroup; } 2>/dev/null
exec nice -n 10 "$@"
