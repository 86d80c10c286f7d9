#!/usr/bin/env python3
"""Draws the pictures of the documentation, parts.svg and step.svg, next to this file.

  docs/pictures/draw.py            writes them
  docs/pictures/draw.py --check    exits with 1 when they are not what this file draws

Each picture is one function below; numbers are pixels. Colours follow the reader's light or dark scheme.
"""

import pathlib
import sys

STYLE = '''
  <style>
    text { font: 13px "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; fill: #1f2933; }
    .small { font-size: 11.5px; font-weight: normal; fill: #52606d; }
    .title { font-weight: bold; }
    .panel-title { font-weight: bold; font-size: 15px; }
    .over { paint-order: stroke; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round; }
    .page { fill: #ffffff; }
    .worker { fill: #eaf2fb; stroke: #8fb3d9; }
    .chief { fill: #fdf4e3; stroke: #d9b36c; }
    .room { fill: #f9e5bf; stroke: #d9b36c; }
    .disk { fill: #e8f1e6; stroke: #93b48b; }
    .box { fill: #ffffff; stroke: #9aa5b1; }
    .pure { fill: #ffffff; stroke: #7b4fa3; stroke-dasharray: 5 3; stroke-width: 1.5; }
    .line { fill: none; stroke: #52606d; stroke-width: 1.3; marker-end: url(#arrow); }
    .both { marker-start: url(#arrow); }
    .life { stroke: #9aa5b1; stroke-dasharray: 3 4; }
    .tip { fill: #52606d; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e4e7eb; }
      .small { fill: #b4bfca; }
      .over { stroke: #10161d; }
      .page { fill: #10161d; }
      .worker { fill: #16283b; stroke: #4f7aa8; }
      .chief { fill: #2b2412; stroke: #96783a; }
      .room { fill: #3c3219; stroke: #96783a; }
      .disk { fill: #1b2a1d; stroke: #5c8356; }
      .box { fill: #1b232c; stroke: #66727f; }
      .pure { fill: #1b232c; stroke: #b58ddb; }
      .line { stroke: #b4bfca; }
      .life { stroke: #66727f; }
      .tip { fill: #b4bfca; }
    }
  </style>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"
            orient="auto-start-reverse">
      <path class="tip" d="M0,1 L10,5 L0,9 z"/>
    </marker>
  </defs>'''


class Picture:
    """The elements of one SVG file, in the order in which they are drawn."""

    def __init__(self, width, height, title, description):
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby="title description">',
            f'  <title id="title">{title}</title>',
            f'  <desc id="description">{description}</desc>',
            STYLE.strip('\n'),
            f'  <rect class="page" width="{width}" height="{height}" rx="10"/>',
        ]

    def text(self, x, y, text, style='', anchor='start'):
        style = f' class="{style}"' if style else ''
        anchor = '' if anchor == 'start' else f' text-anchor="{anchor}"'
        self.lines.append(f'  <text{style} x="{x:g}" y="{y:g}"{anchor}>{text}</text>')

    def heading(self, x, y, title, remark, style='title'):
        """A title with a remark behind it: one line of text, so that neither runs into the other in any font."""
        self.text(x, y, f'{title}<tspan class="small" dx="8">{remark}</tspan>', style)

    def rectangle(self, style, x, y, width, height, radius=6):
        size = f'x="{x:g}" y="{y:g}" width="{width}" height="{height}" rx="{radius}"'
        self.lines.append(f'  <rect class="{style}" {size}/>')

    def box(self, x, y, width, height, title, below='', style='box'):
        """A box with a title in its middle, and perhaps a line below."""
        self.rectangle(style, x, y, width, height)
        middle = y + height / 2
        self.text(x + width / 2, middle + (-3 if below else 4.5), title, 'title', 'middle')
        if below:
            self.text(x + width / 2, middle + 13, below, 'small', 'middle')

    def room(self, x, y, width, height, title, remark):
        """A box that holds others, with its title in the corner."""
        self.rectangle('room', x, y, width, height)
        self.heading(x + 14, y + 22, title, remark)

    def arrow(self, x1, y1, x2, y2, both=False):
        style = 'line both' if both else 'line'
        self.lines.append(f'  <path class="{style}" d="M{x1:g},{y1:g} L{x2:g},{y2:g}"/>')

    def raw(self, element):
        self.lines.append('  ' + element)

    def render(self):
        return '\n'.join(self.lines) + '\n</svg>\n'


def draw_chief(picture):
    picture.rectangle('chief', 16, 16, 770, 414, 10)
    picture.heading(34, 42, 'chief', 'one per run; owns everything that lasts', 'panel-title')

    picture.room(34, 58, 200, 282, 'server/ps', 'behind StepShard')
    picture.box(48, 92, 172, 52, 'sums of a step', 'a tree over the slots')
    picture.box(48, 154, 172, 52, 'variable store', 'versions of values and state')
    picture.box(48, 216, 172, 52, 'optimizer', 'element by element')
    picture.text(134, 298, 'summing and updating happen', 'small', 'middle')
    picture.text(134, 313, 'outside the step\'s lock', 'small', 'middle')

    picture.room(250, 58, 312, 282, 'server/sync', 'the synchronous step')
    picture.box(264, 92, 284, 52, 'SyncReplicas', 'the shell: lock, order, effects carried out')
    picture.arrow(344, 144, 344, 178)
    picture.text(350, 164, 'event, time', 'small')
    picture.arrow(320, 178, 320, 144)
    picture.text(314, 164, 'effects', 'small', 'end')
    picture.box(264, 178, 136, 44, 'StepMachine', style='pure')
    picture.box(412, 178, 136, 44, 'StepPolicy', style='pure')
    picture.box(264, 232, 136, 44, 'WorkerState', style='pure')
    picture.box(412, 232, 136, 44, 'SlotQueue', style='pure')
    picture.box(264, 286, 284, 42, 'delivery', 'in process · streamed · mapped')

    picture.room(578, 58, 192, 282, 'server/chief', 'the run')
    picture.box(592, 92, 164, 38, 'Chief: phases, end')
    picture.box(592, 138, 78, 38, 'sessions', style='pure')
    picture.box(678, 138, 78, 38, 'schedule', style='pure')
    picture.box(592, 184, 164, 38, 'restore, run record')
    picture.box(592, 230, 164, 38, 'checkpoint writer')
    picture.box(592, 276, 164, 52, 'run summaries', 'event queue')

    picture.arrow(264, 112, 234, 112, both=True)
    picture.arrow(548, 112, 578, 112, both=True)
    picture.box(34, 364, 548, 52, 'server/rpc', 'gRPC on one completion queue, and rings; each stream a pure pump in a thin shell')
    picture.box(598, 364, 172, 52, 'server/local', 'without a socket')
    picture.arrow(406, 340, 406, 364, both=True)
    picture.arrow(680, 340, 680, 364, both=True)


def draw_logdir(picture):
    picture.raw('<path class="disk" d="M820,190 v130 a58,14 0 0 0 116,0 v-130"/>')
    picture.raw('<ellipse class="disk" cx="878" cy="190" rx="58" ry="14"/>')
    picture.text(878, 228, 'logdir', 'title', 'middle')
    for y, content in ((248, 'checkpoints'), (264, 'events'), (280, 'run record'), (296, 'lock, generation')):
        picture.text(878, y, content, 'small', 'middle')
    picture.arrow(820, 203, 756, 203)
    picture.arrow(756, 249, 820, 249)
    picture.arrow(756, 302, 820, 302)


def draw_worker(picture):
    for shift in (12, 6, 0):
        picture.rectangle('worker', 16 + shift, 530 + shift, 770, 184, 10)
    picture.heading(34, 556, 'worker', 'any number; holds nothing that the run would miss', 'panel-title')
    picture.box(34, 572, 172, 48, 'step stream', 'gRPC · ring · in process')
    picture.box(34, 644, 172, 48, 'step channel', 'frames, values, gradients')
    picture.box(230, 572, 164, 48, 'session', 'open, reopen, heartbeat')
    picture.box(230, 644, 82, 48, 'step loop')
    picture.box(320, 644, 74, 48, 'protocol', style='pure')
    picture.box(418, 572, 164, 48, 'gradient transforms', 'multiply, clip')
    picture.box(418, 644, 164, 48, 'block gradients', 'the tree within a block')
    picture.box(606, 572, 164, 48, 'nn', 'layers, losses, graph')
    picture.box(606, 644, 164, 48, 'data', 'batch of (seed, step, slot)')
    picture.arrow(688, 644, 688, 620)
    picture.arrow(606, 596, 582, 596)
    picture.arrow(500, 620, 500, 644)
    picture.raw('<path class="line" d="M500,692 V700 H268 V692"/>')
    picture.arrow(230, 668, 206, 668, both=True)
    picture.arrow(120, 644, 120, 620, both=True)
    picture.arrow(268, 620, 268, 644, both=True)


def parts():
    picture = Picture(960, 742, 'The parts of a run',
                      'A chief with server/ps, server/sync, server/chief, server/rpc and server/local; workers with '
                      'step stream, step channel, session, step loop, gradients, models and data; the logdir.')
    draw_chief(picture)
    draw_logdir(picture)
    picture.box(798, 92, 26, 18, '', style='pure')
    for y, line in ((105, 'a pure machine:'), (120, 'no lock, no clock,'), (135, 'no I/O, no callback')):
        picture.text(832, y, line, 'small')

    picture.arrow(70, 530, 70, 416)
    picture.text(80, 466, 'reports, gradients')
    picture.text(80, 484, 'from the last layer to the first', 'small')
    picture.arrow(270, 416, 270, 530)
    picture.text(280, 466, 'tokens, values')
    picture.text(280, 484, 'as segments become final', 'small')
    picture.arrow(450, 530, 450, 416, both=True)
    picture.text(460, 466, 'GetRunSpec, OpenSession,')
    picture.text(460, 484, 'Heartbeat')
    picture.arrow(684, 530, 684, 416, both=True)
    picture.text(694, 466, 'in process')
    draw_worker(picture)
    return picture.render()


def step():
    height = 824
    picture = Picture(960, height, 'One synchronous step',
                      'Two workers, the shell SyncReplicas, the pure machine and the shard, from the tokens of '
                      'step s to those of step s+1.')
    a, b, shell, machine, shard = 100, 262, 490, 700, 872  # lifelines
    for x, title, below, style in ((a, 'worker A', '', 'worker'), (b, 'worker B', '', 'worker'),
                                   (shell, 'SyncReplicas', 'the shell', 'room'), (machine, 'StepMachine', 'pure, with its policy', 'pure'),
                                   (shard, 'StepShard', 'sums, values', 'room')):
        picture.raw(f'<path class="life" d="M{x},62 V{height - 24}"/>')
        picture.box(x - 66, 16, 132, 46, title, below, style)

    def message(y, sender, receiver, text):
        picture.arrow(sender, y, receiver, y)
        picture.text((sender + receiver) / 2, y - 6, text, 'over', 'middle')

    def note(y, x, width, *lines):
        picture.rectangle('box', x - width / 2, y, width, 14 + 15 * len(lines))
        for i, line in enumerate(lines):
            picture.text(x, y + 18 + 15 * i, line, 'small', 'middle')

    message(96, shell, machine, 'committed, now')
    message(128, machine, shell, 'effects: tokens')
    message(160, shell, b, 'token s, slots [2,4)')
    message(196, shell, a, 'token s, slots [0,2)')
    picture.text((b + shell) / 2, 213, 'values of step s come first, or are mapped', 'small over', 'middle')

    note(228, a, 150, 'batches of slots 0, 1', 'forward: losses', 'backward: gradients', '(0+1), layer by layer')
    note(228, b, 150, 'batches of slots 2, 3', 'forward: losses', 'backward: gradients', '(2+3), layer by layer')
    message(334, a, shell, 'reports, then gradients')
    message(334, shell, machine, 'frame, now')
    message(374, shell, shard, 'add pieces, outside the lock')
    note(386, shard, 124, 'a sum waits', 'for its sibling')
    message(456, b, shell, 'reports, gradients')
    message(456, shell, shard, 'add pieces')
    note(468, shard, 150, '(0+1)+(2+3) complete:', '÷ R, optimizer, new', 'version of the segment')
    message(510, shell, a, 'values of step s+1, segment by segment')

    message(546, a, shell, 'end')
    message(580, b, shell, 'last piece, end')
    message(580, shell, machine, 'summed, now')
    message(612, machine, shell, 'effects: commit, snapshot?')
    message(646, shell, shard, 'commit: update ops in slot order, versions change places')
    message(680, shell, machine, 'committed, now')
    message(712, machine, shell, 'effects: tokens')
    message(746, shell, b, 'result, token s+1')
    message(778, shell, a, 'result, token s+1')
    return picture.render()


def main():
    folder = pathlib.Path(__file__).resolve().parent
    stale = []
    for draw in (parts, step):
        path = folder / f'{draw.__name__}.svg'
        if '--check' not in sys.argv[1:]:
            path.write_text(draw())
        elif not path.exists() or path.read_text() != draw():
            stale.append(path.name)
    if stale:
        sys.exit(f'{", ".join(stale)}: not what docs/pictures/draw.py draws; run it')


if __name__ == '__main__':
    main()
