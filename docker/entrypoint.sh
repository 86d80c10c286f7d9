#!/bin/sh
# In the image: becomes the program that a command of ./lockstep means, so that it is process 1 and gets the signals.
set -e
bin=/opt/lockstep/bin
export LOCKSTEP_CHIEF_BINARY="${bin}/chief_main" LOCKSTEP_WORKER_BINARY="${bin}/worker_main"
command="${1:-help}"
case "${command}" in
  chief)
    shift
    exec "${bin}/chief_main" "$@"
    ;;
  run | local | worker | eval | predict | status | probe | inspect | check | new) exec "${bin}/lockstep_main" "$@" ;;
  help | --help | -h)
    echo "Usage: docker run lockstep {chief|worker|run|local|eval|predict|status|probe|inspect|check|new} [ARGUMENTS]"
    ;;
  *) exec "$@" ;;
esac
