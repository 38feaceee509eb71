"""Shell scripts by which a command in a build's container outlives the harness.

They are run by the container's own shell, which the agent may have changed: what they say of
how a command ended is believed as much as the agent's own word.
"""

#: Where commands keep their output and end while they run; removed before the freeze.
COMMANDS = "/var/tmp/reb-commands"  # noqa: S108 - in the agent's own container
#: Every process of a command has this variable, which says of which.
VARIABLE = "REB_COMMAND"

#: The first process of the container. The kernel keeps a first process from all signals of its
#: own container that it does not ask for, and it ignores those that a shell may ask for. So it
#: ends where we end it, or where somebody who is root in there has taken pains. It takes leave
#: of orphans while it waits. Where its helper is killed too often, or none can be started any
#: more, it waits without.
IDLE = "sleep infinity"
INIT = (
    "trap '' TERM INT HUP; n=0; "
    f"while [ $n -lt 100 ]; do n=$((n+1)); command eval '{IDLE} & wait $!' 2>/dev/null; done; "
    "while read -r _; do :; done"
)

#: Token, token of the command before or nothing, command. Runs the command in a session of
#: its own and follows its output until it has ended; with a token that was used before it only
#: follows. The command is orphaned at once, and so a child of the container's first process:
#: whoever ends the tree of this script on the host, as a supervisor does whose harness was
#: killed, does not reach it. Who makes the folder runs the command; who finds it without the
#: number of a process after some seconds does too, since whoever made it was killed.
FOLLOW = f"""
place={COMMANDS}/$1; token=$1; [ -z "$2" ] || rm -rf "{COMMANDS}/$2"; shift 2
begin() {{
  : > "$place/log"
  (setsid /bin/sh -c 'place=$1; shift
    echo $$ > "$place/pid.part"; mv "$place/pid.part" "$place/pid"
    "$@" </dev/null >>"$place/log" 2>&1
    code=$?; read -r now _ < /proc/uptime
    echo "$code $now" > "$place/end.part"; mv "$place/end.part" "$place/end"
    ' sh "$place" "$@" &)
}}
mkdir -p {COMMANDS}
if mkdir "$place" 2>/dev/null; then begin "$@"; fi
n=0
until [ -e "$place/pid" ]; do
  n=$((n+1)); [ $n -ne 100 ] || begin "$@"; [ $n -lt 200 ] || exit 137
  sleep 0.05
done
read -r pid < "$place/pid"
if [ ! -e "$place/end" ] && grep -qz "^{VARIABLE}=$token$" "/proc/$pid/environ" 2>/dev/null
then tail -c +1 -f -s 0.05 --pid="$pid" "$place/log"
else cat "$place/log"
fi
[ -e "$place/end" ] || exit 137
read -r code now < "$place/end"
exit "$code"
"""

#: Token. Prints when the command ended, in seconds since the machine started.
ENDED_AT = f"""
read -r code now < "{COMMANDS}/$1/end" && echo "$now"
"""

#: Token. Ends what a command has started, as far as it has not hidden; where that makes new
#: ones as fast as they are ended, everything but the first process.
END = f"""
n=0
while [ $n -lt 10 ]; do
  n=$((n+1)); found=
  for place in /proc/[0-9]*; do
    if grep -qz "^{VARIABLE}=$1$" "$place/environ" 2>/dev/null; then
      found=1; kill -KILL "${{place#/proc/}}" 2>/dev/null
    fi
  done
  if [ -z "$found" ]; then rm -rf "{COMMANDS}/$1"; exit 0; fi
done
kill -KILL -1
exit 0
"""
