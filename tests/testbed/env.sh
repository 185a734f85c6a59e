# shellcheck shell=bash disable=SC2034
# Settings shared by every script here; sourced, never run.
#   TIDEGATE_TESTBED      where the programs are built, once for all beds
#   TIDEGATE_TESTBED_RUN  the folder of one bed: its data, logs, pids and kubeconfigs. Beds with folders of their own run side by side.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TB=${TIDEGATE_TESTBED:-${XDG_CACHE_HOME:-$HOME/.cache}/tidegate-testbed}
BIN=$TB/bin
RUN=${TIDEGATE_TESTBED_RUN:-$TB/run}

# need COMMAND PACKAGE... : ends with all that is missing, after an attempt to install it from Debian's packages.
need() {
	local missing=() packages=()
	while (($#)); do
		command -v "$1" >/dev/null || { missing+=("$1"); packages+=("$2"); }
		shift 2
	done
	((${#missing[@]})) || return 0
	local apt=(apt-get)
	((EUID == 0)) || apt=(sudo -n apt-get)
	if command -v apt-get >/dev/null && { "${apt[@]}" install -y -q "${packages[@]}" ||
		{ "${apt[@]}" update -q && "${apt[@]}" install -y -q "${packages[@]}"; }; } >&2; then
		return 0
	fi
	echo "${missing[*]} is missing: install it, on Debian or Ubuntu with: sudo apt-get install ${packages[*]}" >&2
	exit 1
}

# start NAME COMMAND... : runs it detached, output to NAME.log, pid to NAME.pid; no-op while it lives.
start() {
	local name=$1; shift
	alive "$name" && return 0
	setsid nohup "$@" >>"$RUN/$name.log" 2>&1 </dev/null &
	echo $! >"$RUN/$name.pid"
}

# alive NAME : true while the process of that pid file runs (and is not a zombie).
alive() {
	local pid
	pid=$(cat "$RUN/$1.pid" 2>/dev/null) || return 1
	[[ -r /proc/$pid/stat && $(awk '{print $3}' "/proc/$pid/stat") != Z ]]
}

# stop NAME : ends that one process by its pid and waits up to 10 s, then SIGKILL.
stop() {
	local name=$1 pid
	alive "$name" || { rm -f "$RUN/$name.pid"; return 0; }
	pid=$(cat "$RUN/$name.pid")
	kill -TERM "$pid"
	kill -CONT "$pid" # one that was stopped by ./fault hang would never see it
	for _ in $(seq 100); do alive "$name" || break; sleep 0.1; done
	alive "$name" && kill -KILL "$pid"
	rm -f "$RUN/$name.pid"
}

# wait_for NAME SECONDS COMMAND... : polls until the command succeeds; gives up early when the process NAME has ended.
wait_for() {
	local name=$1 limit=$2; shift 2
	local end=$((SECONDS + limit))
	until "$@" >/dev/null 2>&1; do
		if ((SECONDS >= end)) || ! alive "$name"; then
			echo "$name: not ready within $limit s; the last lines of $RUN/$name.log:" >&2
			tail -n 15 "$RUN/$name.log" >&2
			return 1
		fi
		sleep 0.1
	done
}

# etcd_post PATH JSON : one request to the bed's etcd over plain HTTP; prints the answer's body.
etcd_post() {
	local port answer
	port=$(cat "$RUN/port")
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	printf 'POST %s HTTP/1.0\r\nHost: etcd\r\nContent-Length: %d\r\n\r\n%s' "$1" "${#2}" "$2" >&3
	answer=$(cat <&3)
	exec 3>&-
	[[ ${answer%%$'\r'*} == *" 200 "* ]] || { echo "etcd: ${answer%%$'\r'*}" >&2; return 1; }
	printf '%s\n' "${answer##*$'\r\n\r\n'}"
}
