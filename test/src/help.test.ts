import { describe, expect, it } from 'vitest';
import { GROUPS } from '../../callbacks/options/option.js';
import { flagName, OPTIONS } from '../../src/options/table.js';
import { runInTerminal } from './support/pty.js';
import { runCli } from './support/skein-process.js';

async function helpOf(command: readonly string[], columns: number): Promise<string[]> {
  const terminal = runInTerminal([...command, '--help'], { columns });
  expect(await terminal.ended).toBe(0);
  return terminal.shown().replaceAll('\r', '').trimEnd().split('\n');
}

const COMMANDS = [
  ...['run', 'chat', 'top', 'batch', 'build', 'pull', 'info', 'setup', 'simulate', 'bench', 'completion'],
  'bench compare',
];

describe('skein serve --help', () => {
  it.each([40, 80, 120, 200])('fits into %i columns, and says the same in each', async (columns) => {
    const lines = await helpOf(['serve'], columns);
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(columns);
    const words = lines.join('').replaceAll(/\s/g, '');
    for (const { name, flag } of OPTIONS.filter(({ isForServe }) => isForServe)) {
      expect(words).toContain(`--${flagName(name)}`);
      expect(words, name).toContain(flag.help.replaceAll(/\s/g, ''));
    }
    // A wide terminal is made use of.
    const longest = Math.max(...lines.map((line) => line.length));
    expect(longest).toBeGreaterThan(0.8 * columns);
  });

  it('has ten common options first, then the groups', async () => {
    const { stdout } = await runCli(['serve', '--help']);
    const headings = Array.from(stdout.matchAll(/^([A-Z][^\n]*):$/gm), ([, heading]) => heading);
    expect(headings.slice(0, 1 + GROUPS.length)).toEqual([
      'Common options',
      ...GROUPS.filter((group) => group !== 'Work queue'),
      'Options',
    ]);
    const [, common] = /Common options:\n([\s\S]*?)\n\n/.exec(stdout)!;
    const names = Array.from(common!.matchAll(/^ {2}(--[\w-]+)/gm), ([, flag]) => flag);
    expect(names).toHaveLength(10);
    expect(names).toEqual(expect.arrayContaining(['--model', '--port', '--kv-cache-tokens', '--threads']));
    for (const former of ['--max-tokens', '--max-model-len', '--gpu-memory-utilization']) {
      expect(stdout).not.toMatch(new RegExp(`^ *${former}\\b`, 'm'));
    }
  });
});

describe('--help of the other commands', () => {
  it.each(COMMANDS)('%s fits into 40 columns', async (command) => {
    const lines = await helpOf(command.split(' '), 40);
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(40);
  });
});
