// Tips on charts, numbers that keep up, keys, and completion of queries. Every page is whole without this file, and nothing here
// draws what the server did not write: tips are read from the table below a chart, and new numbers are the same page asked again.
(() => {
'use strict';
const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const DAY = 86_400_000;
const spoken = make('p', { className: 'hush' });
spoken.setAttribute('role', 'status');
document.body.append(spoken);
const say = (text) => { spoken.textContent = text; };

/* The current tab stands within the row of tabs, however narrow that is. */

const tab = one('.tabs [aria-current]');
if (tab) {
  const tabs = tab.closest('.tabs');
  tabs.scrollLeft += tab.getBoundingClientRect().left - tabs.getBoundingClientRect().left - 16;
}

/* Tips */

const tip = make('div', { className: 'tip', hidden: true });
tip.setAttribute('aria-hidden', 'true');
const cross = make('div', { className: 'cross', hidden: true });
document.body.append(cross, tip);

const hideTip = () => { tip.hidden = cross.hidden = true; };
const showTip = (box, share, title, pairs) => {
  tip.replaceChildren(make('b', { textContent: title }), ...pairs.flatMap(([name, value]) =>
    [make('span', { textContent: name }), make('span', { textContent: value })]));
  tip.hidden = false;
  const x = box.left + box.width * share;
  const room = document.documentElement.clientWidth;
  const left = x + 16 + tip.offsetWidth > room ? x - 16 - tip.offsetWidth : x + 16;
  tip.style.left = `${Math.max(4, left) + scrollX}px`;
  tip.style.top = `${box.top + 8 + scrollY}px`;
  cross.hidden = false;
  cross.style.left = `${x + scrollX}px`;
  cross.style.top = `${box.top + scrollY}px`;
  cross.style.height = `${box.height}px`;
};

// The words of one day of a chart: the row of the table in its figure, under the heads of that table.
const rowOf = (chart, day) => {
  const rows = all('tr[data-day]', chart.closest('figure') ?? document.body);
  const wanted = rows.length ? rows : all('main tr[data-day]');
  let best;
  for (const row of wanted) {
    if (!best || Math.abs(row.dataset.day - day) < Math.abs(best.dataset.day - day)) best = row;
  }
  return best;
};
const dated = (day) => new Date(day * DAY).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const told = (chart, step) => {
  const day = +chart.dataset.day + step;
  const row = rowOf(chart, day);
  const rows = all('tr[data-day]', row?.parentElement ?? document.body);
  const gap = rows.length > 1 ? Math.abs(rows[0].dataset.day - rows[1].dataset.day) : 1;
  if (!row || (rows.length > 1 && Math.abs(row.dataset.day - day) > Math.max(gap / 2, 0.5))) return [dated(day), [['not in the table', '']], day];
  const heads = all('thead th', row.closest('table')).map((head) => head.textContent);
  const [first, ...cells] = [...row.cells].map((cell) => cell.textContent);
  return [first, cells.map((cell, n) => [heads[n + 1], cell]), +row.dataset.day];
};
// A chart of lines has its days on its edges, one of bars has each in a column of its own.
const place = (chart) => {
  const drawing = one('svg', chart);
  return { box: (drawing ?? chart).getBoundingClientRect(), across: +chart.dataset.across, isBars: 'bars' in chart.dataset };
};
const showDay = (chart, step) => {
  const { box, across, isBars } = place(chart);
  const frame = chart.getBoundingClientRect();
  const [title, pairs, day] = told(chart, step);
  const at = day - chart.dataset.day;
  const area = { left: frame.left, width: frame.width, top: Math.min(box.top, frame.top), height: 264 };
  showTip(area, Math.min(1, Math.max(0, (at + (isBars ? 0.5 : 0)) / across)), title, pairs);
  return [title, pairs];
};
const stepAt = (chart, x) => {
  const { across, isBars } = place(chart);
  const frame = chart.getBoundingClientRect();
  const share = Math.min(1, Math.max(0, (x - frame.left) / frame.width));
  return isBars ? Math.min(across - 1, Math.floor(share * across)) : Math.round(share * across);
};

// `40 sound,3 blocked`: how many days which word held, from the first day on.
const showCell = (strip, x) => {
  const box = strip.getBoundingClientRect();
  const runs = strip.dataset.runs.split(',').map((run) => [parseInt(run, 10), run.slice(run.indexOf(' ') + 1)]);
  const days = runs.reduce((sum, [length]) => sum + length, 0);
  const nth = Math.min(days - 1, Math.max(0, Math.floor((x - box.left) * days / box.width)));
  let left = nth;
  const [, word] = runs.find(([length]) => (left -= length) < 0) ?? [0, ''];
  showTip({ left: box.left, width: box.width, top: box.bottom, height: 0 }, (nth + 0.5) / days, dated(+strip.dataset.day + nth), [[word, '']]);
};

document.addEventListener('pointermove', (event) => {
  const chart = event.target.closest?.('.chart[data-day]');
  const strip = event.target.closest?.('.strip[data-runs]');
  const bar = event.target.closest?.('[data-says]');
  if (chart) showDay(chart, stepAt(chart, event.clientX));
  else if (strip) showCell(strip, event.clientX);
  else if (bar) {
    const box = bar.getBoundingClientRect();
    showTip({ left: event.clientX, width: 0, top: box.bottom, height: 0 }, 0, bar.dataset.says, []);
  } else hideTip();
}, { passive: true });
document.addEventListener('scroll', hideTip, { passive: true, capture: true });

// A chart can be walked through with the arrow keys, and each day is spoken.
const readyCharts = () => {
  for (const chart of all('.chart[data-day]')) {
    if (chart.tabIndex === 0) continue;
    chart.tabIndex = 0;
    let step = +chart.dataset.across - ('bars' in chart.dataset ? 1 : 0);
    chart.addEventListener('keydown', (event) => {
      const last = +chart.dataset.across - ('bars' in chart.dataset ? 1 : 0);
      const moved = { ArrowLeft: step - 1, ArrowRight: step + 1, PageUp: step - 7, PageDown: step + 7, Home: 0, End: last }[event.key];
      if (moved === undefined) return;
      event.preventDefault();
      step = Math.min(last, Math.max(0, moved));
      const [title, pairs] = showDay(chart, step);
      say(`${title}: ${pairs.map((pair) => pair.join(' ')).join(', ')}`);
    });
    chart.addEventListener('blur', hideTip);
  }
};

/* Numbers that keep up: when something happened, the page is asked for again and takes the place of what is shown. */

const listen = () => {
  const main = one('main[data-live]');
  if (!main || !window.EventSource) return;
  const kinds = main.dataset.live.split(',');
  const mark = make('span', { className: 'live', textContent: 'live' });
  const showMark = () => one('.facts-line', main)?.prepend(mark);
  let source;
  let waiting = 0;
  let spokenAt = Date.now();
  const isBusy = () => document.hidden || !getSelection().isCollapsed || main.contains(document.activeElement?.closest('form, dialog') ?? null);
  const refresh = async () => {
    waiting = 0;
    if (isBusy()) return soon();
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } }).catch(() => null);
    if (!answer?.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('main');
    if (!fresh || isBusy()) return;
    const key = (details) => one('summary', details)?.textContent;
    const open = new Set(all('details[open]', main).map(key));
    const shut = new Set(all('details:not([open])', main).map(key));
    for (const details of all('details', fresh)) {
      if (open.has(key(details))) details.open = true;
      else if (shut.has(key(details))) details.open = false;
    }
    const focused = main.contains(document.activeElement) ? document.activeElement : null;
    const href = focused?.getAttribute('href');
    hideTip();
    main.replaceChildren(...fresh.childNodes);
    if (href) one(`a[href="${CSS.escape(href)}"]`, main)?.focus({ preventScroll: true });
    readyCharts();
    mark.textContent = `live, as of ${new Date().toISOString().slice(11, 16)}`;
    showMark();
    if (Date.now() - spokenAt > 60_000) {
      spokenAt = Date.now();
      say(`New numbers: ${one('h1', main)?.textContent ?? ''}`);
    }
  };
  // Many things happen at once: a page is asked for at most every five seconds.
  const soon = () => { waiting ||= setTimeout(refresh, 5_000); };
  const begin = () => {
    if (source || document.hidden) return;
    source = new EventSource(`/api/v1/events?type=${encodeURIComponent(main.dataset.live)}`);
    for (const kind of kinds) source.addEventListener(kind, soon);
    source.addEventListener('open', showMark);
    source.addEventListener('error', () => mark.remove());
  };
  const end = () => { source?.close(); source = undefined; mark.remove(); };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) end();
    else { begin(); soon(); }
  });
  addEventListener('pagehide', end);
  addEventListener('pageshow', begin);
  begin();
};

/* Keys */

const rows = () => all('main table.rows tbody tr, main .findings > li, main .hunks > li').filter((row) => one('a[href]', row) && row.offsetParent);
const rowHere = () => rows().findIndex((row) => row.contains(document.activeElement));
const step = (by) => {
  const list = rows();
  const here = rowHere();
  const next = list[here < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, here + by))];
  if (next) one('a[href]', next).focus();
};
const within = (selector) => {
  const row = rows()[rowHere()];
  (row && one(selector, row) || one(`main .opening ${selector}, main .steer ${selector}, main .take ${selector}`))?.click();
};
// Each entry of the navigation has a letter of its own: its first that is still free.
const letters = new Map();
for (const link of all('.masthead nav a')) {
  const letter = [...link.textContent.toLowerCase()].find((one) => /[a-z]/.test(one) && !letters.has(one));
  if (letter) letters.set(letter, link);
}
const KEYS = [
  ['/', 'go to the search field', () => one('#find')?.focus()],
  ['j', 'next row', () => step(1)],
  ['k', 'row before', () => step(-1)],
  ['o', 'open what the row is about', () => rows()[rowHere()] && one('a[href]', rows()[rowHere()]).click()],
  ['x', 'select the row', () => within('[data-key=x]')],
  ['a', 'acknowledge what is selected, or the row', () => {
    if (!one('main [data-key=x]:checked')) within('[data-key=x]');
    within('[data-key=a]');
  }],
  ['s', 'silence', () => within('[data-key=s]')],
  ['w', 'waive', () => within('[data-key=w]')],
  ['n', 'next page', () => one('main a[rel=next]')?.click()],
  ['p', 'page before', () => one('main a[rel=prev], main a[rel=first]')?.click()],
  ['?', 'this list', () => help()],
];
const NAME = 'keys-off';
const areOff = () => { try { return localStorage.getItem(NAME) === '1'; } catch { return false; } };
let dialog;
const help = () => {
  if (!dialog) {
    const list = make('dl', { className: 'pairs keys' });
    for (const [key, says] of KEYS) list.append(make('dt', {}, make('kbd', { textContent: key })), make('dd', { textContent: says }));
    for (const [letter, link] of letters) {
      list.append(make('dt', {}, make('kbd', { textContent: `g ${letter}` })), make('dd', { textContent: link.textContent }));
    }
    const box = make('input', { type: 'checkbox', checked: !areOff(), id: 'keys-on' });
    box.addEventListener('change', () => { try { localStorage.setItem(NAME, box.checked ? '0' : '1'); } catch { /* not remembered */ } });
    const title = make('h2', { textContent: 'Keys', id: 'keys-title' });
    const close = make('button', { textContent: 'Close' });
    dialog = make('dialog', { className: 'keys-dialog' }, title, list,
      make('p', {}, box, make('label', { htmlFor: 'keys-on', textContent: ' Single keys do something' })), close);
    dialog.setAttribute('aria-labelledby', 'keys-title');
    close.addEventListener('click', () => dialog.close());
    document.body.append(dialog);
  }
  dialog.showModal();
};
let isGoing = false;
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') return hideTip();
  if (event.ctrlKey || event.metaKey || event.altKey || areOff() || dialog?.open) return;
  if (event.target.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable]')) return;
  const going = isGoing;
  isGoing = event.key === 'g';
  if (going && letters.has(event.key)) {
    event.preventDefault();
    letters.get(event.key).click();
    return;
  }
  const known = KEYS.find(([key]) => key === event.key);
  if (known) {
    event.preventDefault();
    known[2]();
  }
});
const button = make('button', { type: 'button', textContent: 'Keys' });
button.addEventListener('click', help);
one('footer form')?.append(button);

/* Queries are completed while they are written. */

for (const input of all('input[name=q][list]')) {
  let asked = 0;
  input.addEventListener('input', () => {
    clearTimeout(asked);
    asked = setTimeout(async () => {
      const answer = await fetch(`/api/v1/completions?q=${encodeURIComponent(input.value)}`).catch(() => null);
      if (!answer?.ok || !input.list) return;
      const { items } = await answer.json();
      input.list.replaceChildren(...items.map((item) => make('option', { value: item.query })));
    }, 150);
  });
}

readyCharts();
listen();
})();
