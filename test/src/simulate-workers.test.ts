import { expect, it } from 'vitest';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const SMALL = ['--workers', '6', '--requests', '60', '--rate', '8', '--prefixes', '8', '--deaths', '2'];
const simulate = (...args: string[]) => runCli(['simulate', ...args]);

it('skein simulate --workers compares ways of choosing a worker, twice the same', async () => {
  const args = [...SMALL, '--rolling-update', '2', '--restart-seconds', '4', '--json'];
  const [first, second] = [await simulate(...args), await simulate(...args)];
  expect(first.code).toBe(0);
  expect(second.stdout).toBe(first.stdout);
  const { results } = JSON.parse(first.stdout);
  const found: Record<string, number> = {};
  for (const { routing, requests, generatedTokens, promptTokens, contextTokens, ...one } of results) {
    expect([requests, generatedTokens]).toEqual([60, 60 * 64]);
    // A request whose worker died before it began may find its prompt with the next one.
    expect(contextTokens).toBeGreaterThan(60 * 128);
    expect(one.moved).toBeGreaterThan(0);
    found[routing] = one.cachedTokens / promptTokens;
  }
  expect(Object.keys(found)).toEqual(['random', 'fewest-requests', 'queue', 'queue-cache', 'cache']);
  expect(found.cache).toBeGreaterThan(1.2 * found.random!);
  expect(first.stderr).toMatch(/^skein: random: \d+ iterations in [\d.]+ s, \d+ MB so far\n/);
  const other = await simulate(...args, '--seed', '2', '--routing', 'cache');
  expect(other.stdout).not.toBe(first.stdout);
});

it('skein simulate --workers shows a table, and refuses what is wrong', async () => {
  const { code, stdout } = await simulate(...SMALL, '--routing', 'queue,cache');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^6 workers with 600 blocks[\s\S]*\n2 deaths; 30 s to start again\n[\s\S]*\nqueue +\d[\s\S]*\ncache +\d/,
  );
  const bad = await simulate('--workers', '6', '--blocks', '3');
  expect(bad).toMatchObject({ code: 2, stdout: '' });
  expect(bad.stderr).toMatch(/^skein: The longest request has 1600 tokens .*\n$/);
});
