# SPDX-License-Identifier: Apache-2.0
"""What all tables of benchmark results share: a table of markdown, and numbers in its cells."""
import statistics


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def seconds(value):
    if value is None:
        return "–"
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3f} s" if unit == "s" else f"{value * factor:.2f} ms"
    return f"{value * 1e6:.0f} µs"


def size(value):
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if value >= factor and value % factor == 0:
            return f"{value // factor} {unit}B".replace("MB", "MiB").replace("KB", "KiB")
    return f"{value / 1e6:.2f} MB" if value >= 1e5 else f"{value} bytes"


def percent(value, digits=1):
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def middle(values):
    return statistics.median(values) if values else None


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def short_time(value):
    """As seconds(), with a digit behind the point below 100 microseconds."""
    return f"{value * 1e6:.1f} µs" if value is not None and value < 1e-4 else seconds(value)


def count(value):
    return "–" if value is None else f"{value:,.0f}"


def times(value):
    return "–" if value is None else f"{value:.2f}"
