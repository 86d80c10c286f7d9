#!/usr/bin/python3
"""Draws the results of ./lockstep bench as an SVG: plot.py [--parts=PART,...] REPORT.json... PICTURE.svg

Several reports, e.g. of a run with --peers and of one without, make one picture. These are its parts, from top to
bottom. A part is drawn if the reports have its rows, and if --parts names it or is absent:

  rates       examples and steps per second, one panel for each model and batch: one process, workers, lone processes, a
              bare loop; below them the run with PyTorch and TensorFlow (groups training and peers)
  extras      the speed with hooks, audits or digests, relative to the speed without (group training)
  models      passes on one thread against PyTorch, products against oneDNN (groups models and products)
  step        the time of a step over the size of the model, one panel for each wire (group step)
  cost        the chief's processor time per step and worker over the number of workers (group chief_cpu)
  kernels     the speed of kernels, relative to the processor's peak and to a copy's bandwidth (group kernels)
  stragglers  the time of a step and the batches per second over the number of backups, a line for each policy (group
              stragglers)

Marks and bars are medians; thin lines extend from the minimum to the maximum. The colours are those of Okabe and Ito,
which colour-blind people can distinguish.
"""
import argparse
import json
import re
import sys

import matplotlib

matplotlib.use('svg')
import matplotlib.pyplot as plt  # noqa: E402  (the format must be chosen first)
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator  # noqa: E402

matplotlib.rcParams['svg.hashsalt'] = 'lockstep'  # ids depend only on the content
matplotlib.rcParams['svg.fonttype'] = 'none'  # keep text as text
matplotlib.rcParams['font.size'] = 8
matplotlib.rcParams['axes.spines.top'] = False
matplotlib.rcParams['axes.spines.right'] = False

BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE, GREY = ('#0072B2', '#56B4E9', '#009E73', '#E69F00', '#D55E00', '#CC79A7',
                                                     '#999999')
UNITS = (('GB', 1e9), ('MB', 1e6), ('kB', 1e3), ('B', 1))
WIDTH = 9.5  # inches
STEP_HEIGHT = 3.8
ROW = 0.19  # height of a bar with its gap
PEERS_RUN = ' '  # suffix of labels from the run with the peers, in which Lockstep has a second bar
LOCKSTEP_BESIDE_PEERS = 'Lockstep, 2 workers' + PEERS_RUN


def bytes_of(text):
    number, unit = text.split()
    return float(number) * dict(UNITS)[unit]


def bytes_text(size):
    for unit, factor in UNITS:
        if size >= factor:
            return f'{size / factor:.3g} {unit}'
    return ''


def scaled(side, factor):
    return {key: side[key] * factor for key in ('minimum', 'median', 'maximum')}


def whiskers(sides):
    """Returns the distances of the minima and the maxima from the medians."""
    return [[side['median'] - side['minimum'] for side in sides], [side['maximum'] - side['median'] for side in sides]]


# --- rates ---


def color_of(label):
    if label.startswith('PyTorch'):
        return ORANGE
    if label.startswith('TensorFlow'):
        return VERMILION
    if label.startswith('bare'):
        return GREY
    return SKY if 'process' in label else BLUE


def order_of(label):
    """Sorts the run without peers first."""
    order = ('Lockstep, one process', 'bare', 'Lockstep, 2 lone', 'Lockstep, ', 'PyTorch DDP', 'TensorFlow', 'PyTorch')
    return label.endswith(PEERS_RUN), [label.startswith(start) for start in order].index(True), label


def rates_of(rows):
    """Returns, for each model and batch, label -> (examples per second, steps per second of all workers)."""
    panels = {}

    def put(workload, label, side, examples_per_step, steps=True):
        """If `steps`, `side` counts steps; otherwise examples."""
        rate = scaled(side, examples_per_step) if steps else side
        panels.setdefault(workload, {}).setdefault(label, (rate, rate['median'] / examples_per_step))

    for row in rows:
        match = re.fullmatch(r'(.+), batch (\d+), (.+)', row['what'])
        if row['group'] not in ('training', 'peers') or not match:
            continue
        workload, batch, who = (match[1], int(match[2])), int(match[2]), match[3]
        if row['group'] == 'peers':
            if who.startswith('2 workers'):
                put(workload, f'Lockstep, {who}{PEERS_RUN}', row['ours'], 2 * batch)
                put(workload, f"{row['against']}, 2 workers{PEERS_RUN}", row['theirs'], 2 * batch)
            else:
                put(workload, row['against'] + PEERS_RUN, row['theirs'], batch, steps=False)
        elif who == 'one process':
            put(workload, 'Lockstep, one process', row['ours'], batch)
            put(workload, row['against'], row['theirs'], batch)
        elif row['against'] == '2 lone processes' and row['unit'] == 'steps/s':
            put(workload, 'Lockstep, 2 lone processes', row['theirs'], 2 * batch)
        elif re.fullmatch(r'\d+ workers?(, ASYNC|, FIRST_ARRIVALS)?', who):
            batches_per_step = 1 if who.endswith('ASYNC') else int(who.split()[0])
            put(workload, f'Lockstep, {who}', row['ours'], batch * batches_per_step, steps=False)
    return panels


def draw_rates(figure, panels):
    models = list(dict.fromkeys(model for model, _ in panels))
    batches = sorted({batch for _, batch in panels})
    labels = {model: sorted({label for (of, _), rates in panels.items() if of == model for label in rates},
                            key=order_of) for model in models}
    places = figure.subplots(len(models), len(batches), squeeze=False,
                             gridspec_kw={'height_ratios': [len(labels[model]) + 3 for model in models]})
    for line, model in enumerate(models):
        for column, batch in enumerate(batches):
            axes = places[line][column]
            rates = panels.get((model, batch), {})
            if not rates:
                axes.set_visible(False)
                continue
            draw_panel(rates, labels[model], axes)
            axes.set_title(f'{model}, batch {batch}', loc='left', fontweight='bold', fontsize=8)
            if column:
                axes.set_yticklabels([])
            if line == len(models) - 1:
                axes.set_xlabel('examples/s')


def draw_panel(rates, labels, axes):
    heights, at = {}, 0
    for label in labels:
        # Leaves a gap before the measurements of the other run.
        at += 1.7 if label.endswith(PEERS_RUN) and heights and not list(heights)[-1].endswith(PEERS_RUN) else 1
        heights[label] = -at
    for label, (rate, steps) in rates.items():
        y = heights[label]
        axes.barh(y, rate['median'], height=0.72, color=color_of(label), xerr=whiskers([rate]),
                  error_kw={'elinewidth': 0.6})
        text = f"{rate['median']:,.0f}" + (f' ({steps:,.0f} steps/s)' if 'worker' in label else '')
        axes.text(1.01, y, text, va='center', fontsize=7, transform=axes.get_yaxis_transform())
    axes.set_xlim(0, 1.12 * max(rate['median'] for rate, _ in rates.values()))
    two_runs = len({label.endswith(PEERS_RUN) for label in heights}) == 2
    axes.set_yticks(list(heights.values()),
                    ["Lockstep, in the peers' run" if two_runs and label == LOCKSTEP_BESIDE_PEERS else label.strip()
                     for label in heights])
    axes.tick_params(axis='y', length=0)
    axes.set_ylim(-at - 0.6, -0.4)
    axes.xaxis.set_major_locator(plt.MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f'{value:,.0f}'))


def rates_height(panels):
    models = {model for model, _ in panels}
    return sum(ROW * max(len(rates) for (of, _), rates in panels.items() if of == model) + 0.75 for model in models)


# --- ratios: extras, models, kernels ---


def draw_ratios(figure, rows, title, label_of):
    """Draws a mark for each row's ratio, and a tick at its bar."""
    axes = figure.subplots()
    for at, row in enumerate(rows):
        ratio = row['ratio']
        bar = row.get('atLeast', row.get('atMost'))
        axes.errorbar(ratio['median'], -at, xerr=whiskers([ratio]), fmt='o', markersize=4, color=BLUE, elinewidth=0.6)
        if bar is not None:
            axes.plot(bar, -at, marker='>' if 'atLeast' in row else '<', markersize=5, color=VERMILION,
                      markerfacecolor='none', linestyle='none')
        axes.text(1.01, -at, f"{ratio['median']:.2f}: {number(row['ours'])} to {number(row['theirs'])} {row['unit']}",
                  va='center', fontsize=7, transform=axes.get_yaxis_transform())
    medians = [row['ratio']['median'] for row in rows]
    bars = [row[bar] for row in rows for bar in ('atLeast', 'atMost') if bar in row]
    least, most = min(medians + bars + [1]), max(medians + bars + [1])
    axes.set_xlim(max(0, least - 0.3 * (most - least) - 0.05), most + 0.3 * (most - least) + 0.05)
    axes.axvline(1, color='black', linewidth=0.6)
    axes.set_yticks([-at for at in range(len(rows))], [label_of(row) for row in rows])
    axes.tick_params(axis='y', length=0)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.set_title(title, loc='left', fontweight='bold', fontsize=8)
    axes.set_xlabel('ratio; the triangle is its bar, and points to where it is met')


def number(side):
    value = side['median']
    return f'{value:,.0f}' if value >= 100 else f'{value:.3g}'


def ratios_height(rows):
    return ROW * len(rows) + 0.75


def is_extra(row):
    return row['group'] == 'training' and row.get('against', '').startswith(('2 workers, no', 'no '))


def against(row):
    return f"{row['what']}: {row['against']}"


# --- lines: step, cost, stragglers ---


def draw_step(figure, rows):
    """Draws a panel for each wire, with a colour for each number of workers and a dash for each contestant."""
    lines, wires, counts, contestants = {}, [], [], ['Lockstep']
    for row in rows:
        size, workers, wire = row['what'].split(', ', 2)
        points = lines.setdefault((wire, workers, 'Lockstep'), {})
        points.setdefault(bytes_of(size), row['ours'])
        if row.get('against') in ('raw sockets', 'bare gRPC stream'):
            lines.setdefault((wire, workers, row['against']), {})[bytes_of(size)] = row['theirs']
            contestants.append(row['against'])
        wires.append(wire)
        counts.append(workers)
    wires, counts, contestants = (list(dict.fromkeys(names)) for names in (wires, counts, contestants))
    colors = dict(zip(counts, [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY] * len(counts)))
    dashes = {'Lockstep': '-', 'raw sockets': '--', 'bare gRPC stream': ':'}
    panels, legend = figure.subfigures(2, 1, height_ratios=[STEP_HEIGHT, 0.2 * len(counts)])
    places = panels.subplots(1, len(wires), sharey=True, squeeze=False)[0]
    handles = {}
    for wire, axes in zip(wires, places):
        for (of, workers, contestant), points in lines.items():
            if of != wire:
                continue
            sizes = sorted(points)
            sides = [points[size] for size in sizes]
            handles[(workers, contestant)] = axes.errorbar(
                sizes, [side['median'] for side in sides], yerr=whiskers(sides), color=colors[workers],
                linestyle=dashes[contestant], marker='o' if contestant == 'Lockstep' else None, markersize=3,
                linewidth=1.2, elinewidth=0.4)
        axes.set_xscale('log')
        axes.set_yscale('log')
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: bytes_text(size)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f'{value:g}'))
        axes.grid(True, linewidth=0.3, color='#cccccc')
        axes.set_title(f'{wire} (the others: tcp sockets)' if wire == 'shared memory' else f'{wire} sockets', loc='left',
                       fontsize=8)
        axes.set_xlabel('size of the model')
    places[0].set_ylabel('ms')
    panels.suptitle('Time of a step that computes nothing', x=0.01, ha='left', fontweight='bold', fontsize=8)
    chosen = [(workers, who) for who in contestants for workers in counts if (workers, who) in handles]
    legend.legend([handles[key] for key in chosen], [f'{who}, {workers}' for workers, who in chosen], fontsize=7,
                  loc='center', ncol=len(contestants), frameon=False)


def draw_cost(figure, rows):
    """Draws a panel for each size, because the times differ by orders of magnitude."""
    lines = {}
    for row in rows:
        size, workers = row['what'].split(', ')
        lines.setdefault(size, {})[int(workers.split()[0])] = row['ours']
    places = figure.subplots(1, len(lines), squeeze=False)[0]
    for (size, points), axes in zip(lines.items(), places):
        counts = sorted(points)
        sides = [points[count] for count in counts]
        axes.errorbar(counts, [side['median'] for side in sides], yerr=whiskers(sides), color=BLUE, marker='o',
                      markersize=4, linewidth=1.2, elinewidth=0.6)
        axes.set_xscale('log', base=2)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_ylim(0, 1.15 * max(side['maximum'] for side in sides))
        axes.grid(True, linewidth=0.3, color='#cccccc')
        axes.set_title(f'model of {size}', loc='left', fontsize=8)
        axes.set_xlabel('workers')
        axes.set_ylabel('CPU ms')
    figure.suptitle("The chief's processor time for each step and worker", x=0.01, ha='left', fontweight='bold',
                    fontsize=8)


def draw_stragglers(figure, rows):
    """Draws the time of a step and the batches per second over the backups. A step of ASYNC, which has none, is one
    batch, so only its rate is comparable."""
    colors = {'DETERMINISTIC': BLUE, 'FIRST_ARRIVALS': VERMILION, 'ASYNC': GREEN}
    lines, most = {}, 0
    for row in rows:
        policy, _, *backups = row['what'].split(', ')
        points = lines.setdefault(row['unit'], {}).setdefault(policy, {})
        points[int(backups[0].split()[0]) if backups else None] = row['ours']
        most = max(most, row.get('theirs', {'median': 0})['median'])
    panels = {'ms/step': 'time of a step, ms', 'batches/s': 'batches/s that count'}
    for axes, (unit, title) in zip(figure.subplots(1, len(panels)), panels.items()):
        for policy, points in lines[unit].items():
            counts = sorted(count for count in points if count is not None)
            if counts:
                sides = [points[count] for count in counts]
                axes.errorbar(counts, [side['median'] for side in sides], yerr=whiskers(sides), color=colors[policy],
                              marker='o', markersize=4, linewidth=1.2, elinewidth=0.6, label=policy)
                axes.set_xticks(counts)
            elif unit == 'batches/s':
                axes.axhline(points[None]['median'], color=colors[policy], linewidth=1.2, label=policy)
        if unit == 'batches/s':
            axes.axhline(most, color=GREY, linewidth=1, linestyle='--', label='never wait')
            axes.legend(fontsize=7, frameon=False)
        axes.set_ylim(0, None)
        axes.grid(True, linewidth=0.3, color='#cccccc')
        axes.set_title(title, loc='left', fontsize=8)
        axes.set_xlabel('backups, of 8 workers')
    figure.suptitle('Workers that are slow at times', x=0.01, ha='left', fontweight='bold', fontsize=8)


# --- the picture ---


def parts_of(rows):
    """Returns name -> (data, height in inches, drawing function) for all parts that have data."""
    rates = rates_of(rows)
    extras = [row for row in rows if is_extra(row)]
    models = [row for row in rows if row['group'] in ('models', 'products')]
    step = [row for row in rows if row['group'] == 'step']
    cost = [row for row in rows if row['group'] == 'chief CPU']
    kernels = [row for row in rows if row['group'] == 'kernels']
    stragglers = [row for row in rows if row['group'] == 'stragglers']
    parts = {
        'rates': (rates, lambda: rates_height(rates), draw_rates),
        'extras': (extras, lambda: ratios_height(extras),
                   lambda figure, data: draw_ratios(figure, data, 'With and without, ours to theirs',
                                                    lambda row: row['what'])),
        'models': (models, lambda: ratios_height(models),
                   lambda figure, data: draw_ratios(figure, data, 'On one thread, Lockstep to others', against)),
        'step': (step, lambda: STEP_HEIGHT, draw_step),
        'cost': (cost, lambda: 2.4, draw_cost),
        'kernels': (kernels, lambda: ratios_height(kernels),
                    lambda figure, data: draw_ratios(figure, data, 'Kernels on one thread', against)),
        'stragglers': (stragglers, lambda: 2.8, draw_stragglers),
    }
    return {name: (data, height(), draw) for name, (data, height, draw) in parts.items() if data}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--parts', help='of: rates, extras, models, step, cost, kernels, stragglers')
    parser.add_argument('report', nargs='+')
    parser.add_argument('picture')
    flags = parser.parse_args()
    reports = []
    for name in flags.report:
        with open(name, encoding='utf-8') as file:
            reports.append(json.load(file))
    parts = parts_of([row for report in reports for row in report.get('row', [])])
    if flags.parts:
        parts = {name: parts[name] for name in flags.parts.split(',') if name in parts}
    if not parts:
        sys.exit(f"{', '.join(flags.report)}: nothing to draw")
    heights = [height for _, height, _ in parts.values()]
    loads = {}
    for report in reports:
        loads.setdefault(report['machine'], []).append(f"{report.get('loadBefore', 0):.2f}")
    title = '\n'.join(f"{machine}; load before: {' and '.join(load)}" for machine, load in loads.items())
    top = 0.2 * (1 + title.count('\n'))
    figure = plt.figure(figsize=(WIDTH, sum(heights) + top), layout='constrained')
    figures = figure.subfigures(1 + len(parts), 1, height_ratios=[top] + heights)
    figures[0].text(0.01, 0.5, title, fontsize=7, va='center')
    for place, (data, _, draw) in zip(figures[1:], parts.values()):
        draw(place, data)
    figure.savefig(flags.picture, format='svg', metadata={'Date': None})


if __name__ == '__main__':
    main()
