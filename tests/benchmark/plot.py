#!/usr/bin/python3
"""Draws what ./lockstep bench has measured as an SVG: plot.py REPORT.json PICTURE.svg

Rows of training: bars, what the other contestant makes in the same run beside what Lockstep makes. Rows of step: lines,
a step's time over the size of the model, one for each number of workers and wire. Medians; the whiskers of bars and
lines reach from the least to the greatest turn.
"""
import json
import sys

import matplotlib

matplotlib.use('svg')
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of the format)

matplotlib.rcParams['svg.hashsalt'] = 'lockstep'  # the same file from the same report
matplotlib.rcParams['svg.fonttype'] = 'none'  # text stays text
matplotlib.rcParams['font.size'] = 8

UNITS = {'B': 1, 'kB': 1e3, 'MB': 1e6, 'GB': 1e9}
# Of a step in bars: a rate, so that longer is better.
RATES = ('steps/s', 'examples/s')


def spread(side):
    """Distances of the least and the greatest from the median."""
    return [[side['median'] - side['minimum']], [side['maximum'] - side['median']]]


def draw_rates(rows, axes):
    """A pair of bars for each row, in percent of the other contestant: the rows have different units and sizes."""
    rows = rows[::-1]  # the first on top
    for at, row in enumerate(rows):
        whole = row['theirs']['median'] / 100
        for side, shift, color in (('theirs', 0.2, '#b0b0b0'), ('ours', -0.2, '#2060a0')):
            scaled = {key: row[side][key] / whole for key in ('minimum', 'median', 'maximum')}
            axes.barh(at + shift, scaled['median'], height=0.36, color=color, xerr=spread(scaled),
                      error_kw={'elinewidth': 0.6})
        axes.text(2, at - 0.2, f"{row['ours']['median']:,.0f} {row['unit']}", va='center', color='white', fontsize=6)
        axes.text(2, at + 0.2, f"{row['against']}: {row['theirs']['median']:,.0f}", va='center', fontsize=6)
    axes.set_yticks(range(len(rows)), [row['what'] for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel('percent of the other contestant; blue: Lockstep')
    axes.axvline(100, color='black', linewidth=0.6)


def bytes_of(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def draw_costs(rows, axes):
    """A line for each number of workers and wire, and the other contestants' beside it, dashed."""
    lines = {}
    for row in rows:
        size, workers, wire = row['what'].split(', ')
        lines.setdefault((f'{workers}, {wire}', '-'), {})[bytes_of(size)] = row['ours']
        if row['against'] == 'raw sockets' and wire == 'tcp':
            lines.setdefault((f'{workers}, raw tcp sockets', '--'), {})[bytes_of(size)] = row['theirs']
    for (name, style), points in lines.items():
        sizes = sorted(points)
        medians = [points[size]['median'] for size in sizes]
        errors = [sum((spread(points[size])[side] for size in sizes), []) for side in (0, 1)]
        axes.errorbar(sizes, medians, yerr=errors, label=name, linestyle=style, marker='.', linewidth=1, elinewidth=0.5)
    axes.set_xscale('log')
    axes.set_yscale('log')
    axes.set_xlabel('bytes of the model')
    axes.set_ylabel('ms for a step that computes nothing')
    axes.legend(fontsize=6)


def main(report_file, picture):
    with open(report_file, encoding='utf-8') as file:
        report = json.load(file)
    rows = report.get('row', [])
    rates = [row for row in rows if row.get('unit') in RATES and row.get('against')]
    costs = [row for row in rows if row['group'] == 'step']
    parts = [(part, chosen) for part, chosen in ((draw_rates, rates), (draw_costs, costs)) if chosen]
    if not parts:
        sys.exit(f'{report_file}: nothing of training, of step or of peers to draw')
    heights = [0.36 * len(chosen) + 0.8 if part is draw_rates else 4 for part, chosen in parts]
    figure, axes = plt.subplots(len(parts), 1, figsize=(7, sum(heights)), squeeze=False,
                                gridspec_kw={'height_ratios': heights})
    for (part, chosen), place in zip(parts, axes[:, 0]):
        part(chosen, place)
    axes[0, 0].set_title(f"{report['machine']}; load before: {report.get('loadBefore', 0):.2f}", fontsize=7)
    figure.tight_layout()
    figure.savefig(picture, metadata={'Date': None})


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit('usage: plot.py REPORT.json PICTURE.svg')
    main(*sys.argv[1:])
