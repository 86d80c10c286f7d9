#!/bin/sh
# Entry point of the image: execs the program for a lockstep command, so that it is process 1 and gets the signals. A
# word with a slash is the path of another program.
set -e
bin=/opt/lockstep/bin
export LOCKSTEP_CHIEF_BINARY="${bin}/chief_main" LOCKSTEP_WORKER_BINARY="${bin}/worker_main"
case "${1:-help}" in
  chief)
    shift
    exec "${bin}/chief_main" "$@"
    ;;
  help | --help | -h)
    echo "In this image lockstep chief serves a run; lockstep chief --help says how. The other commands:"
    exec "${bin}/lockstep_main" --help
    ;;
  */*) exec "$@" ;;
  *) exec "${bin}/lockstep_main" "$@" ;;
esac
