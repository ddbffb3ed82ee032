#!/usr/bin/env bash
# The step of action.yml: annotations beside the lines, a summary for the job, a SARIF file when one is asked for.
# Ends with the exit status of `plumbline check`.
set -euo pipefail
set -f # a pattern such as a2a/* is for plumbline, not for the shell
plumbline=${BINARY:-$RUNNER_TEMP/plumbline/bin/plumbline}
arguments=(--fail-on "${FAIL_ON:-error}")
[ -n "${KIND:-}" ] && arguments+=(--kind "$KIND")
[ -n "${BASELINE:-}" ] && arguments+=(--baseline "$BASELINE")
[ "${OFFLINE:-true}" = true ] && arguments+=(--offline)
for rule in ${RULE:-}; do arguments+=(--rule "$rule"); done
for rule in ${IGNORE:-}; do arguments+=(--ignore "$rule"); done
for path in ${PATHS:-.}; do arguments+=("$path"); done

status=0
"$plumbline" check "${arguments[@]}" --format github || status=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  "$plumbline" check "${arguments[@]}" --format markdown >>"$GITHUB_STEP_SUMMARY" 2>/dev/null || true
fi
if [ -n "${SARIF:-}" ]; then
  "$plumbline" check "${arguments[@]}" --format sarif >"$SARIF" 2>/dev/null || true
fi
exit "$status"
