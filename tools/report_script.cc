// The script of ge report's page: reads the JSON and draws each section. Plain JavaScript.

namespace ge {

extern const char kReportScript[];

const char kReportScript[] = R"js(
'use strict';
window.addEventListener('error', () => {
  document.body.dataset.errors = String(1 + Number(document.body.dataset.errors)); });
const D = JSON.parse(document.getElementById('data').textContent);
const about = D.description || {}, main = document.querySelector('main');
const tip = document.getElementById('tip');

function el(tag, attrs, ...kids) {
  const svg = ['svg','g','rect','path','text','line','circle','title'].includes(tag);
  const e = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag)
                : document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else if (v !== null && v !== undefined) e.setAttribute(k, v);
  }
  for (const kid of kids) e.append(kid);
  return e;
}
function bytes(n) {
  if (n === null || n === undefined) return '\u2013';
  const units = ['B', 'KB', 'MB', 'GB'];
  let i = 0;
  while (n >= 1000 && i < 3) { n /= 1000; i++; }
  return (i ? n.toPrecision(3) : n) + ' ' + units[i];
}
function time(ns) {
  if (ns === null || ns === undefined) return '\u2013';
  if (ns >= 1e9) return (ns / 1e9).toFixed(2) + ' s';
  if (ns >= 1e6) return (ns / 1e6).toFixed(2) + ' ms';
  return (ns / 1e3).toFixed(1) + ' \u00b5s';
}
const percent = x => x === null || !isFinite(x) ? '\u2013' : (100 * x).toFixed(0) + ' %';
const sum = list => list.reduce((a, b) => a + b, 0);
function show(event, text) {
  tip.textContent = text;
  tip.style.display = 'block';
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + 'px';
}
const hide = () => { tip.style.display = 'none'; };
function section(id, title, note) {
  const s = el('section', {id}, el('h2', {}, title), el('p', {class: 'note'}, note));
  main.append(s);
  return s;
}

// The graph, from its text.
function parseGraph(text) {
  const nodes = [], makers = new Map();
  const name = /%("(?:[^"\\]|\\.)*"|[^\s,:()=]+)/g;
  for (const line of text.split('\n')) {
    const m = /^\s*(%.*?) = ([A-Za-z_][\w.]*)\((.*)$/.exec(line);
    if (!m || m[2] === 'const') continue;
    const depth = m[3].indexOf(')');
    const outs = [...m[1].matchAll(name)].map(x => x[1]);
    const ins = [...m[3].slice(0, depth < 0 ? undefined : closing(m[3])).matchAll(name)].map(x => x[1]);
    const at = / @("(?:[^"\\]|\\.)*"|\S+)/.exec(line);
    const type = /: ([^%]*?)(?:,\s*%|$)/.exec(m[1]);
    const node = {id: nodes.length, op: m[2], outs, ins, name: at ? bare(at[1]) : bare(outs[0] || ''),
                  type: type ? type[1] : '', line: line.trim(), preds: [], succs: []};
    nodes.push(node);
    for (const o of outs) makers.set(o, node);
  }
  for (const n of nodes) for (const v of n.ins) {
    const p = makers.get(v);
    if (p && p !== n && !n.preds.includes(p)) { n.preds.push(p); p.succs.push(n); }
  }
  return nodes;
}
function closing(s) {
  let quoted = false;
  for (let i = 0; i < s.length; i++) {
    if (s[i] === '"' && s[i - 1] !== '\\') quoted = !quoted;
    if (s[i] === ')' && !quoted) return i;
  }
  return s.length;
}
function bare(s) { return s.startsWith('"') ? s.slice(1, -1) : s; }

const nodes = parseGraph(D.graph || ''), byName = new Map(nodes.map(n => [n.name, n]));
const regions = about.regions || [];
regions.forEach((r, i) => r.nodes.forEach(n => { const x = byName.get(n); if (x) x.region = i; }));
const hues = [[217, 75], [152, 55], [28, 85], [275, 55], [190, 70], [340, 65], [48, 80], [95, 50], [240, 45],
              [5, 65]];
const opColours = new Map();
function colour(op) {
  if (!opColours.has(op)) opColours.set(op, opColours.size);
  const i = opColours.get(op), [h, s] = hues[i % hues.length];
  return `hsl(${h} ${s}% ${i < hues.length ? 56 : 70}%)`;
}
D.tasks.forEach((t, i) => {
  t.id = i;
  Object.assign(t, (about.tasks || [])[i] || {});
  t.measured = D.measured ? D.measured[i] : null;
  const r = regions[t.region];
  const node = byName.get(t.name.replace(/\.\d+$/, '')) || byName.get(t.name) ||
               (r && byName.get(r.name));
  t.op = node ? node.op : t.kind === 'kernel' ? 'other' : t.kind;
  t.engine = r ? r.engine : t.kind;
  // Counts are of typical sizes if the model is dynamic: no share of a roof then. Dots of bytes have
  // four products where f32 has one, those of bf16 two.
  const p = D.symbols.length ? null : D.peaks;
  const products = (t.schedule || '').startsWith('bytes') ? 4 : (t.schedule || '').includes('bf16') ? 2 : 1;
  t.roof = p && t.flops !== undefined && t.kind === 'kernel'
      ? Math.max(t.flops / (p.gflops * products * (D.threads || 1)), t.bytes / p.gb_per_s) : null;
  t.share = t.roof && t.measured ? t.roof / t.measured : null;
});
const opTime = new Map();
for (const t of D.tasks) opTime.set(t.op, (opTime.get(t.op) || 0) + (t.measured ?? t.estimate));
[...opTime.entries()].sort((a, b) => b[1] - a[1]).forEach(([op]) => colour(op));
function legend(ops) {
  return el('div', {class: 'legend'}, ...ops.slice(0, 14).map(op =>
    el('span', {}, el('span', {class: 'dot', style: 'background:' + colour(op)}), op)));
}
const opsByTime = [...opTime.entries()].sort((a, b) => b[1] - a[1]);

// Head and summary.
document.querySelector('nav').append(el('b', {}, D.model), el('span', {}, 'for ' + D.chip),
  ...[['timeline', 'Timeline'], ['chips', 'Chips'], ['tasks', 'Tasks'], ['memory', 'Memory'], ['graph', 'Graph'],
      ...(D.before ? [['before', 'Graph before']] : []),
      ['fusion', 'Fusion'], ['shapes', 'Shapes']].map(([id, t]) => el('a', {href: '#' + id}, t)));
function summary() {
  const card = (label, value, small) =>
    el('div', {class: 'card'}, el('div', {}, label), el('b', {}, value), el('small', {}, small));
  const a = D.arena, cards = el('div', {class: 'cards'});
  const estimate = sum(D.tasks.map(t => t.estimate));
  if (D.median_ns) cards.append(card('Latency, median of ' + D.rounds, time(D.median_ns),
      'least ' + time(D.least_ns) + ', ' + D.threads + ' workers'));
  cards.append(card('Predicted, one worker', time(estimate), 'sum of all tasks'));
  cards.append(card('Arena', bytes(a.height), a.height <= a.bound ? 'equal to the lower bound'
      : (a.height / a.bound).toFixed(3) + ' of the lower bound ' + bytes(a.bound)));
  cards.append(card('Without sharing', bytes(a.apart), a.buffers.length + ' buffers'));
  cards.append(card('Weights', bytes(D.weights), 'file ' + bytes(D.file)));
  cards.append(card('Tasks', D.tasks.length, D.kernels + ' kernels, code ' + bytes(D.code)));
  if (about.nodes_in) cards.append(card('Nodes', about.nodes_in + ' \u2192 ' + about.nodes_out,
      regions.length ? regions.length + ' regions' : ''));
  main.append(cards);
}

// A canvas that knows its size in pixels and redraws when that changes.
function picture(parent, height, draw) {
  const c = el('canvas', {style: `height:${height}px`});
  parent.append(c);
  const again = () => {
    const w = c.clientWidth || 1000, scale = devicePixelRatio || 1;
    c.width = w * scale; c.height = height * scale;
    const g = c.getContext('2d');
    g.scale(scale, scale);
    g.font = '11px system-ui, "DejaVu Sans", sans-serif';
    draw(g, w, height);
  };
  addEventListener('resize', again);
  again();
  return [c, again];
}
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Rows of slices [task, row, begin us, length us] on one time axis; groups: {label, slices}.
function slices(parent, groups, events) {
  groups = groups.filter(x => x.slices && x.slices.length);
  if (!groups.length) return;
  const rows = [];
  for (const group of groups) {
    group.first = rows.length;
    const count = Math.max(...group.slices.map(x => x[1])) + 1;
    for (let i = 0; i < count; i++) rows.push(group.label + ' ' + i);
  }
  const end = Math.max(...groups.flatMap(x => x.slices.map(y => y[2] + y[3])));
  let from = 0, to = end, boxes = [];
  const row = groups.length > 1 || rows.length < 4 ? 40 : 26, left = 92;
  const [c, redraw] = picture(parent, rows.length * (row + 6) + 34, (g, w, h) => {
    boxes = [];
    const x = t => left + (t - from) / (to - from) * (w - left - 8);
    g.fillStyle = css('--dim');
    const raw = (to - from) / 8, p = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 5, 10].map(k => k * p).find(k => k >= raw);
    g.strokeStyle = css('--line');
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      g.beginPath(); g.moveTo(x(t), 0); g.lineTo(x(t), h - 18); g.stroke();
      g.fillText(time(t * 1e3), x(t) + 3, h - 6);
    }
    rows.forEach((label, i) => g.fillText(label, 6, 8 + i * (row + 6) + row / 2));
    for (const group of groups) for (const [task, line, begin, length] of group.slices) {
      if (begin + length < from || begin > to) continue;
      const x0 = Math.max(left, x(begin)), x1 = Math.max(x0 + 0.5, x(begin + length)), t = D.tasks[task];
      const y = 4 + (group.first + line) * (row + 6);
      g.fillStyle = colour(t.op);
      g.fillRect(x0, y, x1 - x0 - (x1 - x0 > 3 ? 1 : 0), row);
      if (x1 - x0 > 34) {
        g.save(); g.beginPath(); g.rect(x0, y, x1 - x0 - 3, row); g.clip();
        g.fillStyle = '#fff';
        g.fillText(t.op, x0 + 4, y + row / 2 - 3); g.fillText(time(length * 1e3), x0 + 4, y + row / 2 + 11);
        g.restore();
      }
      boxes.push([x0, x1, y, y + row, task, length, group.label]);
    }
    // Events: from the end of what is waited for to the start of who waits.
    if (events) for (const group of groups) {
      const at = new Map();
      for (const q of group.slices) {
        const z = at.get(q[0]) || {begin: Infinity, end: 0, row: q[1]};
        z.begin = Math.min(z.begin, q[2]); z.end = Math.max(z.end, q[2] + q[3]); at.set(q[0], z);
      }
      g.strokeStyle = css('--warn');
      for (const [task, z] of at) for (const u of D.tasks[task].waits) {
        const b = at.get(u);
        if (!b || z.begin < from || b.end > to) continue;
        const y = r => 4 + (group.first + r) * (row + 6) + row / 2;
        g.beginPath(); g.moveTo(x(b.end), y(b.row)); g.lineTo(x(z.begin), y(z.row)); g.stroke();
      }
    }
  });
  c.addEventListener('mousemove', e => {
    const b = boxes.find(b => e.offsetX >= b[0] && e.offsetX < b[1] && e.offsetY >= b[2] && e.offsetY < b[3]);
    if (!b) return hide();
    const t = D.tasks[b[4]];
    show(e, `${b[4]}: ${t.name}\n${t.op}, ${b[6]} ${time(b[5] * 1e3)}\n${t.schedule || t.runs}`);
  });
  c.addEventListener('mouseleave', hide);
  c.addEventListener('wheel', e => {
    e.preventDefault();
    const at = from + (e.offsetX - left) / (c.clientWidth - left - 8) * (to - from);
    const k = Math.exp(e.deltaY / 400);
    from = Math.max(0, at - (at - from) * k); to = Math.min(end, at + (to - at) * k);
    redraw();
  }, {passive: false});
  c.addEventListener('mousedown', e => {
    let last = e.clientX;
    const move = m => {
      const d = (last - m.clientX) / (c.clientWidth - left) * (to - from);
      last = m.clientX;
      if (from + d >= 0 && to + d <= end) { from += d; to += d; redraw(); }
    };
    addEventListener('mousemove', move);
    addEventListener('mouseup', () => removeEventListener('mousemove', move), {once: true});
  });
  c.addEventListener('dblclick', () => { from = 0; to = end; redraw(); });
}
function timeline() {
  const p = D.predicted;
  const s = section('timeline', 'Timeline', 'One execution as it ran, a row for each worker, and below it what was ' +
    'predicted for it: a row for each stream. Lines are events. Wheel: zoom, drag: move, double click: all.');
  slices(s, [{label: 'measured', slices: D.slices}, {label: 'predicted', slices: p ? p.slices : []}], true);
  s.append(legend(opsByTime.map(x => x[0])));
  if (D.median_ns && p) s.append(el('p', {class: 'note'}, `Measured ${time(D.least_ns)} at least, ` +
    `predicted ${time(p.total_us * 1e3)}: ${(p.total_us * 1e3 / D.least_ns).toFixed(2)} of it.`));
}
function chips() {
  if (!D.chips || !D.chips.length) return;
  const s = section('chips', 'Modelled chips', 'The same plan on models of other chips: rooflines of arithmetic and ' +
    'memory with a fixed time for each launch and event, not measurements. Click a chip for its timeline.');
  const box = el('div', {}), rows = D.chips.map(c => el('tr', {style: 'cursor:pointer', onclick: () => choose(c)},
    el('td', {class: 'name'}, c.name), ...[time(c.total_us * 1e3), c.streams, c.events, percent(c.hit_rate),
      bytes(Math.round(c.memory_bytes)), percent(c.dispatch)].map(v => el('td', {class: 'n'}, String(v)))));
  s.append(el('table', {}, el('tr', {}, ...['chip', 'latency', 'streams', 'events', 'reads that hit on the chip',
    'main memory traffic', 'share of launches'].map((t, i) => el('th', {class: i ? 'n' : ''}, t))), ...rows), box);
  function choose(c) {
    box.replaceChildren(el('h3', {}, c.name));
    slices(box, [{label: 'stream', slices: c.slices}], false);
    box.append(el('ul', {}, ...c.sources.map(t => el('li', {}, t))));
  }
  choose(D.chips.find(c => c.name === 'Ascend910') || D.chips[0]);
}
)js"
                             // A literal has a longest length in some compilers: the second half.
                             R"js(
function tasks() {
  const s = section('tasks', 'Tasks', 'What the runtime does, in order. Predicted: the cost model, on one ' +
    'worker. Measured: the least of several runs. Of roof: the least time that this chip\u2019s ' +
    'arithmetic and caches allow, as both are measured here, divided by the measured one. ' +
    'Tiles: chunks that workers claim; on chip: scratch of a worker and its chunk of the results.');
  const search = el('input', {type: 'search', placeholder: 'Filter by name, operator, schedule'});
  const body = el('tbody', {}), box = el('div', {class: 'scroll'});
  const most = Math.max(...D.tasks.map(t => t.measured ?? t.estimate), 1);
  const columns = [
    ['#', 'n', t => t.id, t => t.id], ['task', 'name', t => t.name, t => t.name],
    ['operator', '', t => t.op, t => t.op], ['schedule', 'mono', t => t.schedule || t.runs, t => t.schedule || t.runs],
    ['stream', 'n', t => t.lane < 0 ? '' : t.lane + (t.waits.length ? ' after ' + t.waits.join(', ') : ''), t => t.lane],
    ['tiles', 'n', t => t.grid ?? '', t => t.grid ?? -1],
    ['on chip', 'n', t => bytes(t.on_chip), t => t.on_chip ?? -1],
    ['flops', 'n', t => t.flops ? (t.flops / 1e6).toFixed(1) + ' M' : '', t => t.flops || 0],
    ['touched', 'n', t => bytes(t.touched), t => t.touched],
    ['predicted', 'n', t => time(t.estimate), t => t.estimate],
    ['measured', 'n', t => time(t.measured), t => t.measured ?? 0], ['', '', null, null],
    ['of roof', 'n', t => percent(t.share), t => t.share ?? -1]];
  let key = null, up = false;
  function fill() {
    const words = search.value.toLowerCase();
    let list = D.tasks.filter(t => (t.name + ' ' + t.op + ' ' + (t.schedule || t.runs)).toLowerCase().includes(words));
    if (key) list = [...list].sort((a, b) => {
      const x = key(a), y = key(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    });
    body.replaceChildren(...list.slice(0, 2000).map(t => el('tr', {}, ...columns.map(([, c, text]) => {
      if (!text) return el('td', {style: 'width:110px'}, el('div', {class: 'bar',
        style: `width:${100 * (t.measured ?? t.estimate) / most}px;background:${colour(t.op)}`}));
      const value = String(text(t));
      return el('td', {class: c, title: c === 'name' || c === 'mono' ? value : null}, value);
    }))));
  }
  const head = el('tr', {}, ...columns.map(([title, c, , k]) => el('th', {class: c === 'n' ? 'n' : '', onclick: () => {
    if (!k) return;
    up = key === k ? !up : false; key = k; fill(); }}, title)));
  search.addEventListener('input', fill);
  box.append(el('table', {}, el('thead', {}, head), body));
  s.append(search, box);
  fill();
  const halves = el('div', {class: 'halves'});
  s.append(halves);
  byOperator(halves); roofline(halves);
}
function byOperator(parent) {
  const total = sum(opsByTime.map(x => x[1])) || 1, most = opsByTime.length ? opsByTime[0][1] : 1;
  parent.append(el('div', {}, el('h3', {}, 'Time by operator'), el('table', {}, ...opsByTime.slice(0, 12).map(([op, ns]) =>
    el('tr', {}, el('td', {}, op), el('td', {class: 'n'}, time(ns)), el('td', {class: 'n'}, percent(ns / total)),
      el('td', {style: 'width:45%'}, el('div', {class: 'bar', style: `width:${100 * ns / most}%;background:${colour(op)}`})))))));
}
function roofline(parent) {
  const list = D.tasks.filter(t => t.flops > 0 && t.bytes > 0 && t.measured > 0), p = D.peaks;
  if (!list.length || !p) return;
  const w = 560, h = 300, peak = p.gflops * (D.threads || 1);
  const xs = list.map(t => t.flops / t.bytes), ys = list.map(t => t.flops / t.measured);
  const x0 = Math.log10(Math.min(0.1, ...xs)), x1 = Math.log10(Math.max(100, ...xs) * 1.5);
  const y1 = Math.log10(Math.max(peak, ...ys) * 1.6), y0 = Math.max(y1 - 5, Math.log10(Math.min(...ys) * 0.7));
  const X = v => 44 + (Math.log10(v) - x0) / (x1 - x0) * (w - 56);
  const Y = v => h - 30 - (Math.max(y0, Math.log10(v)) - y0) / (y1 - y0) * (h - 40);
  const svg = el('svg', {viewBox: `0 0 ${w} ${h}`, style: 'width:100%;max-width:640px'});
  for (let e = Math.ceil(x0); e <= x1; e++) svg.append(
    el('line', {x1: X(10 ** e), x2: X(10 ** e), y1: 8, y2: h - 30, stroke: 'var(--line)'}),
    el('text', {x: X(10 ** e), y: h - 16, 'text-anchor': 'middle', class: 'dim'}, String(10 ** e)));
  for (let e = Math.ceil(y0); e <= y1; e++) svg.append(
    el('line', {x1: 44, x2: w - 12, y1: Y(10 ** e), y2: Y(10 ** e), stroke: 'var(--line)'}),
    el('text', {x: 38, y: Y(10 ** e) + 4, 'text-anchor': 'end', class: 'dim'}, String(10 ** e)));
  const ridge = peak / p.gb_per_s, low = 10 ** x0;
  svg.append(el('path', {d: `M${X(low)} ${Y(low * p.gb_per_s)}L${X(ridge)} ${Y(peak)}L${w - 12} ${Y(peak)}`,
    fill: 'none', stroke: 'var(--warn)', 'stroke-width': 1.6}),
    el('text', {x: w - 14, y: Y(peak) - 5, 'text-anchor': 'end', class: 'dim'}, peak.toFixed(0) + ' GFLOP/s measured'),
    el('text', {x: w / 2, y: h - 2, 'text-anchor': 'middle', class: 'dim'}, 'flops per byte'));
  list.forEach((t, i) => svg.append(el('circle', {cx: X(xs[i]), cy: Y(ys[i]), r: 4, fill: colour(t.op),
    'fill-opacity': 0.75, onmousemove: e => show(e, `${t.name}\n${ys[i].toFixed(1)} GFLOP/s, ${xs[i].toFixed(2)} flops per byte`),
    onmouseleave: hide})));
  parent.append(el('div', {}, el('h3', {}, 'Roofline: GFLOP/s of each kernel'), svg));
}

function memory() {
  const a = D.arena;
  const s = section('memory', 'Memory', 'The arena over time: a rectangle for each buffer, from its first task ' +
    'to its last (across) and from its offset to its end (up). The line is what is alive; its highest point is ' +
    `the lower bound, ${bytes(a.bound)}. The arena takes ${bytes(a.height)}.`);
  const moves = D.tasks.filter(t => t.kind === 'spill' || t.kind === 'fetch');
  if (moves.length) s.append(el('p', {class: 'dim'}, `${moves.filter(t => t.kind === 'spill').length} values ` +
    `are spilled to backing store while they lie idle; ${bytes(sum(moves.map(t => t.moved)))} are moved in each run.`));
  if (!a.buffers.length) return;
  const count = D.tasks.length, left = 64;
  let boxes = [];
  const [c] = picture(s, 340, (g, w, h) => {
    boxes = [];
    const top = Math.max(a.height, 1) * 1.04;
    const X = t => left + t / count * (w - left - 8), Y = b => h - 22 - b / top * (h - 30);
    g.fillStyle = css('--dim');
    g.strokeStyle = css('--line');
    for (let i = 0; i <= 4; i++) {
      const v = a.height * i / 4;
      g.fillText(bytes(Math.round(v)), 6, Y(v) + 4);
      g.beginPath(); g.moveTo(left, Y(v)); g.lineTo(w - 8, Y(v)); g.stroke();
    }
    for (let i = 0; i < 8; i++) g.fillText('task ' + Math.round(count * i / 8), X(count * i / 8), h - 6);
    for (const b of a.buffers) {
      const [name, first, last, offset, size] = b;
      const x = X(first), x1 = X(last + 1), y = Y(offset + size), y1 = Y(offset);
      let op = D.tasks[first] ? D.tasks[first].op : 'other';
      g.globalAlpha = 0.82;
      g.fillStyle = colour(op);
      g.fillRect(x, y, Math.max(1, x1 - x - 0.6), Math.max(1, y1 - y - 0.6));
      g.globalAlpha = 1;
      boxes.push([x, x1, y, y1, b]);
    }
    g.strokeStyle = css('--ink');
    g.lineWidth = 1.3;
    g.beginPath();
    a.live.forEach((v, t) => { g.lineTo(X(t), Y(v)); g.lineTo(X(t + 1), Y(v)); });
    g.stroke();
    g.setLineDash([5, 4]);
    g.strokeStyle = css('--warn');
    g.beginPath(); g.moveTo(left, Y(a.bound)); g.lineTo(w - 8, Y(a.bound)); g.stroke();
  });
  c.addEventListener('mousemove', e => {
    const b = boxes.find(b => e.offsetX >= b[0] && e.offsetX < b[1] && e.offsetY >= b[2] && e.offsetY < b[3]);
    if (!b) return hide();
    const [name, first, last, offset, size] = b[4];
    show(e, `${name}\n${bytes(size)} at ${offset}\ntasks ${first} to ${last}`);
  });
  c.addEventListener('mouseleave', hide);
  s.append(legend(opsByTime.map(x => x[0])));
}

// Layers by longest path, order within a layer by the middle of the producers.
function place(list) {
  const layers = [];
  for (const n of list) {
    n.layer = n.preds.length ? 1 + Math.max(...n.preds.map(p => p.layer ?? 0)) : 0;
    (layers[n.layer] = layers[n.layer] || []).push(n);
  }
  const W = 158, H = 46;
  for (const layer of layers) {
    for (const n of layer) n.want = n.preds.length ? sum(n.preds.map(p => p.x)) / n.preds.length : 0;
    layer.sort((a, b) => a.want - b.want);
    let next = -Infinity;
    for (const n of layer) { n.x = Math.max(n.want, next); next = n.x + W; }
    const shift = sum(layer.map(n => n.want - n.x)) / layer.length;
    for (const n of layer) { n.x += shift; n.y = n.layer * H; }
  }
}
function graph() {
  drawGraph('graph', 'Graph', 'After all passes. Colours are operators. Click a node: everything of its ' +
    'fused region is marked. Wheel: zoom, drag: move.', nodes);
}
function before() {
  const first = parseGraph(D.before || ''), where = new Map();
  regions.forEach((r, i) => [...r.nodes, ...(r.origins || [])].forEach(n => where.set(n, i)));
  for (const n of first) if (where.has(n.name)) n.region = where.get(n.name);
  drawGraph('before', 'Graph before', 'As it was imported. Click a node: all whose work ended up in the same fused ' +
    'region are marked.', first);
}
function drawGraph(id, title, note, nodes) {
  if (!nodes.length) return;
  const s = section(id, title, note);
  place(nodes);
  const search = el('input', {type: 'search', placeholder: 'Find a node'});
  const svg = el('svg', {class: 'graph'}), detail = el('dl', {class: 'detail'});
  const minX = Math.min(...nodes.map(n => n.x));
  let view = {x: -360, y: -20, s: 1};
  const focus = nodes.length ? nodes[0] : null;
  if (focus) view.x = focus.x - 340;
  const root = el('g', {}), edges = el('g', {fill: 'none', stroke: 'var(--dim)', 'stroke-opacity': 0.45});
  svg.append(root);
  root.append(edges);
  const look = () => root.setAttribute('transform', `scale(${view.s}) translate(${-view.x} ${-view.y})`);
  for (const n of nodes) for (const p of n.preds) {
    const x0 = p.x + 70, y0 = p.y + 28, x1 = n.x + 70, y1 = n.y, m = Math.min(40, (y1 - y0) / 2);
    edges.append(el('path', {d: `M${x0} ${y0}C${x0} ${y0 + m} ${x1} ${y1 - m} ${x1} ${y1}`}));
  }
  const cut = (t, k) => t.length > k ? '\u2026' + t.slice(-k + 1) : t;
  for (const n of nodes) {
    n.box = el('rect', {width: 140, height: 28, rx: 5, fill: 'var(--card)', stroke: colour(n.op), 'stroke-width': 1.4});
    root.append(el('g', {transform: `translate(${n.x} ${n.y})`, style: 'cursor:pointer', onclick: () => choose(n)},
      n.box, el('rect', {width: 5, height: 28, rx: 2, fill: colour(n.op)}),
      el('text', {x: 11, y: 12, 'font-weight': 600}, cut(n.op, 20)),
      el('text', {x: 11, y: 23, class: 'dim', style: 'font-size:9px'}, cut(n.name, 26)), el('title', {}, n.line)));
  }
  function choose(n) {
    for (const m of nodes) {
      const same = m === n || (n.region !== undefined && m.region === n.region);
      m.box.setAttribute('fill', same ? 'var(--soft)' : 'var(--card)');
      m.box.setAttribute('stroke-width', m === n ? 3 : same ? 2.4 : 1.4);
    }
    const rows = [['operator', n.op], ['node', n.name], ['result', n.type]];
    if (n.region !== undefined) {
      const r = regions[n.region], mine = D.tasks.filter(t => t.region === n.region);
      rows.push(['region', `${r.name} (${r.engine}, ${r.nodes.length} nodes)`]);
      for (const t of mine) rows.push([`task ${t.id}`, `${t.schedule || t.runs}; predicted ${time(t.estimate)}, measured ${time(t.measured)}`]);
    }
    rows.push(['text', n.line.slice(0, 600)]);
    detail.replaceChildren(...rows.flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]));
  }
  search.addEventListener('change', () => {
    const words = search.value.toLowerCase();
    const hit = words && nodes.find(n => n.name.toLowerCase().includes(words) || n.op.toLowerCase().includes(words));
    if (hit) { choose(hit); view = {x: hit.x - 340 / view.s, y: hit.y - 200 / view.s, s: view.s}; look(); }
  });
  svg.addEventListener('wheel', e => {
    e.preventDefault();
    const k = Math.exp(-e.deltaY / 500), s1 = Math.min(3, Math.max(0.03, view.s * k));
    const r = svg.getBoundingClientRect(), px = e.clientX - r.left, py = e.clientY - r.top;
    view.x += px / view.s - px / s1; view.y += py / view.s - py / s1; view.s = s1;
    look();
  }, {passive: false});
  svg.addEventListener('mousedown', e => {
    let x = e.clientX, y = e.clientY;
    const move = m => { view.x -= (m.clientX - x) / view.s; view.y -= (m.clientY - y) / view.s; x = m.clientX; y = m.clientY; look(); };
    addEventListener('mousemove', move);
    addEventListener('mouseup', () => removeEventListener('mousemove', move), {once: true});
  });
  look();
  s.append(search, el('div', {class: 'two'}, svg, detail));
  choose([...nodes].find(n => n.region !== undefined && regions[n.region].nodes.length > 2) || nodes[0]);
}

function fusion() {
  const lines = about.rewrites || [], fused = regions.filter(r => r.nodes.length > 1);
  if (!lines.length && !fused.length) return;
  const s = section('fusion', 'Fusion', `${fused.length} of ${regions.length} regions hold more than one node. ` +
    'Below: what the passes rewrote, and what they nearly did and why not.');
  const groups = new Map();
  for (const line of lines) {
    const rule = line.split(': ')[0], done = line.endsWith(': applied');
    const g = groups.get(rule) || {done: [], missed: []};
    (done ? g.done : g.missed).push(line.slice(rule.length + 2));
    groups.set(rule, g);
  }
  const halves = el('div', {class: 'halves'});
  const left = el('div', {}, el('h3', {}, 'Largest regions')), right = el('div', {}, el('h3', {}, 'Rules and near misses'));
  for (const r of [...fused].sort((a, b) => b.nodes.length - a.nodes.length).slice(0, 40)) left.append(
    el('details', {}, el('summary', {}, `${r.nodes.length} nodes: ${r.name} (${r.engine})`),
      el('ul', {}, ...r.nodes.map(n => el('li', {}, (byName.get(n) ? byName.get(n).op + ' ' : '') + n)))));
  for (const [rule, g] of [...groups].sort((a, b) => b[1].done.length - a[1].done.length)) right.append(
    el('details', {}, el('summary', {}, `${rule}: ${g.done.length} applied, ${g.missed.length} not`),
      el('ul', {}, ...g.missed.concat(g.done).slice(0, 60).map(t => el('li', {}, t)))));
  halves.append(left, right);
  s.append(halves);
}

function shapes() {
  const s = section('shapes', 'Shapes', 'Inputs and outputs at the sizes of this run; symbols and what is checked.');
  const io = (title, list) => el('div', {}, el('h3', {}, title), el('table', {}, ...list.map(t => el('tr', {},
    el('td', {class: 'name'}, t.name), el('td', {class: 'mono'}, t.dtype + '[' + t.dims.map(d => d ?? '?').join(', ') + ']')))));
  s.append(el('div', {class: 'halves'}, io('Inputs', D.inputs), io('Outputs', D.outputs)));
  if (D.symbols.length) s.append(el('h3', {}, 'Symbols'), el('table', {},
    el('tr', {}, ...['symbol', 'least', 'most', 'multiple of', 'bound by', 'here'].map(t => el('th', {}, t))),
    ...D.symbols.map(x => el('tr', {}, ...[x.name, x.lo, x.hi, x.multiple_of, x.bound_by, x.value ?? '\u2013']
      .map(v => el('td', {}, String(v)))))));
  if (D.checks.length) s.append(el('h3', {}, `Checks (${D.checks.length})`),
    el('ul', {}, ...D.checks.slice(0, 100).map(t => el('li', {}, t))));
  s.append(el('h3', {}, 'How it was made'), el('table', {}, ...Object.entries(about)
    .filter(([, v]) => typeof v !== 'object').map(([k, v]) => el('tr', {}, el('td', {}, k), el('td', {class: 'mono'}, String(v))))));
}

for (const part of [summary, timeline, chips, tasks, memory, graph, before, fusion, shapes]) {
  try { part(); } catch (e) {
    document.body.dataset.errors = String(1 + Number(document.body.dataset.errors));
    main.append(el('p', {class: 'note'}, part.name + ': ' + e));
  }
}
document.body.dataset.ready = '1';
)js";

}  // namespace ge
