// Five things that somebody new comes for, each done from the first page by what is written on links and buttons alone, without
// script and without an address known beforehand. usage: node tasks.mjs BASE
// (from a folder with playwright-core installed; BASE serves a demonstration of some hundred targets)
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const { chromium } = require('playwright-core');
const base = process.argv[2];
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, javaScriptEnabled: false });
const page = await context.newPage();
const failures = [];

// One press, and the page that it leads to.
let presses = 0;
const press = async (locator) => {
  presses += 1;
  await locator.first().click({ timeout: 10_000 });
  await page.waitForLoadState();
};
const link = (name, within = page) => within.getByRole('link', { name });
const said = async () => (await page.locator('main').innerText()).replace(/\s+/g, ' ');
// What a link to a file brings.
const fetched = async (locator) => {
  presses += 1;
  const answer = await context.request.get(new URL(await locator.first().getAttribute('href'), page.url()).href);
  return answer.text();
};
const task = async (what, steps) => {
  presses = 0;
  const began = performance.now();
  try {
    await page.goto(base + '/');
    const found = await steps();
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    if (!found) throw new Error('the answer is not there');
    console.log(`${what}: ${found} (${presses} presses, ${seconds} s by machine)`);
    if (presses > 6) failures.push(`${what}: ${presses} presses are too many`);
  } catch (error) {
    failures.push(`${what}: at ${page.url()}: ${error.message.split('\n')[0]}`);
  }
};

await task('which of my agents broke, and by which deploy', async () => {
  await page.getByRole('searchbox').first().fill('tidehouse');
  await press(page.getByRole('button', { name: 'Search' }));
  await press(link(/tidehouse/, page.locator('dd')));
  await press(link('What regressed'));
  const cause = page.locator('tr.cause').filter({ has: link(/^Deploy at /) }).first();
  // In a month of a demonstration an owner may have been spared; the page then says so.
  if (!(await cause.count())) return /regressed/.test(await said()) && page.locator('h1').innerText();
  const which = (await cause.innerText()).replace(/\s+/g, ' ');
  await press(link(/^Deploy at /, cause));
  return /this deploy is (certain|likely|possible)/.test(which) && /version|document|marker/i.test(await said()) && which;
});
await task('is a rule growing', async () => {
  const rule = page.getByRole('table').filter({ hasText: 'Fail now' }).getByRole('link');
  const which = await rule.first().innerText();
  await press(rule);
  const caption = (await page.locator('figcaption').first().innerText()).replace(/\s+/g, ' ');
  return /\d/.test(caption) && `${which}: ${caption.slice(0, 140)}`;
});
await task('who else serves this same card', async () => {
  await press(link('Targets', page.getByRole('navigation', { name: 'Main' })));
  await press(page.locator('table.rows tbody').getByRole('link'));
  await press(link('Document', page.locator('.facts-line')));
  const text = await said();
  return text.match(/[^.]* serves? it now\./)?.[0].trim();
});
await task('all failing rows as CSV', async () => {
  const rule = page.getByRole('table').filter({ hasText: 'Fail now' }).getByRole('link');
  await press(rule);
  const rows = (await fetched(link('CSV'))).trim().split('\n');
  return rows.length > 1 && `${rows.length - 1} rows under ${rows[0].trim().slice(0, 80)}`;
});
await task('a badge for a README', async () => {
  await page.getByRole('searchbox').first().fill('tidehouse');
  await press(page.getByRole('button', { name: 'Search' }));
  await press(page.locator('table.rows tbody').getByRole('link'));
  const snippet = await page.locator('pre').filter({ hasText: '/badges/' }).first().innerText();
  const image = snippet.match(/\((http[^)]*\.svg)\)/)[1];
  const answer = await context.request.get(image);
  return answer.ok() && (await answer.text()).startsWith('<svg') && snippet;
});

await browser.close();
for (const failure of failures) console.error(failure);
process.exit(failures.length ? 1 : 0);
