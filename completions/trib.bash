# SPDX-License-Identifier: Apache-2.0
# bash completion for trib. Commands and options come from the output of --help, so this file need not list them.
# shellcheck shell=bash

# _trib_options WORDS...: prints the long options of a subcommand.
_trib_options() {
	"$@" --help 2>/dev/null | grep -oE '^ +(-[a-zA-Z0-9], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'
}

# _trib_commands WORDS...: prints the commands of `trib`, or of a command that has some.
_trib_commands() {
	"$@" --help 2>/dev/null | sed -n '/^Commands:$/,/^$/s/^  \([a-z-]*\)  .*/\1/p'
}

_trib_clusters() {
	ls /run/tributary/net 2>/dev/null
}

# _trib_hosts CLUSTER: prints the hosts of a cluster (h1, h2, ...).
_trib_hosts() {
	sed -n 's/^host \([^ ]*\) .*/\1/p' "/run/tributary/net/$1" 2>/dev/null
}

# _trib_links CLUSTER: prints the links of a cluster (h1, leaf1-spine1, ...).
_trib_links() {
	_trib_hosts "$1"
	awk '$1 == "fabric" { for (l = 1; l <= $2; l++) for (s = 1; s <= $3; s++) print "leaf" l "-spine" s }' \
		"/run/tributary/net/$1" 2>/dev/null
}

_trib() {
	local trib=$1 word=$2 before=$3 command=() cluster=trib i
	COMPREPLY=()

	# After "--" comes the user's own command: complete it as such.
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				mapfile -t COMPREPLY < <(compgen -o plusdirs -cf -- "$word")
			fi
			return
		fi
		[[ ${COMP_WORDS[i]} == --name ]] && cluster=${COMP_WORDS[i + 1]}
	done

	case $before in
	--net | --name)
		mapfile -t COMPREPLY < <(compgen -W "$(_trib_clusters)" -- "$word")
		return
		;;
	--plane)
		if [[ ${COMP_WORDS[1]} == bench && ${COMP_WORDS[2]} == plane ]]; then
			mapfile -t COMPREPLY < <(compgen -W "xdp xdp-nic xdp-relay udp udp-nic tcp tcp-copied tcp-nic" -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -W "auto udp tc xdp tcp pisa" -- "$word")
		fi
		return
		;;
	--route | --hash)
		if [[ ${COMP_WORDS[1]} == net ]]; then
			local -A words=([--route]="ecmp static" [--hash]="l4 l3")
			mapfile -t COMPREPLY < <(compgen -W "${words[$before]}" -- "$word")
			return
		fi
		;;
	--trees | --placement | --sharing | --ties | --paper)
		if [[ ${COMP_WORDS[1]} == sim ]]; then
			local -A words=([--trees]="none first random smart" [--placement]="first random smart"
				[--sharing]="none greedy smart frugal ahead" [--ties]="mina arrival"
				[--paper]="table1 fig11 fig12 fig13 fig14 jitter")
			mapfile -t COMPREPLY < <(compgen -W "${words[$before]}" -- "$word")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -f -W "star striped planned" -- "$word")
		return
		;;
	--policy)
		mapfile -t COMPREPLY < <(compgen -W "fail shrink wait" -- "$word")
		return
		;;
	--systems)
		local -A systems=([glm]="model vanilla data mpi" [sparse]="hot servers dense"
			[latency]="xdp tc udp pisa dense dense-udp auto auto-tc auto-udp mpi-xdp mpi-udp mpi-none")
		mapfile -t COMPREPLY < <(compgen -W "${systems[${COMP_WORDS[2]}]}" -- "$word")
		return
		;;
	--collective)
		mapfile -t COMPREPLY < <(compgen -W "allreduce reduce-scatter allgather" -- "$word")
		return
		;;
	--against)
		if [[ ${COMP_WORDS[2]} == latency ]]; then
			mapfile -t COMPREPLY < <(compgen -W "all none openmpi gloo mpich" -- "$word")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W "trib-xdp trib-tcp trib-star trib-ring mpi-trib mpi-trib-ring nccl-collnet nccl-ring openmpi openmpi-default mpich gloo ring ps tcp-agg" -- "$word")
		return
		;;
	--hostfile | --jobs | --philly | --gavel | --per-job | --fabric | --traces)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	--format)
		local formats="libsvm csv"
		[[ ${COMP_WORDS[1]} == sparse ]] && formats="lists pairs text counts"
		mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$word")
		return
		;;
	--loss | --update | --parallel | --exchange | --bad-rows | --missing | --bias | --pipeline | --bits)
		local -A glm=([--loss]="logistic linear hinge squared-hinge" [--update]="adagrad sgd"
			[--parallel]="model data" [--exchange]="local tributary mpi" [--bad-rows]="fail skip" [--missing]="fail zero"
			[--bias]="on off" [--pipeline]="on off" [--bits]="float 1 2 3 4 5 6 7 8")
		mapfile -t COMPREPLY < <(compgen -W "${glm[$before]}" -- "$word")
		return
		;;
	--sync)
		mapfile -t COMPREPLY < <(compgen -W "commit second none" -- "$word")
		return
		;;
	--rows)
		if [[ ${COMP_WORDS[1]} == sparse ]]; then
			mapfile -t COMPREPLY < <(compgen -W "items users both" -- "$word")
			return
		fi
		;;
	--dir | --server-dir | --status-file | --model | --test | --checkpoint | --output)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	--json | --plot)
		if [[ ${COMP_WORDS[1]} == bench || ${COMP_WORDS[1]} == glm || ${COMP_WORDS[1]} == sparse ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
		fi
		;;
	esac

	case ${COMP_WORDS[1]} in
	show | net | bench | glm | sparse | job | node) mapfile -t command < <(_trib_commands "$trib" "${COMP_WORDS[1]}") ;;
	esac
	if ((COMP_CWORD == 3)) && [[ ${COMP_WORDS[1]} == bench && ${COMP_WORDS[2]} == plane && $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "throughput cores load" -- "$word")
		return
	fi
	if ((COMP_CWORD >= 3)) && [[ ${COMP_WORDS[1]} == bench && ${COMP_WORDS[2]} == plot && $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "--help --version $(_trib_commands "$trib")" -- "$word")
	elif ((COMP_CWORD == 2 && ${#command[@]})); then
		mapfile -t COMPREPLY < <(compgen -W "${command[*]} --help" -- "$word")
	elif [[ (${COMP_WORDS[1]} == plan || ${COMP_WORDS[1]} == glm || ${COMP_WORDS[1]} == sparse) && $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	elif [[ ${COMP_WORDS[1]} == net && ${COMP_WORDS[2]} == exec && $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_trib_hosts "$cluster")" -- "$word")
	elif [[ ${COMP_WORDS[1]} == net && ${COMP_WORDS[2]} =~ ^(cut|slow|restore)$ && $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_trib_links "$cluster")" -- "$word")
	else
		command=("${COMP_WORDS[@]:1:1}" "${command[@]:+${COMP_WORDS[2]}}")
		mapfile -t COMPREPLY < <(compgen -W \
			"$(_trib_options "$trib" "${command[@]}")" -- "$word")
	fi
}

complete -F _trib trib
