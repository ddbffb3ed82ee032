// Looks through pages with axe in a headless browser, in both themes, wide and narrow: a serious violation is a failure.
// usage: node axe.mjs URL...   (from a folder with playwright-core and axe-core installed)
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
let serious = 0;
for (const url of process.argv.slice(2)) {
  for (const [width, colorScheme] of [[1280, 'light'], [320, 'dark']]) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
    const page = await context.newPage();
    await page.goto(url, { waitUntil: 'load', timeout: 20000 });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    for (const one of violations) {
      const isSerious = ['serious', 'critical'].includes(one.impact);
      serious += isSerious ? 1 : 0;
      console.log(`${isSerious ? 'SERIOUS' : one.impact} ${new URL(url).pathname} ${width} ${colorScheme} ${one.id}: ${one.nodes.length}x ${one.nodes[0].target.join(' ')} ${one.nodes[0].failureSummary.split('\n')[1] ?? ''}`);
    }
    await context.close();
  }
}
await browser.close();
console.log(`${serious} serious violations on ${process.argv.length - 2} pages`);
process.exit(serious ? 1 : 0);
