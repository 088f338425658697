# SPDX-License-Identifier: Apache-2.0
"""The sections of `make bench`: what each one runs, how long it takes, and which table it makes.

A section is the unit of a refresh: its runs are done together, its result is one file, and its blocks in
docs/ are rewritten together. Data only; scripts/bench_report.py runs the sections and scripts/bench_tables.py
makes the tables; scripts/bench_chart.py makes plots of several runs.
"""
import dataclasses


@dataclasses.dataclass
class Run:
    """One command. `trib` at its start means the program of the build folder."""
    command: str
    label: str = ""  # tells the runs of a section apart in its table
    quick: str = ""  # options added (or, with a leading "=", the whole command) for a short run
    json: str = "file"  # file: --json FILE is added; stdout: the output is JSON; text: the output is kept as it is
    plot: bool = False  # --plot FILE is added


@dataclasses.dataclass
class Section:
    """`table` names a function of bench_tables.py."""
    name: str
    page: str
    what: str
    minutes: float  # on the machine with two cores
    table: str
    runs: list
    plots: tuple = ()  # suffixes of the plots that the page shows
    draw: str = ""  # a function of bench_chart.py that draws the plots from all runs
    data: bool = False  # needs MINA's traces
    cores: int = 1  # needs at least so many
    before: tuple = ()  # commands that set up
    after: tuple = ()  # commands that clean up, always run


# Code that no section uses but those with one of the words in their names.
OWN_CODE = {
    "latency mpi glm sizes unshaped cpusync": ("src/worker/slot/",),  # sections that time vectors of up to 64 KiB
    "sim": ("src/sim/", "src/cli/sim/"),
    "plans": ("src/cli/plan/",),
    "glm": ("src/glm/", "src/bench/glm/", "src/cli/glm/", "include/tributary/glm.h", "examples/linear.c"),
    "sparse": ("src/sparse/", "src/bench/sparse/", "src/bench/store/", "src/cli/sparse/", "include/tributary/sparse.h", "examples/sparse",
               "examples/factorize.c", "examples/words.c", "src/engine/sparse", "src/plane/xdp/bpf/sparse",
               "src/plane/pisa/pisa_sparse", "src/pisa/pisa_sparse", "src/number/float_table"),
    "path": ("src/path/balance/", "src/path/virtual/", "src/bench/path/"),
    "verbs": ("src/path/verbs/", "adapters/verbs/"),
    "ddp": ("adapters/python/",),
    "mpi": ("adapters/mpi/", "src/launch/mpi_"),
    "nccl": ("adapters/nccl/", "bench/peers/nccl", "bench/peers/bootstrap", "src/launch/nccl_plugin", "src/cli/check/check_nccl"),
}


# All the code that these sections use: by the first words of their names.
SUMS = ("src/base/", "src/number/", "src/engine/", "src/wire/")
WHOLE_CODE = {
    "sim": ("src/sim/", "src/cli/sim/", "src/plan/", "src/base/"),
    "plans": ("src/plan/", "src/cli/plan/", "src/base/"),
    "decisions": ("src/control/policy/", "src/control/placement/", "src/plan/", "src/base/"),
    "accuracy": (*SUMS, "src/bench/numbers/"),
    "float-table": (*SUMS, "src/bench/numbers/"),
    "engine": (*SUMS, "src/bench/engine/", "src/plane/xdp/bpf/"),
    "planes": (*SUMS, "src/plane/", "src/net/", "src/daemon/", "src/bench/plane/", "src/bench/load/"),
    "planes-allreduce": None, "planes-cpu": None, "path-verbs-allreduce": None,  # also all that workers run
    "glm-kernel": ("src/base/", "src/number/", "src/glm/", "src/bench/glm/"),
    "sparse-store": ("src/base/", "src/sparse/", "src/bench/store/"),
    "path-verbs": ("src/base/", "src/wire/", "src/path/", "src/net/", "src/launch/", "src/bench/", "adapters/verbs/", "bench/peers/"),
}


# Parts of src/base that only ranks and daemons use. Of the sections in WHOLE_CODE, those of planes run daemons.
OF_RANKS = ("src/base/settings", "src/base/wait_choice", "src/base/launcher")


def uses(name, path):
    """Whether figures of the section `name` depend on that file."""
    words = name.split("-")
    starts = ["-".join(words[:n]) for n in range(len(words), 0, -1)]
    whole = next((WHOLE_CODE[start] for start in starts if start in WHOLE_CODE), None)
    if whole:
        return path.startswith(whole) and (name.startswith("planes") or not path.startswith(OF_RANKS))
    named = set(name.split("-"))
    return all(named & set(words.split()) or not path.startswith(paths) for words, paths in OWN_CODE.items())


MINA = "$TRIB_DATA/mina"
LIST = f"--jobs {MINA}/jobs_trace1_seed42.csv"
SHORT = "--sizes 1M --iterations 2 --warmup 1 --repeats 1"
PLANE_SHORT = "--seconds 0.1 --repeats 1 --hurry"
LATENCY_SIZES = "4,256,2K,8K,32K,128K,1M"
GLM_SHORT = "--hurry --repeats 1 --epochs 1 --rows 1024"
# With faster links, two cores are the limit of 32 workers. A link with an XDP program has no offloads, so no plane has.
SPARSE_LINKS = "--link 50mbit --server-link 50mbit --no-offload"
SPARSE_JOB = f"--workers 8,16,32 --plane udp --steps 6 --iterations 1 --warmup 2 --repeats 2 {SPARSE_LINKS}"
GLM_PAPER = "--dense --bits 4 --plane xdp"  # P4SGD stores all values of a row, in 4 bits
SPARSE_SHORT = "--hurry --repeats 1 --iterations 2 --warmup 1 --steps 2 --workers 2"
TENSORS = "build/bench-tensors"  # of a training's first steps, by eight workers
MAKE_TENSORS = (f"mkdir -p {TENSORS}",
                "build/src/cli/trib run -n 8 --servers 1 -- build/examples/factorize --data $TRIB_DATA/gowalla "
                f"--epochs 1 --steps 60 --progress none --tensors {TENSORS}/factorize",
                "build/src/cli/trib run -n 8 --servers 1 -- build/examples/words "
                "--data $TRIB_DATA/text8-head/text8.split.head.xz "
                f"--epochs 1 --steps 60 --progress none --tensors {TENSORS}/words")
PEERS = "gloo,ring,openmpi,openmpi-default,mpich"


def allreduce(options, label="", quick=SHORT, plot=False):
    return Run(f"trib bench allreduce {options}", label, quick, plot=plot)


def plane(options, label="", plot=True):
    return Run(f"trib bench plane {options}", label, PLANE_SHORT, plot=plot)


def latency(options, quick="--hurry --repeats 1 --iterations 20 --warmup 2", plot=True):
    return Run(f"trib bench latency {options}", quick=quick, plot=plot)


def glm(options, label="", quick=GLM_SHORT, plot=False):
    return Run(f"trib bench glm {options}", label, quick, plot=plot)


def sparse(options, label="", quick=SPARSE_SHORT, plot=True):
    return Run(f"trib bench sparse {options}", label, quick, plot=plot)


def path(options, label="", plot=False):
    return Run(f"trib bench path {options}", label, "--seconds 0.3 --warm 0.3 --repeats 1", plot=plot)


def verbs(case, more="", rate=8):
    """In a virtual machine, with four paths of that many Mb/s."""
    return Run(f"env PATH_RATE={rate}mbit tests/rdma/run.sh --limit 1200 python3 scripts/bench_verbs.py build/adapters/verbs/libtribverbs.so {case}{more}",
               quick="--repeats 1 --seconds 2", json="stdout")


def ddp(model):
    return [Run(f"scripts/bench_ddp.py --model {model}", quick="=scripts/bench_ddp.py --model small --steps 4 --warmup 1")]


def simulate(options, label="", quick="-n 40 --seeds 1", how="stdout"):
    return Run(f"trib sim -t {MINA} {options} --json", label, quick, how)


def short(options, where="", quick=SHORT):
    """One run for each kind of short integers, beside f32 in 32 bits."""
    kinds = (("bf16", "trib", " --type bf16"), ("f16", "trib", " --type f16"), ("f32", "trib", ""),
             ("f32, TRIB_WIRE=16", "env TRIB_WIRE=16 build/src/cli/trib", ""))
    return [Run(f"{start} bench allreduce {options}{more}", where + label, quick) for label, start, more in kinds]


# XAgg's Fig. 12: the tree of the paper.
PAPER_TREE = "--trees 'tree=s3(s1(0-2),s2(3-5),6)'"
SLOW = "--link h1={0} --link h2={0} --link h3={0} --late h1={1} --late h2={1} --late h3={1}"
MODELS = "--sizes 2500000,9700000,23300000 --warmup 1"
XAGG = f"--hosts 7 --servers 3 --link 250mbit {SLOW.format('100mbit', '0.025')} --no-offload {MODELS}"
XAGG_CORES = (f"--hosts 7 --servers 3 --link 800mbit {SLOW.format('320mbit', '0.008')} --cores s1=1 --cores s2=1 "
              f"--cores s3=1 --busy 0.8 --nic --mtu 1450 {MODELS}")
XAGG_SIXTEEN = (f"--hosts 7 --servers 3 --link 2500mbit {SLOW.format('1gbit', '0.005')} --no-offload "
                "--sizes 25000000,97000000,233000000 --warmup 1 --iterations 1 --repeats 2")
XAGG_SHORT = "--sizes 250000 --iterations 1 --warmup 0 --repeats 1"
STRIPES = "--hosts 4 --link 500mbit --sizes 4M,16M --iterations 3 --warmup 1"
WIRE = "--hosts 4 --link 500mbit --no-offload --sizes 16M --iterations 2 --warmup 1"
SHORT_TREES = "--trees striped --trees 'tree=s3(s1(0-1),s2(2-3))'"
ON_WORKERS = "--servers 1 --trees 'hosts=h1(0-3);h2(0-3);h3(0-3);h4(0-3)'"
UNLIKE = "--hosts 4 --link 1gbit --link h2=500mbit --late h3=0.27 --sizes 16M --iterations 3 --warmup 1"
UNLIKE_PLANES = ("--hosts 4 --link 500mbit --link h2=250mbit --late h3=0.54 --no-offload --sizes 16M --iterations 2 --warmup 1 "
                 "--against trib-xdp")
LOSSY = "--hosts 4 --server --link 200mbit --link s1=800mbit --against trib-xdp"
ROUGH = "--loss 0.1 --dup 0.05 --reorder 0.05 --corrupt 0.01 --seed 1"
NIC = ("--server --hosts 4 --link 500mbit --link s1=2gbit --sizes 16M --iterations 8 --repeats 5 --cores s1=1 --nic "
       "--plane xdp --against trib-tcp")
ALIKE = ("--hosts 4 --servers 3 --link 500mbit --late h1=0.2 --late h3=0.2 --sizes 16M --iterations 3 --warmup 1 "
         "--trees 'alike=s3(s1(0,2),s2(1,3))' --trees 'apart=s3(s1(0-1),s2(2-3))' --against tributary@apart")
DEAR = "--bandwidth 25gbit --ratio 1.5 --speedup 1.5"
POLICIES = (("first, first, greedy", "-p first --trees first -s greedy"), ("smart, first, smart", "--trees first -s smart"),
            ("smart, smart (k = 5), smart", "-k 5 -s smart"), ("smart, smart, frugal", "-s frugal"))
NET = "bench-training"
GRADIENTS = "build/gradients.f32"
LEARN = "--epochs 1 --points 4"


def share(traces, options):
    return [Run(f"nice -n -10 scripts/bench_share.py --traces {traces} --data {MINA} {options}",
                quick="--steps 2 --warmup 1 --repeats 1", plot=True)]


SECTIONS = [
    Section("allreduce", "allreduce", "four hosts at 1 Gb/s, beside Gloo, a ring, Open MPI and MPICH", 1.3, "allreduce",
            [allreduce(f"--hosts 4 --link 1gbit --sizes 1M,4M,16M --iterations 5 --warmup 1 --against {PEERS}", plot=True)], ("",)),
    Section("allreduce-sizes", "allreduce", "small vectors, four hosts at 1 Gb/s", 0.8, "allreduce",
            [allreduce("--hosts 4 --link 1gbit --sizes 1K,4K,16K,64K,256K,1M --against gloo,ring,openmpi",
                       quick="--sizes 4K,64K --iterations 2 --repeats 1", plot=True)], ("",)),
    Section("allreduce-wire", "allreduce", "the same links, packets one by one", 0.4, "allreduce",
            [allreduce("--hosts 4 --link 1gbit --no-offload --sizes 16M --iterations 6 --warmup 1 --against ring", "a port a worker"),
             allreduce("--hosts 4 --link 1gbit --server --sizes 16M --iterations 6 --warmup 1", "a server with one link, offloads on")]),
    Section("allreduce-eight", "allreduce", "eight hosts at 500 Mb/s", 1.4, "allreduce",
            [allreduce("--hosts 8 --link 500mbit --sizes 4M,16M --iterations 3 --warmup 1 --against gloo,ring,openmpi,openmpi-default",
                       plot=True)], ("",)),
    Section("allreduce-unlike", "allreduce", "one slow link, one late worker, small and large pools", 0.5, "allreduce",
            [allreduce(f"{UNLIKE} --to-one --pool 64M", "reduce, pool 64 MB"),
             allreduce(f"{UNLIKE} --to-one --pool 256K", "reduce, pool 256 KB"),
             allreduce(f"{UNLIKE} --pool 64M", "allreduce, pool 64 MB"),
             allreduce(f"{UNLIKE} --pool 256K", "allreduce, pool 256 KB")]),
    Section("nccl", "nccl", "NCCL's calls over its plugin: through an aggregator, and around a ring", 0.6, "nccl",
            [allreduce("--hosts 4 --link 1gbit --sizes 1M,16M --iterations 5 --warmup 1 --repeats 5 --against nccl-collnet,nccl-ring")]),
    Section("mpi", "mpi", "an MPI program with the adapter, four hosts at 1 Gb/s, beside Open MPI", 0.8, "allreduce",
            [allreduce("--hosts 4 --link 1gbit --sizes 64K,1M,16M --iterations 5 --warmup 1 --against mpi-trib,mpi-trib-ring,openmpi,openmpi-default")]),
    Section("mpi-small", "mpi", "short vectors of an MPI program, two to sixteen hosts", 2.7, "latency",
            [latency(f"--hosts {hosts} --link 1gbit --sizes {sizes} --systems mpi-xdp,mpi-udp,mpi-none,xdp,udp --against openmpi "
                     "--iterations 1000 --warmup 1000 --repeats 3", plot=False)
             for hosts, sizes in (("2,4,8,16", "8"), ("4", "512,4K"))]),
    Section("path-ring", "ring", "allreduces without an aggregator, beside the rings of others", 0.9, "allreduce",
            [allreduce("--hosts 4 --link 1gbit --sizes 64K,1M,16M --iterations 4 --warmup 1 --repeats 2 --against trib-ring,ring,gloo,openmpi",
                       "4 hosts", plot=True),
             allreduce("--hosts 8 --link 1gbit --sizes 64K,1M,16M --iterations 4 --warmup 1 --repeats 2 --against trib-ring,gloo,openmpi", "8 hosts")],
            ("",)),
    Section("path-scatter-gather", "ring", "reduce-scatters and allgathers, 64 KB to 64 MB, four and eight hosts", 3, "allreduce",
            [allreduce(f"--collective {name} --hosts {n} --link 1gbit --sizes {'64K,1M,16M,64M' if n == 4 else '64K,1M,16M'} "
                       f"--iterations 4 --warmup 1 --repeats 2 --against trib-ring,gloo,openmpi", f"{name}, {n} hosts", plot=n == 4)
             for name in ("reduce-scatter", "allgather") for n in (4, 8)]),
    Section("path", "paths", "one to four paths, beside ECMP and multipath TCP (Maestro's Fig. 8)", 1.2, "path",
            [path("--core 200mbit --paths 1,2,4 --repeats 3 --seconds 1.5", plot=True)], ("",)),
    Section("path-unlike", "paths", "paths of unlike rates, and loss on one path", 1.2, "path",
            [path("--paths 4 --unlike 200mbit,100mbit,50mbit,200mbit --repeats 3 --seconds 1.5", "unlike rates"),
             *(path(f"--paths 4 --loss leaf1-spine2={loss / 100} --repeats 3 --seconds 1.5", f"{loss} % loss on one path")
               for loss in (1, 10))]),
    Section("path-load", "paths", "background traffic on three of four paths (Maestro's Fig. 12c)", 0.3, "path_load",
            [path("--paths 4 --load 0,25,50,75 --transport ours --repeats 3 --seconds 5")]),
    Section("path-chunk", "paths", "chunks of 12.5 to 400 KB (Maestro's Fig. 9)", 0.5, "path",
            [path("--paths 4 --transport ours --size 1600000 --chunk 12500,50000,200000,400000 --repeats 3 --seconds 1.5")]),
    Section("path-token", "paths", "a token of 2 bytes (Maestro's Fig. 12f)", 0.3, "path_token",
            [path("--paths 4 --token --load 0,90,90,90 --transport ours,ecmp --repeats 5 --seconds 1")]),
    Section("path-appears", "paths", "a path appears after two seconds (Maestro's Fig. 12d)", 0.2, "path_timeline",
            [path("--paths 4 --transport ours,mptcp --size 64K --timeline --seconds 5 --events=-1:cut=4,2:restore=4", plot=True)], ("",)),
    Section("path-cut", "paths", "paths are cut one by one (Maestro's Fig. 12e)", 0.2, "path_timeline",
            [path("--paths 4 --transport ours,mptcp --size 64K --timeline --seconds 5 --events 1:cut=4,2:cut=3,3:cut=2", plot=True)], ("",)),
    Section("path-mice", "paths", "short flows of other hosts beside one to four paths (Maestro's Fig. 14)", 0.8, "path_mice",
            [path("--paths 1,4 --mice 16K --repeats 3 --seconds 1.5")]),
    Section("path-verbs", "verbs", "RDMA programs over one to four paths (Maestro's Fig. 8 and 13)", 2, "verbs", [verbs("paths", " --seconds 2.5")]),
    Section("path-verbs-chunk", "verbs", "chunks of 12.5 to 400 KB (Maestro's Fig. 9)", 0.8, "verbs_chunk", [verbs("chunk", " --seconds 2.5", rate=16)]),
    Section("path-verbs-load", "verbs", "background traffic on three of four paths (Maestro's Fig. 12c)", 0.3, "verbs_load",
            [verbs("load")]),
    Section("path-verbs-events", "verbs", "a path that appears, paths cut one by one (Maestro's Fig. 12d and 12e)", 1.2, "verbs_events",
            [verbs("appear", " --seconds 6"), verbs("cut", " --seconds 5")]),
    Section("path-verbs-token", "verbs", "the latency of short messages, plain and with the library (Maestro's Fig. 12f)", 0.8, "verbs_token",
            [verbs("token", " --repeats 1")]),
    Section("path-verbs-allreduce", "verbs", "an allreduce around a ring by RDMA, over one to four paths (Maestro's Fig. 10 and 11)", 1.4,
            "verbs_allreduce",
            [Run("env PATH_RATE=10mbit tests/rdma/run.sh --limit 600 python3 scripts/bench_verbs_ring.py build/src/libtributary.so --seconds 4",
                 quick="--repeats 1 --seconds 2", json="stdout")]),
    Section("path-allreduce", "paths", "an allreduce over one path and over four (Maestro's Fig. 10 and 11)", 0.8, "allreduce",
            [Run(f"env TRIB_PATHS={paths} build/src/cli/trib bench allreduce -n 4 --net bench-fabric{spines} --sizes 8M --iterations 2 "
                 "--warmup 1 --repeats 2 --against trib-ring", label, SHORT)
             for spines, paths, label in ((1, "off", "one path"), (4, "off", "four paths, each flow on one of them (ECMP)"),
                                          (4, "auto", "four paths"))],
            before=tuple(f"build/src/cli/trib net up --name bench-fabric{spines} --hosts 4 --servers 1 --leaf 2 --spine {spines} "
                         "--link 1gbit --link s1=4gbit --core 100mbit" for spines in (1, 4)),
            after=tuple(f"build/src/cli/trib net down --name bench-fabric{spines}" for spines in (1, 4))),
    Section("latency", "latency", "8 x 32 bits on 2, 4 and 8 hosts, beside Open MPI and Gloo", 4, "latency",
            [latency("--hosts 2,4,8 --sizes 32 --systems xdp,tc,udp,pisa,dense --against all --iterations 1000 --warmup 1000 --repeats 5")], ("",)),
    Section("latency-sizes", "latency", "4 B to 64 MB, four hosts at 1 Gb/s", 7, "latency",
            [latency(f"--hosts 4 --link 1gbit --sizes {LATENCY_SIZES},8M,64M --systems auto,auto-tc,auto-udp --against all "
                     "--iterations 300 --warmup 1000 --repeats 3", "--sizes 4,64K --hurry --repeats 1 --iterations 20 --warmup 2")], ("",)),
    Section("latency-unshaped", "latency", "4 B to 1 MB, four hosts, links not shaped", 2.5, "latency",
            [latency(f"--hosts 4 --sizes {LATENCY_SIZES} --systems auto,auto-tc,auto-udp --against all --iterations 500 --warmup 1000 --repeats 3",
                     "--sizes 4,64K --hurry --repeats 1 --iterations 20 --warmup 2")], ("",)),
    Section("latency-faults", "latency", "8 x 32 bits, with lost, doubled and reordered packets", 0.5, "latency_faults",
            [Run("scripts/bench_faults.py", quick="--repeats 1 --iterations 50 --planes udp")]),
    Section("latency-many", "latency", "1000 x 1 KB posted together on four hosts", 0.5, "latency",
            [latency("--hosts 4 --sizes 1K --many 1000 --systems xdp,tc,udp,auto-tc,dense --against openmpi --repeats 3",
                     "--many 50 --hurry --repeats 1 --iterations 20 --warmup 2", False)]),
    Section("short", "numbers", "f16, bf16, and f32 in 16 bits, four hosts at 1 Gb/s", 0.9, "allreduce",
            [allreduce("--hosts 4 --link 1gbit --sizes 16M --iterations 4 --warmup 1 --type bf16 --against gloo,ring,openmpi", "bf16"),
             allreduce("--hosts 4 --link 1gbit --sizes 16M --iterations 4 --warmup 1 --type f16 --against gloo,ring,openmpi", "f16"),
             Run("env TRIB_WIRE=16 build/src/cli/trib bench allreduce --hosts 4 --link 1gbit --sizes 16M --iterations 4 --warmup 1",
                 "f32, TRIB_WIRE=16", SHORT),
             allreduce("--hosts 4 --link 1gbit --sizes 16M --iterations 4 --warmup 1", "f32")]),
    Section("short-xdp", "numbers", "the same, summed in the kernel", 0.7, "brief_allreduce",
            short("--hosts 4 --link 1gbit --sizes 16M --iterations 4 --warmup 1 --against trib-xdp,ring")),
    Section("short-eight", "numbers", "the same with eight hosts", 1, "brief_allreduce",
            short("--hosts 8 --link 500mbit --sizes 16M --iterations 2 --warmup 1 --against ring", "500 Mb/s, ") +
            short("--hosts 8 --link 1gbit --sizes 16M --iterations 2 --warmup 1 --against ring", "1 Gb/s, ")),
    Section("short-trees", "numbers", "the same in stripes, and in a tree of two levels", 0.9, "brief_allreduce",
            short(f"--hosts 4 --servers 4 --link 1gbit --sizes 16M --iterations 4 --warmup 1 {SHORT_TREES} "
                  "--against tributary@tree,ring")),
    Section("short-cpu", "numbers", "CPU time of workers and aggregator, f16 and bf16 beside f32", 1.1, "short_cpu",
            short("--hosts 4 --link 1gbit --sizes 16M --iterations 10 --warmup 1 --against ring")),
    Section("accuracy", "accuracy", "errors of sums, beside those of a ring", 0.2, "accuracy",
            [Run(f"trib bench numbers --type {name}", name, "--elements 20000") for name in ("bf16", "f16", "f8e4m3", "f8e5m2")] +
            [Run("trib bench numbers --type f32 --wire 16", "f32, TRIB_WIRE=16", "--elements 20000")]),
    Section("gradients", "accuracy", "errors of sums of real gradients", 0.2, "accuracy",
            [Run(f"trib bench numbers --type {kind} --elements 407050 --gradients {GRADIENTS}", label)
             for kind, label in (("bf16", "bf16"), ("f16", "f16"), ("f8e4m3", "f8e4m3"), ("f8e5m2", "f8e5m2"),
                                 ("f32 --wire 16", "f32, TRIB_WIRE=16"))],
            before=(f"rm -f {GRADIENTS}",
                    f"trib run -n 4 -- build/examples/train --epochs 1 --quiet --gradients {GRADIENTS}"),
            after=(f"rm -f {GRADIENTS}",)),
    Section("float-table", "accuracy", "sums of floats by table look-up (Libra's Table 2)", 0.6, "float_table",
            [Run(f"trib bench float-table --data {TENSORS}/{job}.f32", label, "--sums 1000")
             for job, label in (("factorize", "recommender"), ("words", "words"))],
            before=(*MAKE_TENSORS, *(f"scripts/row_values.py {TENSORS}/{job}.f32 " + " ".join(f"{TENSORS}/{job}.{rank}" for rank in range(8))
                                      for job in ("factorize", "words"))),
            after=(f"rm -rf {TENSORS}",)),
    Section("short-training", "accuracy", "two networks trained with gradients in 32, 16 and 8 bits", 2.5, "short_training",
            [Run(f"{start} run -n 4 -- build/examples/train --quiet --model {model} {LEARN} --seed {seed} {more}".strip(),
                 f"{model}|{label}|{seed}", "--epochs 1 --samples 20000")
             for model in ("mlp", "conv")
             for label, start, more in (("f32", "trib", ""), ("bf16", "trib", "--type bf16"),
                                        ("f32, TRIB_WIRE=16", "env TRIB_WIRE=16 build/src/cli/trib", ""),
                                        ("f32, TRIB_WIRE=8", "env TRIB_WIRE=8 build/src/cli/trib", ""),
                                        ("f32, TRIB_WIRE=8, error feedback",
                                         "env TRIB_WIRE=8 build/src/cli/trib", "--feedback"))
             for seed in (1, 2, 3)], ("-mlp", "-conv"), draw="short_training"),
    Section("training", "allreduce", "a training step, and its gradient around a ring", 0.6, "training",
            [Run(f"trib run -n 4 --net {NET} -- build/examples/train", "train", "--epochs 1 --hidden 64"),
             allreduce(f"-n 4 --net {NET} --sizes {{gradient_bytes}} --against ring", "gradient",
                       "--iterations 2 --repeats 1")],
            before=(f"trib net up --name {NET} --hosts 4 --servers 1 --switch --link 1gbit",),
            after=(f"trib net down --name {NET}",)),
    Section("loss", "loss", "lost, doubled, reordered and corrupted packets, udp and xdp", 1.7, "allreduce",
            [allreduce(f"{LOSSY} --no-offload --sizes 16M --iterations 3 --warmup 1", "no faults"),
             allreduce(f"{LOSSY} --sizes 16M --iterations 3 --warmup 1 --loss 0.01 --seed 1", "1 % loss"),
             allreduce(f"{LOSSY} --sizes 1M --iterations 40 --repeats 5 --check {ROUGH}", "all faults",
                       "--iterations 5 --repeats 1")]),
    Section("stripes", "trees", "four servers, two, and none, at 500 Mb/s", 1.5, "allreduce",
            [allreduce(f"{STRIPES} --servers 4 --trees striped --trees star --against tributary@star,ring", "four servers"),
             allreduce(f"{STRIPES} --servers 2 --trees planned --against ring", "two servers"),
             allreduce(f"{STRIPES} {ON_WORKERS} --against ring", "no server")]),
    Section("stripes-wire", "trees", "the same, packets one by one; and with jumbo frames", 1.2, "allreduce",
            [allreduce(f"{WIRE} --servers 4 --trees striped --trees star --against trib-xdp,tributary@star,ring",
                       "four servers"),
             allreduce(f"{WIRE} --servers 2 --trees planned --against trib-xdp,ring", "two servers"),
             allreduce(f"{WIRE} {ON_WORKERS} --against ring", "no server"),
             allreduce(f"{STRIPES} --mtu 9000 {ON_WORKERS} --against ring", "no server, MTU 9000, offloads on")]),
    Section("plans", "trees", "1000 random clusters: the plan beside the linear program's optimum", 0.9, "plans",
            [Run(f"trib plan --check 1000 --trees {n} --json", f"up to {n}", f"=trib plan --check 10 --trees {n} --json",
                 "stdout") for n in (16, 64)]),
    Section("plans-large", "trees", "a plan for 10,000 hosts", 0.1, "plans_large",
            [Run(f"trib plan --random 10000 --seed {seed} --json", f"seed {seed}", json="stdout") for seed in range(1, 11)]),
    Section("xagg", "xagg", "XAgg's testbed (Fig. 12) where links are the limit", 1.5, "allreduce",
            [allreduce(f"{XAGG} --iterations 1 --repeats 2 --trees planned {PAPER_TREE} "
                       "--against tributary@tree,trib-tcp@tree,tcp-agg@tree,openmpi,ps", quick=XAGG_SHORT, plot=True)], ("",)),
    Section("xagg-cores", "xagg", "the paper's tree where servers have little of a core", 0.7, "allreduce",
            [allreduce(f"{XAGG_CORES} --iterations 1 --repeats 5 --plane xdp {PAPER_TREE} --against tcp-agg", quick=XAGG_SHORT, plot=True)],
            ("",)),
    Section("xagg-alike", "xagg", "slow ranks side by side below one aggregator, or apart", 0.9, "allreduce",
            [allreduce(f"{ALIKE} --pool {pool}", f"pool {pool}") for pool in ("64M", "256K")]),
    Section("glm-kernel", "glm", "samples a second of linear models on one core", 0.9, "glm_kernel",
            [Run("trib bench glm-kernel --seconds 0.2 --repeats 3", quick="--seconds 0.02 --repeats 1 --memory 64M --features 5000,47236", plot=True)],
            ("",)),
    Section("glm-cpusync", "glm", "linear models on four hosts, beside CPUSync (Open MPI)", 1.4, "glm",
            [glm("--features 47236 --nonzeros 74 --batch 16,64,256 --rows 8192 --epochs 20 --repeats 3 --systems model,vanilla,mpi",
                 "74, as rcv1", plot=True),
             glm("--hosts 2,4,8 --features 1000000 --nonzeros 15 --batch 16 --rows 8192 --epochs 20 --repeats 3 "
                 "--systems model,mpi --plane xdp", "15, as avazu")], ("",)),
    Section("glm-parallel", "glm", "model beside data parallelism (P4SGD's Fig. 9)", 0.8, "glm_parallel",
            [glm(f"--features 47236,332710,1000000 --batch 16,64,256 --rows 256 --epochs 2 --repeats 2 --systems model,vanilla,data {GLM_PAPER}",
                 plot=True, quick="--hurry --repeats 1 --epochs 1 --features 47236 --batch 64")],
            ("-47236", "-332710", "-1000000")),
    Section("glm-batch", "glm", "larger mini-batches, eight hosts (P4SGD's Fig. 10)", 1, "glm_batch",
            [glm("--hosts 8 --features 47236,332710,1000000 --batch 16,64,256,1024 --rows 1024 --epochs 3 --repeats 2 "
                 f"--systems model {GLM_PAPER}", plot=True,
                 quick="--hurry --repeats 1 --epochs 1 --features 5000,10000 --batch 16,64")],
            ("-47236", "-332710", "-1000000")),
    Section("glm-hosts", "glm", "one to eight workers, beside CPUSync (P4SGD's Fig. 12 and 13)", 1.2, "glm_hosts",
            [glm("--hosts 1,2,4,8 --features 47236,1000000 --batch 16 --rows 256 --epochs 4 --repeats 2 --systems model,mpi "
                 f"{GLM_PAPER}", plot=True, quick="--hurry --repeats 1 --epochs 1 --features 5000,10000")],
            ("-47236", "-1000000")),
    Section("glm-threads", "glm", "one and two threads of a worker (P4SGD's Fig. 11)", 0.2, "glm_threads",
            [glm(f"--hosts 1 --features 5000,20958,47236 --batch 64 --rows 2048 --threads {n} --systems model {GLM_PAPER}",
                 f"{n} thread{'s' if n > 1 else ''}") for n in (1, 2)]),
    Section("glm-convergence", "glm", "loss against time, four hosts (P4SGD's Fig. 14 and 15)", 0.4, "glm_convergence",
            [glm("--features 47236 --nonzeros 74 --batch 64 --rows 20242 --epochs 9 --systems model,data,mpi --plane xdp",
                 plot=True, quick="--hurry --repeats 1 --epochs 1 --rows 1024")], ("",)),
    Section("glm-tools", "glm", "one process beside liblinear, on published data", 0.2, "glm_tools",
            [Run("scripts/glm_compare.py tools --data $TRIB_DATA", quick="--repeats 1 --only kitchen")]),
    Section("glm-losses", "glm", "losses of all ways to split and of precisions, on published data", 0.2, "glm_losses",
            [Run("scripts/glm_compare.py losses --data $TRIB_DATA", quick="--only kitchen")]),
    Section("sparse-workers", "sparse", "updates a second with 8, 16 and 32 workers (Libra's Fig. 12)", 4, "sparse",
            [sparse(f"--workers 8,16,32 --plane xdp,udp,pisa --iterations 2 --warmup 1 --repeats 2 {SPARSE_LINKS}")], ("",)),
    Section("sparse-jobs", "sparse", "the same with what a recommender and word embeddings push", 6, "sparse",
            [sparse(f"{SPARSE_JOB} --tensors {TENSORS}/factorize", "recommender", plot=False),
             sparse(f"{SPARSE_JOB} --tensors {TENSORS}/words", "words", plot=False)],
            before=MAKE_TENSORS, after=(f"rm -rf {TENSORS}",)),
    Section("sparse-memory", "sparse", "more and less memory in the aggregator (Libra's Fig. 13 and 14)", 1.1, "sparse",
            [sparse(f"--workers 8 --plane xdp --systems hot,servers --memory {memory} --iterations 4", f"{memory}B", plot=False)
             for memory in ("256K", "1M", "4M")]),
    Section("sparse-loss", "sparse", "lost packets (Libra's Fig. 18)", 1.4, "sparse",
            [sparse("--workers 8 --plane xdp,udp --systems hot,servers --loss 0,0.0001,0.001 --iterations 6")], ("",)),
    Section("sparse-drift", "sparse", "other rows become popular halfway", 0.5, "sparse_drift",
            [sparse("--workers 8 --plane xdp,udp --systems hot,servers --drift --iterations 40 --repeats 1",
                    quick="--hurry --iterations 4 --warmup 1 --steps 2 --workers 2")], ("",)),
    Section("sparse-store", "sparse", "memory of a parameter server's store", 0.9, "sparse_store",
            [Run("trib bench sparse-store --rows 10000000", quick="--rows 200000")]),
    Section("engine", "planes", "one packet where it is summed, f32 and i32", 0.2, "engine",
            [Run("trib bench engine --repeats 9", quick="--repeats 1", plot=True)], ("",)),
    Section("planes", "planes", "what one core adds, packets as from a NIC", 0.8, "plane",
            [plane("throughput --urgent --repeats 5 --seconds 0.6")], ("",)),
    Section("planes-veth", "planes", "the same on a bare veth", 0.8, "plane", [plane("throughput --repeats 5 --seconds 0.4")], ("",)),
    Section("planes-load", "planes", "use of a core, latency and loss over the load", 1.4, "load",
            [plane("load --seconds 0.2")], ("", "-latency")),
    Section("planes-profile", "planes", "where a packet's time goes, by perf", 1, "profile",
            [Run("scripts/bench_profile.py --repeats 3 xdp tcp-copied xdp-nic tcp-nic",
                 quick="=scripts/bench_profile.py --repeats 1 xdp-nic")]),
    Section("planes-allreduce", "planes", "the planes in an allreduce, four and eight hosts, unlike workers", 1.7, "allreduce",
            [allreduce("--hosts 4 --link 500mbit --no-offload --sizes 1M,16M --iterations 5 --warmup 1 --against trib-xdp,trib-tcp", "4 hosts"),
             allreduce("--hosts 8 --link 250mbit --no-offload --sizes 16M --iterations 3 --warmup 1 --against trib-xdp", "8 hosts"),
             *[allreduce(f"{UNLIKE_PLANES} --pool {pool} {one}".strip(), f"unlike, {what}, pool {pool}")
               for one, what, pool in (("", "allreduce", "64M"), ("--to-one", "reduce", "64M"), ("--to-one", "reduce", "256K"))]]),
    Section("planes-cpu", "planes", "the aggregator's CPU time in an allreduce", 1.2, "cpu",
            [allreduce(f"{NIC} --mtu 1450", "as from a NIC, MTU 1450"), allreduce(NIC, "as from a NIC, MTU 1500"),
             allreduce("--hosts 4 --link 0 --sizes 16M", "links not shaped, offloads on")]),
    Section("traffic", "planes", "other traffic on the interface of an aggregator", 1.2, "traffic",
            [Run("env SECONDS_EACH=1 scripts/bench_traffic.sh", quick="=env REPEATS=1 SECONDS_EACH=1 scripts/bench_traffic.sh", json="text")]),
    Section("ddp-mlp", "pytorch", "DistributedDataParallel, a perceptron of 25 million parameters, beside gloo", 2.2, "ddp",
            ddp("mlp --steps 16"), ("",), draw="ddp_loss"),
    Section("ddp-transformer", "pytorch", "DistributedDataParallel, a transformer of 32 million parameters, beside gloo", 3, "ddp",
            ddp("transformer --batch 2 --steps 12"), ("",), draw="ddp_loss"),
    Section("rates", "rates", "how fast rates are agreed on; a link that gets slower", 2, "rates",
            [Run("trib bench rates --runs 3 --repeats 20 --seconds 3", quick="--runs 1 --seconds 1 --repeats 3", plot=True)], ("",)),
    Section("deploy", "failover", "from the start of an aggregator to its answer", 0.4, "deploy",
            [Run(f"trib bench deploy --plane {name} --repeats 30", name, "--repeats 3") for name in ("udp", "xdp")]),
    Section("kills", "failover", "120 kills: how long a job stands still", 3, "kills",
            [Run("tests/net/test_recover.sh build/src/cli/trib 20", quick="=tests/net/test_recover.sh build/src/cli/trib 1",
                 json="text")]),
    Section("migrate", "failover", "a running job goes to another aggregator", 0.8, "migrate",
            [Run("tests/net/test_star_migration.sh build/src/cli/trib 4", quick="=tests/net/test_star_migration.sh build/src/cli/trib 1",
                 json="text")]),
    Section("decisions", "failover", "how long decisions of the controller take", 0.1, "decisions",
            [Run("build/tests/unit/test_host_policy", "hosts for a job, half of them taken", json="text"),
             Run("build/tests/unit/test_star_policy", "an aggregator for each job, of 320", json="text")]),
    Section("sim-table1", "simulator", "MINA's Table 1", 0.1, "sim_table1",
            [simulate(f"{LIST} --paper table1", quick="--limit 50"),
             simulate(f"{LIST} --migrate 0.559", "migrate", "--limit 50")], data=True),
    Section("sim-fig11", "simulator", "ten kinds of job lists (MINA's Fig. 11)", 0.9, "sim_grid",
            [simulate("--paper fig11")], data=True),
    Section("sim-fig12", "simulator", "49 pairs on one aggregator (MINA's Fig. 12)", 0.2, "sim_pairs",
            [simulate("--paper fig12", quick="=trib sim -t $TRIB_DATA/mina --paper fig14 --json -n 40 --seeds 1")], data=True),
    Section("sim-fig13", "simulator", "fewer links upward (MINA's Fig. 13)", 0.8, "sim_grid",
            [simulate("--paper fig13")], data=True),
    Section("sim-fig14", "simulator", "fewer trees to choose from (MINA's Fig. 14)", 0.3, "sim_grid",
            [simulate("--paper fig14")], data=True),
    Section("sim-settings", "simulator", "where aggregation matters; one job a switch", 0.5, "sim_settings",
            [simulate(f"--seeds {seeds} {more} {options}", f"{row}|{column}")
             for row, options in POLICIES
             for column, seeds, more in (("one job a link", 10, DEAR), ("one job a switch, defaults", 5, "--link 0 --switch 1"),
                                         ("one job a switch", 5, f"--link 0 --switch 1 {DEAR}"))], data=True),
    Section("sim-jitter", "simulator", "steps that vary", 1.2, "sim_jitter",
            [simulate(f"--paper jitter --trace {trace} --seeds 1{more}", f"trace #{trace}{where}")
             for more, where in (("", ""), (f" {DEAR}", ", slow links")) for trace in (1, 3, 5)],
            ("", "-slow"), draw="sim_jitter", data=True),
    Section("sim-speed", "simulator", "events a second, and large fabrics", 1.1, "sim_speed",
            [simulate(f"{LIST} {options}", row, "--limit 50") for row, options in POLICIES] +
            [simulate(f"-f fat-tree:{degree} -n 20000", f"fat tree of degree {degree}", "-n 40") for degree in (34, 74, 160)],
            data=True),
    Section("share-two", "sharing", "bert-base and opt-125m share an aggregator", 2.5, "share",
            share("bert-base,opt-125m", "--repeats 2 --steps 6"), ("",), data=True),
    Section("share-three", "sharing", "opt-125m, opt-350m and bert-large", 4.3, "share",
            share("opt-125m,opt-350m,bert-large", "--repeats 2 --steps 3 --warmup 3"), data=True),
    Section("sixteen-cores", "sixteen", "throughput over 1 to 8 cores of the aggregator", 3.5, "plane",
            [plane("cores --cores 1,2,4,8 --plane xdp-nic --repeats 4 --seconds 0.4", "idle cores sleep"),
             plane("cores --cores 1,2,4,8 --plane xdp-nic --repeats 3 --seconds 0.4 --steady", "idle cores spin", False)],
            ("",), cores=16),
    Section("sixteen-planes", "sixteen", "all planes on one core and on two", 2, "plane",
            [plane("throughput --cores 1,2 --repeats 4 --seconds 0.4", plot=False)], cores=16),
    Section("sixteen-allreduce", "sixteen", "allreduces at 2, 5 and 10 Gb/s", 2.5, "allreduce",
            [allreduce("--hosts 4 --link 10gbit --sizes 1M,16M,64M,256M --iterations 4 --warmup 1 --against trib-tcp,ring", "10 Gb/s", plot=True),
             allreduce("--hosts 4 --link 2gbit --no-offload --sizes 16M,64M --iterations 3 --warmup 1 --against trib-xdp,trib-tcp,ring",
                       "2 Gb/s, packets one by one"),
             allreduce("--hosts 4 --servers 4 --link 10gbit --sizes 64M,256M --iterations 4 --warmup 1 --trees striped --against trib-tcp,ring",
                       "10 Gb/s, four servers"),
             allreduce(f"--hosts 4 --link 5gbit --sizes 64M,256M --iterations 4 --warmup 1 {ON_WORKERS} --against ring", "5 Gb/s, no server")],
            ("",), cores=16),
    Section("sixteen-nccl", "nccl", "the same at 10 Gb/s", 0.4, "nccl",
            [allreduce("--hosts 4 --link 10gbit --sizes 16M,64M --iterations 8 --repeats 5 --against nccl-collnet,nccl-ring")],
            cores=16),
    Section("sixteen-lanes", "sixteen", "one, two and four lanes", 0.7, "allreduce",
            [allreduce(f"--hosts 4 {link} --sizes 64M --repeats 1 --iterations 4 --lanes {n} --against trib-tcp",
                       f"{what}, lanes: {n}")
             for link, what in (("--link 10gbit", "10 Gb/s"), ("--link 2gbit --no-offload", "2 Gb/s, one by one"))
             for n in (1, 2, 4)], cores=16),
    Section("sixteen-xagg", "sixteen", "XAgg's testbed with three of the paper's sizes", 3, "allreduce",
            [allreduce(f"{XAGG_SIXTEEN} --trees planned {PAPER_TREE} --against tributary@tree,trib-tcp@tree,tcp-agg@tree,ps,ring",
                       quick=XAGG_SHORT, plot=True)], ("",), cores=16),
    Section("sixteen-latency", "sixteen", "8 x 32 bits, with a core for each host", 1.2, "latency",
            [latency("--hosts 2,4,8 --sizes 32 --systems xdp,tc,udp,pisa,dense --against all --iterations 500 --warmup 500 --repeats 3 --hurry",
                     plot=False)], cores=16),
    Section("sixteen-unshaped", "sixteen", "4 B to 1 MB, with a core for each host", 1.3, "latency",
            [latency(f"--hosts 4 --sizes {LATENCY_SIZES} --systems auto-tc,auto-udp --against all --iterations 300 --warmup 500 --repeats 3 --hurry",
                     plot=False)], cores=16),
    Section("sixteen-cpusync", "glm", "linear models beside CPUSync, with a core for each host", 0.7, "glm",
            [glm("--features 47236 --nonzeros 74 --batch 16,64,256 --rows 8192 --epochs 20 --repeats 3 --systems model,vanilla,mpi",
                 "74, as rcv1")], cores=16),
    Section("sixteen-ddp-mlp", "pytorch", "the perceptron, with cores for each host", 2, "ddp",
            ddp("mlp --steps 16"), ("",), draw="ddp_loss", cores=16),
    Section("sixteen-ddp-transformer", "pytorch", "the transformer, with cores for each host", 2.5, "ddp",
            ddp("transformer --batch 2 --steps 12"), ("",), draw="ddp_loss", cores=16),
    Section("sixteen-sparse", "sparse", "the same on 16 cores", 2, "sparse",
            [sparse(f"--systems hot,servers --plane xdp,udp --workers {n} --iterations 3 --warmup 2 --repeats 2 {SPARSE_LINKS}",
                    plot=False) for n in (8, 16, 32)], cores=16),
    Section("sixteen-glm", "glm", "linear models on one to eight workers (P4SGD's Fig. 12)", 1.2, "glm_hosts",
            [glm("--hosts 1,2,4,8 --features 47236,332710,1000000 --batch 16 --rows 512 --epochs 4 --systems model "
                 f"{GLM_PAPER}", quick="--hurry --repeats 1 --epochs 1 --features 5000")], cores=16),
]

BY_NAME = {section.name: section for section in SECTIONS}
