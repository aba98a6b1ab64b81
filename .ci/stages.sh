# Stages of a script, and the time that each took. To be sourced; $stages is a folder for the times.

# stage NAME COMMAND...: runs the command in a shell of its own, and notes when it began, when it ended, and the processor
# time that it and its children took (`times` counts both). The status is the command's.
stage() {
  local name="$1" begun="$EPOCHREALTIME" status
  shift
  # An `if` or `||` around the shell would keep errors inside from ending it.
  set +e
  (
    trap '{ echo "$begun $EPOCHREALTIME"; times; } >"$stages/$name"' EXIT
    set -e
    "$@"
  )
  status=$?
  set -e
  return "$status"
}
