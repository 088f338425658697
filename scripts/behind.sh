#!/bin/sh
# Runs a command behind all others: behind.sh COMMAND...
# Meson gives each test a session, and the kernel gives each session the same share, whatever the nice
# value of its processes; the session has one of its own (sched(7), autogroup).
{ echo 10 >/proc/self/autogroup; } 2>/dev/null
exec nice -n 10 "$@"
