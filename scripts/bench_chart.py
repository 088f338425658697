# SPDX-License-Identifier: Apache-2.0
"""Plots of sections whose lines come from several runs, as SVG in the look of src/bench/report/chart.c.

A function gets the runs of a section, as in scripts/bench_tables.py, and returns {suffix of the plot: SVG}.
Nothing here reads or writes a file.
"""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, MARGIN, LABEL_GAP = 1000, 540, 84, 770, 92, 476, 20, 19
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")  # of Okabe and Ito


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(str(words))}</text>'


def stroke(x1, x2, y1, y2, colour):
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def marks(low, high):
    """Values 1, 2 and 5 of each power of ten, from the last that is not above `low` to the first not below `high`."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    values = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    first = max(i for i, value in enumerate(values) if value <= low)
    last = min(i for i, value in enumerate(values) if value >= high)
    return values[first:max(last, first + 1) + 1]


def spread(wanted):
    """Where labels stand so that none covers another: as in labels_spread of chart.c."""
    order, at = sorted(range(len(wanted)), key=lambda i: wanted[i]), {}
    for k, i in enumerate(order):
        at[i] = max(wanted[i], at[order[k - 1]] + LABEL_GAP) if k else wanted[i]
    room = BOTTOM
    for i in reversed(order):
        at[i] = min(at[i], room)
        room = at[i] - LABEL_GAP
    return [at[i] for i in range(len(wanted))]


def bands(title, subtitle, x_title, y_title, lines):
    """Lines with bands, and a logarithmic y axis. A line is (name, label at its end, [(x, low, middle, high)])."""
    points = [point for _, _, of in lines for point in of]
    axis = marks(min(point[1] for point in points), max(point[3] for point in points))
    last = max(point[0] for point in points)

    def x_of(x):
        return LEFT + MARGIN + x / last * (RIGHT - LEFT - 2 * MARGIN)

    def y_of(y):
        return BOTTOM - math.log(y / axis[0]) / math.log(axis[-1] / axis[0]) * (BOTTOM - TOP)

    def path(of):
        return " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in of)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           "font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"14\" fill=\"#222\">",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           text(LEFT, 36, title, ' font-size="20" font-weight="600"'), text(LEFT, 60, subtitle, ' fill="#555"')]
    for value in axis:
        out += [stroke(LEFT, RIGHT, y_of(value), y_of(value), "#222" if value == axis[0] else "#e0e0e0"),
                text(LEFT - 10, y_of(value) + 5, f"{value:g}", ' text-anchor="end"')]
    for x in range(math.floor(last) + 1):
        out += [stroke(x_of(x), x_of(x), BOTTOM, BOTTOM + 6, "#222"), text(x_of(x), BOTTOM + 24, x, ' text-anchor="middle"')]
    out += [text((LEFT + RIGHT) / 2, BOTTOM + 48, x_title, ' text-anchor="middle" fill="#555"'),
            f'<text transform="translate(24 {(TOP + BOTTOM) // 2}) rotate(-90)" text-anchor="middle" fill="#555">'
            f'{escape(y_title)}</text>']
    for colour, (_, _, of) in reversed(list(zip(COLOURS, lines))):  # the first line is drawn last, on top of the others
        around = [(x, low) for x, low, _, _ in of] + [(x, high) for x, _, _, high in reversed(of)]
        out += [f'<polygon fill="{colour}" fill-opacity="0.15" points="{path(around)}"/>',
                f'<polyline fill="none" stroke="{colour}" stroke-width="2.5" stroke-linejoin="round" '
                f'points="{path([(x, middle) for x, _, middle, _ in of])}"/>']
    ends = [y_of(of[-1][2]) for _, _, of in lines]
    for colour, (name, label, of), end, y in zip(COLOURS, lines, ends, spread(ends)):
        out += [f'<path d="M{x_of(of[-1][0]) + 5:.1f} {end:.1f} L{RIGHT + 14} {y:.1f}" stroke="{colour}" fill="none"/>',
                text(RIGHT + 20, y + 5, f"{name}  {label}", f' fill="{colour}"')]
    return "\n".join(out + ["</svg>", ""])


NETWORKS = {"mlp": "perceptron", "conv": "convolution network"}


def short_training(runs):
    """The test error of each kind of gradient over the epochs: the mean of the seeds, between the lowest and the highest."""
    curves = {}
    for run in runs:
        model, kind, _ = run["label"].split("|")
        curves.setdefault(model, {}).setdefault(kind, []).append(run["result"]["curve"])
    plots = {}
    for model, kinds in curves.items():
        lines = []
        for kind, seeds in kinds.items():
            of = []
            for at in zip(*seeds):
                # An error of 0 has no place on a logarithmic axis.
                errors = [max(100 * (1 - point["accuracy"]), 0.01) for point in at]
                of.append((at[0]["epoch"], min(errors), sum(errors) / len(errors), max(errors)))
            lines.append((kind, f"{of[-1][2]:.2f} %", of))
        count = max(len(seeds) for seeds in kinds.values())
        plots["-" + model] = bands(f"Learning curves of the {NETWORKS[model]}",
                                   f"mean of {count} seeds, between the lowest and the highest", "epochs", "test error, %", lines)
    return plots


def sim_jitter(runs):
    """What each rule of sharing loses of the possible saving, over the jitter: the mean of the traces, between lowest and highest."""
    plots = {}
    for suffix, where, of_setting in (("", "default links", [run for run in runs if "slow" not in run["label"]]),
                                      ("-slow", "slow links", [run for run in runs if "slow" in run["label"]])):
        lost = {}
        for run in of_setting:
            for cell in run["result"]["cells"]:
                # A loss of 0 has no place on a logarithmic axis.
                lost.setdefault(cell["column"], {}).setdefault(float(cell["row"].split()[0]), []).append(
                    max(100 * (1 - cell["score"]), 0.001))
        lines = [(rule, f"{sum(of[max(of)]) / len(of[max(of)]):.3g} %",
                  [(x, min(of[x]), sum(of[x]) / len(of[x]), max(of[x])) for x in sorted(of)]) for rule, of in lost.items()]
        plots[suffix] = bands("Steps that vary: saving that is lost", f"mean of {len(of_setting)} traces, between the lowest and the "
                              f"highest; {where}", "standard deviation of the computation, %", "of the possible saving, %", lines)
    return plots


POINTS = 10  # of a curve


def ddp_loss(runs):
    """The loss of each system over the steps: the mean of a tenth of the steps, between the lowest and the highest."""
    result = runs[0]["result"]
    lines = []
    for name, of in result["systems"].items():
        losses = of["losses"]
        many = max(len(losses) // POINTS, 1)
        parts = [losses[at:at + many] for at in range(0, len(losses) - many + 1, many)]
        if "gain" in of:
            lines.append((name, f"{parts[-1][-1]:.4f}", [(i + 1, min(part), sum(part) / many, max(part)) for i, part in enumerate(parts)]))
    return {"": bands("Loss of training with DistributedDataParallel", f"{result['parameters'] / 1e6:.1f} million parameters, "
                      f"{result['data']}; same seeds; points are means of {many} steps", f"steps / {many}", "loss", lines)}
