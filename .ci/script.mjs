// What the small script does, in a headless browser: tips that say what the table says, keys, numbers that keep up; and that the
// keyboard alone leads through a page. usage: node script.mjs BASE
// (from a folder with playwright-core installed)
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const { chromium } = require('playwright-core');
const base = process.argv[2];
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await context.newPage();
const complaints = [];
page.on('pageerror', (error) => complaints.push(`the script failed: ${error}`));
page.on('console', (message) => message.type() === 'error' && complaints.push(`the browser complains: ${message.text()}`));
const must = (holds, what) => { if (!holds) complaints.push(what); else console.log(`holds: ${what}`); };
const text = (selector) => page.locator(selector).first().textContent();

// Tips: each chart with a table says what the table says.
const withCharts = [];
for (const path of ['/', '/regressions', '/cohorts/all', '/rules/a2a/wrong-type', '/almanac']) {
  await page.goto(base + path);
  const chart = page.locator('.chart[data-day]').first();
  if (!(await chart.count()) || !(await chart.isVisible())) continue;
  withCharts.push(path);
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width - 2, box.y + 100);
  const said = await page.locator('.tip').evaluate((tip) => tip.hidden ? null : [...tip.children].map((part) => part.textContent));
  const rows = await page.locator('tr[data-day]').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const values = said?.slice(1).filter((_, n) => n % 2 === 1);
  must(said && rows.some((row) => row[0] === said[0] && row.slice(1).every((cell, n) => cell === values[n])), `${path}: the tip says what a row of the table says (${said})`);
  await chart.focus();
  await page.keyboard.press('Home');
  const first = await text('.tip b');
  await page.keyboard.press('End');
  const last = await text('.tip b');
  const spoken = await page.locator('p[role=status]').textContent();
  must(spoken.startsWith(`${last}: `) && (rows.length === 1 || first !== last), `${path}: arrow keys walk from ${first} to ${last} and it is spoken`);
  await page.keyboard.press('Escape');
  must(await page.locator('.tip').isHidden(), `${path}: Escape puts the tip away`);
}
must(withCharts.length > 0, `charts were found on ${withCharts}`);

await page.goto(`${base}/targets`);
const strip = page.locator('.strip[data-runs]').first();
if (await strip.count()) {
  const box = await strip.boundingBox();
  await page.mouse.move(box.x + box.width - 3, box.y + 5);
  must((await page.locator('.tip').textContent()).length > 5, 'a strip says the day under the pointer');
}

// Keys.
await page.keyboard.press('j');
const first = await page.evaluate(() => document.activeElement.closest('tr')?.rowIndex);
await page.keyboard.press('j');
const second = await page.evaluate(() => document.activeElement.closest('tr')?.rowIndex);
await page.keyboard.press('k');
must(first > 0 && second === first + 1, 'j and k walk through rows');
const href = await page.evaluate(() => document.activeElement.getAttribute('href'));
await Promise.all([page.waitForURL(base + href), page.keyboard.press('o')]);
must(true, 'o opens the row');
await Promise.all([page.waitForURL(`${base}/rules`), page.keyboard.type('gr')]);
must(true, 'g r leads to the rules');
await page.keyboard.press('/');
must(await page.evaluate(() => document.activeElement.id === 'find'), '/ leads to the search');
await page.keyboard.type('j?g');
must((await page.inputValue('#find')) === 'j?g' && !(await page.locator('dialog[open]').count()), 'in a field, keys are letters');
await page.locator('#find').blur();
await page.keyboard.press('?');
must(await page.locator('dialog[open]').isVisible(), '? shows the keys');
await page.locator('#keys-on').uncheck();
await page.keyboard.press('Escape');
await page.keyboard.press('/');
must(await page.evaluate(() => document.activeElement.id !== 'find'), 'keys can be switched off');
await page.getByRole('button', { name: 'Keys' }).click();
await page.locator('#keys-on').check();
await page.keyboard.press('Escape');

// Queries are completed.
await page.goto(`${base}/targets`);
const query = page.locator('form.filters input[name=q]');
await query.focus();
const answered = page.waitForResponse((response) => response.url().includes('/completions?q=headline'));
await query.pressSequentially('headline:bl');
await answered;
await page.waitForFunction(() => [...document.querySelectorAll('datalist option')].some((option) => option.value === 'headline:blocked'));
must(true, 'a query is completed');

// Numbers that keep up: an event, and the page is another without having been loaded again.
await page.goto(`${base}/`);
await page.waitForSelector('.live');
await page.evaluate(() => { window.kept = true; document.querySelector('h1').textContent = 'old'; });
const target = await page.evaluate(async () => (await (await fetch('/api/v1/targets?limit=1&fields=id')).json()).items[0]?.id);
const told = await context.request.post(`${base}/api/v1/deploys`, { data: { target: String(target), version: 'gate' } });
must(told.status() === 202, `a deploy is told (${told.status()})`);
await page.waitForFunction(() => document.querySelector('h1').textContent !== 'old', null, { timeout: 60_000 });
must(await page.evaluate(() => window.kept === true), 'new numbers came without a new page');

// Keyboard alone: the first stop skips to the content, every stop can be seen, and the way ends.
for (const path of ['/', '/targets', '/regressions', '/prevalence', '/check', '/crawls', '/rules', '/alerts', '/silences']) {
  await page.goto(base + path);
  await page.keyboard.press('Tab');
  must((await page.evaluate(() => document.activeElement.className)) === 'skip', `${path}: the first stop is the way to the content`);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  must(await page.evaluate(() => !document.activeElement.closest('.masthead')), `${path}: it leads past the masthead`);
  const reached = new Set();
  let unseen = 0;
  for (let n = 0; n < 600; n += 1) {
    const stop = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === document.body) return null;
      const style = getComputedStyle(element);
      const box = element.getBoundingClientRect();
      element.dataset.stop ??= String(Math.random());
      return { id: element.dataset.stop, seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && box.width > 0, what: element.outerHTML.slice(0, 120) };
    });
    if (!stop || reached.has(stop.id)) break;
    reached.add(stop.id);
    if (!stop.seen) { unseen += 1; complaints.push(`${path}: focus cannot be seen on ${stop.what}`); if (unseen > 3) break; }
    await page.keyboard.press('Tab');
  }
  const left = await page.evaluate(() => [...document.querySelectorAll('main a[href], main button, main input:not([type=hidden]), main select, main textarea, main summary')]
    .filter((element) => element.checkVisibility() && !element.disabled && !element.dataset.stop).map((element) => element.outerHTML.slice(0, 100)));
  if (reached.size < 600) must(left.length === 0, `${path}: everything is reached by the keyboard, ${reached.size} stops (${left.slice(0, 3)})`);
}

await browser.close();
for (const complaint of complaints) console.log(`FAILED: ${complaint}`);
process.exit(complaints.length ? 1 : 0);
